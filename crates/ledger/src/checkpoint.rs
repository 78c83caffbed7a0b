//! A checkpoint: the size and Merkle root of the ledger, as a signed note (C2SP `tlog-checkpoint`).
//!
//! A copy on another machine reveals a rewritten or truncated ledger.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::note::{self, NoteError};
use crate::{Hash, SigningKey, VerifyingKey};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Names the ledger, see [`Checkpoint::origin_of`].
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

/// The checkpoint as a signed note with one signature per key.
pub fn sign_checkpoint(checkpoint: &Checkpoint, keys: &[&SigningKey]) -> String {
    note::sign(&checkpoint.to_text(), keys)
}

/// Verifies a signed note and returns its checkpoint. At least one of `keys` must have signed it.
pub fn open_checkpoint(note: &str, keys: &[VerifyingKey]) -> Result<Checkpoint, NoteError> {
    Checkpoint::parse(note::verified_text(note, keys)?)
}

impl Checkpoint {
    /// The origin in the checkpoints of an installation.
    pub fn origin_of(instance: &str) -> String {
        format!("midwatch/{instance}")
    }

    /// The checkpoint in a note, without verifying its signatures.
    pub(crate) fn parse_unverified(note: &str) -> Result<Checkpoint, NoteError> {
        Checkpoint::parse(note::text_unverified(note)?)
    }

    fn to_text(&self) -> String {
        let root = BASE64_STANDARD.encode(self.root.as_bytes());
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    /// Accepts exactly the text that [`Checkpoint::to_text`] writes, so each checkpoint has one text.
    fn parse(text: &str) -> Result<Checkpoint, NoteError> {
        let checkpoint = Checkpoint::from_lines(text).filter(|it| it.to_text() == text);
        checkpoint.ok_or(NoteError::Content("a checkpoint"))
    }

    fn from_lines(text: &str) -> Option<Checkpoint> {
        let mut lines = text.lines();
        let origin = lines.next().filter(|it| !it.is_empty())?.to_owned();
        let size = lines.next()?.parse().ok()?;
        let root = BASE64_STANDARD.decode(lines.next()?).ok()?;
        Some(Checkpoint { origin, size, root: Hash::try_from(root.as_slice()).ok()? })
    }
}
