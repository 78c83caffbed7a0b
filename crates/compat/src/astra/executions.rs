//! Runs as Astra shows them: executions of tasks. Astra's task is our schedule, and its trace is our run.

use api::{Code, Error, Handle, Run, RunList, RunOrigin, RunState, Schedule, send};
use calendar::parse_instant;
use serde_json::{Value, json};

use super::{name_and_id, short_hash};
use crate::list_schedules;

const PAGE_RUNS: u32 = 100;
/// Pages of runs that one search reads. Matches on later pages are not found.
const PAGES_MAX: usize = 10;
const MILLISECOND_US: i64 = 1_000;

/// Selects executions; a `None` field selects all.
#[derive(Debug, Default)]
pub struct ExecutionFilter {
    /// Astra's id of the schedule.
    pub task_id: Option<String>,
    pub state: Option<RunState>,
    pub since_us: Option<i64>,
    pub backfilled: Option<bool>,
}

#[derive(Debug, Default)]
pub struct ExecutionPage {
    /// Newest first.
    pub executions: Vec<Value>,
    pub has_more: bool,
}

/// Lists at most `limit` matching executions.
pub async fn list_executions(
    handle: &dyn Handle,
    filter: ExecutionFilter,
    limit: usize,
) -> Result<ExecutionPage, Error> {
    let schedules = list_schedules(handle).await?;
    let schedule = match filter.task_id.as_deref() {
        Some(task) => match schedules.iter().find(|it| name_and_id(it).1 == task) {
            Some(schedule) => Some(schedule.id.clone()),
            None => return Ok(ExecutionPage::default()),
        },
        None => None,
    };
    let (mut executions, mut cursor) = (Vec::new(), None);
    for _ in 0..PAGES_MAX {
        let request = RunList {
            schedule: schedule.clone(),
            state: filter.state,
            limit: Some(PAGE_RUNS),
            cursor,
            ..RunList::default()
        };
        let page = send(handle, request).await?;
        let runs = page.runs.iter().filter(|run| filter.matches(run));
        executions.extend(runs.map(|run| execution(run, &schedules)));
        cursor = page.cursor;
        if cursor.is_none() || limit < executions.len() {
            break;
        }
    }
    let has_more = cursor.is_some() || limit < executions.len();
    executions.truncate(limit);
    Ok(ExecutionPage { executions, has_more })
}

impl ExecutionFilter {
    fn matches(&self, run: &Run) -> bool {
        let started_at = run.started_at.as_ref().unwrap_or(&run.queued_at);
        let is_since = |since_us| parse_us(started_at).is_some_and(|at_us| since_us <= at_us);
        self.since_us.is_none_or(is_since)
            && self.backfilled.is_none_or(|it| it == is_backfilled(run))
    }
}

/// Parses an instant in ISO 8601 to microseconds. Without an offset it is in UTC; a date alone is its midnight.
pub fn parse_since(text: &str) -> Result<i64, Error> {
    let invalid = || {
        Error::new(Code::InvalidInput, format!("invalid instant `{text}`"))
            .hint("write it in ISO 8601, such as `2026-12-01T09:00:00Z`")
    };
    let utc = "UTC".parse().map_err(|_| invalid())?;
    let is_date = text.len() == "YYYY-MM-DD".len();
    let whole = if is_date { format!("{text}T00:00:00") } else { text.to_owned() };
    parse_instant(&whole, Some(&utc)).map_err(|_| invalid())
}

fn parse_us(text: &str) -> Option<i64> {
    parse_instant(text, None).ok()
}

fn is_backfilled(run: &Run) -> bool {
    run.origin == RunOrigin::Backfill
}

/// A run in Astra's form. `schedules` supply its task's name and id.
pub fn execution(run: &Run, schedules: &[Schedule]) -> Value {
    let schedule = schedules.iter().find(|it| Some(&it.id) == run.schedule_id.as_ref());
    let (name, task) = schedule.map(name_and_id).unzip();
    let status = match run.state {
        RunState::Done => "success",
        state => state.as_str(),
    };
    let times = [&run.started_at, &run.finished_at].map(|at| at.as_deref().and_then(parse_us));
    let duration_ms = match times {
        [Some(started), Some(finished)] => Some(finished.saturating_sub(started) / MILLISECOND_US),
        _ => None,
    };
    let error = (run.state == RunState::Failed).then(|| {
        let (kind, message) = (run.reason.as_deref(), run.message.as_deref());
        let text = format!("{}:{}", kind.unwrap_or_default(), message.unwrap_or_default());
        json!({"type": kind, "message": message, "stack_hash": short_hash(&text)})
    });
    json!({
        "id": run.id,
        "task_id": task.map(str::to_owned).or(run.schedule_id.clone()),
        "task_name": name,
        "status": status,
        "started_at": run.started_at,
        "ended_at": run.finished_at,
        "duration_ms": duration_ms,
        "trace_id": run.id,
        "attempt": run.attempt,
        "error": error,
        "backfilled": is_backfilled(run),
        "scheduled_vs_manual": if run.origin == RunOrigin::Manual { "manual" } else { "scheduled" },
    })
}

/// Failures grouped by error, newest error first.
pub fn error_patterns(failures: &[Value]) -> Vec<Value> {
    let mut groups: Vec<(String, Vec<&Value>)> = Vec::new();
    for failure in failures {
        let hash = failure.pointer("/error/stack_hash").and_then(Value::as_str).unwrap_or_default();
        match groups.iter_mut().find(|(group, _)| group == hash) {
            Some((_, failures)) => failures.push(failure),
            None => groups.push((hash.to_owned(), vec![failure])),
        }
    }
    let pattern = |(hash, failures): (String, Vec<&Value>)| {
        let field = |failure: Option<&&Value>, name: &str| {
            failure.and_then(|it| it.get(name)).cloned().unwrap_or_default()
        };
        json!({
            "stack_hash": hash,
            "count": failures.len(),
            "first_seen": field(failures.last(), "started_at"),
            "last_seen": field(failures.first(), "started_at"),
            "example_task_id": field(failures.first(), "task_id"),
            "example_trace_id": field(failures.first(), "trace_id"),
        })
    };
    groups.into_iter().map(pattern).collect()
}
