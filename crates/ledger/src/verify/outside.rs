//! Checkpoints that were kept outside of the log: one note after the other, as they were appended.

use std::fmt;
use std::io::{self, BufRead, Read};

use super::report::Finding;
use super::trust::SignedCheckpoint;
use crate::note::NOTE_BYTES_MAX;

/// The whole notes of a file of checkpoints, in its order. What is no whole note, such as one that a
/// crash cut short, is passed over. Holds one note at a time.
pub struct Checkpoints {
    input: Box<dyn BufRead + Send>,
}

impl Checkpoints {
    pub fn new(input: impl BufRead + Send + 'static) -> Checkpoints {
        Checkpoints { input: Box::new(input) }
    }

    /// A note begins with its origin and ends with its signature.
    fn read(&mut self) -> io::Result<Option<SignedCheckpoint>> {
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

impl Iterator for Checkpoints {
    type Item = io::Result<SignedCheckpoint>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl fmt::Debug for Checkpoints {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Checkpoints").finish_non_exhaustive()
    }
}

/// The checkpoints from outside on the way along the log, and the first that is wrong.
#[derive(Debug)]
pub(super) struct Outside {
    notes: Checkpoints,
    /// Read, but not reached by the log.
    pub(super) ahead: Option<SignedCheckpoint>,
    pub(super) finding: Option<Finding>,
}

impl Outside {
    pub(super) fn new(notes: Checkpoints) -> Outside {
        Outside { notes, ahead: None, finding: None }
    }

    /// The next one that a log of this size has reached. Roots of the past are not kept, so they
    /// must come by size.
    pub(super) fn reached(&mut self, size: u64) -> Result<Option<SignedCheckpoint>, Finding> {
        let next = match self.ahead.take() {
            Some(next) => Some(next),
            None => self.notes.next().transpose().map_err(|error| {
                Finding::unreadable(format!("the checkpoints from outside cannot be read: {error}"))
            })?,
        };
        let Some(next) = next else { return Ok(None) };
        let found = next.unverified().size;
        if size < found {
            self.ahead = Some(next);
            return Ok(None);
        }
        if found < size {
            return Err(Finding::unreadable(format!(
                "among those from outside, the checkpoint of {found} entries stands after one of more"
            )));
        }
        Ok(Some(next))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Checkpoint, Hash, SigningKey, sign};

    #[test]
    fn whole_notes_are_read_and_nothing_else() {
        let key = SigningKey::from_seed("midwatch/x", [1; 32]).unwrap();
        let note = |size| {
            let origin = Checkpoint::origin_of("x");
            sign(&Checkpoint { origin, size, root: Hash::ZERO }, &[&key])
        };
        let sizes = |text: String| -> Vec<u64> {
            let notes = Checkpoints::new(io::Cursor::new(text));
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
            (format!("{one}— nobody\n{two}"), &[1, 2]),
            (format!("{one}{endless}\n{two}{endless}"), &[1, 2]),
        ] {
            assert_eq!(sizes(text.clone()), expected, "{text}");
        }
    }
}
