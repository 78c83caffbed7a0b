//! What can happen to a schedule and its slots. These are stored formats.

use calendar::Span;
use serde::{Deserialize, Serialize};

use super::Definition;
use crate::agent::AgentName;
use crate::id::{RunId, ScheduleId};
use crate::progress::Ahead;
use crate::slot::{Disposition, Reason, Source, Timing};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Added(Added),
    Changed(Changed),
    Paused(Paused),
    Resumed(Resumed),
    Removed(Removed),
    Moved(Moved),
    BackfillBegun(BackfillBegun),
    BackfillMoved(BackfillMoved),
    Passed(Passed),
    Buffered(Buffered),
    Dropped(Dropped),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    pub definition: Box<Definition>,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
    pub at: Timestamp,
    pub ahead: Ahead,
}

/// An agent that has added a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MadeBy {
    /// The run that did, unless it was somebody with the token of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub agent: AgentName,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    pub at: Timestamp,
    pub ahead: Ahead,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The schedule that it followed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfollows: Option<ScheduleId>,
    /// Who had added it, if that was an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
    pub at: Timestamp,
}

/// Another definition takes the place of the one before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    pub definition: Box<Definition>,
    /// The schedule that it followed and does not follow any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unfollows: Option<ScheduleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub at: Timestamp,
    pub ahead: Ahead,
}

/// The next slot is another one, without any having been decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    pub why: MovedWhy,
    pub at: Timestamp,
    pub ahead: Ahead,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MovedWhy {
    /// The run that the next slot is counted from has ended.
    Finished,
    /// The rules of the zone are others than when the next slot was computed.
    TzRebased,
}

/// Slots of the past are to run after all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillBegun {
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// Runs of it at a time.
    pub at_once: u32,
    /// From one start to the next at the least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Span>,
    pub by: String,
    pub at: Timestamp,
}

/// A slot of a backfill needs no run, or nobody wants the rest of it any more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillMoved {
    /// Which it goes on with, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    pub at: Timestamp,
}

/// Adjacent slots that get no run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    pub revision: u32,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// What clocks in the zone showed at the last.
    pub wall: String,
    pub disposition: Disposition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The slot that stands for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Timestamp>,
    /// What made it a slot, if that is not the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// Of several: what they were slots of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Box<Timing>>,
    pub at: Timestamp,
    pub ahead: Ahead,
}

/// A slot waits for an earlier run to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffered {
    pub revision: u32,
    pub slot: Timestamp,
    pub wall: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub at: Timestamp,
    pub ahead: Ahead,
}

/// A slot that waited gets no run after all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    pub slot: Timestamp,
    pub disposition: Disposition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Timestamp>,
    pub at: Timestamp,
    pub ahead: Ahead,
}
