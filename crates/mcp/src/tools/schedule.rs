//! Tools for schedules and the outcome of their slots.

use api::{
    Action, Error, EventTrigger, Payload, ScheduleAdd, ScheduleEdit, ScheduleList, SchedulePause,
    ScheduleRemove, ScheduleResume, ScheduleShow, Terms, When, Why,
};
use rmcp::model::JsonObject;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{Argument, renamed};
use crate::schema::FieldType::{Boolean, Cursor, Object, Objects, Text, Texts};
use crate::tool::{Tool, ToolContext, ToolInput, to_json, with_field};
use crate::tools::Toolset;

const ID: Argument = renamed("id", "schedule_id")
    .or_field()
    .described("The id, `sch_…`, or the name, from schedule_list.");

pub(super) const TOOLS: &[Tool] = &[
    Tool::new::<ScheduleCreateInput>(
        "schedule_create",
        Toolset::Schedule,
        "schedule add",
        "Add a schedule that prompts an agent or calls a tool of this server: by cron, at an interval, daily, once, after \
         another schedule, or on an event. Adding the same schedule again returns the existing one. To run a schedule \
         now, use run_start.",
        &[("schedule", Object), ("created", Boolean), ("next", Texts), ("warnings", Texts)],
    ),
    Tool::new::<SchedulePreviewInput>(
        "schedule_preview",
        Toolset::Schedule,
        "schedule add --dry-run",
        "Show when a schedule would fire and whether its runs would need approval, without adding it.",
        &[("schedule", Object), ("would_create", Boolean), ("next", Texts), ("warnings", Texts)],
    )
    .not_schedulable("a preview has no effect"),
    Tool::new::<ScheduleList>(
        "schedule_list",
        Toolset::Schedule,
        "schedule list",
        "List schedules with a few fields of each, the next due first. For all fields of one, use schedule_get.",
        &[("schedules", Objects), ("cursor", Cursor)],
    )
    .without(&["by_id"])
    .paged(&[
        "id",
        "name",
        "describe",
        "status",
        "next_run_at",
        "last_run_id",
        "last_run_at",
        "failures",
    ]),
    Tool::new::<ScheduleShow>(
        "schedule_get",
        Toolset::Schedule,
        "schedule show",
        "Show one schedule: its trigger, prompt, terms, next times, and what the policy will decide for its runs.",
        &[("schedule", Object), ("next", Texts), ("orders", Object)],
    )
    .arguments(&[ID]),
    Tool::new::<ScheduleUpdateInput>(
        "schedule_update",
        Toolset::Schedule,
        "schedule edit",
        "Change the given fields of a schedule; omitted fields keep their value. A pending approval of its runs is requested again.",
        &[("schedule", Object), ("changed", Boolean), ("next", Texts), ("warnings", Texts)],
    ),
    Tool::new::<SchedulePause>(
        "schedule_pause",
        Toolset::Schedule,
        "schedule pause",
        "Pause a schedule until it is resumed. Its running runs continue; to stop one, use run_cancel.",
        &[("schedule", Object), ("changed", Boolean)],
    )
    .arguments(&[ID]),
    Tool::new::<ScheduleResume>(
        "schedule_resume",
        Toolset::Schedule,
        "schedule resume",
        "Resume a paused schedule.",
        &[("schedule", Object), ("changed", Boolean), ("next", Texts)],
    )
    .arguments(&[ID]),
    Tool::new::<ScheduleRemove>(
        "schedule_delete",
        Toolset::Schedule,
        "schedule remove",
        "Remove a schedule permanently; its history stays in the ledger. To stop it for a while, use schedule_pause.",
        &[("schedule", Object), ("deleted", Boolean)],
    )
    .arguments(&[ID])
    .then(|removed| Ok(with_field(removed, "deleted", true)))
    .destroys(),
    Tool::new::<Why>(
        "slot_explain",
        Toolset::Schedule,
        "why",
        "Explain in one sentence why a slot (a scheduled time) fired, was skipped, is parked or is late.",
        &[("slot", Text), ("disposition", Text), ("sentence", Text)],
    )
    .arguments(&[ID]),
];

