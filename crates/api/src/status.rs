//! How things stand.

use serde::{Deserialize, Serialize};

use crate::Authority;
use crate::notice::Channel;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusAsk {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    pub watch: Watch,
    pub log: Log,
    pub authority: Authority,
    pub budget: Budget,
    pub agents: i64,
    pub schedules: i64,
    pub runs: LiveRuns,
    /// The schedule that is due next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextDue>,
    /// Runs of which nobody knows how they ended: a human must say.
    pub unknown: Vec<String>,
    /// Approvals that somebody must decide on.
    pub approvals: Vec<String>,
    /// Schedules that were paused because their runs failed.
    pub paused: Vec<String>,
    /// Agents about whom nobody is asked any more, as people have said no so often.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silenced: Vec<String>,
    /// How a human is called, while a daemon keeps the watch.
    #[serde(default)]
    pub notices: Vec<Channel>,
    /// What this version can do, and whether it does so now.
    #[serde(default)]
    pub capabilities: Vec<Capability>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Capability {
    pub name: String,
    /// Whether this version can do it.
    pub supported: bool,
    /// Whether it does so now.
    pub enabled: bool,
    /// Why not, if not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
}

/// Runs that were begun today, by UTC, and are counted; those of tier 0 are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub runs: i64,
    /// The most there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_max: Option<i64>,
    /// Used, as far as backends have told.
    pub tokens: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<i64>,
}

/// Runs that have not ended, as far as they are counted: up to [`LIVE_COUNTED_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LiveRuns {
    pub queued: usize,
    pub running: Vec<String>,
    /// Runs that wait for a human's approval.
    pub waiting: usize,
}

/// Runs that a status counts.
pub const LIVE_COUNTED_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct NextDue {
    pub schedule_id: String,
    pub at: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Watch {
    /// Whether a daemon keeps the watch.
    pub kept: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    pub version: String,
    pub data: String,
    pub posture: String,
    /// Which rules are in force.
    #[serde(default)]
    pub policy: String,
    /// The checks that had something to say when the daemon started.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Log {
    pub instance: String,
    /// The public key that verifies this log; keep a copy elsewhere.
    pub key: String,
    pub entries: u64,
    pub head: String,
    /// Entries covered by the newest signed checkpoint.
    pub checkpoint: u64,
    /// Why nothing is written any more, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// What the background check of log and tables has found so far.
    pub check: String,
    /// How far the clock is behind the last entry, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}
