//! Events of a schedule and its slots. The serde names are the stored format.

use calendar::Span;
use serde::{Deserialize, Serialize};

use super::Definition;
use crate::agent::AgentName;
use crate::id::{RunId, ScheduleId};
use crate::principal::Principal;
use crate::progress::NextFire;
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
    BackfillStarted(BackfillStarted),
    BackfillMoved(BackfillMoved),
    Passed(Passed),
    Buffered(Buffered),
    Dropped(Dropped),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    pub definition: Box<Definition>,
    pub by: Principal,
    #[serde(rename = "made_by", default, skip_serializing_if = "Option::is_none")]
    pub added_by_agent: Option<AddingAgent>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// The agent that added a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddingAgent {
    /// The run that added it; `None` for a caller with the agent's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub agent: AgentName,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    pub by: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The schedule that it depended on.
    #[serde(rename = "unfollows", default, skip_serializing_if = "Option::is_none")]
    pub former_upstream: Option<ScheduleId>,
    /// The agent that had added it, if any.
    #[serde(rename = "made_by", default, skip_serializing_if = "Option::is_none")]
    pub added_by_agent: Option<AddingAgent>,
    pub at: Timestamp,
}

/// The definition was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    pub definition: Box<Definition>,
    /// The schedule that it no longer depends on.
    #[serde(rename = "unfollows", default, skip_serializing_if = "Option::is_none")]
    pub former_upstream: Option<ScheduleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// The next slot changed without a slot having been decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    pub why: MovedWhy,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MovedWhy {
    /// The run that the next slot is counted from ended.
    Finished,
    /// The time zone's rules changed since the next slot was computed.
    TzRebased,
}

/// A backfill of past slots was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillStarted {
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// Runs of the backfill at a time.
    pub at_once: u32,
    /// Shortest time between two starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Span>,
    pub by: String,
    pub at: Timestamp,
}

/// A backfill skipped a slot that has a run, or was ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillMoved {
    /// The next slot of the backfill, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    pub at: Timestamp,
}

/// Adjacent slots were passed over: they get no run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    pub revision: u32,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// Wall-clock time of the last slot in the schedule's zone.
    pub wall: String,
    pub disposition: Disposition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The slot whose run covers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Timestamp>,
    /// What created the slot, if it was not the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// For several slots: the trigger that produced them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Box<Timing>>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// A slot waits until an earlier run ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffered {
    pub revision: u32,
    pub slot: Timestamp,
    pub wall: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// A waiting slot was dropped: it gets no run.
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
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}
