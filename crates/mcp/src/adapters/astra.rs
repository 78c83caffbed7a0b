//! The tools of Astra: schedules that call tools, and what became of their runs.

use api::{
    Action, Amount, BudgetList, Budgets, Code, Error, HealthAsk, RunShow, Schedule, ScheduleAdd,
    ScheduleEdit, SchedulePause, ScheduleResume, Terms, When,
};
use compat::{astra, schedules};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::LIST_ITEMS_MAX;
use super::history::{History, Wanted, execution, instant, patterns};
use crate::schema::Kind::{self, Flag};
use crate::tool::{Input, Through, Tool, with};
use crate::toolset::Toolset;

const TIER_DEFAULT: u8 = 1;
const PER_DAY_DEFAULT: u32 = 4;
const EXECUTIONS_MAX: usize = 100;
const EXECUTIONS_DEFAULT: usize = 20;
const FAILURES_MAX: usize = 50;
const FAILURES_DEFAULT: usize = 10;

/// Whether it worked is in every answer.
const GIVES: &[(&str, Kind)] = &[("success", Flag)];

pub(super) const TOOLS: &[Tool] = &[
    Tool::writes::<Create>(
        "astra.schedule.create",
        Toolset::Astra,
        "schedule add",
        "Add a schedule that calls a tool. The same one again is returned, not doubled.",
        GIVES,
    ),
    Tool::writes::<Modify>(
        "astra.schedule.modify",
        Toolset::Astra,
        "schedule edit",
        "Change the expression, tool, payload or daily budget of a schedule. It keeps its id.",
        GIVES,
    ),
    Tool::writes::<Pause>(
        "astra.schedule.pause",
        Toolset::Astra,
        "schedule pause",
        "Pause a schedule until it is resumed.",
        GIVES,
    ),
    Tool::writes::<Resume>(
        "astra.schedule.resume",
        Toolset::Astra,
        "schedule resume",
        "Let a paused schedule go on.",
        GIVES,
    ),
    Tool::reads::<List>(
        "astra.schedule.list",
        Toolset::Astra,
        "schedule list",
        "List schedules that call tools, with what is left of their daily budgets.",
        GIVES,
    ),
    Tool::reads::<Health>(
        "astra.health",
        Toolset::Astra,
        "status",
        "Tell whether the server is well, and which tools it has.",
        GIVES,
    ),
    Tool::reads::<TasksList>(
        "tasks_list",
        Toolset::Astra,
        "run list",
        "List what was executed, the newest first.",
        GIVES,
    ),
    Tool::reads::<TasksByTrace>(
        "tasks_by_trace",
        Toolset::Astra,
        "run show",
        "Show one execution by its trace id, which is the id of its run.",
        GIVES,
    ),
    Tool::reads::<TasksLastFailed>(
        "tasks_last_failed",
        Toolset::Astra,
        "run list --state failed",
        "List what failed last, and which errors come again.",
        GIVES,
    ),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// What it is called, at most 105 characters.
    #[schemars(with = "String")]
    name: Option<String>,
    /// Five fields in UTC, such as `0 */6 * * *`; a sixth and last one has the seconds.
    #[schemars(with = "String")]
    cron_expression: Option<String>,
    /// The tool that is called.
    #[schemars(with = "String")]
    target_tool: Option<String>,
    /// What it is called with.
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    payload: Option<Map<String, Value>>,
    /// 0 reads, 1 writes here, 2 reaches outside and needs a human. Default: 1.
    safety_tier: Option<u8>,
    /// The most runs in one UTC day. Default: 4.
    per_day_budget: Option<u32>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for Create {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let Create { name, cron_expression, target_tool, payload, .. } = self;
        let given = [
            ("name", name.is_some()),
            ("cron_expression", cron_expression.is_some()),
            ("target_tool", target_tool.is_some()),
            ("payload", payload.is_some()),
        ];
        let (Some(name), Some(cron), Some(tool), Some(payload)) =
            (name, cron_expression, target_tool, payload)
        else {
            let missing = given.into_iter().filter(|(_, is_given)| !is_given);
            let missing: Vec<&str> = missing.map(|(name, _)| name).collect();
            return Err(wrong(format!("Missing required fields: {}", missing.join(", "))));
        };
        let tier = self.safety_tier.unwrap_or(TIER_DEFAULT);
        let per_day = self.per_day_budget.unwrap_or(PER_DAY_DEFAULT);
        let ours = astra::cron(&cron)?;
        let payload = Value::Object(payload);
        let id = astra::id(&name, &cron, &tool, &payload);
        if let Some(found) = known(through, &id).await? {
            return existing(through, &found, tier, per_day).await;
        }
        let request = ScheduleAdd {
            name: astra::named(&name, &id)?,
            when: utc(ours),
            action: Action {
                tool: Some(tool),
                payload: Some(payload.to_string()),
                ..Action::default()
            },
            tier: Some(tier),
            terms: Terms { per_day: Some(per_day), ..Terms::default() },
            ..ScheduleAdd::default()
        };
        let added = through.change(self.idempotency_key, request).await?;
        answered(through, &added.schedule).await
    }
}

