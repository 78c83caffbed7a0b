//! What the watch writes about itself: the first line of the log, starts and stops, heartbeats that
//! make silence visible, and what was done to the log. Only who signs it is derived from these events.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use crate::authority::Authority;
use crate::time::Timestamp;
use crate::tool::{Tally, ToolName};

/// The version of the log's format that a new log begins with.
pub const LOG_FORMAT: u16 = 1;
/// Clocks are put right by less than this all the time.
const CLOCK_ERROR_US_MAX: u64 = 5_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Genesis(Genesis),
    Started(Started),
    Stopped(Stopped),
    Heartbeat(Heartbeat),
    Exported(Exported),
    Rebuilt(Rebuilt),
    KeyReplaced(KeyReplaced),
    TzChanged(TzChanged),
    Refused(Refused),
    ClockAnomaly(ClockAnomaly),
    Reloaded(Reloaded),
    ReloadRefused(ReloadRefused),
    ToolsUsed(ToolsUsed),
}

/// Who signs this log. The one row of its noun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub instance: String,
    /// The public half of the key that signs checkpoints now.
    pub key: String,
    /// The version of the rules of time zones that the next slots of all schedules were computed by.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tzdata: Option<String>,
}

/// The first entry of every log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genesis {
    pub instance: String,
    /// The public half of the key that signs this log's checkpoints.
    pub key: String,
    pub format: u16,
    /// The version of the rules of time zones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tzdata: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Of the program.
    pub version: String,
    pub posture: String,
    /// It was last kept in another posture, or in none.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub is_other_posture: bool,
    /// SHA-256 of the effective configuration, so that a change of it shows in the log.
    pub config_hash: String,
    /// Size of the newest checkpoint that was found.
    pub checkpoint: u64,
    /// The lease begins here, as there was none before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_from: Option<Timestamp>,
    /// Which rules are in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The checks that have found something, and did not keep it from starting.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Configuration and rules were read again, and hold from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reloaded {
    /// Of what is in force now.
    pub config_hash: String,
    /// Which rules are in force now.
    pub policy: String,
    /// The keys and files that were taken up.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The keys that are others too, and wait for a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The checks that have found something about it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Configuration or rules were read again and found wanting; what was in force stays.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadRefused {
    /// The code of the answer.
    pub code: String,
    pub reason: String,
}

/// How often tools were called since this was last told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsUsed {
    pub tools: Vec<Used>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Used {
    pub tool: ToolName,
    pub tally: Tally,
}

/// The rules of time zones are others from here on; the next slot of each schedule goes by them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TzChanged {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    pub to: String,
    /// Schedules whose next slot is another one now.
    pub moved: u64,
}

/// Somebody asked for what their role does not allow, came with a token that lets nobody in, or has tried to
/// answer for a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub by: String,
    /// What they called, if they got that far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The hash of the plan that they have answered, or the tool that is not there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The code of the answer.
    pub code: String,
    /// How often the same was refused before without being written down.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: u64,
}

/// The clock was set, or was found to be behind the log.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockAnomaly {
    /// What it should have shown.
    pub from: Timestamp,
    /// What it showed.
    pub to: Timestamp,
    /// From here on the lease counts by the clock, as it was renewed by one that was ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_from: Option<Timestamp>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    pub reason: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {}

/// A month of the log was written to files and read back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    pub month: String,
    pub first: u64,
    pub last: u64,
    pub manifest_hash: String,
}

/// Derived tables were found to differ from the log and were made anew from it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rebuilt {
    pub reason: String,
    pub differences: u64,
}

/// The directory was recreated without its old signing key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KeyReplaced {
    pub old: String,
    pub new: String,
}

impl ClockAnomaly {
    /// What is to be said of a clock, if it is further from what it should show than clocks are.
    pub fn of(
        expected: Timestamp,
        shown: Timestamp,
        authority: &Authority,
    ) -> Option<ClockAnomaly> {
        let error_us = expected.as_micros().abs_diff(shown.as_micros());
        let lease_from = authority.is_ahead_of(shown).then_some(shown);
        let anomaly = ClockAnomaly { from: expected, to: shown, lease_from };
        (CLOCK_ERROR_US_MAX < error_us).then_some(anomaly)
    }
}

/// Whether an event changes the identity.
pub fn is_about_identity(event: &Event) -> bool {
    matches!(event, Event::Genesis(_) | Event::KeyReplaced(_) | Event::TzChanged(_))
}

/// The identity after an event.
pub fn apply(instance: &str, identity: Option<Identity>, event: &Event) -> Option<Identity> {
    let (key, tzdata) = match event {
        Event::Genesis(genesis) => (genesis.key.clone(), genesis.tzdata.clone()),
        Event::KeyReplaced(replaced) => {
            (replaced.new.clone(), identity.and_then(|identity| identity.tzdata))
        }
        Event::TzChanged(changed) => (identity?.key, Some(changed.to.clone())),
        Event::Started(_) | Event::Stopped(_) | Event::Heartbeat(_) => return identity,
        Event::Exported(_) | Event::Rebuilt(_) | Event::Refused(_) => return identity,
        Event::ClockAnomaly(_) | Event::ToolsUsed(_) => return identity,
        Event::Reloaded(_) | Event::ReloadRefused(_) => return identity,
    };
    Some(Identity { instance: instance.to_owned(), key, tzdata })
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
