//! Writes the lines of a month and computes its manifest.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use super::{ContentDigest, LedgerHead, Line, Manifest, Month};
use crate::{Chain, EntryRef, Fault, Hash};

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// An entry does not verify, so the month is not exported.
    #[error(transparent)]
    Damaged(#[from] Fault),
    #[error("the body of entry {seq} is not JSON on one line")]
    NotJson { seq: u64 },
    #[error("entry {seq} belongs to {found}, not to {month}")]
    OtherMonth { seq: u64, found: Month, month: Month },
    #[error("{month} has no entries")]
    Empty { month: Month },
}

/// Writes entries as lines and hashes the written bytes.
#[derive(Debug)]
pub struct LineWriter<W> {
    output: W,
    line: Vec<u8>,
    hasher: Sha256,
    bytes: u64,
}

impl<W: Write> LineWriter<W> {
    pub fn new(output: W) -> LineWriter<W> {
        LineWriter { output, line: Vec::new(), hasher: Sha256::new(), bytes: 0 }
    }

    pub fn write(&mut self, entry: &EntryRef<'_>) -> Result<(), WriteError> {
        self.line.clear();
        Line::write(entry, &mut self.line).ok_or(WriteError::NotJson { seq: entry.seq })?;
        self.line.push(b'\n');
        self.hasher.update(&self.line);
        self.bytes += self.line.len() as u64;
        self.output.write_all(&self.line)?;
        Ok(())
    }

    /// Returns the output, neither flushed nor closed, and the digest of what was written to it.
    pub fn finish(self) -> (W, ContentDigest) {
        let sha256 = Hash::from_hasher(self.hasher);
        (self.output, ContentDigest { sha256, bytes: self.bytes })
    }
}

/// Writes one month, compressed, and verifies each entry.
#[derive(Debug)]
pub struct MonthWriter<W: Write> {
    lines: LineWriter<GzEncoder<W>>,
    instance: String,
    month: Month,
    previous: Option<Hash>,
    before: LedgerHead,
    chain: Chain,
}

/// A month written completely to `output`. The caller makes it durable.
#[derive(Debug)]
pub struct WrittenMonth<W> {
    pub output: W,
    pub manifest: Manifest,
    /// The chain after this month; the next month starts with it.
    pub chain: Chain,
}

impl<W: Write> MonthWriter<W> {
    /// `chain` is the chain before this month, `previous` the hash of the previous manifest.
    pub fn new(
        output: W,
        instance: String,
        month: Month,
        chain: Chain,
        previous: Option<Hash>,
    ) -> MonthWriter<W> {
        // Without a time in the gzip header, the same entries give the same file.
        let output = GzBuilder::new().mtime(0).write(output, Compression::default());
        let before = LedgerHead::from(&chain);
        MonthWriter { lines: LineWriter::new(output), instance, month, previous, before, chain }
    }

    pub fn write(&mut self, entry: &EntryRef<'_>) -> Result<(), WriteError> {
        let (seq, month) = (entry.seq, self.month);
        let found = Month::containing(entry.ts_us);
        if found != month {
            return Err(WriteError::OtherMonth { seq, found, month });
        }
        self.chain.verify_next(entry)?;
        self.lines.write(entry)
    }

    pub fn finish(self) -> Result<WrittenMonth<W>, WriteError> {
        let MonthWriter { lines, instance, month, previous, before, chain } = self;
        let after = LedgerHead::from(&chain);
        if after.size == before.size {
            return Err(WriteError::Empty { month });
        }
        let (output, ContentDigest { sha256, bytes }) = lines.finish();
        let manifest = Manifest { instance, month, before, after, sha256, bytes, previous };
        Ok(WrittenMonth { output: output.finish()?, manifest, chain })
    }
}
