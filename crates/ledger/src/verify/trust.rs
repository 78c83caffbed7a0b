//! Which keys are trusted: the pinned keys, or without any those that the ledger itself names.
//!
//! Invariant: no entry adds a key to the pinned keys. Otherwise an attacker who can write an entry
//! could replace a pinned key with their own.

use serde::Deserialize;

use super::external::CheckpointReader;
use super::report::Finding;
use crate::note::NoteError;
use crate::{Checkpoint, EntryRef, VerifyingKey, open_checkpoint};

pub(super) const GENESIS: &str = "genesis";
pub(super) const KEY_REPLACED: &str = "ledger.key_replaced";

/// The keys of one ledger, including replaced ones.
pub const KEYS_MAX: usize = 16;
/// The ledger format that the genesis entry declares.
const FORMAT: u64 = 1;

/// Trust anchors: what the verifier knows from outside the ledger. Each missing part adds a caveat.
#[derive(Debug, Default)]
pub struct Anchors {
    /// Pinned keys. If not empty, only they are trusted; else the keys that the ledger names.
    pub keys: Vec<VerifyingKey>,
    /// Copies of checkpoints from elsewhere, sorted by size. The ledger must match all of them.
    pub checkpoints: Option<CheckpointReader>,
    /// The copies beside the ledger, also sorted. It must match them too, but they prove less: the same hand may have
    /// changed both.
    pub own_checkpoints: Option<CheckpointReader>,
}

/// A checkpoint whose signature is not verified yet, because a later entry may name its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignedCheckpoint {
    note: String,
    unverified: Checkpoint,
}

impl SignedCheckpoint {
    pub fn parse(note: &str) -> Result<SignedCheckpoint, NoteError> {
        Ok(SignedCheckpoint {
            unverified: Checkpoint::parse_unverified(note)?,
            note: note.to_owned(),
        })
    }

    /// The checkpoint that the note claims.
    pub fn unverified(&self) -> &Checkpoint {
        &self.unverified
    }

    pub fn verify(&self, keys: &[VerifyingKey]) -> Result<Checkpoint, NoteError> {
        open_checkpoint(&self.note, keys)
    }
}

/// The trusted keys at one position of the ledger.
#[derive(Debug)]
pub(super) struct TrustedKeys {
    keys: Vec<VerifyingKey>,
    is_pinned: bool,
    /// Keys that, according to an entry, replaced a pinned key.
    untrusted: Vec<VerifyingKey>,
    caveats: Vec<String>,
}

/// The facts of the first entry that the verifier needs.
#[derive(Deserialize)]
struct Genesis {
    instance: String,
    key: String,
    format: u64,
}

/// The facts of an entry that replaces a lost signing key.
#[derive(Deserialize)]
struct KeyReplaced {
    old: String,
    new: String,
}

impl TrustedKeys {
    pub(super) fn new(pinned: Vec<VerifyingKey>) -> TrustedKeys {
        let is_pinned = !pinned.is_empty();
        TrustedKeys { keys: pinned, is_pinned, untrusted: Vec::new(), caveats: Vec::new() }
    }

    pub(super) fn keys(&self) -> &[VerifyingKey] {
        &self.keys
    }

    pub(super) fn into_caveats(self) -> Vec<String> {
        self.caveats
    }

    /// Reads the genesis entry and returns the id of the installation.
    pub(super) fn read_genesis(&mut self, entry: &EntryRef<'_>) -> Result<String, Finding> {
        let unreadable = || {
            let what = format!("entry {} does not name the installation and its key", entry.seq);
            Finding::unreadable(what).at(entry.seq)
        };
        let genesis: Genesis = serde_json::from_slice(entry.facts).map_err(|_| unreadable())?;
        if genesis.format != FORMAT {
            let what =
                format!("the ledger has format {}, this version supports {FORMAT}", genesis.format);
            return Err(Finding::unreadable(what).at(entry.seq));
        }
        if !self.is_pinned {
            let key = VerifyingKey::parse(&genesis.key).map_err(|_| unreadable())?;
            self.caveats.push(format!(
                "without `--vkey` a completely forged ledger would pass: \
                 its own key `{key}` was used"
            ));
            self.keys.push(key);
        }
        Ok(genesis.instance)
    }

    /// Records a key replacement. Only a key that the ledger named before can be replaced. Nothing proves
    /// that its owner replaced it, so a caveat says so.
    pub(super) fn record_replacement(&mut self, entry: &EntryRef<'_>) -> Result<(), Finding> {
        let Some((old, new)) = parse_replacement(entry.facts) else {
            let what = format!("entry {} does not name the replaced and the new key", entry.seq);
            return Err(Finding::unreadable(what).at(entry.seq));
        };
        let is_named = |key| self.keys.contains(key) || self.untrusted.contains(key);
        if !is_named(&old) || is_named(&new) {
            return Ok(());
        }
        if KEYS_MAX <= self.keys.len() + self.untrusted.len() {
            let what =
                format!("with entry {}, the ledger names more than {KEYS_MAX} keys", entry.seq);
            return Err(Finding::unreadable(what).at(entry.seq));
        }
        let what = format!("entry {} replaced the key `{old}` with `{new}`", entry.seq);
        if self.is_pinned {
            self.caveats.push(format!(
                "{what}, whose signatures are not trusted: if you replaced it, \
                 give both keys with `--vkey`"
            ));
            self.untrusted.push(new);
        } else {
            self.caveats.push(format!(
                "{what} without a signature of the old key: check that you replaced it"
            ));
            self.keys.push(new);
        }
        Ok(())
    }
}

fn parse_replacement(facts: &[u8]) -> Option<(VerifyingKey, VerifyingKey)> {
    let KeyReplaced { old, new } = serde_json::from_slice(facts).ok()?;
    Some((VerifyingKey::parse(&old).ok()?, VerifyingKey::parse(&new).ok()?))
}
