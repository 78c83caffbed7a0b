//! Maps SQLite's errors to the store's.

use rusqlite::ffi;
use store::Error;

/// A failed write or flush is final: the kernel may have dropped pages that it could not write, so a
/// retry could falsely succeed. A full disk is not final, because nothing was written.
pub(crate) fn classify(error: rusqlite::Error) -> Error {
    let text = error.to_string();
    let Some(code) = error.sqlite_error().map(|error| error.extended_code) else {
        return Error::Failed(text);
    };
    match code & 0xff {
        // The index of the write-ahead log could not grow.
        _ if code == ffi::SQLITE_IOERR_SHMSIZE => Error::DiskFull,
        ffi::SQLITE_FULL => Error::DiskFull,
        ffi::SQLITE_READONLY | ffi::SQLITE_PERM | ffi::SQLITE_CANTOPEN => Error::ReadOnly,
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Error::Damaged(text),
        ffi::SQLITE_IOERR => Error::WriteFailed(text),
        _ => Error::Failed(text),
    }
}

/// Like [`classify`], for a statement that uses the derived tables only.
pub(crate) fn classify_tables(error: rusqlite::Error) -> Error {
    match classify(error) {
        Error::Damaged(what) => Error::TablesDamaged(what),
        other => other,
    }
}