/// The trigger is exactly one of cron, every, daily, at, after, event, again; the action is agent and prompt, or tool and payload.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleCreateInput {
    /// A name for people, at most 120 characters.
    name: String,
    /// The agent to prompt, from agent_list.
    agent: Option<String>,
    /// The prompt to send each time.
    prompt: Option<String>,
    /// Instead of an agent: the tool of this server to call each time, such as `schedule_pause`.
    tool: Option<String>,
    /// The arguments of the tool, without idempotency_key.
    payload: Option<JsonObject>,
    /// A cron expression with 5 fields, such as `0 9 * * mon-fri`, or with 6, the seconds first.
    cron: Option<String>,
    /// An interval such as `10m` or `6h`.
    every: Option<String>,
    /// Times of day such as `09:00,17:30`.
    daily: Option<String>,
    /// One instant, such as `2026-12-01T09:00:00Z`; without an offset it is in `tz`.
    at: Option<String>,
    /// The id or name of another schedule: this one fires when a run of it succeeds, or as `on` says.
    after: Option<String>,
    /// The name of the event that fires it.
    event: Option<String>,
    /// Fires this long after the end of its own last run, such as `10m`.
    again: Option<String>,
    /// With after: which runs, `success` (default), `failure` or `any`. With daily: which days, such as `mon-fri`.
    on: Option<String>,
    /// The time zone, such as `Europe/Berlin` or `UTC`. Required with cron, with daily, and with an `at` without
    /// offset.
    tz: Option<String>,
    /// Raises the agent's tier. 0: read only. 1: local writes. 2: external effects; runs need human approval.
    #[schemars(range(max = 2))]
    tier: Option<u8>,
    /// Maximum number of runs per UTC day. Default: derived from the trigger.
    #[schemars(range(min = 1))]
    per_day: Option<u32>,
    /// Maximum number of runs in total. Default: no limit.
    #[schemars(range(min = 1))]
    max_fires: Option<u64>,
    /// What happens to a slot while an earlier run is live: `skip` it (default), run it afterwards (`buffer_one`, or
    /// `buffer_all:N` for up to N slots), run it in parallel (`allow:N` for up to N runs), or end the earlier run
    /// (`cancel_other`, `terminate_other`).
    #[schemars(regex(
        pattern = r"^(skip|buffer_one|buffer_all(:\d+)?|allow(:\d+)?|cancel_other|terminate_other)$"
    ))]
    overlap: Option<String>,
    /// Which slots run that were missed while no daemon was running: the `latest` (default), the `earliest`, up to N of
    /// them (`all:N`), or none (`skip`).
    #[schemars(regex(pattern = r"^(latest|earliest|all(:\d+)?|skip)$"))]
    missed: Option<String>,
    /// Keep the prompt and the output of runs out of lists, logs and exports. Default: false.
    sensitive: Option<bool>,
}

impl ScheduleCreateInput {
    fn into_request(self, dry_run: bool) -> Result<ScheduleAdd, Error> {
        let ScheduleCreateInput { name, agent, prompt, tool, payload, tier, .. } = self;
        let ScheduleCreateInput { cron, every, daily, at, tz, after, event, again, on, .. } = self;
        let trigger = TriggerArguments { cron, every, daily, at, tz, after, event, again, on };
        let (when, event_trigger) = trigger.into();
        let ScheduleCreateInput { per_day, max_fires, overlap, missed, sensitive, .. } = self;
        Ok(ScheduleAdd {
            name,
            when,
            event_trigger,
            action: Action { agent, prompt, tool, payload: payload_text(payload)? },
            sensitive: sensitive.unwrap_or(false),
            tier,
            terms: Terms { per_day, max_fires, overlap, missed, ..Terms::default() },
            paused: false,
            dry_run,
        })
    }
}

