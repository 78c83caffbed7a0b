//! The event: one entry of the ledger, with its actor and its cause.
//!
//! The commit assigns the sequence number and the recording instant after the decision, so they are not
//! part of the event: no rule and no derived row may depend on them. A body that needs an instant carries it.
//!
//! A kind and its version name a stored format for ever. The `kinds!` table below is the only list of them;
//! an unknown kind or version is an error, never skipped.

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::actor::Actor;
use crate::noun::EventBody;
use crate::time::Timestamp;
use crate::{agent, approval, authority, installation, run, schedule, token, tool};

#[derive(Debug)]
pub struct Event<'a> {
    pub at: Timestamp,
    pub actor: &'a Actor,
    /// The request or event that caused it; empty when Midwatch acted by itself.
    pub cause: &'a str,
    pub body: &'a mut EventBody,
}

/// The part of a stored event that says how to decode its facts.
#[derive(Clone, Copy, Debug)]
pub struct Label<'a> {
    pub kind: &'a str,
    pub version: u16,
    pub noun_id: &'a str,
}

/// The list of event kinds: stored name, version, noun, event. Names and versions never change.
macro_rules! kinds {
    ($($kind:literal $version:literal $noun:ident $($event:ident)::+;)*) => {
        /// Every kind with its version, in the order in which they were added.
        pub const KINDS: &[(&str, u16)] = &[$(($kind, $version)),*];

        impl EventBody {
            pub fn label(&self) -> Label<'_> {
                match self {$(
                    EventBody::$noun(id, $($event)::+(_)) => {
                        Label { kind: $kind, version: $version, noun_id: id.as_str() }
                    }
                )*}
            }

            /// Decodes a stored event from its label and its facts.
            pub fn decode<'de, D>(label: Label<'_>, facts: D) -> Result<EventBody, D::Error>
            where
                D: Deserializer<'de>,
            {
                match (label.kind, label.version) {
                    $(($kind, $version) => {
                        let id = label.noun_id.parse().map_err(D::Error::custom)?;
                        Ok(EventBody::$noun(id, $($event)::+(Deserialize::deserialize(facts)?)))
                    })*
                    (kind, version) => {
                        let unknown = format!("unknown event kind `{kind}` version {version}");
                        Err(D::Error::custom(unknown))
                    }
                }
            }
        }

        /// The facts of an event: the stored form of its body.
        impl Serialize for EventBody {
            fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                match self {
                    $(EventBody::$noun(_, $($event)::+(facts)) => facts.serialize(out),)*
                }
            }
        }
    };
}

kinds! {
    "genesis" 1 Installation installation::Event::Genesis;
    "watch.started" 1 Installation installation::Event::Started;
    "watch.stopped" 1 Installation installation::Event::Stopped;
    "watch.heartbeat" 1 Installation installation::Event::Heartbeat;
    "ledger.exported" 1 Installation installation::Event::Exported;
    "ledger.rebuilt" 1 Installation installation::Event::Rebuilt;
    "ledger.key_replaced" 1 Installation installation::Event::KeyReplaced;
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
    "run.cancel_asked" 1 Run run::Event::CancelRequested;
    "run.ended" 1 Run run::Event::Ended;
    "run.requeued" 1 Run run::Event::Requeued;
    "run.settled" 1 Run run::Event::Settled;
    "schedule.changed" 1 Schedule schedule::Event::Changed;
    "schedule.moved" 1 Schedule schedule::Event::Moved;
    "schedule.backfill_begun" 1 Schedule schedule::Event::BackfillStarted;
    "schedule.backfill_moved" 1 Schedule schedule::Event::BackfillMoved;
    "tz.changed" 1 Installation installation::Event::TzChanged;
    "approval.asked" 1 Approval approval::Event::Requested;
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
    "watch.refused" 1 Installation installation::Event::Refused;
    "watch.clock_anomaly" 1 Installation installation::Event::ClockAnomaly;
    "config.reloaded" 1 Installation installation::Event::Reloaded;
    "config.refused" 1 Installation installation::Event::ReloadRefused;
    "agent.tested" 1 Agent agent::Event::Tested;
    "tool.called" 1 Tool tool::Event::Called;
    "tool.alerted" 1 Tool tool::Event::Alerted;
    "tool.used" 1 Installation installation::Event::ToolsUsed;
    "agent.answered" 1 Agent agent::Event::TestSpent;
}
