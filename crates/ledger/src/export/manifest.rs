//! The manifest of a month: a signed note whose text is a tag and one line of canonical JSON.
//!
//! Each manifest names the hash of the one before it, and begins where that one ended, so a month
//! that was taken away leaves a gap that its neighbours show.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::{Content, LineReader, Month, unzip};
use crate::note::{self, NoteError};
use crate::{Chain, Hash, NotCanonical, SigningKey, VerifyingKey, canonical};

/// Far more than the fields need; what is longer is not read.
pub const MANIFEST_BYTES_MAX: usize = 16 * 1024;

/// The first line of the text. No checkpoint begins like this, so a signature under one cannot be
/// passed off as a signature under the other.
const TAG: &str = "midwatch-manifest/v1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub instance: String,
    pub month: Month,
    /// The end of the log before this month; the first entry has the number `before.size + 1`.
    pub before: End,
    /// The end of the log after this month; the last entry has the number `after.size`.
    pub after: End,
    /// Of the uncompressed lines.
    pub sha256: Hash,
    pub bytes: u64,
    /// The SHA-256 of the file with the manifest before this one; absent in the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Hash>,
}

/// Where the log ends at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct End {
    pub size: u64,
    pub head: Hash,
    pub root: Hash,
}

impl From<&Chain> for End {
    fn from(chain: &Chain) -> End {
        End { size: chain.size(), head: chain.head(), root: chain.root() }
    }
}

impl Manifest {
    /// The manifest as a note with one signature per key.
    pub fn sign(&self, keys: &[&SigningKey]) -> Result<String, NotCanonical> {
        Ok(note::seal(&self.to_text()?, keys))
    }

    /// The manifest in a note that at least one of the keys has signed.
    pub fn open(note: &str, keys: &[VerifyingKey]) -> Result<Manifest, NoteError> {
        Manifest::parse(note::open(note, keys)?)
    }

    /// The manifest in a note, whoever signed it: a claim, not more.
    pub fn peek(note: &str) -> Result<Manifest, NoteError> {
        Manifest::parse(note::peek(note)?)
    }

    pub fn content(&self) -> Content {
        Content { sha256: self.sha256, bytes: self.bytes }
    }

    /// Whether a compressed file holds exactly the lines that this speaks of. No more of it is read
    /// than one byte beyond them.
    pub fn describes(&self, file: impl Read) -> io::Result<bool> {
        let lines = unzip(file).take(self.bytes.saturating_add(1));
        Ok(LineReader::new(lines).finish()? == self.content())
    }

    fn to_text(&self) -> Result<String, NotCanonical> {
        let json = canonical(self)?;
        Ok(format!("{TAG}\n{}\n", String::from_utf8_lossy(&json)))
    }

    /// One text for one manifest: what is not written canonically is refused.
    fn parse(text: &str) -> Result<Manifest, NoteError> {
        let manifest = Manifest::from_lines(text);
        let manifest = manifest.filter(|it| it.to_text().is_ok_and(|canonical| canonical == text));
        manifest.ok_or(NoteError::Content("a manifest that this version knows"))
    }

    fn from_lines(text: &str) -> Option<Manifest> {
        let json = text.strip_prefix(TAG)?.strip_prefix('\n')?;
        serde_json::from_str(json).ok()
    }
}
