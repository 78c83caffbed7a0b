//! Reads the lines of a month one at a time and hashes their bytes.

use std::io::{self, BufRead, BufReader, Read};

use flate2::read::MultiGzDecoder;
use sha2::{Digest, Sha256};

use super::{ContentDigest, LINE_BYTES_MAX, Line};
use crate::Hash;

const BUFFER_BYTES: usize = 64 * 1024;

/// Decompresses a gzip file, which may have several members.
pub fn gunzip<'a>(file: impl Read + 'a) -> impl BufRead + 'a {
    BufReader::with_capacity(BUFFER_BYTES, MultiGzDecoder::new(file))
}

/// Why reading a file stopped.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    #[error("cannot read the file: {0}")]
    Io(#[from] io::Error),
    #[error("line {line} is longer than {LINE_BYTES_MAX} bytes")]
    TooLong { line: u64 },
    #[error("line {line} is incomplete")]
    Cut { line: u64 },
    #[error("line {line} is not an entry: {source}")]
    Syntax { line: u64, source: serde_json::Error },
}

/// Reads entries from lines, holding one line at a time.
#[derive(Debug)]
pub struct LineReader<R> {
    input: R,
    line: Vec<u8>,
    lines: u64,
    hasher: Sha256,
    bytes: u64,
}

impl<R: BufRead> LineReader<R> {
    /// `input` is the uncompressed content, see [`gunzip`].
    pub fn new(input: R) -> LineReader<R> {
        LineReader { input, line: Vec::new(), lines: 0, hasher: Sha256::new(), bytes: 0 }
    }

    /// The next entry, or `None` after the last.
    #[expect(clippy::should_implement_trait, reason = "a line is borrowed from the reader")]
    pub fn next(&mut self) -> Result<Option<Line<'_>>, ReadError> {
        if !self.read_line()? {
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

    /// Reads the rest without parsing it, and returns the digest of the whole content.
    pub fn finish(mut self) -> io::Result<ContentDigest> {
        loop {
            let read = self.input.fill_buf()?;
            if read.is_empty() {
                return Ok(ContentDigest {
                    sha256: Hash::from_hasher(self.hasher),
                    bytes: self.bytes,
                });
            }
            self.hasher.update(read);
            let bytes = read.len();
            self.bytes += bytes as u64;
            self.input.consume(bytes);
        }
    }

    /// Reads one line, or its first [`LINE_BYTES_MAX`] bytes; false at the end of the file.
    fn read_line(&mut self) -> io::Result<bool> {
        self.line.clear();
        let mut limited = self.input.by_ref().take(LINE_BYTES_MAX as u64);
        let bytes = limited.read_until(b'\n', &mut self.line)?;
        self.hasher.update(&self.line);
        self.bytes += bytes as u64;
        self.lines += 1;
        Ok(0 < bytes)
    }
}
