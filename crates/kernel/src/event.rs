//! The event: one entry of the ledger, with its actor and its cause.
//!
//! The commit assigns the sequence number and the recording instant after the decision, so they are not
//! part of the event: no rule and no derived row may depend on them. A body that needs an instant carries it.
//!
//! A kind and its version name a stored format for ever. The `kinds!` table in a noun's module lists the kinds of
//! its events; an unknown kind or version is an error, never skipped.

use serde::de::Error;
use serde::{Deserializer, Serialize};

use crate::EventBody;
use crate::actor::Actor;
use crate::time::Timestamp;

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

/// An event whose kinds and stored form are listed in a `kinds!` table, which implements this.
pub trait StoredEvent: Serialize + Sized {
    /// The stored name and version of each kind.
    const KINDS: &'static [(&'static str, u16)];

    /// The kind of this event, with its version.
    fn kind(&self) -> (&'static str, u16);

    /// Decodes an event from its label and its facts.
    fn decode<'de, D: Deserializer<'de>>(label: Label<'_>, facts: D) -> Result<Self, D::Error>;
}

/// The event kinds of one noun: stored name, version, variant. Names and versions never change.
macro_rules! kinds {
    ($event:ident: $($kind:literal $version:literal $variant:ident;)*) => {
        impl $crate::event::StoredEvent for $event {
            const KINDS: &'static [(&'static str, u16)] = &[$(($kind, $version)),*];

            fn kind(&self) -> (&'static str, u16) {
                match self {
                    $($event::$variant(_) => ($kind, $version),)*
                }
            }

            fn decode<'de, D>(label: $crate::event::Label<'_>, facts: D) -> Result<Self, D::Error>
            where
                D: serde::Deserializer<'de>,
            {
                match (label.kind, label.version) {
                    $(($kind, $version) => {
                        serde::Deserialize::deserialize(facts).map($event::$variant)
                    })*
                    _ => Err($crate::event::unknown_kind(label)),
                }
            }
        }

        /// The facts of an event: the stored form of its body.
        impl serde::Serialize for $event {
            fn serialize<S: serde::Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
                match self {
                    $($event::$variant(facts) => facts.serialize(out),)*
                }
            }
        }
    };
}
pub(crate) use kinds;

pub(crate) fn unknown_kind<E: Error>(Label { kind, version, .. }: Label<'_>) -> E {
    E::custom(format!("unknown event kind `{kind}` version {version}"))
}