/// The one that is there already, unless it is another one but for its id.
async fn existing(
    through: &Through<'_>,
    found: &Schedule,
    tier: u8,
    per_day: u32,
) -> Result<Value, Error> {
    let differs = |what: &str, there: Option<u32>, asked: u32| {
        let there = there.map_or("none".to_owned(), |there| there.to_string());
        (there != asked.to_string()).then(|| format!("{what} {there}, not {asked}"))
    };
    let differences = [
        differs("safety_tier", found.tier.map(u32::from), tier.into()),
        differs("per_day_budget", found.terms.per_day, per_day),
    ];
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    if !differences.is_empty() {
        let (name, id) = astra::known(found);
        let what = format!(
            "Schedule already exists: {id} (name: {name}), with {}",
            differences.join(" and ")
        );
        return Err(Error::new(Code::Exists, what).hint(
            "astra.schedule.modify changes its per_day_budget; its safety_tier is for a human to change",
        ));
    }
    let answer = answered(through, found).await?;
    Ok(with(answer, "existing", true))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Modify {
    /// `sch_…`, from astra.schedule.list.
    #[schemars(with = "String")]
    schedule_id: Option<String>,
    /// Another expression; a sixth and last field has the seconds.
    cron_expression: Option<String>,
    /// Another tool.
    target_tool: Option<String>,
    /// Another payload.
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    payload: Option<Map<String, Value>>,
    /// The most runs in one UTC day.
    per_day_budget: Option<u32>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for Modify {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let id = required(self.schedule_id)?;
        let when = self.cron_expression.map(|cron| astra::cron(&cron)).transpose()?.map(utc);
        let payload = self.payload.map(|payload| Value::Object(payload).to_string());
        let action = Action { tool: self.target_tool, payload, ..Action::default() };
        let terms = Terms { per_day: self.per_day_budget, ..Terms::default() };
        if when.is_none() && action == Action::default() && terms == Terms::default() {
            return Err(wrong("No updates provided"));
        }
        let id = find(through, &id).await?.id;
        let request = ScheduleEdit { id, when, action, terms, ..ScheduleEdit::default() };
        let changed = through.change(self.idempotency_key, request).await?;
        answered(through, &changed.schedule).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pause {
    /// `sch_…`, from astra.schedule.list.
    #[schemars(with = "String")]
    schedule_id: Option<String>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for Pause {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let id = required(self.schedule_id)?;
        let request = SchedulePause { id: find(through, &id).await?.id, note: None };
        let schedule = through.change(self.idempotency_key, request).await?.schedule;
        Ok(json!({"schedule_id": id, "status": schedule.status}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Resume {
    /// `sch_…`, from astra.schedule.list.
    #[schemars(with = "String")]
    schedule_id: Option<String>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for Resume {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let id = required(self.schedule_id)?;
        let request = ScheduleResume { id: find(through, &id).await?.id };
        let schedule = through.change(self.idempotency_key, request).await?.schedule;
        Ok(json!({
            "schedule_id": id,
            "status": schedule.status,
            "next_run_at": schedule.next_run_at,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct List {
    /// Only those that are `active` or `paused`.
    status: Option<String>,
}

impl Input for List {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let used = Used::today(through).await?;
        let mut found = of_tools(through).await?;
        found.retain(|schedule| self.status.as_ref().is_none_or(|it| *it == schedule.status));
        let (count, is_cut) = (found.len(), LIST_ITEMS_MAX < found.len());
        let items: Vec<Value> =
            found.iter().take(LIST_ITEMS_MAX).map(|schedule| item(schedule, &used)).collect();
        let answer = json!({"schedules": items, "count": count});
        Ok(if is_cut { with(answer, "truncated", true) } else { answer })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Health {}

impl Input for Health {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let health = through.read(HealthAsk {}).await?;
        let tools = through.selection.tools().filter(|tool| tool.toolset == Toolset::Astra);
        let tools: Vec<&str> = tools.map(|tool| tool.name).collect();
        Ok(json!({
            "ok": health.is_well(),
            "server": "astra-mcp",
            "tool_count": tools.len(),
            "tools": tools,
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksList {
    /// Only those of this schedule, `sch_…`.
    task_id: Option<String>,
    /// Only those with this outcome.
    #[schemars(extend("enum" = ["success", "failed"]))]
    status: Option<String>,
    /// 1 to 100. Default: 20.
    limit: Option<u32>,
    /// Only those since this instant in ISO 8601; without an offset it is in UTC.
    since: Option<String>,
    /// Only those that were made up for later, or only the others.
    backfilled: Option<bool>,
}

impl Input for TasksList {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let state = match self.status.as_deref() {
            None => None,
            Some("success") => Some("done"),
            Some("failed") => Some("failed"),
            Some(_) => return Err(wrong("status must be 'success' or 'failed'")),
        };
        let limit = within(self.limit, EXECUTIONS_DEFAULT, EXECUTIONS_MAX);
        let wanted = Wanted {
            task_id: self.task_id,
            state,
            since_us: self.since.as_deref().map(instant).transpose()?,
            backfilled: self.backfilled,
        };
        let History { executions, has_more, .. } = History::of(through, wanted, limit).await?;
        Ok(json!({"total": executions.len(), "executions": executions, "has_more": has_more}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksByTrace {
    /// The id of the run, `run_…`.
    #[schemars(with = "String")]
    trace_id: Option<String>,
}

impl Input for TasksByTrace {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let id = self.trace_id.ok_or_else(|| wrong("Missing required field: trace_id"))?;
        let run = through.read(RunShow { id }).await?.run;
        let known = schedules(through).await?;
        let execution = execution(&run, &known);
        Ok(json!({
            "retry_count": run.attempt.saturating_sub(1),
            "final_status": execution.get("status"),
            "executions": [execution],
        }))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TasksLastFailed {
    /// 1 to 50. Default: 10.
    limit: Option<u32>,
    /// Only those of this schedule, `sch_…`.
    task_id: Option<String>,
    /// Only the last one of each error. Default: false.
    unique_errors: Option<bool>,
}

impl Input for TasksLastFailed {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let limit = within(self.limit, FAILURES_DEFAULT, FAILURES_MAX);
        let wanted = Wanted { task_id: self.task_id, state: Some("failed"), ..Wanted::default() };
        let mut failures = History::of(through, wanted, EXECUTIONS_MAX).await?.executions;
        let patterns = patterns(&failures);
        if self.unique_errors.unwrap_or(false) {
            let mut seen = Vec::new();
            failures.retain(|failure| {
                let hash = failure.pointer("/error/stack_hash").cloned();
                let is_new = !seen.contains(&hash);
                seen.push(hash);
                is_new
            });
        }
        failures.truncate(limit);
        Ok(json!({"failures": failures, "error_patterns": patterns}))
    }
}

/// Limits are not refused but kept within bounds.
fn within(asked: Option<u32>, default: usize, most: usize) -> usize {
    let asked = asked.map_or(default, |asked| usize::try_from(asked).unwrap_or(most));
    asked.clamp(1, most)
}

fn wrong(what: impl std::fmt::Display) -> Error {
    Error::new(Code::InvalidInput, what)
}

fn required(schedule_id: Option<String>) -> Result<String, Error> {
    schedule_id.ok_or_else(|| wrong("Missing required field: schedule_id"))
}

fn utc(cron: String) -> When {
    When { cron: Some(cron), tz: Some("UTC".to_owned()), ..When::default() }
}

/// Those that call a tool; Astra has no other.
async fn of_tools(through: &Through<'_>) -> Result<Vec<Schedule>, Error> {
    let mut found = schedules(through).await?;
    found.retain(|schedule| schedule.action.tool.is_some());
    Ok(found)
}

/// The schedule that Astra knows by an id, if there is one.
async fn known(through: &Through<'_>, id: &str) -> Result<Option<Schedule>, Error> {
    let mut found = of_tools(through).await?;
    found.retain(|schedule| astra::known(schedule).1 == id);
    match found.len() {
        0 | 1 => Ok(found.pop()),
        _ => Err(Error::new(Code::NotNow, format!("Schedule {id} is more than one"))
            .hint("`midwatch schedule list` shows them, and each has an id of its own")),
    }
}

async fn find(through: &Through<'_>, id: &str) -> Result<Schedule, Error> {
    let absent = || Error::new(Code::NotFound, format!("Schedule not found: {id}"));
    known(through, id).await?.ok_or_else(absent)
}

/// A schedule that was created or modified.
async fn answered(through: &Through<'_>, schedule: &Schedule) -> Result<Value, Error> {
    let used = Used::today(through).await?;
    let (_, id) = astra::known(schedule);
    Ok(json!({"schedule_id": id, "schedule": record(schedule, &used)}))
}

fn item(schedule: &Schedule, used: &Used) -> Value {
    let (name, id) = astra::known(schedule);
    let left = used.of(&schedule.id).zip(schedule.terms.per_day);
    json!({
        "id": id,
        "name": name,
        "cron": cron(schedule),
        "target_tool": schedule.action.tool,
        "next_run_at": schedule.next_run_at,
        "status": schedule.status,
        "safety_tier": schedule.tier,
        "budget_remaining": left.map(|(used, most)| i64::from(most).saturating_sub(used).max(0)),
    })
}

fn record(schedule: &Schedule, used: &Used) -> Value {
    let payload = schedule.action.payload.as_deref();
    let payload: Option<Value> = payload.and_then(|text| serde_json::from_str(text).ok());
    let mut record = item(schedule, used);
    if let Value::Object(record) = &mut record {
        record.remove("budget_remaining");
        record.insert("payload".to_owned(), payload.unwrap_or_default());
        record.insert("describe".to_owned(), schedule.describe.clone().into());
        // Its id is that of what it said first.
        record.insert("modified".to_owned(), (1 < schedule.revision).into());
        let consumed = used.of(&schedule.id);
        record.insert(
            "run_budget".to_owned(),
            json!({"per_day": schedule.terms.per_day, "consumed": consumed}),
        );
    }
    record
}

/// In its own order; what has no expression, in words.
fn cron(schedule: &Schedule) -> String {
    let expression = schedule.trigger.get("expression").and_then(Value::as_str);
    expression.map_or_else(|| schedule.describe.clone(), astra::seconds_last)
}

/// What was used of daily budgets today, as far as whoever asks may know.
struct Used(Option<Budgets>);

impl Used {
    async fn today(through: &Through<'_>) -> Result<Used, Error> {
        match through.read(BudgetList {}).await {
            Ok(budgets) => Ok(Used(Some(budgets))),
            Err(refused) if refused.code == Code::RoleTooLow => Ok(Used(None)),
            Err(error) => Err(error),
        }
    }

    fn of(&self, id: &str) -> Option<i64> {
        let Budgets { budgets, left_out, .. } = self.0.as_ref()?;
        let is_its = |limit: &&api::BudgetLimit| {
            limit.scope == "schedule" && limit.what == "runs" && limit.name.as_deref() == Some(id)
        };
        match budgets.iter().find(is_its).map(|limit| &limit.used) {
            Some(Amount::Count(count)) => Some(*count),
            Some(Amount::Money(_)) => None,
            None => (*left_out == 0).then_some(0),
        }
    }
}
