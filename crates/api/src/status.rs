//! How things stand.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::Authority;
use crate::notice::Channel;

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StatusAsk {}

/// Whether the watch is well, without a look at what it keeps.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HealthAsk {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Health {
    pub watch: Watch,
    /// Entries in the log.
    pub entries: u64,
    /// Why nothing is written any more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Health {
    pub const fn is_well(&self) -> bool {
        self.watch.kept && self.stopped.is_none()
    }
}

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

/// What was used today, by UTC. Runs are those that were begun and are counted; those of tier 0 are not.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    pub runs: i64,
    /// The most there may be.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_max: Option<i64>,
    /// Used, as far as backends have told, or held back for runs that are at work.
    pub tokens: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<i64>,
    /// Spent by agents that have a price, or held back, such as `1.25`.
    pub money: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_max: Option<String>,
    /// Limits of the installation, of agents and, where there are not more than 1,000, of schedules.
    #[serde(default)]
    pub used_up: Vec<BudgetLimit>,
    /// When the day is over, and with it all this.
    pub until: String,
}

/// Every limit of today of which something is used.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BudgetList {}

/// Those that are used up come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budgets {
    pub budgets: Vec<BudgetLimit>,
    /// More than are told of here.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// When the day is over, and with it all this.
    pub until: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BudgetLimit {
    /// `installation`, `agent` or `schedule`
    pub scope: String,
    /// The agent, or the id of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// `runs`, `tokens` or `money`
    pub what: String,
    pub used: Amount,
    pub most: Amount,
    pub used_up: bool,
}

/// A number of runs or tokens, or an amount of money as a text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Amount {
    Count(i64),
    Money(String),
}

impl fmt::Display for Amount {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Amount::Count(count) => count.fmt(out),
            Amount::Money(money) => money.fmt(out),
        }
    }
}

fn is_zero(number: &usize) -> bool {
    *number == 0
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
