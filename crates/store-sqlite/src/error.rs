//! What SQLite's errors mean for the store.

use rusqlite::ffi;
use store::Error;

/// A failure to write or flush is final: the kernel may have dropped what it could not write, so
/// trying again could succeed falsely. A full disk is not: nothing was written, and room may come.
pub(crate) fn meaning(error: rusqlite::Error) -> Error {
    let text = error.to_string();
    let Some(code) = error.sqlite_error().map(|error| error.extended_code) else {
        return Error::Failed(text);
    };
    match code & 0xff {
        // The index of the write-ahead log could not grow.
        _ if code == ffi::SQLITE_IOERR_SHMSIZE => Error::Full,
        ffi::SQLITE_FULL => Error::Full,
        ffi::SQLITE_READONLY | ffi::SQLITE_PERM | ffi::SQLITE_CANTOPEN => Error::ReadOnly,
        ffi::SQLITE_CORRUPT | ffi::SQLITE_NOTADB => Error::Damaged(text),
        ffi::SQLITE_IOERR => Error::Stopped(text),
        _ => Error::Failed(text),
    }
}

/// The same for a statement that concerns the derived tables alone.
pub(crate) fn of_tables(error: rusqlite::Error) -> Error {
    match meaning(error) {
        Error::Damaged(what) => Error::Tables(what),
        other => other,
    }
}
