//! Runs as Astra shows them: executions of tasks. A task is a schedule, and a trace is a run.

use api::{Code, Error, Run, RunList, Schedule};
use calendar::parse_instant;
use compat::{astra, schedules};
use serde_json::{Value, json};

use crate::tool::Through;

const PAGE_RUNS: u32 = 100;
/// Pages that are looked at for what was asked for. There may be more.
const PAGES_MAX: usize = 10;
const MILLISECOND_US: i64 = 1_000;

/// Which executions.
#[derive(Debug, Default)]
pub(super) struct Wanted {
    /// The id that Astra knows the schedule by.
    pub(super) task_id: Option<String>,
    pub(super) state: Option<&'static str>,
    pub(super) since_us: Option<i64>,
    pub(super) backfilled: Option<bool>,
}

#[derive(Debug, Default)]
pub(super) struct History {
    /// The newest first.
    pub(super) executions: Vec<Value>,
    pub(super) has_more: bool,
}

impl History {
    pub(super) async fn of(
        through: &Through<'_>,
        wanted: Wanted,
        limit: usize,
    ) -> Result<History, Error> {
        let known = schedules(through).await?;
        let task = wanted.task_id.as_deref();
        let schedule = match task {
            Some(task) => match known.iter().find(|it| astra::known(it).1 == task) {
                Some(schedule) => Some(schedule.id.clone()),
                None => return Ok(History::default()),
            },
            None => None,
        };
        let (mut executions, mut cursor) = (Vec::new(), None);
        for _ in 0..PAGES_MAX {
            let page = through.read(RunList {
                schedule: schedule.clone(),
                state: wanted.state.map(str::to_owned),
                limit: Some(PAGE_RUNS),
                cursor,
                ..RunList::default()
            });
            let page = page.await?;
            let runs = page.runs.iter().filter(|run| wanted.is(run));
            executions.extend(runs.map(|run| execution(run, &known)));
            cursor = page.cursor;
            if cursor.is_none() || limit < executions.len() {
                break;
            }
        }
        let has_more = cursor.is_some() || limit < executions.len();
        executions.truncate(limit);
        Ok(History { executions, has_more })
    }
}

impl Wanted {
    fn is(&self, run: &Run) -> bool {
        let began = run.started_at.as_ref().unwrap_or(&run.queued_at);
        let is_since = |since_us| parsed(began).is_some_and(|at_us| since_us <= at_us);
        self.since_us.is_none_or(is_since)
            && self.backfilled.is_none_or(|it| it == is_backfilled(run))
    }
}

/// An instant that a client gives; without an offset it is in UTC, and a day is its beginning.
pub(super) fn instant(text: &str) -> Result<i64, Error> {
    let wrong = || {
        Error::new(Code::InvalidInput, format!("`{text}` is no instant"))
            .hint("give one in ISO 8601, such as `2026-12-01T09:00:00Z`")
    };
    let utc = "UTC".parse().map_err(|_| wrong())?;
    let is_day = text.len() == "YYYY-MM-DD".len();
    let whole = if is_day { format!("{text}T00:00:00") } else { text.to_owned() };
    parse_instant(&whole, Some(&utc)).map_err(|_| wrong())
}

fn parsed(text: &str) -> Option<i64> {
    parse_instant(text, None).ok()
}

fn is_backfilled(run: &Run) -> bool {
    run.origin == "backfill"
}

pub(super) fn execution(run: &Run, known: &[Schedule]) -> Value {
    let schedule = known.iter().find(|it| Some(&it.id) == run.schedule_id.as_ref());
    let (name, task) = schedule.map(astra::known).unzip();
    let status = match run.state.as_str() {
        "done" => "success",
        state => state,
    };
    let times = [&run.started_at, &run.finished_at].map(|at| at.as_deref().and_then(parsed));
    let duration_ms = match times {
        [Some(began), Some(ended)] => Some(ended.saturating_sub(began) / MILLISECOND_US),
        _ => None,
    };
    let error = (status == "failed").then(|| {
        let (kind, message) = (run.reason.as_deref(), run.message.as_deref());
        let text = format!("{}:{}", kind.unwrap_or_default(), message.unwrap_or_default());
        json!({"type": kind, "message": message, "stack_hash": astra::short_hash(&text)})
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
        "scheduled_vs_manual": if run.origin == "manual" { "manual" } else { "scheduled" },
    })
}

/// Errors that came again, the newest first.
pub(super) fn patterns(failures: &[Value]) -> Vec<Value> {
    let mut patterns: Vec<(String, Vec<&Value>)> = Vec::new();
    for failure in failures {
        let hash = failure.pointer("/error/stack_hash").and_then(Value::as_str).unwrap_or_default();
        match patterns.iter_mut().find(|(of, _)| of == hash) {
            Some((_, failures)) => failures.push(failure),
            None => patterns.push((hash.to_owned(), vec![failure])),
        }
    }
    let pattern = |(hash, failures): (String, Vec<&Value>)| {
        let of = |failure: Option<&&Value>, field: &str| {
            failure.and_then(|it| it.get(field)).cloned().unwrap_or_default()
        };
        json!({
            "stack_hash": hash,
            "count": failures.len(),
            "first_seen": of(failures.last(), "started_at"),
            "last_seen": of(failures.first(), "started_at"),
            "example_task_id": of(failures.first(), "task_id"),
            "example_trace_id": of(failures.first(), "trace_id"),
        })
    };
    patterns.into_iter().map(pattern).collect()
}
