//! Reads the lines of a month, one at a time, and hashes the bytes they are made of.

use std::io::{self, BufRead, BufReader, Read};

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::{Content, LINE_BYTES_MAX, Line};
use crate::Hash;

const BUFFER_BYTES: usize = 64 * 1024;

/// The lines in a compressed file, however it was compressed.
pub fn unzip<'a>(file: impl Read + 'a) -> impl BufRead + 'a {
    BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file))
}

/// Why a file could not be read further.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    #[error("line {line} is longer than {LINE_BYTES_MAX} bytes")]
    TooLong { line: u64 },
    #[error("line {line} ends in the middle")]
    Cut { line: u64 },
    #[error("line {line} is not an entry: {source}")]
    Syntax { line: u64, source: serde_json::Error },
}

/// Never holds more than one line.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    line: Vec<u8>,
    lines: u64,
    hasher: Sha256,
    bytes: u64,
}

impl<R: BufRead> LineReader<R> {
    /// `input` is what the file holds after decompression, see [`unzip`].
    pub fn new(input: R) -> LineReader<R> {
        LineReader { input, line: Vec::new(), lines: 0, hasher: Sha256::new(), bytes: 0 }
    }

    /// The next entry, or `None` after the last.
    #[expect(clippy::should_implement_trait, reason = "a line is borrowed from the reader")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        if !self.fill()? {
            return Ok(None);
        }
        let line = self.lines;
        let Some(json) = self.line.strip_suffix(b"\n") else {
            return Err(match self.line.len() {
                0..LINE_BYTES_MAX => ReadError::Cut { line },
                _ => ReadError::TooLong { line },
            });
        };
        Line::parse(json).map(Some).map_err(|source| ReadError::Syntax { line, source })
    }

    /// Reads what is left, without looking at it, and says what the whole file held.
    pub fn finish(mut self) -> io::Result<Content> {
        loop {
            let read = self.input.fill_buf()?;
            if read.is_empty() {
                return Ok(Content { sha256: Hash::finish(self.hasher), bytes: self.bytes });
            }
            self.hasher.update(read);
            let bytes = read.len();
            self.bytes += bytes as u64;
            self.input.consume(bytes);
        }
    }

    /// One line or what there is of it; false at the end of the file.
    fn fill(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut limited = self.input.by_ref().take(LINE_BYTES_MAX as u64);
        let bytes = limited.read_until(b'\n', &mut self.line)?;
        self.hasher.update(&self.line);
        self.bytes += bytes as u64;
        self.lines += 1;
        Ok(0 < bytes)
    }
}
