//! What happens to a run. The serde names are the stored format.

use serde::{Deserialize, Serialize};

use super::{Cancel, Cause, Origin, Outcome, Output};
use crate::agent::AgentName;
use crate::backend::Tier;
use crate::id::ScheduleId;
use crate::progress::Ahead;
use crate::slot;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Queued(Queued),
    Started(Started),
    Retried(Retried),
    CancelAsked(Cancel),
    Ended(Ended),
    Requeued(Requeued),
    Settled(Settled),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    pub schedule: ScheduleId,
    pub revision: u32,
    pub occurrence: Occurrence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub priority: u8,
    pub at: Timestamp,
}

/// What makes two runs of a schedule the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Occurrence {
    Slot(Fired),
    Manual { key: String },
}

/// A slot that fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fired {
    pub nominal: Timestamp,
    pub wall: String,
    pub origin: Origin,
    pub late_us: i64,
    pub ahead: Ahead,
}

/// It is about to do what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    pub epoch: u32,
    pub attempt: u32,
    pub holder: String,
    pub repeatable: bool,
    pub tier: Tier,
    pub at: Timestamp,
}

/// A try has failed, or was cut off and may be repeated; another follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retried {
    pub epoch: u32,
    pub cause: Cause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    pub from: Timestamp,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    pub schedule: ScheduleId,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    pub at: Timestamp,
}

/// Somebody wants it to be tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requeued {
    pub schedule: ScheduleId,
    pub by: String,
    pub at: Timestamp,
}

/// Somebody says how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    pub outcome: Outcome,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

impl Queued {
    /// Whether it is for a slot that was known before.
    pub fn has_waited(&self) -> bool {
        matches!(&self.occurrence, Occurrence::Slot(fired) if fired.origin == Origin::Buffer)
    }

    /// The row of what it stands for; there is at most one run for each.
    pub fn slot_key(&self) -> String {
        match &self.occurrence {
            Occurrence::Slot(fired) => slot::key(&self.schedule, fired.nominal),
            Occurrence::Manual { key } => slot::manual_key(&self.schedule, key),
        }
    }
}
