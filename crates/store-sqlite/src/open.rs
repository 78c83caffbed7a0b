//! Opening the file: settings, schema, and finding the end of the log.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ledger::Chain;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use store::{Error, PAGE_ENTRIES_MAX};

use crate::error::meaning;
use crate::migrate;
use crate::readers;

/// A connection is used by one thread at a time, as the compiler sees to, so it need not lock itself.
const ONE_THREAD: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

/// What the writer keeps in memory of the file. Nearly every commit lets SQLite walk through the table of what
/// it keeps, so more would cost more than it saves; the pages that are missing here the kernel has.
const CACHE_KIB: u32 = 7_680;
/// Pages that one transaction may change before some are written: those that are changed again later are
/// written twice.
const SPILL_PAGES: u32 = 16_384;
/// How long to wait for another process that reads or recovers the file.
const BUSY_TIMEOUT_MS: u32 = 5_000;
/// Statements that a reader keeps ready: as many as there are queries.
const READS_KEPT: usize = 32;

/// The writer's connection, on a file that exists and has the newest schema.
pub(crate) fn writer(path: &Path) -> Result<Connection, Error> {
    // Created here, so that it never exists with wider permissions; SQLite's side files copy them.
    let created = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    created.map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull => Error::Full,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Failed(format!("cannot open `{}`: {error}", path.display())),
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | ONE_THREAD;
    let mut connection = Connection::open_with_flags(path, flags).map_err(meaning)?;
    settings(&connection).map_err(meaning)?;
    migrate::migrate(&mut connection)?;
    Ok(connection)
}

/// Another connection to the file of the writer, which copies its write-ahead log back.
pub(crate) fn copier(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | ONE_THREAD;
    let connection = Connection::open_with_flags(path, flags).map_err(meaning)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;";
    connection.execute_batch(settings).map_err(meaning)?;
    // Before it has read something it does not know of the write-ahead log.
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(())).map_err(meaning)?;
    Ok(connection)
}

/// What a reader may take for granted about a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sharing {
    /// Somebody may write it.
    Written,
    /// Nobody does. It is read as it stands: nothing is left beside it, and it may be on a
    /// read-only medium.
    AtRest,
}

impl Sharing {
    /// A file that nobody writes has no write-ahead log.
    pub(crate) fn of(path: &Path) -> Sharing {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        if Path::new(&log).exists() { Sharing::Written } else { Sharing::AtRest }
    }
}

/// A connection that cannot write.
pub(crate) fn reader(path: &Path, sharing: Sharing) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | ONE_THREAD;
    let connection = match sharing {
        Sharing::Written => Connection::open_with_flags(path, flags),
        Sharing::AtRest => {
            Connection::open_with_flags(as_it_stands(path), flags | OpenFlags::SQLITE_OPEN_URI)
        }
    };
    let connection = connection.map_err(meaning)?;
    connection.set_prepared_statement_cache_capacity(READS_KEPT);
    // Otherwise a statement whose limit is bound is planned anew for each value, also for the same again.
    let same_plan = DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    connection.set_db_config(same_plan, true).map_err(meaning)?;
    connection
        .execute_batch(&format!(
            "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};
             PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
        ))
        .map_err(meaning)?;
    Ok(connection)
}

fn as_it_stands(path: &Path) -> String {
    let mut uri = String::from("file:");
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'/' | b'.' | b'-' | b'_' => {
                uri.push(char::from(*byte));
            }
            other => uri.push_str(&format!("%{other:02x}")),
        }
    }
    uri + "?immutable=1"
}

fn settings(connection: &Connection) -> Result<(), rusqlite::Error> {
    connection.execute_batch(&format!(
        "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};
         PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
         PRAGMA wal_autocheckpoint = 0;
         PRAGMA cache_size = -{CACHE_KIB}; PRAGMA cache_spill = {SPILL_PAGES};
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
    ))
}

/// The end of the log: the chain kept at the newest checkpoint, and every entry after it checked
/// link by link. With the first fault comes the chain up to it, so that reading can go on.
pub(crate) fn resume(connection: &Connection) -> Result<(Chain, Option<Error>), Error> {
    // What cannot be read is left aside: then all entries are checked.
    let Some(kept) = readers::resume(connection).filter(|kept| 0 < kept.size()) else {
        return check_from(connection, Chain::empty());
    };
    let page = readers::entries(connection, kept.size() - 1, 1);
    let found = page.ok().and_then(|page| page.iter().next().map(|fields| fields.hash));
    if found == Some(kept.head()) {
        return check_from(connection, kept);
    }
    let (chain, fault) = check_from(connection, Chain::empty())?;
    let what = format!("entry {} is not the one that its checkpoint names", kept.size());
    Ok((chain, fault.or(Some(Error::Damaged(what)))))
}

/// Checks every entry after a place.
fn check_from(connection: &Connection, mut chain: Chain) -> Result<(Chain, Option<Error>), Error> {
    loop {
        let page = match readers::entries(connection, chain.size(), PAGE_ENTRIES_MAX) {
            Ok(page) => page,
            Err(damaged @ Error::Damaged(_)) => return Ok((chain, Some(damaged))),
            Err(error) => return Err(error),
        };
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
