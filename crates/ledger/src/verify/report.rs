//! What the verifier found, for people and for scripts.

use serde::Serialize;

use crate::Hash;
use crate::note::NoteError;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    Ok,
    /// Something was changed, removed, added or moved, or was signed by someone else.
    Tampered,
    /// Sound as far as it goes, but not the history that a checkpoint vouches for: it is shorter, or
    /// was replaced by another.
    Truncated,
    /// Damaged, or in a format that this version does not know.
    Unreadable,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    pub verdict: Verdict,
    /// How many entries were found good, from the first one on.
    pub entries: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub last_seq: Option<u64>,
    /// The hash of the last good entry.
    pub head: Hash,
    /// Of the Merkle tree over the good entries.
    pub root: Hash,
    pub redacted: u64,
    /// How many signed checkpoints and manifests were found good.
    pub checkpoints: u64,
    /// What the verdict does not cover, one sentence each.
    pub caveats: Vec<String>,
    /// The first damage; absent if the verdict is [`Verdict::Ok`].
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<Damage>,
}

/// Where the damage is, as far as that is known, and what it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Damage {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seq: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    pub what: String,
}

/// A damage with its verdict, on its way into the report.
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

    /// `what` was signed wrongly or by someone else, or is no note at all.
    pub(super) fn note(what: &str, error: &NoteError) -> Finding {
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
