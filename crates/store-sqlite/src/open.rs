//! Opens connections: settings, schema, and the chain at the end of the ledger.

use std::fs::{self, OpenOptions};
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use ledger::Chain;
use rusqlite::config::DbConfig;
use rusqlite::{Connection, OpenFlags};
use store::{Error, PAGE_ENTRIES_MAX};

use crate::error::classify;
use crate::migrate;
use crate::readers;

/// The compiler ensures that one thread at a time uses a connection, so SQLite need not lock it.
const NO_MUTEX: OpenFlags = OpenFlags::SQLITE_OPEN_NO_MUTEX;

/// The writer's page cache. SQLite walks through its cache in nearly every commit, so a larger one would
/// cost more than it saves; the kernel caches the other pages.
const CACHE_KIB: u32 = 7_680;
/// Pages that a transaction may change before SQLite writes some of them early. A page that changes again
/// afterwards is written twice.
const SPILL_PAGES: u32 = 16_384;
/// How long to wait for a lock of another process that reads or recovers the file.
const BUSY_TIMEOUT_MS: u32 = 5_000;
/// Prepared statements per reader: more than there are queries.
const STATEMENTS_CACHED: usize = 32;

/// Opens the writer's connection. Creates the file and migrates its schema if necessary.
pub(crate) fn writer(path: &Path) -> Result<Connection, Error> {
    check_files(path)?;
    // Created here with its final permissions, which SQLite copies to the files beside it.
    let created = OpenOptions::new().create(true).append(true).mode(0o600).open(path);
    created.map_err(|error| match error.kind() {
        io::ErrorKind::StorageFull => Error::DiskFull,
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Error::ReadOnly,
        _ => Error::Failed(format!("cannot open `{}`: {error}", path.display())),
    })?;
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | NO_MUTEX;
    let mut connection = Connection::open_with_flags(path, flags).map_err(classify)?;
    settings(&connection).map_err(classify)?;
    migrate::migrate(&mut connection)?;
    Ok(connection)
}

/// Checks that the database and the files that SQLite keeps beside it are regular files: at a pipe it would wait.
fn check_files(path: &Path) -> Result<(), Error> {
    for suffix in ["", "-journal", "-wal", "-shm"] {
        let mut file = path.as_os_str().to_owned();
        file.push(suffix);
        if fs::metadata(&file).is_ok_and(|found| !found.is_file()) {
            let file = Path::new(&file).display();
            return Err(Error::Failed(format!("`{file}` is not a regular file")));
        }
    }
    Ok(())
}

/// Opens the checkpointer's connection, which copies the write-ahead log into the file.
pub(crate) fn checkpointer(path: &Path) -> Result<Connection, Error> {
    let flags = OpenFlags::SQLITE_OPEN_READ_WRITE | NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags).map_err(classify)?;
    let settings = "PRAGMA synchronous = FULL; PRAGMA trusted_schema = OFF;";
    connection.execute_batch(settings).map_err(classify)?;
    // A connection finds the write-ahead log only when it first reads.
    connection.query_row("SELECT count(*) FROM sqlite_schema", (), |_| Ok(())).map_err(classify)?;
    Ok(connection)
}

/// Whether a process may be writing the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileState {
    /// A process may be writing it.
    InUse,
    /// No process writes it. It is opened as immutable, which creates no files beside it and works on a
    /// read-only medium.
    Idle,
}

impl FileState {
    /// A file that no process writes has no write-ahead log.
    pub(crate) fn detect(path: &Path) -> FileState {
        let mut log = path.as_os_str().to_owned();
        log.push("-wal");
        if Path::new(&log).exists() { FileState::InUse } else { FileState::Idle }
    }
}

/// Opens a read-only connection.
pub(crate) fn reader(path: &Path, file_state: FileState) -> Result<Connection, Error> {
    check_files(path)?;
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | NO_MUTEX;
    let connection = match file_state {
        FileState::InUse => Connection::open_with_flags(path, flags),
        FileState::Idle => {
            Connection::open_with_flags(immutable_uri(path), flags | OpenFlags::SQLITE_OPEN_URI)
        }
    };
    let connection = connection.map_err(classify)?;
    connection.set_prepared_statement_cache_capacity(STATEMENTS_CACHED);
    // Otherwise SQLite plans a statement with a bound limit again for each execution.
    let same_plan = DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG;
    connection.set_db_config(same_plan, true).map_err(classify)?;
    connection
        .execute_batch(&format!(
            "PRAGMA busy_timeout = {BUSY_TIMEOUT_MS};
             PRAGMA query_only = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;"
        ))
        .map_err(classify)?;
    Ok(connection)
}

fn immutable_uri(path: &Path) -> String {
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

/// Loads the chain of the newest checkpoint and verifies every later entry. Returns the chain at the
/// end of the ledger, or up to the first fault with that fault.
pub(crate) fn load_chain(connection: &Connection) -> Result<(Chain, Option<Error>), Error> {
    // Without a readable checkpoint chain, all entries are verified.
    let Some(saved) = readers::checkpoint_chain(connection).filter(|saved| 0 < saved.size()) else {
        return verify_from(connection, Chain::empty());
    };
    let page = readers::entries(connection, saved.size() - 1, 1);
    let found = page.ok().and_then(|page| page.iter().next().map(|entry| entry.hash));
    if found == Some(saved.head()) {
        return verify_from(connection, saved);
    }
    let (chain, fault) = verify_from(connection, Chain::empty())?;
    let what = format!("entry {} does not match its checkpoint", saved.size());
    Ok((chain, fault.or(Some(Error::Damaged(what)))))
}

/// Verifies every entry after `chain`. Returns the chain up to the end or the first fault.
fn verify_from(connection: &Connection, mut chain: Chain) -> Result<(Chain, Option<Error>), Error> {
    loop {
        let page = match readers::entries(connection, chain.size(), PAGE_ENTRIES_MAX) {
            Ok(page) => page,
            Err(damaged @ Error::Damaged(_)) => return Ok((chain, Some(damaged))),
            Err(error) => return Err(error),
        };
        if page.is_empty() {
            return Ok((chain, None));
        }
        for entry in page.iter() {
            if let Err(fault) = chain.verify_next(&entry) {
                return Ok((chain, Some(Error::Damaged(fault.to_string()))));
            }
        }
    }
}
