//! Requests about runs.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Containment;
use crate::words::words;

words! {
    pub enum RunState "state" {
        /// Waits until it is due and its concurrency limits allow it to start.
        Queued "queued",
        /// Waits for approval.
        WaitingPermission "waiting_permission",
        Running "running",
        Done "done",
        Failed "failed",
        Cancelled "cancelled",
        /// Interrupted, and may have taken effect; a human must settle it.
        Unknown "unknown",
    }
}

words! {
    /// Why a run exists.
    pub enum RunOrigin "origin" {
        /// A slot that was due.
        Slot "slot",
        /// A slot that was missed.
        CatchUp "catch_up",
        /// A slot that waited until an earlier run of the schedule ended.
        Buffer "buffer",
        /// A request.
        Manual "manual",
        /// The end of a run of another schedule.
        After "after",
        /// An event.
        Event "event",
        /// A past slot of a backfill.
        Backfill "backfill",
    }
}

words! {
    /// The states in which a human can settle a run.
    pub enum SettledState "state" {
        Done "done",
        Failed "failed",
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Run {
    pub id: String,
    pub state: RunState,
    /// The approval that the run waits for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    pub schedule_id: Option<String>,
    /// The name of the schedule; absent if it was removed, and in the answers of changes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    /// The nominal time of the slot; absent for a run that was started manually.
    pub slot: Option<String>,
    pub origin: RunOrigin,
    /// With origin `after` or `event`, the run or event that fired the schedule; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RunSource>,
    pub agent: Option<String>,
    /// What contains the agent now. Only `run show` has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
    /// Attempts that were started.
    pub attempt: u32,
    /// The most attempts, with those before the last manual retry. Only `run show` has it, unless the schedule was
    /// removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub attempts_max: Option<u32>,
    /// Every attempt, oldest first. Only `run show` has them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub attempts: Vec<RunAttempt>,
    pub queued_at: String,
    /// When the last attempt started.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    /// Why the run ended or is retried, as a short code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `reason` as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When the next attempt starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<RunOutput>,
    /// Tokens that all attempts used, as far as the backend reported them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// What all attempts cost at the agent's price, such as `0.0125`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Concurrency keys that the run holds while it is running.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Who settled the run: recorded its outcome when that was unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<String>,
    /// The note of the person who settled the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_note: Option<String>,
}

/// One attempt of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunAttempt {
    /// Counted from 1. An attempt that was given back before it did anything has the number of the next one.
    pub number: u32,
    pub started_at: String,
    /// Absent while it is running.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended_at: Option<String>,
    /// `running`, the state in which it ended the run, or `failed` if another one follows
    pub outcome: RunState,
    /// Why it ended, as a short code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `reason` as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// What fired the schedule of a run, if not the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunSource {
    /// The id of the run whose end fired it.
    Run(String),
    /// The id of the event.
    Event(String),
}

/// Tokens that a model read and wrote.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunUsage {
    pub input: u32,
    pub output: u32,
}

/// The output of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunOutput {
    /// The first part of the output.
    pub text: String,
    /// The length of the whole output.
    pub bytes: u64,
    /// The file with the whole output, if it is longer than `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Whether `text` is hidden because the schedule is sensitive.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sealed: bool,
}

/// Lists runs, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct RunList {
    /// Only runs of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Only runs of the schedule with this id.
    pub schedule: Option<String>,
    /// Only runs in this state.
    pub state: Option<RunState>,
    /// Most items in the page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// The `cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunShow {
    /// The id of the run, `run_…`.
    pub id: String,
}

/// Returns the output of a run from a position on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRead {
    /// The id of the run, `run_…`.
    pub id: String,
    /// Bytes to skip.
    #[serde(default)]
    pub from: u64,
}

/// A part of the output of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct OutputChunk {
    pub text: String,
    /// The length of the whole output.
    pub bytes: u64,
    /// Where the next part starts; absent on the last part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Waits until a run has output or changes that the caller has not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunWatch {
    /// The id of the run, `run_…`.
    pub id: String,
    /// The `seen` of the previous response.
    #[serde(default)]
    pub seen: Option<WatchCursor>,
    /// The longest time to wait.
    #[serde(default)]
    pub wait_ms: u32,
}

/// The position of a caller that watches a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct WatchCursor {
    /// Increases with every change of the run.
    pub version: u64,
    /// Increases with every attempt.
    pub epoch: u32,
    /// Bytes of that attempt's output that were returned.
    pub bytes: u64,
}

/// Cancels a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunCancel {
    /// The id of the run, `run_…`.
    pub id: String,
    /// The reason, for the people who read the history.
    #[serde(default)]
    pub note: Option<String>,
}

/// Starts one more attempt of a failed or cancelled run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunRetry {
    /// The id of the run, `run_…`.
    pub id: String,
}

/// Records the outcome of an interrupted run, which a human has checked.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RunSettle {
    /// The id of the run, `run_…`.
    pub id: String,
    pub state: SettledState,
    /// The reason, for the people who read the history.
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunShown {
    pub run: Run,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunWatched {
    pub run: Run,
    /// New output of the running attempt. The final output of a run is `run.output`.
    #[serde(rename = "said")]
    pub output: String,
    /// Whether the run has ended and changes only by a request, such as a retry.
    pub ended: bool,
    pub seen: WatchCursor,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunCancelled {
    /// Absent if the store could not be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<Run>,
    /// False if the run was cancelled before.
    pub changed: bool,
    /// False for a cancellation that is in effect, but that the ledger does not have yet.
    pub recorded: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunChanged {
    pub run: Run,
    /// False if the run already had this state.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Runs {
    pub runs: Vec<Run>,
    /// Where the next page starts; absent on the last page.
    pub cursor: Option<String>,
}
