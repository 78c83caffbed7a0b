//! The event: one line of the log, with who did it and what led to it.
//!
//! Sequence number and recording instant are given at the commit, after deciding, and so are no part
//! of it: no rule and no derived row may depend on them. A body that needs an instant carries it.
//!
//! A kind and its version name a stored format for ever. The `kinds!` table
//! below is the one place that lists them; a kind or version that it does not know is an error, never skipped.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::actor::Actor;
use crate::agent::{self, AgentName};
use crate::id::{ApprovalId, RunId, ScheduleId, TokenId};
use crate::time::Timestamp;
use crate::tool::{self, ToolName};
use crate::{approval, authority, run, schedule, token, watch};

#[derive(Debug)]
pub struct Event<'a> {
    pub at: Timestamp,
    pub actor: &'a Actor,
    /// The request or event that led here; empty when the watch acted by itself.
    pub cause: &'a str,
    pub body: &'a mut Body,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Body {
    Agent(AgentName, agent::Event),
    Approval(ApprovalId, approval::Event),
    /// What the watch may do, with the id of this installation.
    Authority(String, authority::Event),
    Schedule(ScheduleId, schedule::Event),
    Run(RunId, run::Event),
    Token(TokenId, token::Event),
    Tool(ToolName, tool::Event),
    /// What the watch writes about itself, with the id of this installation.
    Watch(String, watch::Event),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Noun {
    Agent,
    Approval,
    Authority,
    Progress,
    Run,
    Schedule,
    Slot,
    Token,
    Tool,
    Watch,
}

impl Noun {
    pub const fn name(self) -> &'static str {
        match self {
            Noun::Agent => "agent",
            Noun::Approval => "approval",
            Noun::Authority => "authority",
            Noun::Progress => "progress",
            Noun::Run => "run",
            Noun::Schedule => "schedule",
            Noun::Slot => "slot",
            Noun::Token => "token",
            Noun::Tool => "tool",
            Noun::Watch => "watch",
        }
    }
}

/// What a stored event says of itself beside its facts.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    pub kind: &'a str,
    pub version: u16,
    pub noun_id: &'a str,
}

/// The one list of event kinds: stored name, version, noun, event. Names and versions stay for ever.
macro_rules! kinds {
    ($($kind:literal $version:literal $noun:ident $($event:ident)::+;)*) => {
        /// Every kind with its version, in the order in which they came to be.
        pub const KINDS: &[(&str, u16)] = &[$(($kind, $version)),*];

        impl Body {
            pub fn label(&self) -> Label<'_> {
                match self {$(
                    Body::$noun(id, $($event)::+(_)) => {
                        Label { kind: $kind, version: $version, noun_id: id.as_str() }
                    }
                )*}
            }

            /// A stored event, from its label and its facts.
            pub fn decode<'de, D>(label: Label<'_>, facts: D) -> Result<Body, D::Error>
            where
                D: Deserializer<'de>,
            {
                match (label.kind, label.version) {
                    $(($kind, $version) => {
                        let id = label.noun_id.parse().map_err(D::Error::custom)?;
                        Ok(Body::$noun(id, $($event)::+(Deserialize::deserialize(facts)?)))
                    })*
                    (kind, version) => {
                        let unknown = format!("event kind `{kind}` version {version} is not known");
                        Err(D::Error::custom(unknown))
                    }
                }
            }
        }

        /// The facts of an event: what is stored of its body.
        impl Serialize for Body {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(Body::$noun(_, $($event)::+(facts)) => facts.serialize(out),)*
                }
            }
        }
    };
}

kinds! {
    "genesis" 1 Watch watch::Event::Genesis;
    "watch.started" 1 Watch watch::Event::Started;
    "watch.stopped" 1 Watch watch::Event::Stopped;
    "watch.heartbeat" 1 Watch watch::Event::Heartbeat;
    "ledger.exported" 1 Watch watch::Event::Exported;
    "ledger.rebuilt" 1 Watch watch::Event::Rebuilt;
    "ledger.key_replaced" 1 Watch watch::Event::KeyReplaced;
    "agent.registered" 1 Agent agent::Event::Registered;
    "agent.changed" 1 Agent agent::Event::Changed;
    "agent.removed" 1 Agent agent::Event::Removed;
    "schedule.added" 1 Schedule schedule::Event::Added;
    "schedule.paused" 1 Schedule schedule::Event::Paused;
    "schedule.resumed" 1 Schedule schedule::Event::Resumed;
    "schedule.removed" 1 Schedule schedule::Event::Removed;
    "slot.passed" 1 Schedule schedule::Event::Passed;
    "slot.buffered" 1 Schedule schedule::Event::Buffered;
    "slot.dropped" 1 Schedule schedule::Event::Dropped;
    "run.queued" 1 Run run::Event::Queued;
    "run.started" 1 Run run::Event::Started;
    "run.retried" 1 Run run::Event::Retried;
    "run.cancel_asked" 1 Run run::Event::CancelAsked;
    "run.ended" 1 Run run::Event::Ended;
    "run.requeued" 1 Run run::Event::Requeued;
    "run.settled" 1 Run run::Event::Settled;
    "schedule.changed" 1 Schedule schedule::Event::Changed;
    "schedule.moved" 1 Schedule schedule::Event::Moved;
    "schedule.backfill_begun" 1 Schedule schedule::Event::BackfillBegun;
    "schedule.backfill_moved" 1 Schedule schedule::Event::BackfillMoved;
    "tz.changed" 1 Watch watch::Event::TzChanged;
    "approval.asked" 1 Approval approval::Event::Asked;
    "approval.assented" 1 Approval approval::Event::Assented;
    "approval.decided" 1 Approval approval::Event::Decided;
    "approval.consumed" 1 Approval approval::Event::Consumed;
    "approval.lapsed" 1 Approval approval::Event::Lapsed;
    "authority.frozen" 1 Authority authority::Event::Frozen;
    "authority.thawed" 1 Authority authority::Event::Thawed;
    "authority.renewed" 1 Authority authority::Event::Renewed;
    "authority.warned" 1 Authority authority::Event::Warned;
    "token.created" 1 Token token::Event::Created;
    "token.revoked" 1 Token token::Event::Revoked;
    "watch.refused" 1 Watch watch::Event::Refused;
    "watch.clock_anomaly" 1 Watch watch::Event::ClockAnomaly;
    "config.reloaded" 1 Watch watch::Event::Reloaded;
    "config.refused" 1 Watch watch::Event::ReloadRefused;
    "agent.tested" 1 Agent agent::Event::Tested;
    "tool.called" 1 Tool tool::Event::Made;
    "tool.alerted" 1 Tool tool::Event::Alerted;
    "tool.used" 1 Watch watch::Event::ToolsUsed;
    "agent.answered" 1 Agent agent::Event::Answered;
}

impl Body {
    pub const fn noun(&self) -> Noun {
        match self {
            Body::Agent(..) => Noun::Agent,
            Body::Approval(..) => Noun::Approval,
            Body::Authority(..) => Noun::Authority,
            Body::Schedule(..) => Noun::Schedule,
            Body::Run(..) => Noun::Run,
            Body::Token(..) => Noun::Token,
            Body::Tool(..) => Noun::Tool,
            Body::Watch(..) => Noun::Watch,
        }
    }
}
