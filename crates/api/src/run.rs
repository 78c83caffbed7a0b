//! Requests about runs.

use std::ops::Not;

use serde::{Deserialize, Serialize};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    pub id: String,
    /// `queued`, `waiting_permission`, `running`, `done`, `failed`, `cancelled` or `unknown`
    pub state: String,
    /// The question about it that a human is to answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval_id: Option<String>,
    pub schedule_id: Option<String>,
    /// The nominal instant; absent for a run that was started by hand.
    pub slot: Option<String>,
    /// `slot`, `catch_up`, `buffer`, `manual`, `after`, `event` or `backfill`
    pub origin: String,
    /// What it was that happened, of `after` and `event`; not in lists.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<RunSource>,
    pub agent: Option<String>,
    /// Tries that were begun.
    pub attempt: u32,
    pub queued_at: String,
    /// Of the last try.
    pub started_at: Option<String>,
    pub finished_at: Option<String>,
    /// Why it ended as it did, or why it is tried again: a short code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    /// When it is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<RunOutput>,
    /// What its agent's model has read and written in all its tries, as far as that was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// What all its tries have cost, by the price of its agent, such as `0.0125`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<String>,
    /// Concurrency keys that it holds while it is at work.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<String>,
    /// Who said how it ended, when it was not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_at: Option<String>,
    /// What they had to say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_note: Option<String>,
}

/// What made a slot, if not the time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RunSource {
    /// A run of the schedule that is followed has ended.
    Run(String),
    /// An event, by its id.
    Event(String),
}

/// In tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunUsage {
    pub input: u32,
    pub output: u32,
}

/// What a run has said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunOutput {
    /// The beginning.
    pub text: String,
    /// Of the whole.
    pub bytes: u64,
    /// Where the whole is, when it is longer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// The schedule is sensitive, so the text is not shown here.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub sealed: bool,
}

/// The newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunList {
    /// Those of this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default)]
    pub schedule: Option<String>,
    #[serde(default)]
    pub state: Option<String>,
    #[serde(default)]
    pub limit: Option<u32>,
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunShow {
    pub id: String,
}

/// What a run has said, from a place on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRead {
    pub id: String,
    /// How many bytes to leave out.
    #[serde(default)]
    pub from: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunPiece {
    pub text: String,
    /// Of the whole.
    pub bytes: u64,
    /// Where the next piece begins; absent on the last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

/// Waits until there is something about a run that the caller has not seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunWatch {
    pub id: String,
    /// What an earlier answer said to have shown.
    #[serde(default)]
    pub seen: Option<RunSeen>,
    /// How long to wait at the most.
    #[serde(default)]
    pub wait_ms: u32,
}

/// How far somebody has watched a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSeen {
    /// Grows with every change of the run.
    pub version: u64,
    /// Which try; it grows with each.
    pub epoch: u32,
    /// Of what that try has said.
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunCancel {
    pub id: String,
    #[serde(default)]
    pub note: Option<String>,
}

/// Runs a failed or cancelled run again: one more attempt of the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunRetry {
    pub id: String,
}

/// A human says how a run ended that was cut off.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RunSettle {
    pub id: String,
    /// `done` or `failed`
    pub state: String,
    #[serde(default)]
    pub note: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunShown {
    pub run: Run,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunWatched {
    pub run: Run,
    /// What the try that goes on has said since; what counts is the `output` of a run that has ended.
    pub said: String,
    /// Whether the run will change no more, unless somebody asks for it.
    pub ended: bool,
    pub seen: RunSeen,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunChanged {
    pub run: Run,
    /// False when it was so already.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Runs {
    pub runs: Vec<Run>,
    /// Where the next page begins; absent on the last.
    pub cursor: Option<String>,
}
