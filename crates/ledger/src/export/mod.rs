//! The log as files: one pair per month, readable without this program.
//!
//! `ledger-YYYY-MM.ndjson.gz` has one entry per line, in sequence. `ledger-YYYY-MM.manifest` is a
//! signed note that says where the month begins and ends in the log, what its bytes hash to, and
//! which manifest came before it. Whatever is in the log is in the files, so a data directory can be
//! made again from them.
//!
//! [`MonthWriter`] writes a month and verifies it on the way, so a damaged log is not exported as if
//! it were sound. [`LineReader`] reads one back in bounded memory.

mod line;
mod manifest;
mod month;
mod reader;
mod writer;

pub use line::{LINE_BYTES_MAX, Line};
pub use manifest::{End, MANIFEST_BYTES_MAX, Manifest};
pub(crate) use month::FileKind;
pub use month::{Month, NotAMonth};
pub use reader::{LineReader, ReadError, unzip};
pub use writer::{LineWriter, MonthWriter, WriteError, Written};

use crate::Hash;

/// What a file holds before compression. Compressing it again changes neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content {
    pub sha256: Hash,
    pub bytes: u64,
}
