//! The ledger as files, two per month, readable without this program.
//!
//! `ledger-YYYY-MM.ndjson.gz` has one entry per line, in sequence. `ledger-YYYY-MM.manifest` is a
//! signed note with the month's first and last entry, the hash of its lines and the hash of the
//! previous manifest. The files contain the whole ledger, so a data directory can be restored from
//! them.
//!
//! [`MonthWriter`] verifies the entries that it writes, so a damaged ledger is never exported as a
//! sound one. [`LineReader`] reads a month in bounded memory.

mod line;
mod manifest;
mod month;
mod reader;
mod writer;

pub use line::{LINE_BYTES_MAX, Line};
pub use manifest::{LedgerHead, MANIFEST_BYTES_MAX, Manifest};
pub(crate) use month::FileKind;
pub use month::{Month, NotAMonth};
pub use reader::{LineReader, ReadError, gunzip};
pub use writer::{LineWriter, MonthWriter, WriteError, WrittenMonth};

use crate::Hash;

/// The hash and size of a file's uncompressed content. Compressing it again changes neither.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentDigest {
    pub sha256: Hash,
    pub bytes: u64,
}