/// The arguments of a trigger.
struct TriggerArguments {
    cron: Option<String>,
    every: Option<String>,
    daily: Option<String>,
    at: Option<String>,
    tz: Option<String>,
    after: Option<String>,
    event: Option<String>,
    again: Option<String>,
    on: Option<String>,
}

impl From<TriggerArguments> for (When, EventTrigger) {
    fn from(arguments: TriggerArguments) -> (When, EventTrigger) {
        let TriggerArguments { cron, every, daily, at, tz, after, event, again, on } = arguments;
        // `on` is an outcome with `after`, and days otherwise.
        let (ending, on) = if after.is_some() { (on, None) } else { (None, on) };
        let when = When { cron, every, daily, at, tz, on, ..When::default() };
        (when, EventTrigger { after, ending, event, again, ..EventTrigger::default() })
    }
}

fn payload_text(payload: Option<JsonObject>) -> Result<Option<Payload>, Error> {
    payload.map(|fields| Value::Object(fields).try_into()).transpose()
}

impl ToolInput for ScheduleCreateInput {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        to_json(&context.change(self.into_request(false)?).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
struct SchedulePreviewInput(ScheduleCreateInput);

impl ToolInput for SchedulePreviewInput {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let request = self.0.into_request(true)?;
        let mut answer = to_json(&context.read(request).await?)?;
        let created = answer.as_object_mut().and_then(|fields| fields.remove("created"));
        Ok(with_field(answer, "would_create", created))
    }
}

/// A new trigger replaces the old one completely.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ScheduleUpdateInput {
    /// The id, `sch_…`, or the name, from schedule_list.
    #[serde(alias = "id")]
    schedule_id: String,
    /// New name.
    name: Option<String>,
    /// New agent.
    agent: Option<String>,
    /// New prompt.
    prompt: Option<String>,
    /// New tool, or the same tool again to accept its changed definition.
    tool: Option<String>,
    /// New arguments of the tool.
    payload: Option<JsonObject>,
    /// New trigger: a cron expression.
    cron: Option<String>,
    /// New trigger: an interval such as `10m`.
    every: Option<String>,
    /// New trigger: times of day such as `09:00,17:30`.
    daily: Option<String>,
    /// New trigger: one instant.
    at: Option<String>,
    /// New trigger: the id or name of another schedule, after whose runs it fires.
    after: Option<String>,
    /// New trigger: the name of an event.
    event: Option<String>,
    /// New trigger: this long after the end of its own last run.
    again: Option<String>,
    /// With after: `success` (default), `failure` or `any`. With daily: the days, such as `mon-fri`.
    on: Option<String>,
    /// New time zone.
    tz: Option<String>,
    /// New tier, not below the agent's.
    #[schemars(range(max = 2))]
    tier: Option<u8>,
    /// New maximum number of runs per UTC day.
    #[schemars(range(min = 1))]
    per_day: Option<u32>,
}

impl ToolInput for ScheduleUpdateInput {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let ScheduleUpdateInput { schedule_id, name, agent, prompt, tool, payload, .. } = self;
        let ScheduleUpdateInput { cron, every, daily, at, tz, after, event, again, on, .. } = self;
        let ScheduleUpdateInput { tier, per_day, .. } = self;
        let trigger = TriggerArguments { cron, every, daily, at, tz, after, event, again, on };
        let (when, event_trigger) = trigger.into();
        let request = ScheduleEdit {
            id: schedule_id,
            name,
            when: (when != When::default()).then_some(when),
            event_trigger,
            action: Action { agent, prompt, tool, payload: payload_text(payload)? },
            tier,
            terms: Terms { per_day, ..Terms::default() },
            ..ScheduleEdit::default()
        };
        to_json(&context.change(request).await?)
    }
}
