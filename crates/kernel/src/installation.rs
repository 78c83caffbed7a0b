//! Events about the installation itself: the first entry of the ledger, starts and stops, heartbeats that
//! make outages visible, refused requests, and operations on the ledger. Only the [`Identity`] is derived
//! from them.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use crate::EventBody;
use crate::authority::Authority;
use crate::event::kinds;
use crate::noun::{ChangedRow, NounEvent, NounState};
use crate::private_fields::PrivateField;
use crate::time::Timestamp;
use crate::tool::{CallCounts, ToolName, ToolStats};

/// The format version of a new ledger.
pub const LEDGER_FORMAT: u16 = 1;
/// Smaller corrections of a clock are normal.
pub(crate) const CLOCK_ERROR_US_MAX: i64 = 5_000_000;

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

/// The identity of the installation and the key that signs its ledger. The noun has only this row.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Identity {
    pub instance: String,
    /// The public half of the key that signs checkpoints.
    pub key: String,
    /// The time zone database version that the next slots of all schedules were computed with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tzdata: Option<String>,
    /// The last time that a maintainer accepted a clock behind the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<AcceptedClock>,
}

/// A clock that a maintainer accepted although it was behind the ledger: the times in the ledger were wrong.
///
/// Entries keep the wrong time until the clock has passed it. Until then `latest` is what expiry goes by instead, so
/// setting the clock back again still revives nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AcceptedClock {
    /// The wrong time of the last entry.
    pub ledger: Timestamp,
    /// The latest time that the clock has shown since.
    pub latest: Timestamp,
}

/// The first entry of every ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Genesis {
    pub instance: String,
    /// The public half of the key that signs checkpoints.
    pub key: String,
    pub format: u16,
    /// The version of the time zone database.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tzdata: Option<String>,
}

/// The daemon started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    /// Of the program.
    pub version: String,
    pub posture: String,
    /// The daemon last ran in another posture, or never.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub is_other_posture: bool,
    /// SHA-256 of the effective configuration, so that the ledger shows when it changed.
    pub config_hash: String,
    /// Size of the newest checkpoint that was found.
    pub checkpoint: u64,
    /// The first start begins the lease at this instant.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_from: Option<Timestamp>,
    /// The start of the hash of the active rules.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub policy: Option<String>,
    /// The names of the checks that warned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// Configuration and rules were reloaded and are active from now on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reloaded {
    /// SHA-256 of the configuration that is active now.
    pub config_hash: String,
    /// The start of the hash of the rules that are active now.
    pub policy: String,
    /// The keys and files that took effect.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    /// The changed keys that take effect after a restart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<String>,
    /// The names of the checks that warned.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// A reload of configuration or rules failed; the active ones stay.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReloadRefused {
    /// The error code of the response.
    pub code: String,
    pub reason: String,
}

/// How often tools were called since the last such event.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolsUsed {
    pub tools: Vec<ToolUsage>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToolUsage {
    pub tool: ToolName,
    pub tally: CallCounts,
}

/// The time zone database changed, and the next slot of each schedule was recomputed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TzChanged {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<String>,
    pub to: String,
    /// Schedules whose next slot changed.
    pub moved: u64,
}

/// A request was refused: the caller's role was too low, the token was invalid, or an agent tried to decide for
/// a human.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Refused {
    pub by: String,
    /// The request, if the caller was authenticated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<String>,
    /// The hash of the plan they tried to decide about, or the unknown tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub about: Option<String>,
    /// The error code of the response.
    pub code: String,
    /// How many earlier refusals of the same kind were not recorded.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub before: u64,
}

/// The clock was set, or was found to be behind the ledger.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockAnomaly {
    /// The expected time.
    pub from: Timestamp,
    /// The time that the clock showed.
    pub to: Timestamp,
    /// The lease counts from here, because it was renewed by a clock that was ahead.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lease_from: Option<Timestamp>,
    /// A maintainer accepted a clock behind the ledger: from now on expiry goes by it.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub is_accepted: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stopped {
    pub reason: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Heartbeat {
    /// The time by an accepted clock that is behind the ledger.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<Timestamp>,
}

/// A month of the ledger was exported to files, and the files were verified.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Exported {
    pub month: String,
    pub first: u64,
    pub last: u64,
    pub manifest_hash: String,
}

