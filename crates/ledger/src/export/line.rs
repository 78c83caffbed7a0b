//! An entry as one line of JSON.
//!
//! The line contains the facts and the private part exactly as they were hashed, and a reader hashes
//! these bytes without parsing them. Unknown and repeated keys are refused.

use std::borrow::Cow;

use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

use crate::hex::Hex;
use crate::{EntryRef, FACTS_BYTES_MAX, Hash, PRIVATE_BYTES_MAX, PrivateRef, TEXT_BYTES_MAX};

/// Includes the line break. An entry at its size limits fits: one byte of text takes up to six in JSON.
pub const LINE_BYTES_MAX: usize =
    FACTS_BYTES_MAX + PRIVATE_BYTES_MAX + 6 * 6 * TEXT_BYTES_MAX + 1024;

/// An entry that borrows from the line it was parsed from.
#[derive(Debug)]
pub struct Line<'a> {
    wire: Wire<'a>,
    private: PrivateRef<'a>,
}

impl<'a> Line<'a> {
    pub fn entry_ref(&self) -> EntryRef<'_> {
        let wire = &self.wire;
        EntryRef {
            seq: wire.seq,
            ts_us: wire.ts_us,
            kind: &wire.kind,
            version: wire.version,
            actor: &wire.actor,
            role: &wire.role,
            cause: &wire.cause,
            noun: &wire.noun,
            noun_id: &wire.noun_id,
            facts: wire.facts.get().as_bytes(),
            private: self.private,
            hash: wire.hash,
        }
    }

    pub(crate) fn parse(line: &'a [u8]) -> Result<Line<'a>, serde_json::Error> {
        let text = std::str::from_utf8(line).map_err(serde_json::Error::custom)?;
        let wire: Wire<'a> = serde_json::from_str(text)?;
        let private = match (wire.salt, wire.private, wire.private_hash) {
            (None, None, None) => PrivateRef::None,
            (Some(Hex(salt)), Some(raw), None) => {
                PrivateRef::Present { salt, bytes: raw.get().as_bytes() }
            }
            (None, None, Some(hash)) => PrivateRef::Redacted { hash },
            _ => {
                return Err(serde_json::Error::custom(
                    "`salt`, `private` and `private_hash` do not fit together",
                ));
            }
        };
        Ok(Line { wire, private })
    }

    /// Writes the entry without a line break. `None` if the facts or the private part are not JSON on
    /// one line.
    pub(crate) fn write(entry: &EntryRef<'a>, output: &mut Vec<u8>) -> Option<()> {
        serde_json::to_writer(output, &Wire::of(entry)?).ok()
    }
}

/// The keys of a line, in their order.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Wire<'a> {
    seq: u64,
    ts_us: i64,
    #[serde(borrow)]
    kind: Cow<'a, str>,
    version: u16,
    #[serde(borrow)]
    actor: Cow<'a, str>,
    #[serde(borrow)]
    role: Cow<'a, str>,
    #[serde(borrow)]
    cause: Cow<'a, str>,
    #[serde(borrow)]
    noun: Cow<'a, str>,
    #[serde(borrow)]
    noun_id: Cow<'a, str>,
    #[serde(borrow)]
    facts: &'a RawValue,
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    salt: Option<Hex<16>>,
    #[serde(borrow)]
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    private: Option<&'a RawValue>,
    /// Replaces `salt` and `private` after their removal.
    #[serde(default, deserialize_with = "present", skip_serializing_if = "Option::is_none")]
    private_hash: Option<Hash>,
    hash: Hash,
}

/// Refuses `null`: a key that is present must have a value.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}

impl<'a> Wire<'a> {
    fn of(entry: &EntryRef<'a>) -> Option<Wire<'a>> {
        let (salt, private, private_hash) = match entry.private {
            PrivateRef::None => (None, None, None),
            PrivateRef::Present { salt, bytes } => (Some(Hex(salt)), Some(raw(bytes)?), None),
            PrivateRef::Redacted { hash } => (None, None, Some(hash)),
        };
        Some(Wire {
            seq: entry.seq,
            ts_us: entry.ts_us,
            kind: entry.kind.into(),
            version: entry.version,
            actor: entry.actor.into(),
            role: entry.role.into(),
            cause: entry.cause.into(),
            noun: entry.noun.into(),
            noun_id: entry.noun_id.into(),
            facts: raw(entry.facts)?,
            salt,
            private,
            private_hash,
            hash: entry.hash,
        })
    }
}

/// `None` unless the bytes are exactly one JSON value on one line.
fn raw(json: &[u8]) -> Option<&RawValue> {
    let raw: &RawValue = serde_json::from_slice(json).ok()?;
    let unchanged = raw.get().len() == json.len() && !json.contains(&b'\n');
    unchanged.then_some(raw)
}
