//! Tools that start, follow, cancel and retry runs.

use api::{
    Code, Error, LeaseState, PolicyExplain, Run, RunCancel, RunList, RunRead, RunRetry, RunShow,
    RunState, RunWatch, RunWatched, ScheduleFire, StatusShow, WatchCursor,
};
use futures::future::{BoxFuture, FutureExt};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use crate::arguments::{Argument, renamed};
use crate::schema::FieldType::{Boolean, Cursor, Integer, Object, Objects, Text};
use crate::tool::{Tool, ToolContext, ToolInput, from_json, object, to_json, with_field};
use crate::tools::Toolset;

/// Longest wait of a call, in seconds. Clients time out after a minute or less.
const WAIT_S_MAX: u32 = 25;
/// Maximum output in one answer. Escaped in JSON it is at most six times as long.
const OUTPUT_BYTES_MAX: usize = 4 << 10;
const RUN_ID: Argument = renamed("id", "run_id");

pub(super) const TOOLS: &[Tool] = &[
    Tool::new::<ScheduleFire>(
        "run_start",
        Toolset::Run,
        "run start",
        "Start a run of a schedule now, and return it without waiting; then follow it with run_wait. \
         The schedule's next time does not change.",
        &[("run", Object), ("next_action", Text)],
    )
    .arguments(&[renamed("id", "schedule_id").described("The id, `sch_…`, or the name, from schedule_list.")])
    .then_requesting(add_next_action)
    .not_idempotent(),
    Tool::new::<RunWaitInput>(
        "run_wait",
        Toolset::Run,
        "run watch",
        "Wait up to 25 seconds until a run changes or prints output, and return what is new. Call it again with the \
         `cursor` of the answer until `ended` is true. To check once, use run_get.",
        &[("run", Object), ("said", Text), ("ended", Boolean), ("cursor", Text), ("next_action", Text)],
    )
    .not_schedulable("it only waits; use `after` to fire a schedule when a run of another has ended"),
    Tool::new::<RunShow>(
        "run_get",
        Toolset::Run,
        "run show",
        "Show one run: its state, attempts, output and why it ended. A long output is cut after its beginning; \
         run_output reads all of it.",
        &[("run", Object), ("next_action", Text)],
    )
    .arguments(&[RUN_ID])
    .then_requesting(add_next_action),
    Tool::new::<RunOutputInput>(
        "run_output",
        Toolset::Run,
        "run output",
        "Read the output of a run, 8 KiB at a time. Call it again with the `cursor` of the answer until there is none.",
        &[("text", Text), ("bytes", Integer), ("cursor", Cursor)],
    ),
    Tool::new::<RunList>(
        "run_list",
        Toolset::Run,
        "run list",
        "List runs, newest first, with a few fields of each. For the output of one, use run_get.",
        &[("runs", Objects), ("cursor", Cursor)],
    )
    .paged(&[
        "id",
        "state",
        "schedule_id",
        "slot",
        "agent",
        "attempt",
        "started_at",
        "finished_at",
        "reason",
        "approval_id",
    ])
    .arguments(&[renamed("schedule", "schedule_id")]),
    Tool::new::<RunCancel>(
        "run_cancel",
        Toolset::Run,
        "run cancel",
        "Cancel a run: a waiting run does not start, a running one is stopped. Its schedule stays active.",
        &[("run", Object), ("changed", Boolean), ("recorded", Boolean)],
    )
    .arguments(&[RUN_ID])
    .destroys(),
    Tool::new::<RunRetry>(
        "run_retry",
        Toolset::Run,
        "run retry",
        "Retry a failed or cancelled run. A run in the state `unknown` cannot be retried; a human must settle it.",
        &[("run", Object), ("changed", Boolean), ("next_action", Text)],
    )
    .arguments(&[RUN_ID])
    .then_requesting(add_next_action)
    .not_idempotent(),
    Tool::new::<PolicyExplain>(
        "run_explain",
        Toolset::Run,
        "policy explain",
        "Explain what the policy decided for a run, and by which rules.",
        &[("run_id", Text), ("state", Text), ("sentence", Text)],
    )
    .arguments(&[renamed("run", "run_id")]),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunWaitInput {
    /// The id of the run, `run_…`.
    run_id: String,
    /// The `cursor` of the previous answer. Without it, the call returns at once with everything so far.
    cursor: Option<String>,
    /// Longest wait in seconds, 0 to 25. Default: 20.
    #[schemars(range(max = WAIT_S_MAX))]
    max_wait_s: Option<u32>,
}

impl ToolInput for RunWaitInput {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let seen = self.cursor.as_deref().map(parse_cursor).transpose()?;
        let wait_ms = self.max_wait_s.unwrap_or(20).min(WAIT_S_MAX) * 1_000;
        let request = RunWatch { id: self.run_id, seen, wait_ms };
        let watched = truncate_output(context.read(request).await?);
        let cursor = format_cursor(&watched.seen);
        let next_action = next_action(context, &watched.run, Some(&cursor)).await;
        Ok(object([
            ("run", to_json(&watched.run)?),
            ("said", watched.output.into()),
            ("ended", watched.ended.into()),
            ("cursor", cursor.into()),
            ("next_action", next_action.into()),
        ]))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunOutputInput {
    /// The id of the run, `run_…`.
    run_id: String,
    /// The `cursor` of the previous answer. Default: the start of the output.
    cursor: Option<String>,
}

impl ToolInput for RunOutputInput {
    async fn execute(self, context: &ToolContext<'_>) -> Result<Value, Error> {
        let from = self.cursor.map_or(Ok(0), |cursor| cursor.parse());
        let from = from.map_err(|_| {
            Error::new(Code::InvalidInput, "invalid `cursor`: it is not from run_output")
                .hint("pass the `cursor` of an earlier answer unchanged, or omit it")
        })?;
        let piece = context.read(RunRead { id: self.run_id, from }).await?;
        let answer = object([("text", piece.text.into()), ("bytes", piece.bytes.into())]);
        Ok(match piece.next {
            Some(next) => with_field(answer, "cursor", next.to_string()),
            None => answer,
        })
    }
}

/// Adds `next_action` to an answer with a `run`.
fn add_next_action<'a>(
    context: &'a ToolContext<'a>,
    answer: Value,
) -> BoxFuture<'a, Result<Value, Error>> {
    async move {
        let run: Run = from_json(answer.get("run").cloned().unwrap_or_default())?;
        Ok(with_field(answer, "next_action", next_action(context, &run, None).await))
    }
    .boxed()
}

