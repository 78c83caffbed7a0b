//! Schedules, and what became of their slots.

use api::{
    Action, Code, Error, Happening, ScheduleAdd, ScheduleEdit, ScheduleList, SchedulePause,
    ScheduleRemove, ScheduleResume, ScheduleShow, Terms, When, Why,
};
use rmcp::model::JsonObject;
use schemars::{JsonSchema, Schema};
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_MAX, paged};
use crate::schema::Kind::{Cursor, Flag, Object, Objects, Text, Texts};
use crate::tool::{Input, Through, Tool, brief, page_of, shown, with};
use crate::toolset::Toolset;

/// What a list shows of each.
const BRIEF: &[&str] =
    &["id", "name", "describe", "status", "next_run_at", "last_run_id", "last_run_at", "failures"];

pub(super) const TOOLS: &[Tool] = &[
    Tool::writes::<ScheduleCreate>(
        "schedule_create",
        Toolset::Schedule,
        "schedule add",
        "Add a schedule that prompts an agent, or calls a tool of this server: by cron, every span, daily, once at a time, after another \
         schedule, or on an event. The same one again is returned, not doubled. To run something now, use run_start.",
        &[("schedule", Object), ("created", Flag), ("next", Texts)],
    ),
    Tool::reads::<SchedulePreview>(
        "schedule_preview",
        Toolset::Schedule,
        "schedule add --dry-run",
        "Show when a schedule would fire and whether its runs would need a human, without adding it.",
        &[("schedule", Object), ("would_create", Flag), ("next", Texts)],
    )
    .not_scheduled("it shows what would be, to whoever looks"),
    Tool::reads::<ScheduleListed>(
        "schedule_list",
        Toolset::Schedule,
        "schedule list",
        "List schedules, a few fields of each. For everything about one, use schedule_get.",
        &[("schedules", Objects), ("cursor", Cursor)],
    ),
    Tool::reads::<ScheduleGet>(
        "schedule_get",
        Toolset::Schedule,
        "schedule show",
        "Show one schedule: its trigger, prompt, terms, next times, and what the standing orders will say.",
        &[("schedule", Object), ("next", Texts), ("orders", Object)],
    ),
    Tool::writes::<ScheduleUpdate>(
        "schedule_update",
        Toolset::Schedule,
        "schedule edit",
        "Change what is given of a schedule and leave the rest. A question that waits about it is asked anew.",
        &[("schedule", Object), ("changed", Flag), ("next", Texts)],
    ),
    Tool::writes::<SchedulePaused>(
        "schedule_pause",
        Toolset::Schedule,
        "schedule pause",
        "Pause a schedule until it is resumed; runs that are at work go on. To stop those, use run_cancel.",
        &[("schedule", Object), ("changed", Flag)],
    ),
    Tool::writes::<ScheduleResumed>(
        "schedule_resume",
        Toolset::Schedule,
        "schedule resume",
        "Let a paused schedule go on.",
        &[("schedule", Object), ("changed", Flag), ("next", Texts)],
    ),
    Tool::writes::<ScheduleDelete>(
        "schedule_delete",
        Toolset::Schedule,
        "schedule remove",
        "Remove a schedule for good; what it did stays in the log. To stop it for a while, use schedule_pause.",
        &[("schedule", Object)],
    )
    .destroys(),
    Tool::reads::<SlotExplain>(
        "slot_explain",
        Toolset::Schedule,
        "why",
        "Say in one sentence what became of a slot of a schedule and why: fired, skipped, parked, late.",
        &[("slot", Text), ("disposition", Text), ("sentence", Text)],
    ),
];

/// When it fires: exactly one of cron, every, daily, at, after, event. What it does: agent and prompt, or tool and payload.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleCreate {
    /// What people call it, at most 120 characters.
    name: String,
    /// The agent that is prompted; agent_list shows them.
    agent: Option<String>,
    /// What it is told each time.
    prompt: Option<String>,
    /// Instead of an agent: the tool of this server that is called each time, such as `schedule_pause`.
    tool: Option<String>,
    /// What the tool is called with, without an idempotency_key.
    payload: Option<JsonObject>,
    /// A cron expression of 5 fields, or of 6 with the seconds first, such as `0 9 * * mon-fri`.
    cron: Option<String>,
    /// A span such as `10m` or `6h`.
    every: Option<String>,
    /// Times of the day such as `09:00,17:30`.
    daily: Option<String>,
    /// One instant, such as `2026-12-01T09:00:00Z`; without an offset it is a time in `tz`.
    at: Option<String>,
    /// The id of a schedule after whose runs this one runs.
    after: Option<String>,
    /// The name of an event that makes it run.
    event: Option<String>,
    /// The time zone, such as `Europe/Berlin` or `UTC`. It is needed with cron, with daily, and with an `at` that
    /// has no offset.
    tz: Option<String>,
    /// Raises the tier above the agent's: 0 reads, 1 writes here, 2 reaches outside and needs a human.
    #[schemars(range(max = 2))]
    tier: Option<u8>,
    /// The most runs in one UTC day. Default: derived from the trigger.
    per_day: Option<u32>,
    /// The most runs altogether. Default: no limit.
    max_fires: Option<u64>,
    /// What happens to a slot while an earlier run goes on: `skip` it (the default), run it afterwards (`buffer_one`, or
    /// `buffer_all:N` for N of them), run it beside (`allow:N` for N at a time), or end the earlier one
    /// (`cancel_other`, `terminate_other`).
    #[schemars(regex(
        pattern = r"^(skip|buffer_one|buffer_all(:\d+)?|allow(:\d+)?|cancel_other|terminate_other)$"
    ))]
    overlap: Option<String>,
    /// Which of the slots run that were missed while nobody kept the watch: the `latest` (the default), the `earliest`,
    /// `all:N` for N of them at most, or none (`skip`).
    #[schemars(regex(pattern = r"^(latest|earliest|all(:\d+)?|skip)$"))]
    missed: Option<String>,
    /// Keep the prompt and what its runs say out of lists, logs and exports. Default: false.
    sensitive: Option<bool>,
    /// With the same key, the same call happens once: 1 to 128 printable ASCII characters without blanks.
    idempotency_key: Option<String>,
}

