//! Writes the lines of a month, and what its manifest says of them.

use std::io::{self, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use sha2::{Digest, Sha256};

use super::{Content, End, Line, Manifest, Month};
use crate::{Chain, Fault, Fields, Hash};

#[derive(Debug, thiserror::Error)]
pub enum WriteError {
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The log itself is damaged; nothing of it is exported as if it were sound.
    #[error(transparent)]
    Damaged(#[from] Fault),
    #[error("the body of entry {seq} is not JSON on one line")]
    NotJson { seq: u64 },
    #[error("entry {seq} belongs to {found}, not to {month}")]
    OtherMonth { seq: u64, found: Month, month: Month },
    #[error("{month} has no entry")]
    Empty { month: Month },
}

/// Writes entries as lines and hashes the bytes as they pass.
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

    pub fn write(&mut self, fields: &Fields<'_>) -> Result<(), WriteError> {
        self.line.clear();
        Line::write(fields, &mut self.line).ok_or(WriteError::NotJson { seq: fields.seq })?;
        self.line.push(b'\n');
        self.hasher.update(&self.line);
        self.bytes += self.line.len() as u64;
        self.output.write_all(&self.line)?;
        Ok(())
    }

    /// The output as it is, neither flushed nor closed, and what was written to it.
    pub fn finish(self) -> (W, Content) {
        let sha256 = Hash::finish(self.hasher);
        (self.output, Content { sha256, bytes: self.bytes })
    }
}

/// Writes one month, compressed, and verifies each entry on the way.
#[derive(Debug)]
pub struct MonthWriter<W: Write> {
    lines: LineWriter<GzEncoder<W>>,
    instance: String,
    month: Month,
    previous: Option<Hash>,
    before: End,
    chain: Chain,
}

/// A month that is complete in `output`, which the caller makes durable.
#[derive(Debug)]
pub struct Written<W> {
    pub output: W,
    pub manifest: Manifest,
    /// The end of the log after this month, to begin the next one with.
    pub chain: Chain,
}

impl<W: Write> MonthWriter<W> {
    /// `chain` is the end of the log before this month, `previous` the hash of the manifest before.
    pub fn new(
        output: W,
        instance: String,
        month: Month,
        chain: Chain,
        previous: Option<Hash>,
    ) -> MonthWriter<W> {
        // No time in the header: the same entries give the same file.
        let output = GzBuilder::new().mtime(0).write(output, Compression::default());
        let before = End::from(&chain);
        MonthWriter { lines: LineWriter::new(output), instance, month, previous, before, chain }
    }

    pub fn write(&mut self, fields: &Fields<'_>) -> Result<(), WriteError> {
        let (seq, month) = (fields.seq, self.month);
        let found = Month::of(fields.ts_us);
        if found != month {
            return Err(WriteError::OtherMonth { seq, found, month });
        }
        self.chain.check(fields)?;
        self.lines.write(fields)
    }

    pub fn finish(self) -> Result<Written<W>, WriteError> {
        let MonthWriter { lines, instance, month, previous, before, chain } = self;
        let after = End::from(&chain);
        if after.size == before.size {
            return Err(WriteError::Empty { month });
        }
        let (output, Content { sha256, bytes }) = lines.finish();
        let manifest = Manifest { instance, month, before, after, sha256, bytes, previous };
        Ok(Written { output: output.finish()?, manifest, chain })
    }
}
