//! The verifier's report, for people and scripts.

use std::fmt;

use serde::Serialize;

use crate::Hash;
use crate::note::NoteError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// Entries or files were changed, removed, added or moved, or signed with another key.
    Tampered,
    /// The entries verify, but the ledger is shorter than a checkpoint says, or not the one that the
    /// checkpoint covers.
    Truncated,
    /// Damaged, or in a format that this version does not support.
    Unreadable,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub verdict: Verdict,
    /// The number of entries that verify, from the first one.
    pub entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    /// The hash of the last entry that verifies.
    pub head: Hash,
    /// The Merkle root of the entries that verify.
    pub root: Hash,
    pub redacted: u64,
    /// The number of signed checkpoints and manifests that verify.
    pub checkpoints: u64,
    /// What the verifier could not check, one sentence each.
    pub caveats: Vec<String>,
    /// The first damage; absent if the verdict is [`Verdict::Ok`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
}

/// The first damage, and the entry and file in which it is, if known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub what: String,
}

impl fmt::Display for Damage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.file {
            Some(file) => write!(f, "{file}: {}", self.what),
            None => f.write_str(&self.what),
        }
    }
}

/// Damage and the verdict that it leads to.
#[derive(Debug)]
pub(super) struct Finding {
    pub(super) verdict: Verdict,
    pub(super) damage: Damage,
}

impl Finding {
    pub(super) fn tampered(what: impl Into<String>) -> Finding {
        Finding::new(Verdict::Tampered, what.into())
    }

    pub(super) fn truncated(what: impl Into<String>) -> Finding {
        Finding::new(Verdict::Truncated, what.into())
    }

    pub(super) fn unreadable(what: impl Into<String>) -> Finding {
        Finding::new(Verdict::Unreadable, what.into())
    }

    /// The note `what` is malformed, has a wrong signature, or has an unknown signer.
    pub(super) fn invalid_note(what: &str, error: &NoteError) -> Finding {
        let verdict = match error {
            NoteError::Malformed(_) | NoteError::Content(_) => Verdict::Unreadable,
            NoteError::UnknownKey { .. } | NoteError::BadSignature { .. } => Verdict::Tampered,
        };
        Finding::new(verdict, format!("{what} is not valid: {error}"))
    }

    pub(super) fn at(mut self, seq: u64) -> Finding {
        self.damage.seq = Some(seq);
        self
    }

    pub(super) fn in_file(mut self, name: &str) -> Finding {
        self.damage.file = Some(name.to_owned());
        self
    }

    fn new(verdict: Verdict, what: String) -> Finding {
        Finding { verdict, damage: Damage { seq: None, file: None, what } }
    }
}
