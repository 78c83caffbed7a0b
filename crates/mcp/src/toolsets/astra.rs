//! Astra's tools: schedules that call tools, and the history of their runs.

use api::{
    Action, Code, Error, HealthShow, RunShow, RunState, Schedule, ScheduleAdd, ScheduleEdit,
    SchedulePause, ScheduleResume, Terms, When,
};
use compat::astra::executions::{
    ExecutionFilter, ExecutionPage, error_patterns, execution, list_executions, parse_since,
};
use compat::astra::schedules::{
    RunsUsedToday, find_schedule, get_schedule, list_tool_schedules, schedule_item, schedule_record,
};
use compat::{astra, list_schedules};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::LIST_ITEMS_MAX;
use crate::schema::FieldType::{self, Boolean};
use crate::tool::{Tool, ToolContext, ToolInput, with_field};
use crate::tools::Toolset;

const TIER_DEFAULT: u8 = 1;
const PER_DAY_DEFAULT: u32 = 4;
const EXECUTIONS_MAX: usize = 100;
const EXECUTIONS_DEFAULT: usize = 20;
const FAILURES_MAX: usize = 50;
const FAILURES_DEFAULT: usize = 10;

/// Every answer has `success`; the other fields differ.
const OUTPUT_FIELDS: &[(&str, FieldType)] = &[("success", Boolean)];

pub(crate) const TOOLS: &[Tool] = &[
    Tool::new::<Create>(
        "astra.schedule.create",
        Toolset::Astra,
        "schedule add",
        "Add a schedule that calls a tool. Adding the same schedule again returns the existing one.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Modify>(
        "astra.schedule.modify",
        Toolset::Astra,
        "schedule edit",
        "Change the cron expression, tool, payload or daily budget of a schedule. Its id stays the same.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Pause>(
        "astra.schedule.pause",
        Toolset::Astra,
        "schedule pause",
        "Pause a schedule until it is resumed.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Resume>(
        "astra.schedule.resume",
        Toolset::Astra,
        "schedule resume",
        "Resume a paused schedule.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<List>(
        "astra.schedule.list",
        Toolset::Astra,
        "schedule list",
        "List the schedules that call tools, with what is left of their daily budgets.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<Health>(
        "astra.health",
        Toolset::Astra,
        "status",
        "Check whether the server is healthy, and list its Astra tools.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<TasksList>(
        "tasks_list",
        Toolset::Astra,
        "run list",
        "List executions, newest first.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<TasksByTrace>(
        "tasks_by_trace",
        Toolset::Astra,
        "run show",
        "Show one execution by its trace id, which is the id of its run.",
        OUTPUT_FIELDS,
    ),
    Tool::new::<TasksLastFailed>(
        "tasks_last_failed",
        Toolset::Astra,
        "run list --state failed",
        "List the latest failed executions, and the errors that recur.",
        OUTPUT_FIELDS,
    ),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Create {
    /// The name, at most 105 characters.
    #[schemars(with = "String")]
    name: Option<String>,
    /// Five fields in UTC, such as `0 */6 * * *`; an optional sixth field is the seconds.
    #[schemars(with = "String")]
    cron_expression: Option<String>,
    /// The tool to call.
    #[schemars(with = "String")]
    target_tool: Option<String>,
    /// The arguments of the tool.
    #[schemars(with = "std::collections::BTreeMap<String, Value>")]
    payload: Option<Map<String, Value>>,
    /// 0: read only. 1: local writes. 2: external effects; runs need human approval. Default: 1.
    safety_tier: Option<u8>,
    /// Maximum number of runs per UTC day. Default: 4.
    per_day_budget: Option<u32>,
}

impl ToolInput for Create {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let Create { name, cron_expression, target_tool, payload, .. } = self;
        let required = [
            ("name", name.is_some()),
            ("cron_expression", cron_expression.is_some()),
            ("target_tool", target_tool.is_some()),
            ("payload", payload.is_some()),
        ];
        let (Some(name), Some(cron), Some(tool), Some(payload)) =
            (name, cron_expression, target_tool, payload)
        else {
            let missing = required.into_iter().filter(|(_, is_given)| !is_given);
            let missing: Vec<&str> = missing.map(|(name, _)| name).collect();
            return Err(invalid_input(format!("Missing required fields: {}", missing.join(", "))));
        };
        let tier = self.safety_tier.unwrap_or(TIER_DEFAULT);
        let per_day = self.per_day_budget.unwrap_or(PER_DAY_DEFAULT);
        let native_cron = astra::to_native_cron(&cron)?;
        let payload = Value::Object(payload);
        let id = astra::schedule_id(&name, &cron, &tool, &payload);
        if let Some(found) = find_schedule(context, &id).await? {
            return existing(context, &found, tier, per_day).await;
        }
        let request = ScheduleAdd {
            name: astra::name_with_id(&name, &id)?,
            when: cron_in_utc(native_cron),
            action: Action {
                tool: Some(tool),
                payload: Some(payload.try_into()?),
                ..Action::default()
            },
            tier: Some(tier),
            terms: Terms { per_day: Some(per_day), ..Terms::default() },
            ..ScheduleAdd::default()
        };
        let added = context.change(request).await?;
        change_result(context, &added.schedule).await
    }
}

