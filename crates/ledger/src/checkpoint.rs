//! A checkpoint: the size and the root of the log, as the signed note of C2SP `tlog-checkpoint`.
//!
//! A copy kept outside the host is what makes a rewritten or shortened log visible.

use base64::prelude::{BASE64_STANDARD, Engine as _};

use crate::note::{self, NoteError};
use crate::{Hash, SigningKey, VerifyingKey};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    /// Names the log, see [`Checkpoint::origin_of`].
    pub origin: String,
    pub size: u64,
    pub root: Hash,
}

/// The checkpoint as a note with one signature per key.
pub fn sign(checkpoint: &Checkpoint, keys: &[&SigningKey]) -> String {
    note::seal(&checkpoint.to_text(), keys)
}

/// The checkpoint in a note that at least one of the keys has signed.
pub fn open(note: &str, keys: &[VerifyingKey]) -> Result<Checkpoint, NoteError> {
    Checkpoint::parse(note::open(note, keys)?)
}

impl Checkpoint {
    /// What the checkpoints of an instance are named by.
    pub fn origin_of(instance: &str) -> String {
        format!("midwatch/{instance}")
    }

    /// The checkpoint in a note, whoever signed it.
    pub(crate) fn peek(note: &str) -> Result<Checkpoint, NoteError> {
        Checkpoint::parse(note::peek(note)?)
    }

    fn to_text(&self) -> String {
        let root = BASE64_STANDARD.encode(self.root.as_bytes());
        format!("{}\n{}\n{root}\n", self.origin, self.size)
    }

    /// Exactly three lines, and numbers in one form only: one text for one checkpoint.
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
