//! Runs: start, follow and cancel them.

use std::fmt::Write;

use api::{
    Code, Error, PolicyExplain, Run, RunCancel, RunList, RunRead, RunRetry, RunSeen, RunShow,
    RunWatch, RunWatched, ScheduleFire, StatusAsk,
};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::{PAGE_MAX, paged};
use crate::schema::Kind::{Cursor, Flag, Number, Object, Objects, Text};
use crate::tool::{Input, Through, Tool, brief, fields, page_of, shown, with};
use crate::toolset::Toolset;

/// The longest that a call waits, in seconds. Clients give up after a minute or less.
const WAIT_S_MAX: u32 = 25;
/// The most of what a run says in one answer; as a text in JSON it is at most six times as long.
const SAID_BYTES_MAX: usize = 4 << 10;
const STATES: [&str; 7] =
    ["queued", "waiting_permission", "running", "done", "failed", "cancelled", "unknown"];
/// What a list shows of each.
const BRIEF: &[&str] = &[
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
];

pub(super) const TOOLS: &[Tool] = &[
    Tool::writes::<RunStart>(
        "run_start",
        Toolset::Run,
        "run start",
        "Run a schedule now and answer at once with the run; then follow it with run_wait. \
         The schedule's next time stays as it is.",
        &[("run", Object), ("next_action", Text)],
    )
    .each_time(),
    Tool::reads::<RunWait>(
        "run_wait",
        Toolset::Run,
        "run watch",
        "Wait up to 25 seconds for news of a run, and give them. Call it again with the `cursor` of the \
         answer until `ended` is true. To look once, use run_get.",
        &[("run", Object), ("said", Text), ("ended", Flag), ("cursor", Text), ("next_action", Text)],
    )
    .not_scheduled("it waits for news; `--after` makes a schedule run when another has ended"),
    Tool::reads::<RunGet>(
        "run_get",
        Toolset::Run,
        "run show",
        "Show one run: its state, tries, output and why it ended. Of a long output it has the beginning; \
         run_output has the rest.",
        &[("run", Object), ("next_action", Text)],
    ),
    Tool::reads::<RunOutputRead>(
        "run_output",
        Toolset::Run,
        "run output",
        "Read what a run has said, 8 KiB at a time. Call it again with the `cursor` of the answer until there is none.",
        &[("text", Text), ("bytes", Number), ("cursor", Cursor)],
    ),
    Tool::reads::<RunListed>(
        "run_list",
        Toolset::Run,
        "run list",
        "List runs, the newest first, a few fields of each. For its output, use run_get.",
        &[("runs", Objects), ("cursor", Cursor)],
    ),
    Tool::writes::<RunCancelled>(
        "run_cancel",
        Toolset::Run,
        "run cancel",
        "Cancel a run: one that waits is gone, one at work is stopped. Its schedule goes on.",
        &[("run", Object), ("changed", Flag)],
    )
    .destroys(),
    Tool::writes::<RunRetried>(
        "run_retry",
        Toolset::Run,
        "run retry",
        "Try a failed or cancelled run once more. A run in the state `unknown` is for a human to settle.",
        &[("run", Object), ("changed", Flag), ("next_action", Text)],
    )
    .each_time(),
    Tool::reads::<RunExplain>(
        "run_explain",
        Toolset::Run,
        "policy explain",
        "Say what the standing orders said of a run, and by which rules.",
        &[("run_id", Text), ("state", Text), ("sentence", Text)],
    ),
];

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunStart {
    /// `sch_…`, from schedule_list.
    schedule_id: String,
    /// With the same key, it runs once: 1 to 128 printable ASCII characters without blanks, such as `report-2026-11-16`.
    idempotency_key: String,
}