/// The schedule that exists already. Fails if its tier or budget, which are not part of the id, differ.
async fn existing(
    context: &ToolContext<'_>,
    found: &Schedule,
    tier: u8,
    per_day: u32,
) -> Result<Value, Error> {
    let differs = |field: &str, stored: Option<u32>, requested: u32| {
        let stored = stored.map_or("none".to_owned(), |stored| stored.to_string());
        (stored != requested.to_string()).then(|| format!("{field} {stored}, not {requested}"))
    };
    let differences = [
        differs("safety_tier", found.tier.map(u32::from), tier.into()),
        differs("per_day_budget", found.terms.per_day, per_day),
    ];
    let differences: Vec<String> = differences.into_iter().flatten().collect();
    if !differences.is_empty() {
        let (name, id) = astra::name_and_id(found);
        let what = format!(
            "Schedule already exists: {id} (name: {name}), with {}",
            differences.join(" and ")
        );
        return Err(Error::new(Code::Exists, what).hint(
            "change its per_day_budget with astra.schedule.modify; only a human can change its safety_tier",
        ));
    }
    let answer = change_result(context, found).await?;
    Ok(with_field(answer, "existing", true))
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Modify {
    /// `sch_…`, from astra.schedule.list.
    #[schemars(with = "String")]
    schedule_id: Option<String>,
    /// New cron expression; an optional sixth field is the seconds.
    cron_expression: Option<String>,
    /// New tool.
    target_tool: Option<String>,
    /// New arguments of the tool.
    #[schemars(with = "Option<std::collections::BTreeMap<String, Value>>")]
    payload: Option<Map<String, Value>>,
    /// New maximum number of runs per UTC day.
    per_day_budget: Option<u32>,
}

impl ToolInput for Modify {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let id = required(self.schedule_id)?;
        let when = self
            .cron_expression
            .map(|cron| astra::to_native_cron(&cron))
            .transpose()?
            .map(cron_in_utc);
        let payload = self.payload.map(|fields| Value::Object(fields).try_into()).transpose()?;
        let action = Action { tool: self.target_tool, payload, ..Action::default() };
        let terms = Terms { per_day: self.per_day_budget, ..Terms::default() };
        if when.is_none() && action == Action::default() && terms == Terms::default() {
            return Err(invalid_input("No updates provided"));
        }
        let id = get_schedule(context, &id).await?.id;
        let request = ScheduleEdit { id, when, action, terms, ..ScheduleEdit::default() };
        let changed = context.change(request).await?;
        change_result(context, &changed.schedule).await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Pause {
    /// `sch_…`, from astra.schedule.list.
    #[schemars(with = "String")]
    schedule_id: Option<String>,
}

impl ToolInput for Pause {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let id = required(self.schedule_id)?;
        let request = SchedulePause { id: get_schedule(context, &id).await?.id, note: None };
        let schedule = context.change(request).await?.schedule;
        Ok(json!({"schedule_id": id, "status": schedule.status}))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Resume {
    /// `sch_…`, from astra.schedule.list.
    #[schemars(with = "String")]
    schedule_id: Option<String>,
}

impl ToolInput for Resume {
    const CHANGES: bool = true;

    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let id = required(self.schedule_id)?;
        let request = ScheduleResume { id: get_schedule(context, &id).await?.id };
        let schedule = context.change(request).await?.schedule;
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
    /// Only schedules with this status: `active` or `paused`.
    status: Option<String>,
}

impl ToolInput for List {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let used = RunsUsedToday::load(context).await?;
        let mut found = list_tool_schedules(context).await?;
        found.retain(|schedule| {
            self.status.as_ref().is_none_or(|it| it == schedule.status.as_str())
        });
        let (count, is_truncated) = (found.len(), LIST_ITEMS_MAX < found.len());
        let items: Vec<Value> = found
            .iter()
            .take(LIST_ITEMS_MAX)
            .map(|schedule| schedule_item(schedule, &used))
            .collect();
        let answer = json!({"schedules": items, "count": count});
        Ok(if is_truncated { with_field(answer, "truncated", true) } else { answer })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Health {}

impl ToolInput for Health {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let health = context.read(HealthShow {}).await?;
        let tools = context.selection.tools().filter(|tool| tool.toolset == Toolset::Astra);
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
    /// Only executions of this schedule, `sch_…`.
    task_id: Option<String>,
    /// Only executions with this outcome.
    #[schemars(extend("enum" = ["success", "failed"]))]
    status: Option<String>,
    /// 1 to 100. Default: 20.
    limit: Option<u32>,
    /// Only executions since this instant, in ISO 8601; without an offset it is in UTC.
    since: Option<String>,
    /// true: only backfilled executions. false: only the others.
    backfilled: Option<bool>,
}

impl ToolInput for TasksList {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let state = match self.status.as_deref() {
            None => None,
            Some("success") => Some(RunState::Done),
            Some("failed") => Some(RunState::Failed),
            Some(_) => return Err(invalid_input("status must be 'success' or 'failed'")),
        };
        let limit = clamped(self.limit, EXECUTIONS_DEFAULT, EXECUTIONS_MAX);
        let filter = ExecutionFilter {
            task_id: self.task_id,
            state,
            since_us: self.since.as_deref().map(parse_since).transpose()?,
            backfilled: self.backfilled,
        };
        let ExecutionPage { executions, has_more } =
            list_executions(context, filter, limit).await?;
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

impl ToolInput for TasksByTrace {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let id = self.trace_id.ok_or_else(|| invalid_input("Missing required field: trace_id"))?;
        let run = context.read(RunShow { id }).await?.run;
        let schedules = list_schedules(context).await?;
        let execution = execution(&run, &schedules);
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
    /// Only executions of this schedule, `sch_…`.
    task_id: Option<String>,
    /// Only the latest failure of each error. Default: false.
    unique_errors: Option<bool>,
}

impl ToolInput for TasksLastFailed {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let limit = clamped(self.limit, FAILURES_DEFAULT, FAILURES_MAX);
        let filter = ExecutionFilter {
            task_id: self.task_id,
            state: Some(RunState::Failed),
            ..ExecutionFilter::default()
        };
        let mut failures = list_executions(context, filter, EXECUTIONS_MAX).await?.executions;
        let patterns = error_patterns(&failures);
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

/// A limit out of bounds is clamped, not refused.
fn clamped(limit: Option<u32>, default: usize, max: usize) -> usize {
    let limit = limit.map_or(default, |limit| usize::try_from(limit).unwrap_or(max));
    limit.clamp(1, max)
}

fn invalid_input(what: impl std::fmt::Display) -> Error {
    Error::new(Code::InvalidInput, what)
}

fn required(schedule_id: Option<String>) -> Result<String, Error> {
    schedule_id.ok_or_else(|| invalid_input("Missing required field: schedule_id"))
}

fn cron_in_utc(cron: String) -> When {
    When { cron: Some(cron), tz: Some("UTC".to_owned()), ..When::default() }
}

/// The result of `create` and `modify`.
async fn change_result(context: &ToolContext<'_>, schedule: &Schedule) -> Result<Value, Error> {
    let used = RunsUsedToday::load(context).await?;
    let (_, id) = astra::name_and_id(schedule);
    Ok(json!({"schedule_id": id, "schedule": schedule_record(schedule, &used)}))
}