/// What a model should do next about a run, of which it has seen everything up to the cursor.
async fn next_action(context: &ToolContext<'_>, run: &Run, cursor: Option<&str>) -> String {
    match start_blocker(context, run).await {
        Some(why) => format!(
            "The run does not start: {why}. Tell your user, do other work, and do not wait for it."
        ),
        None => next_step(context, run, cursor),
    }
}

/// Why a queued run does not start until a human acts.
async fn start_blocker(context: &ToolContext<'_>, run: &Run) -> Option<&'static str> {
    if run.state != RunState::Queued {
        return None;
    }
    let status = context.read(StatusShow {}).await.ok()?;
    let authority = status.authority;
    match (status.daemon.running, authority.frozen, authority.lease.state) {
        (false, ..) => Some("no daemon is running; a human must start one"),
        (true, Some(_), _) => Some("a human has frozen Midwatch and must thaw it"),
        (true, None, LeaseState::Paused) => Some("the lease has expired; a human must renew it"),
        (true, None, LeaseState::Full | LeaseState::Ask) => None,
    }
}

fn next_step(context: &ToolContext<'_>, run: &Run, cursor: Option<&str>) -> String {
    let id = &run.id;
    match (run.state, &run.approval_id, cursor) {
        (RunState::WaitingPermission, Some(approval), _) => waiting_for(context, approval),
        (RunState::Done | RunState::Failed | RunState::Cancelled, ..) => {
            let is_long = run.output.as_ref().is_some_and(|output| output.file.is_some());
            let rest = match is_long {
                true => format!(" run_output with run_id {id} reads its whole output."),
                false => String::new(),
            };
            format!("The run has ended; there is nothing to wait for.{rest}")
        }
        (RunState::Unknown, ..) => {
            "The outcome is unknown: it may have happened. Do not repeat it. Tell your user that a human must check \
             what happened and record it."
                .to_owned()
        }
        (RunState::Queued | RunState::Running | RunState::WaitingPermission, _, Some(cursor)) => {
            format!("Call run_wait with run_id {id} and cursor {cursor}.")
        }
        (RunState::Queued | RunState::Running | RunState::WaitingPermission, _, None) => {
            format!("Call run_wait with run_id {id}, then follow the next_action of its answer.")
        }
    }
}

/// What to do about a run that waits for this approval.
fn waiting_for(context: &ToolContext<'_>, approval: &str) -> String {
    match context.offers("approval_call_human") {
        true => format!(
            "A human must decide; you cannot. Call approval_call_human once with approval_id {approval}, then do \
             other work and check with approval_get, approval_id {approval}."
        ),
        false => format!(
            "A human must decide approval {approval}; you cannot. Tell your user, and do other work."
        ),
    }
}

/// Cuts the output to what fits into an answer, and moves the cursor back accordingly.
fn truncate_output(mut watched: RunWatched) -> RunWatched {
    let kept = watched.output.floor_char_boundary(OUTPUT_BYTES_MAX);
    let cut = (watched.output.len() - kept) as u64;
    watched.seen.bytes = watched.seen.bytes.saturating_sub(cut);
    watched.output.truncate(kept);
    watched
}

/// The cursor of run_wait: how much of a run the client has seen.
fn format_cursor(seen: &WatchCursor) -> String {
    format!("{}.{}.{}", seen.version, seen.epoch, seen.bytes)
}

/// Parses what [`format_cursor`] returned.
fn parse_cursor(cursor: &str) -> Result<WatchCursor, Error> {
    let invalid = || {
        Error::new(Code::InvalidInput, "invalid `cursor`: it is not from run_wait")
            .hint("pass the `cursor` of an earlier answer unchanged, or omit it")
    };
    let mut parts = cursor.split('.');
    let seen = WatchCursor {
        version: parts.next().and_then(|it| it.parse().ok()).ok_or_else(invalid)?,
        epoch: parts.next().and_then(|it| it.parse().ok()).ok_or_else(invalid)?,
        bytes: parts.next().and_then(|it| it.parse().ok()).ok_or_else(invalid)?,
    };
    if parts.next().is_some() { Err(invalid()) } else { Ok(seen) }
}
