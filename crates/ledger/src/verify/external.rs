//! Checkpoints kept outside the ledger: a file of signed notes, in the order they were appended.

use std::fmt;
use std::io::{self, BufRead, Read};

use super::report::Finding;
use super::trust::SignedCheckpoint;
use crate::note::NOTE_BYTES_MAX;

/// Reads the signed notes of a checkpoint file in order, one at a time. Skips incomplete notes, such as
/// one that a crash cut short.
pub struct CheckpointReader {
    input: Box<dyn BufRead + Send>,
}

impl CheckpointReader {
    pub fn new(input: impl BufRead + Send + 'static) -> CheckpointReader {
        CheckpointReader { input: Box::new(input) }
    }

    /// Reads the next complete note, which starts with its origin and ends with its signature.
    fn read_note(&mut self) -> io::Result<Option<SignedCheckpoint>> {
        let (mut note, mut line) = (Vec::new(), Vec::new());
        loop {
            line.clear();
            let limit = NOTE_BYTES_MAX as u64;
            if self.input.by_ref().take(limit).read_until(b'\n', &mut line)? == 0 {
                return Ok(None);
            }
            if line.starts_with(b"midwatch/") || NOTE_BYTES_MAX < note.len() + line.len() {
                note.clear();
            }
            note.extend_from_slice(&line);
            if line.starts_with("\u{2014}".as_bytes()) {
                let text = str::from_utf8(&note).ok();
                if let Some(found) = text.and_then(|text| SignedCheckpoint::parse(text).ok()) {
                    return Ok(Some(found));
                }
                note.clear();
            }
        }
    }
}

impl Iterator for CheckpointReader {
    type Item = io::Result<SignedCheckpoint>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read_note().transpose()
    }
}

impl fmt::Debug for CheckpointReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").finish_non_exhaustive()
    }
}

/// A file of checkpoints while the ledger is verified, and the first that does not match.
#[derive(Debug)]
pub(super) struct CheckpointFile {
    /// Names one of its checkpoints.
    pub(super) name: &'static str,
    /// Kept elsewhere, so its signatures count. A file beside the ledger has copies of the ledger's own.
    pub(super) is_external: bool,
    notes: CheckpointReader,
    /// Already read, but larger than the entries verified so far.
    pub(super) pending: Option<SignedCheckpoint>,
    pub(super) mismatch: Option<Finding>,
}

impl CheckpointFile {
    pub(super) fn external(notes: CheckpointReader) -> CheckpointFile {
        let name = "the external checkpoint";
        CheckpointFile { name, is_external: true, notes, pending: None, mismatch: None }
    }

    pub(super) fn beside_the_ledger(notes: CheckpointReader) -> CheckpointFile {
        let name = "the checkpoint in `checkpoints.log`";
        CheckpointFile { name, is_external: false, notes, pending: None, mismatch: None }
    }

    /// The next checkpoint of exactly this size. Earlier roots are not kept, so checkpoints must be
    /// sorted by size.
    pub(super) fn next_at(&mut self, size: u64) -> Result<Option<SignedCheckpoint>, Finding> {
        let next = match self.pending.take() {
            Some(next) => Some(next),
            None => self.notes.next().transpose().map_err(|error| {
                Finding::unreadable(format!("cannot read {}: {error}", self.name))
            })?,
        };
        let Some(next) = next else { return Ok(None) };
        let found = next.unverified().size;
        if size < found {
            self.pending = Some(next);
            return Ok(None);
        }
        if found < size {
            return Err(Finding::unreadable(format!(
                "{} of {found} entries comes after a larger one",
                self.name
            )));
        }
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checkpoint, Hash, SigningKey, sign_checkpoint};

    #[test]
    fn incomplete_notes_are_skipped() {
        let key = SigningKey::from_seed("midwatch/x", [1; 32]).unwrap();
        let note = |size| {
            let origin = Checkpoint::origin_of("x");
            sign_checkpoint(&Checkpoint { origin, size, root: Hash::ZERO }, &[&key])
        };
        let sizes = |text: String| -> Vec<u64> {
            let notes = CheckpointReader::new(io::Cursor::new(text));
            notes.map(|note| note.unwrap().unverified().size).collect()
        };
        let (one, two) = (note(1), note(2));
        let (long, short) = (&two[..two.len() - 20], &two[..20]);
        let endless = "x".repeat(3 * NOTE_BYTES_MAX);
        for (text, expected) in [
            (String::new(), &[][..]),
            (one.clone(), &[1]),
            (format!("{one}{two}"), &[1, 2]),
            (format!("{one}{long}"), &[1]),
            (format!("{one}{short}\n{two}"), &[1, 2]),
            (short.to_owned(), &[]),
            (format!("{one}— unsigned\n{two}"), &[1, 2]),
            (format!("{one}{endless}\n{two}{endless}"), &[1, 2]),
        ] {
            assert_eq!(sizes(text.clone()), expected, "{text}");
        }
    }
}