/// Derived tables differed from the ledger and were rebuilt from it.
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
    /// An anomaly, if the clock differs too much from the expected time.
    pub fn detect(
        expected: Timestamp,
        shown: Timestamp,
        authority: &Authority,
    ) -> Option<ClockAnomaly> {
        let error_us = expected.as_micros().abs_diff(shown.as_micros());
        let lease_from = authority.was_renewed_after(shown).then_some(shown);
        let anomaly = ClockAnomaly { from: expected, to: shown, lease_from, is_accepted: false };
        (CLOCK_ERROR_US_MAX.unsigned_abs() < error_us).then_some(anomaly)
    }
}

impl NounState for Identity {
    /// The instance of the installation.
    type Id = str;

    fn apply(_: &str, identity: Option<Identity>, body: &EventBody) -> Option<Identity> {
        match body {
            EventBody::Installation(instance, event) => apply(instance, identity, event),
            _ => identity,
        }
    }
}

kinds! {
    Event:
    "genesis" 1 Genesis;
    "watch.started" 1 Started;
    "watch.stopped" 1 Stopped;
    "watch.heartbeat" 1 Heartbeat;
    "ledger.exported" 1 Exported;
    "ledger.rebuilt" 1 Rebuilt;
    "ledger.key_replaced" 1 KeyReplaced;
    "tz.changed" 1 TzChanged;
    "watch.refused" 1 Refused;
    "watch.clock_anomaly" 1 ClockAnomaly;
    "config.reloaded" 1 Reloaded;
    "config.refused" 1 ReloadRefused;
    "tool.used" 1 ToolsUsed;
}

impl NounEvent for Event {
    type State = Identity;

    fn changed_rows(&self, instance: &str) -> Vec<ChangedRow> {
        let authority = || vec![ChangedRow::existing::<Authority>(instance)];
        let identity = || vec![ChangedRow::existing::<Identity>(instance)];
        match self {
            Event::Genesis(_) | Event::KeyReplaced(_) | Event::TzChanged(_) => identity(),
            Event::Heartbeat(Heartbeat { clock: Some(_) }) => identity(),
            Event::Started(started) if started.lease_from.is_some() => authority(),
            Event::Started(started) if started.is_other_posture => authority(),
            Event::ClockAnomaly(anomaly) => {
                let is_about_lease = anomaly.is_accepted || anomaly.lease_from.is_some();
                let authority = is_about_lease.then(authority);
                let identity = anomaly.is_accepted.then(identity);
                authority.into_iter().chain(identity).flatten().collect()
            }
            Event::ToolsUsed(summary) => {
                let tools = summary.tools.iter();
                tools.map(|used| ChangedRow::existing::<ToolStats>(&used.tool)).collect()
            }
            _ => Vec::new(),
        }
    }

    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        match self {
            // The reason quotes from the file.
            Event::ReloadRefused(refused) => vec![("reason", &mut refused.reason)],
            _ => Vec::new(),
        }
    }
}

/// The identity after an event.
pub fn apply(instance: &str, identity: Option<Identity>, event: &Event) -> Option<Identity> {
    match event {
        Event::Genesis(Genesis { key, tzdata, .. }) => {
            let (instance, key, tzdata) = (instance.to_owned(), key.clone(), tzdata.clone());
            Some(Identity { instance, key, tzdata, clock: None })
        }
        Event::KeyReplaced(replaced) => {
            let (tzdata, clock) = identity.map_or((None, None), |it| (it.tzdata, it.clock));
            Some(Identity {
                instance: instance.to_owned(),
                key: replaced.new.clone(),
                tzdata,
                clock,
            })
        }
        Event::TzChanged(changed) => {
            Some(Identity { tzdata: Some(changed.to.clone()), ..identity? })
        }
        Event::ClockAnomaly(anomaly) if anomaly.is_accepted => {
            let clock = AcceptedClock { ledger: anomaly.from, latest: anomaly.to };
            Some(Identity { clock: Some(clock), ..identity? })
        }
        Event::Heartbeat(Heartbeat { clock: Some(shown) }) => {
            let mut identity = identity?;
            if let Some(clock) = &mut identity.clock {
                clock.latest = clock.latest.max(*shown);
            }
            Some(identity)
        }
        Event::Started(_) | Event::Stopped(_) | Event::Heartbeat(_) => identity,
        Event::Exported(_) | Event::Rebuilt(_) | Event::Refused(_) => identity,
        Event::ClockAnomaly(_) | Event::ToolsUsed(_) => identity,
        Event::Reloaded(_) | Event::ReloadRefused(_) => identity,
    }
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}
