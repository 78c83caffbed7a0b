//! Whose signatures count: the keys given from outside, or else those that the log itself names.
//!
//! Invariant: no entry makes a key count beside those given from outside. Whoever can write an entry
//! could otherwise let their own key replace the one that was given.

use serde::Deserialize;

use super::outside::Checkpoints;
use super::report::Finding;
use crate::note::NoteError;
use crate::{Checkpoint, Fields, VerifyingKey, open};

pub(super) const GENESIS: &str = "genesis";
pub(super) const KEY_REPLACED: &str = "ledger.key_replaced";

/// The keys of one log, replaced ones included.
pub const KEYS_MAX: usize = 16;
/// Of the facts in a genesis entry; they announce the format of the whole log.
const FORMAT: u64 = 1;

/// What is known from outside the log. Each part that is missing leaves a caveat.
#[derive(Debug, Default)]
pub struct Anchors {
    /// Pinned keys: no others count. Without any, the log is trusted to name its own.
    pub keys: Vec<VerifyingKey>,
    /// Copies of checkpoints that were kept elsewhere, by size. The log must agree with all of them.
    pub checkpoints: Option<Checkpoints>,
}

/// A checkpoint whose signature is not verified yet: the keys may only be known later.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    note: String,
    unverified: Checkpoint,
}

impl SignedCheckpoint {
    pub fn parse(note: &str) -> Result<SignedCheckpoint, NoteError> {
        Ok(SignedCheckpoint { unverified: Checkpoint::peek(note)?, note: note.to_owned() })
    }

    /// What it claims.
    pub fn unverified(&self) -> &Checkpoint {
        &self.unverified
    }

    pub fn verify(&self, keys: &[VerifyingKey]) -> Result<Checkpoint, NoteError> {
        open(&self.note, keys)
    }
}

/// The keys that count at one point of the log.
#[derive(Debug)]
pub(super) struct Trust {
    keys: Vec<VerifyingKey>,
    pinned: bool,
    /// Said by the log to have replaced a pinned key. They do not count.
    strangers: Vec<VerifyingKey>,
    caveats: Vec<String>,
}

/// Facts of the first entry, as far as the verifier needs them.
#[derive(Deserialize)]
struct Genesis {
    instance: String,
    key: String,
    format: u64,
}

/// Facts of an entry that says: the old key was lost, this one signs from now on.
#[derive(Deserialize)]
struct KeyReplaced {
    old: String,
    new: String,
}

impl Trust {
    pub(super) fn new(pinned: Vec<VerifyingKey>) -> Trust {
        let is_pinned = !pinned.is_empty();
        Trust { keys: pinned, pinned: is_pinned, strangers: Vec::new(), caveats: Vec::new() }
    }

    pub(super) fn keys(&self) -> &[VerifyingKey] {
        &self.keys
    }

    pub(super) fn into_caveats(self) -> Vec<String> {
        self.caveats
    }

    /// The id of the instance whose log begins with this entry.
    pub(super) fn begin(&mut self, fields: &Fields<'_>) -> Result<String, Finding> {
        let unreadable = || {
            let what = format!("entry {} does not say whose log this is", fields.seq);
            Finding::unreadable(what).at(fields.seq)
        };
        let genesis: Genesis = serde_json::from_slice(fields.facts).map_err(|_| unreadable())?;
        if genesis.format != FORMAT {
            let what = format!("the log has format {}, not {FORMAT}", genesis.format);
            return Err(Finding::unreadable(what).at(fields.seq));
        }
        if !self.pinned {
            let key = VerifyingKey::parse(&genesis.key).map_err(|_| unreadable())?;
            self.caveats.push(format!(
                "no key was given: `{key}` was taken from the log itself, \
                 so a log that someone else wrote from its first entry on cannot be told apart"
            ));
            self.keys.push(key);
        }
        Ok(genesis.instance)
    }

    /// Only a key that the log had before can be replaced. Nothing proves that its owner did it, so the
    /// reader is told.
    pub(super) fn replace(&mut self, fields: &Fields<'_>) -> Result<(), Finding> {
        let Some((old, new)) = replaced_keys(fields.facts) else {
            let what = format!("entry {} does not name the keys it replaces", fields.seq);
            return Err(Finding::unreadable(what).at(fields.seq));
        };
        let is_named = |key| self.keys.contains(key) || self.strangers.contains(key);
        if !is_named(&old) || is_named(&new) {
            return Ok(());
        }
        if KEYS_MAX <= self.keys.len() + self.strangers.len() {
            let what = format!("the log names more than {KEYS_MAX} keys");
            return Err(Finding::unreadable(what).at(fields.seq));
        }
        let what = format!("entry {} replaced the key `{old}` by `{new}`", fields.seq);
        if self.pinned {
            self.caveats.push(format!(
                "{what}, which was not given, so that its signatures do not count: \
                 if it was meant, give both keys"
            ));
            self.strangers.push(new);
        } else {
            self.caveats.push(format!(
                "{what} without a signature of the old one: make sure that it was meant"
            ));
            self.keys.push(new);
        }
        Ok(())
    }
}

fn replaced_keys(facts: &[u8]) -> Option<(VerifyingKey, VerifyingKey)> {
    let KeyReplaced { old, new } = serde_json::from_slice(facts).ok()?;
    Some((VerifyingKey::parse(&old).ok()?, VerifyingKey::parse(&new).ok()?))
}