impl ScheduleCreate {
    fn into_request(self, dry_run: bool) -> (Option<String>, ScheduleAdd) {
        let ScheduleCreate { name, agent, prompt, tool, payload, tier, idempotency_key, .. } = self;
        let ScheduleCreate { cron, every, daily, at, tz, after, event, .. } = self;
        let ScheduleCreate { per_day, max_fires, overlap, missed, sensitive, .. } = self;
        let sensitive = sensitive.unwrap_or(false);
        let when = When { cron, every, daily, at, tz, ..When::default() };
        let happening = Happening { after, event, ..Happening::default() };
        let terms = Terms { per_day, max_fires, overlap, missed, ..Terms::default() };
        let action = Action { agent, prompt, tool, payload: payload.map(text_of) };
        (
            idempotency_key,
            ScheduleAdd {
                name,
                when,
                happening,
                action,
                sensitive,
                tier,
                terms,
                paused: false,
                dry_run,
            },
        )
    }
}

fn text_of(payload: JsonObject) -> String {
    Value::Object(payload).to_string()
}

impl Input for ScheduleCreate {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let (key, request) = self.into_request(false);
        shown(&through.change(key, request).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent, transform = without_key)]
struct SchedulePreview(ScheduleCreate);

/// Nothing is done, so there is nothing to do once.
fn without_key(schema: &mut Schema) {
    if let Some(Value::Object(properties)) = schema.get_mut("properties") {
        properties.retain(|name, _| name != "idempotency_key");
    }
}

impl Input for SchedulePreview {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let (key, request) = self.0.into_request(true);
        if key.is_some() {
            let what = "a preview changes nothing, so it takes no `idempotency_key`";
            return Err(Error::new(Code::InvalidInput, what));
        }
        let mut answer = shown(&through.read(request).await?)?;
        let created = answer.as_object_mut().and_then(|fields| fields.remove("created"));
        Ok(with(answer, "would_create", created))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleListed {
    /// Only those for this agent.
    agent: Option<String>,
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<u32>,
    /// What an earlier page gave as `cursor`.
    cursor: Option<String>,
}

impl Input for ScheduleListed {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let ScheduleListed { agent, limit, cursor } = self;
        let asked = &ScheduleList { agent, limit: None, cursor };
        paged(limit, |limit| async move {
            let listed = through.read(ScheduleList { limit, ..asked.clone() }).await?;
            Ok(page_of("schedules", brief(&listed.schedules, BRIEF)?, listed.cursor))
        })
        .await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleGet {
    /// `sch_…`, from schedule_list.
    id: String,
}

impl Input for ScheduleGet {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        shown(&through.read(ScheduleShow { id: self.id }).await?)
    }
}

/// A new trigger takes the place of the old one as a whole.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleUpdate {
    /// `sch_…`, from schedule_list.
    id: String,
    /// Another name.
    name: Option<String>,
    /// Another agent.
    agent: Option<String>,
    /// Another prompt.
    prompt: Option<String>,
    /// Another tool, or the same one again after it has changed.
    tool: Option<String>,
    /// Another payload of the tool.
    payload: Option<JsonObject>,
    /// Another trigger: a cron expression.
    cron: Option<String>,
    /// Another trigger: a span such as `10m`.
    every: Option<String>,
    /// Another trigger: times of the day such as `09:00,17:30`.
    daily: Option<String>,
    /// Another trigger: one instant.
    at: Option<String>,
    /// Another time zone.
    tz: Option<String>,
    /// Another tier, not below the agent's.
    #[schemars(range(max = 2))]
    tier: Option<u8>,
    /// The most runs in one UTC day.
    per_day: Option<u32>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for ScheduleUpdate {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let ScheduleUpdate { id, name, agent, prompt, tool, payload, .. } = self;
        let ScheduleUpdate { tier, per_day, idempotency_key, .. } = self;
        let when = When {
            cron: self.cron,
            every: self.every,
            daily: self.daily,
            at: self.at,
            tz: self.tz,
            ..When::default()
        };
        let request = ScheduleEdit {
            id,
            name,
            when: (when != When::default()).then_some(when),
            action: Action { agent, prompt, tool, payload: payload.map(text_of) },
            tier,
            terms: Terms { per_day, ..Terms::default() },
            ..ScheduleEdit::default()
        };
        shown(&through.change(idempotency_key, request).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SchedulePaused {
    /// `sch_…`, from schedule_list.
    id: String,
    /// Why, for whoever looks.
    note: Option<String>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for SchedulePaused {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let request = SchedulePause { id: self.id, note: self.note };
        shown(&through.change(self.idempotency_key, request).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleResumed {
    /// `sch_…`, from schedule_list.
    id: String,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for ScheduleResumed {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        shown(&through.change(self.idempotency_key, ScheduleResume { id: self.id }).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleDelete {
    /// `sch_…`, from schedule_list.
    id: String,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for ScheduleDelete {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        shown(&through.change(self.idempotency_key, ScheduleRemove { id: self.id }).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct SlotExplain {
    /// `sch_…`, from schedule_list.
    id: String,
    /// An instant; without an offset it is a time in the schedule's zone. Default: the last slot.
    at: Option<String>,
}

impl Input for SlotExplain {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        shown(&through.read(Why { id: self.id, at: self.at }).await?)
    }
}
