//! Requests about the state of the daemon, the ledger and the budgets.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::cleanup::DiskUse;
use crate::notice::Channel;
use crate::words::words;
use crate::{Authority, Containment, RunState};

words! {
    /// How strict an installation is.
    pub enum Posture "posture" {
        StrictProd "strict-prod" | "unattended",
        Staging "staging" | "supervised",
        Debug "debug",
    }
}

/// Returns the status of the installation.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusShow {}

/// Records that the caller has seen what happened up to an instant. Later, `status` reports the failures after it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct StatusSeen {
    /// The `at` of the status that the caller saw.
    pub until: String,
}

/// How far the caller has seen what happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SeenMarked {
    pub until: String,
    pub changed: bool,
}

/// Returns whether the daemon is healthy. It reads no schedules or runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct HealthShow {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Health {
    #[serde(rename = "watch")]
    pub daemon: DaemonStatus,
    /// Number of entries in the ledger.
    pub entries: u64,
    /// Why the daemon has stopped writing; absent if it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
}

impl Health {
    /// Whether a daemon runs and can write.
    pub const fn is_well(&self) -> bool {
        self.daemon.running && self.stopped.is_none()
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Status {
    /// When this was the status.
    #[serde(default)]
    pub at: String,
    #[serde(rename = "watch")]
    pub daemon: DaemonStatus,
    /// What failed or ended unknown since the caller last looked.
    #[serde(default)]
    pub failures: Failures,
    /// Runs that wait for approval; the first to expire comes first.
    #[serde(default)]
    pub waiting: Vec<WaitingRun>,
    /// Runs in progress.
    #[serde(default)]
    pub running: Vec<StatusRun>,
    /// The next schedules that are due, at most [`UPCOMING_MAX`].
    #[serde(default)]
    pub upcoming: Vec<NextDue>,
    #[serde(rename = "log")]
    pub ledger: LedgerStatus,
    pub authority: Authority,
    pub budget: Budget,
    pub agents: i64,
    pub schedules: i64,
    pub runs: LiveRuns,
    /// The schedule that is due next.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<NextDue>,
    /// Runs with an unknown outcome, which a human must settle.
    pub unknown: Vec<String>,
    /// The same with their names, newest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub unknown_runs: Vec<StatusRun>,
    /// Pending approvals.
    pub approvals: Vec<String>,
    /// Schedules that were paused because their runs failed.
    pub paused: Vec<String>,
    /// The same with their names.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub paused_schedules: Vec<PausedSchedule>,
    /// Agents that request no more approvals, because too many were denied in a row.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub silenced: Vec<String>,
    /// The notification channels of the running daemon.
    #[serde(default)]
    pub notices: Vec<Channel>,
    /// What uses the disk.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub disk: Option<DiskUse>,
    /// Optional features, and whether they are enabled.
    #[serde(default)]
    pub capabilities: Vec<Capability>,
}

/// Most schedules that a status lists as due next.
pub const UPCOMING_MAX: usize = 5;

/// Runs that failed or ended unknown, and that the caller has not seen yet.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Failures {
    /// From when on they are reported.
    pub since: String,
    /// Whether that is when the caller last looked; otherwise it is 24 hours ago.
    pub seen: bool,
    /// Newest first.
    pub runs: Vec<StatusRun>,
    /// Whether there were too many runs to look at all of them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// A run as a status shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct StatusRun {
    pub run_id: String,
    pub state: RunState,
    pub schedule_id: String,
    /// The name of the schedule; absent if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// When the run ended, or when its present attempt started.
    pub at: String,
    /// Why the run ended so, as a short code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The same as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// A run that waits for approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct WaitingRun {
    pub approval_id: String,
    pub run_id: String,
    pub schedule_id: String,
    /// The name of the schedule; absent if it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// When the approval expires.
    pub approve_by: String,
}

/// A schedule that was paused because its runs failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PausedSchedule {
    pub schedule_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
}

/// An optional feature.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Capability {
    pub name: String,
    /// Whether this version has the feature.
    pub supported: bool,
    /// Whether the feature is enabled.
    pub enabled: bool,
    /// Why the feature is not enabled.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub why: Option<String>,
    /// Whether the feature is off unless the configuration turns it on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub opt_in: bool,
    /// Of a backend: what contains its agents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
}

/// What the installation has used in the present UTC day.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budget {
    /// Runs that were started; tier-0 runs do not count.
    pub runs: i64,
    /// Limit of runs in a day; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_max: Option<i64>,
    /// Tokens that backends reported, and reservations of running runs.
    pub tokens: i64,
    /// Limit of tokens in a day; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_max: Option<i64>,
    /// Cost of agents with a price, and reservations of running runs, such as `1.25`.
    pub money: String,
    /// Limit of money in a day; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_max: Option<String>,
    /// The limits that are used up, of the installation, agents and, if there are at most 1,000, schedules.
    #[serde(default)]
    pub used_up: Vec<BudgetLimit>,
    /// When the UTC day ends and all limits start again.
    pub until: String,
}

/// Lists the daily limits of which something is used today.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetList {}

/// Daily limits; those that are used up come first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Budgets {
    pub budgets: Vec<BudgetLimit>,
    /// Number of limits that the list leaves out.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub left_out: usize,
    /// When the UTC day ends and all limits start again.
    pub until: String,
}

/// A daily limit and its use.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetLimit {
    /// `installation`, `agent` or `schedule`
    pub scope: String,
    /// The name of the agent or the id of the schedule.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The name of the schedule, in a status.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    /// `runs`, `tokens` or `money`
    pub what: String,
    pub used: Amount,
    /// The limit.
    pub most: Amount,
    pub used_up: bool,
}

/// A number of runs or tokens, or an amount of money as text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

/// Runs that have not ended, up to [`LIVE_COUNTED_MAX`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LiveRuns {
    pub queued: usize,
    pub running: Vec<String>,
    /// Runs that wait for approval.
    pub waiting: usize,
}

/// Most runs that a status counts.
pub const LIVE_COUNTED_MAX: usize = 1_000;

/// The schedule that is due next, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct NextDue {
    pub schedule_id: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    pub at: String,
}

/// The daemon, its version and its data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DaemonStatus {
    /// Whether a daemon is running.
    #[serde(rename = "kept")]
    pub running: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pid: Option<u32>,
    /// When the daemon started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    pub version: String,
    /// The data directory.
    pub data: String,
    /// Where the ledger is, such as `SQLite (midwatch.db)`.
    #[serde(default)]
    pub store: String,
    pub posture: Posture,
    /// The version of the active policy.
    #[serde(default)]
    pub policy: String,
    /// Warnings of the startup checks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The ledger and the result of its checks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LedgerStatus {
    /// The id of the installation.
    pub instance: String,
    /// The public key that verifies the ledger; store a copy elsewhere.
    pub key: String,
    pub entries: u64,
    /// The hash of the last entry.
    pub head: String,
    /// Number of entries that the newest signed checkpoint covers.
    pub checkpoint: u64,
    /// Why the daemon has stopped writing; absent if it has not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stopped: Option<String>,
    /// Why the last write failed, such as a full disk; absent if it succeeded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failing: Option<String>,
    /// The result so far of the background check of ledger and tables.
    pub check: String,
    /// How the clock disagrees with the ledger: it is behind the last entry, or so far ahead that nothing starts; absent if it
    /// does not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
}