impl Input for RunStart {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let request = ScheduleFire { id: self.schedule_id };
        let fired = through.change(Some(self.idempotency_key), request).await?;
        Ok(with(shown(&fired)?, "next_action", next_action(through, &fired.run).await))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunWait {
    /// `run_…`
    run_id: String,
    /// What an earlier answer gave as `cursor`; without it, everything so far is news.
    cursor: Option<String>,
    /// 0 to 25. Default: 20.
    #[schemars(range(max = WAIT_S_MAX))]
    max_wait_s: Option<u32>,
}

impl Input for RunWait {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let seen = self.cursor.as_deref().map(seen_of).transpose()?;
        let wait_ms = self.max_wait_s.unwrap_or(20).min(WAIT_S_MAX) * 1_000;
        let request = RunWatch { id: self.run_id, seen, wait_ms };
        let watched = told_of(through.read(request).await?);
        Ok(fields([
            ("run", shown(&watched.run)?),
            ("said", watched.said.into()),
            ("ended", watched.ended.into()),
            ("cursor", cursor_of(&watched.seen).into()),
            ("next_action", next_action(through, &watched.run).await.into()),
        ]))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunGet {
    /// `run_…`
    run_id: String,
}

impl Input for RunGet {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let answer = through.read(RunShow { id: self.run_id }).await?;
        Ok(with(shown(&answer)?, "next_action", next_action(through, &answer.run).await))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunOutputRead {
    /// `run_…`
    run_id: String,
    /// What an earlier answer gave as `cursor`; without it, it begins at the beginning.
    cursor: Option<String>,
}

impl Input for RunOutputRead {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let from = self.cursor.map_or(Ok(0), |cursor| cursor.parse());
        let from = from.map_err(|_| {
            Error::new(Code::InvalidInput, "that is no cursor of run_output")
                .hint("give back what an earlier answer called `cursor`, or leave it out")
        })?;
        let piece = through.read(RunRead { id: self.run_id, from }).await?;
        let answer = fields([("text", piece.text.into()), ("bytes", piece.bytes.into())]);
        Ok(match piece.next {
            Some(next) => with(answer, "cursor", next.to_string()),
            None => answer,
        })
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunListed {
    /// Only those of this schedule.
    schedule_id: Option<String>,
    /// Only those of this agent.
    agent: Option<String>,
    /// Only those in this state.
    #[schemars(extend("enum" = STATES))]
    state: Option<String>,
    /// 1 to 100. Default: 20.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<u32>,
    /// What an earlier page gave as `cursor`.
    cursor: Option<String>,
}

impl Input for RunListed {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let RunListed { schedule_id, agent, state, limit, cursor } = self;
        let asked = &RunList { agent, schedule: schedule_id, state, limit: None, cursor };
        paged(limit, |limit| async move {
            let listed = through.read(RunList { limit, ..asked.clone() }).await?;
            Ok(page_of("runs", brief(&listed.runs, BRIEF)?, listed.cursor))
        })
        .await
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunCancelled {
    /// `run_…`
    run_id: String,
    /// Why, for whoever looks.
    note: Option<String>,
    /// With the same key, the same call happens once.
    idempotency_key: Option<String>,
}

impl Input for RunCancelled {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let request = RunCancel { id: self.run_id, note: self.note };
        shown(&through.change(self.idempotency_key, request).await?)
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunRetried {
    /// `run_…`
    run_id: String,
    /// With the same key, it is tried once more and no more.
    idempotency_key: String,
}

impl Input for RunRetried {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        let request = RunRetry { id: self.run_id };
        let changed = through.change(Some(self.idempotency_key), request).await?;
        Ok(with(shown(&changed)?, "next_action", next_action(through, &changed.run).await))
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct RunExplain {
    /// `run_…`
    run_id: String,
}

impl Input for RunExplain {
    async fn ask(self, through: &Through<'_>) -> Result<Value, Error> {
        shown(&through.read(PolicyExplain { run: self.run_id }).await?)
    }
}

/// What a model does best about a run.
async fn next_action(through: &Through<'_>, run: &Run) -> String {
    match hindrance(through, run).await {
        Some(why) => format!(
            "It does not begin: {why}. Tell your user, do other work, and do not wait for it."
        ),
        None => next_step(run),
    }
}

/// Why a run that is queued will not begin until a human does something.
async fn hindrance(through: &Through<'_>, run: &Run) -> Option<&'static str> {
    if run.state != "queued" {
        return None;
    }
    let status = through.read(StatusAsk {}).await.ok()?;
    let authority = status.authority;
    match (status.watch.kept, authority.frozen, authority.lease.step.as_str()) {
        (false, ..) => Some("no daemon keeps the watch, and a human starts one with `midwatch up`"),
        (true, Some(_), _) => Some("a human has frozen the watch"),
        (true, None, "paused") => Some("the lease of the watch has run out, and a human renews it"),
        (true, None, _) => None,
    }
}

fn next_step(run: &Run) -> String {
    let mut said = String::new();
    let id = &run.id;
    // Writing to a string does not fail.
    let _ = match (run.state.as_str(), &run.approval_id) {
        ("waiting_permission", Some(approval)) => write!(
            said,
            "A human must decide on {approval}; you cannot. Call approval_call_human once, then do other \
             work, and look with approval_get."
        ),
        ("done" | "failed" | "cancelled", _) => {
            let is_long = run.output.as_ref().is_some_and(|output| output.file.is_some());
            let rest = if is_long { " run_output has all that it said." } else { "" };
            write!(said, "It has ended; there is nothing to wait for.{rest}")
        }
        ("unknown", _) => write!(
            said,
            "Nobody knows whether it happened. Do not repeat it: a human settles it with \
             `midwatch run settle {id}`."
        ),
        _ => write!(said, "Call run_wait with run_id {id} until `ended` is true."),
    };
    said
}

/// As much of the news as an answer holds: the cursor says how far that is.
fn told_of(mut watched: RunWatched) -> RunWatched {
    let told = watched.said.floor_char_boundary(SAID_BYTES_MAX);
    let untold = (watched.said.len() - told) as u64;
    watched.seen.bytes = watched.seen.bytes.saturating_sub(untold);
    watched.said.truncate(told);
    watched
}

/// How far a client has seen a run, for it to give back.
fn cursor_of(seen: &RunSeen) -> String {
    format!("{}.{}.{}", seen.version, seen.epoch, seen.bytes)
}

fn seen_of(cursor: &str) -> Result<RunSeen, Error> {
    let wrong = || {
        Error::new(Code::InvalidInput, "that is no cursor of run_wait")
            .hint("give back what an earlier answer called `cursor`, or leave it out")
    };
    let mut parts = cursor.split('.');
    let seen = RunSeen {
        version: parts.next().and_then(|it| it.parse().ok()).ok_or_else(wrong)?,
        epoch: parts.next().and_then(|it| it.parse().ok()).ok_or_else(wrong)?,
        bytes: parts.next().and_then(|it| it.parse().ok()).ok_or_else(wrong)?,
    };
    if parts.next().is_some() { Err(wrong()) } else { Ok(seen) }
}
