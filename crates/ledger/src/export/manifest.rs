//! The manifest of a month: a signed note whose text is a tag and one line of canonical JSON.
//!
//! Each manifest contains the hash of the previous manifest and starts where that one ended, so a
//! removed month leaves a visible gap.

use std::io::{self, Read};

use serde::{Deserialize, Serialize};

use super::{ContentDigest, LineReader, Month, gunzip};
use crate::note::{self, NoteError};
use crate::{Chain, Hash, NotCanonical, SigningKey, VerifyingKey, canonical_json};

/// Far more than the fields need. Longer files are refused.
pub const MANIFEST_BYTES_MAX: usize = 16 * 1024;

/// The first line of the text. No checkpoint starts with it, so the signature of a checkpoint cannot
/// be reused for a manifest.
const TAG: &str = "midwatch-manifest/v1";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    pub instance: String,
    pub month: Month,
    /// The ledger before this month; the month's first entry is `before.size + 1`.
    pub before: LedgerHead,
    /// The ledger after this month; the month's last entry is `after.size`.
    pub after: LedgerHead,
    /// The SHA-256 of the uncompressed lines.
    pub sha256: Hash,
    pub bytes: u64,
    /// The SHA-256 of the previous manifest's file; absent in the first manifest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<Hash>,
}

/// The state of the ledger at one moment: its size, the hash of its last entry, its Merkle root.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LedgerHead {
    pub size: u64,
    pub head: Hash,
    pub root: Hash,
}

impl From<&Chain> for LedgerHead {
    fn from(chain: &Chain) -> LedgerHead {
        LedgerHead { size: chain.size(), head: chain.head(), root: chain.root() }
    }
}

impl Manifest {
    /// The manifest as a signed note with one signature per key.
    pub fn sign(&self, keys: &[&SigningKey]) -> Result<String, NotCanonical> {
        Ok(note::sign(&self.to_text()?, keys))
    }

    /// Verifies a signed note and returns its manifest. At least one of `keys` must have signed it.
    pub fn open(note: &str, keys: &[VerifyingKey]) -> Result<Manifest, NoteError> {
        Manifest::parse(note::verified_text(note, keys)?)
    }

    /// The manifest in a note, without verifying its signatures.
    pub fn parse_unverified(note: &str) -> Result<Manifest, NoteError> {
        Manifest::parse(note::text_unverified(note)?)
    }

    pub fn content_digest(&self) -> ContentDigest {
        ContentDigest { sha256: self.sha256, bytes: self.bytes }
    }

    /// Whether a compressed file contains exactly the lines of this manifest. Reads at most one byte
    /// beyond them.
    pub fn matches_file(&self, file: impl Read) -> io::Result<bool> {
        let lines = gunzip(file).take(self.bytes.saturating_add(1));
        Ok(LineReader::new(lines).finish()? == self.content_digest())
    }

    fn to_text(&self) -> Result<String, NotCanonical> {
        let json = canonical_json(self)?;
        Ok(format!("{TAG}\n{}\n", String::from_utf8_lossy(&json)))
    }

    /// Accepts canonical JSON only, so each manifest has one text.
    fn parse(text: &str) -> Result<Manifest, NoteError> {
        let manifest = Manifest::from_lines(text);
        let manifest = manifest.filter(|it| it.to_text().is_ok_and(|canonical| canonical == text));
        manifest.ok_or(NoteError::Content("a manifest that this version supports"))
    }

    fn from_lines(text: &str) -> Option<Manifest> {
        let json = text.strip_prefix(TAG)?.strip_prefix('\n')?;
        serde_json::from_str(json).ok()
    }
}
