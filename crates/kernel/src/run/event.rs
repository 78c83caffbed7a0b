//! What happens to a run. The serde names are the stored format.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use super::{Cancel, Cause, Lack, Origin, Outcome, Output};
use crate::agent::AgentName;
use crate::backend::Tier;
use crate::budget::{Charge, Hold, Spent};
use crate::id::ScheduleId;
use crate::money::Price;
use crate::progress::Ahead;
use crate::ruling::{Circumstances, Ruling};
use crate::schedule::terms::Key;
use crate::slot::{self, Source};
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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Key>,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    /// An agent has started it, and no human.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub by_runner: bool,
    pub at: Timestamp,
}

/// What makes two runs of a schedule the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Occurrence {
    Slot(Fired),
    Manual { key: String },
    Backfill(Fill),
}

/// A slot that fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fired {
    pub nominal: Timestamp,
    pub wall: String,
    pub origin: Origin,
    pub late_us: i64,
    /// What made it a slot, if that is not the time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub ahead: Ahead,
}

/// A slot of the past that is run by a backfill.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fill {
    pub nominal: Timestamp,
    pub wall: String,
    /// Which the backfill goes on with, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
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
    /// What the standing orders said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    /// What else was told when the standing orders were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<Box<Circumstances>>,
    /// What it is counted for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    /// What is held back for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// What its cost goes by.
    #[serde(default, skip_serializing_if = "Price::is_free")]
    pub price: Price,
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
    /// The try was not the run's to lose, and does not count.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub uncounted: bool,
    /// What it is not counted for any more, as nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Charge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// What is not held back any more, as it is known what was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frees: Option<Hold>,
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
    /// Other runs of its schedule still are in the way of slots that wait.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub no_room: bool,
    /// What the standing orders said, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    /// How far it would have reached, where there is a ruling.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    /// What else was told when the standing orders were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<Box<Circumstances>>,
    /// The standing orders or a human did not let it begin.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub refused: bool,
    /// What it lacked, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<Lack>,
    /// The hash of what a human denied, if that is why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<String>,
    /// What it is not counted for any more, as nothing was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub refund: Option<Charge>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// What is not held back any more, as it is known what was used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frees: Option<Hold>,
    pub at: Timestamp,
}

/// Somebody wants it to be tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requeued {
    pub schedule: ScheduleId,
    pub by: String,
    /// An agent wants it again, and no human.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub by_runner: bool,
    /// Tries that it had, from which those to come are counted; none in what was stored when they were counted anew.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts: u32,
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
    /// The code of why nobody knew; absent in what was stored before that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub doubt: Option<String>,
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
            Occurrence::Backfill(fill) => slot::backfill_key(&self.schedule, fill.nominal),
        }
    }

    /// What made its slot, if that is not the time and this is where it is taken.
    pub fn source(&self) -> Option<&Source> {
        match &self.occurrence {
            Occurrence::Slot(fired) => fired.source.as_ref(),
            Occurrence::Manual { .. } | Occurrence::Backfill(_) => None,
        }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
