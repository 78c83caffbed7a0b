//! Opening the file: settings, schema, and finding the end of the log.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ledger::Chain;
use rusqlite::{Connection, OpenFlags, OptionalExtension};
use store::{Error, PAGE_ENTRIES_MAX};

use crate::error::meaning;
use crate::migrate;
use crate::readers;

/// How long to wait for another process that reads or recovers the file.
const BUSY_TIMEOUT_MS: u32 = 5_000;
/// Pages of the write-ahead log after which it is copied back into the file.
const WAL_PAGES_MAX: u32 = 4_000;

/// The writer's connection, on a file that exists and has the newest schema.
pub(crate) fn writer(path: &Path) -> Result<Connection, Error> {
    // Created here, so that it never exists with wider permissions; SQLite's side files copy them.
    let created = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    created.map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull => Error::Full,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Failed(format!("cannot open `{}`: {error}", path.display())),
    })?;
    let mut connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(meaning)?;
    settings(&connection).map_err(meaning)?;
    migrate::migrate(&mut connection)?;
    Ok(connection)
}

/// A connection that cannot write.
pub(crate) fn reader(path: &Path) -> Result<Connection, Error> {
    let connection =
        Connection::open_with_flags(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(meaning)?;
    connection
        .execute_batch(&format!(
            "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};
             PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
        ))
        .map_err(meaning)?;
    Ok(connection)
}

fn settings(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch(&format!(
        "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};
         PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = {WAL_PAGES_MAX};
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
    ))
}

/// The end of the log: the chain kept at the newest checkpoint, and every entry after it checked
/// link by link. With the first fault comes the chain up to it, so that reading can go on.
pub(crate) fn resume(connection: &Connection) -> Result<(Chain, Option<Error>), Error> {
    let kept = connection
        .query_row("SELECT chain FROM resume", (), |row| row.get::<_, Vec<u8>>(0))
        .optional()
        .map_err(meaning)?;
    let damaged = |reason: String| Ok((Chain::empty(), Some(Error::Damaged(reason))));
    let mut chain = match kept.map(|bytes| Chain::decode(&bytes)) {
        None => Chain::empty(),
        Some(Ok(chain)) => chain,
        Some(Err(_)) => return damaged("the place of the newest checkpoint is unreadable".into()),
    };
    if chain.size() != 0 {
        let page = readers::entries(connection, chain.size() - 1, 1)?;
        if page.iter().next().map(|fields| fields.hash) != Some(chain.head()) {
            let size = chain.size();
            return damaged(format!("entry {size} is not the one that its checkpoint names"));
        }
    }
    loop {
        let page = readers::entries(connection, chain.size(), PAGE_ENTRIES_MAX)?;
        if page.is_empty() {
            return Ok((chain, None));
        }
        for fields in page.iter() {
            if let Err(fault) = chain.check(&fields) {
                return Ok((chain, Some(Error::Damaged(fault.to_string()))));
            }
        }
    }
}
