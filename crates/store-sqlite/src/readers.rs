//! A small pool of read-only connections, and the queries that run on them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ledger::{Chain, EntryRef, Hash, PrivateRef};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow};
use store::{Checkpoint, DerivedTables, Error, PAGE_ENTRIES_MAX, Page, StoredResponse};

use crate::error::{classify, classify_tables};
use crate::items;
use crate::open::{self, FileState};

/// Idle connections in the pool. More are opened for more concurrent readers.
const IDLE_READERS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    file_state: FileState,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, file_state: FileState) -> Readers {
        Readers { path, file_state, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_outdated(&self) -> bool {
        self.file_state == FileState::Idle && FileState::detect(&self.path) == FileState::InUse
    }

    pub(crate) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| open::reader(&self.path, self.file_state), Ok)?;
        let result = query(&connection);
        let mut idle = self.idle();
        if idle.len() < IDLE_READERS_MAX {
            idle.push(connection);
        }
        result
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn counter(connection: &Connection, name: &str) -> Result<i64, Error> {
    let sql = "SELECT value FROM counter WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(classify_tables)?;
    let found = statement.query_row([name], |row| row.get(0)).optional();
    Ok(found.map_err(classify_tables)?.unwrap_or_default())
}

pub(crate) fn response(
    connection: &Connection,
    key: &str,
) -> Result<Option<StoredResponse>, Error> {
    let sql = "SELECT key, request_hash, body, at_us FROM answer WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(classify)?;
    statement.query_row([key], response_in).optional().map_err(classify)
}

pub(crate) fn responses(
    connection: &Connection,
    after: &str,
    limit: usize,
) -> Result<Vec<StoredResponse>, Error> {
    let sql =
        "SELECT key, request_hash, body, at_us FROM answer WHERE ?1 < key ORDER BY key LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(classify)?;
    let responses = statement.query_map((after, limit), response_in).map_err(classify)?;
    responses.collect::<Result<_, _>>().map_err(classify)
}

fn response_in(row: &SqlRow<'_>) -> Result<StoredResponse, rusqlite::Error> {
    let request_hash = hash(row, 1)?;
    Ok(StoredResponse { key: row.get(0)?, request_hash, body: row.get(2)?, at_us: row.get(3)? })
}

/// One page of the ledger, from one snapshot. The query joins the table of private parts only if an
/// entry of the page has one, which is rare.
pub(crate) fn entries(connection: &Connection, after: u64, limit: usize) -> Result<Page, Error> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit.min(PAGE_ENTRIES_MAX)).unwrap_or(i64::MAX);
    let snapshot = connection.unchecked_transaction().map_err(classify)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM entry_private WHERE ?1 < seq AND seq <= ?2)";
    let mut statement = snapshot.prepare_cached(sql).map_err(classify)?;
    let range = (after, after.saturating_add(limit));
    let sql = match statement.query_row(range, |row| row.get(0)).map_err(classify)? {
        false => {
            "SELECT seq, ts_us, kind, version, actor, role, cause, noun, noun_id, facts, hash
             FROM entry WHERE ?1 < seq ORDER BY seq LIMIT ?2"
        }
        true => {
            "SELECT seq, ts_us, kind, version, actor, role, cause, noun, noun_id, facts, entry.hash,
                    salt, body, entry_private.hash
             FROM entry LEFT JOIN entry_private USING (seq) WHERE ?1 < seq ORDER BY seq LIMIT ?2"
        }
    };
    let mut statement = snapshot.prepare_cached(sql).map_err(classify)?;
    let has_private = 11 < statement.column_count();
    let mut rows = statement.query((after, limit)).map_err(classify)?;
    let mut page = Page::default();
    while let Some(row) = rows.next().map_err(classify)? {
        match entry_ref(row, has_private) {
            Ok(entry) => page.push(&entry),
            // The entries before the damaged one are returned; the next page starts with it.
            Err(_) if !page.is_empty() => break,
            Err(error) => return Err(Error::Damaged(format!("cannot read an entry: {error}"))),
        }
        if page.is_full() {
            break;
        }
    }
    Ok(page)
}

fn entry_ref<'a>(row: &'a SqlRow<'_>, has_private: bool) -> Result<EntryRef<'a>, rusqlite::Error> {
    Ok(EntryRef {
        seq: row.get(0)?,
        ts_us: row.get(1)?,
        kind: row.get_ref(2)?.as_str()?,
        version: row.get(3)?,
        actor: row.get_ref(4)?.as_str()?,
        role: row.get_ref(5)?.as_str()?,
        cause: row.get_ref(6)?.as_str()?,
        noun: row.get_ref(7)?.as_str()?,
        noun_id: row.get_ref(8)?.as_str()?,
        facts: row.get_ref(9)?.as_blob()?,
        private: if has_private { private(row)? } else { PrivateRef::None },
        hash: hash(row, 10)?,
    })
}

fn private<'a>(row: &'a SqlRow<'_>) -> Result<PrivateRef<'a>, rusqlite::Error> {
    if row.get_ref(13)? != ValueRef::Null {
        return Ok(PrivateRef::Redacted { hash: hash(row, 13)? });
    }
    Ok(match row.get::<_, Option<[u8; 16]>>(11)? {
        Some(salt) => PrivateRef::Present { salt, bytes: row.get_ref(12)?.as_blob()? },
        None => PrivateRef::None,
    })
}

fn hash(row: &SqlRow<'_>, column: usize) -> Result<Hash, rusqlite::Error> {
    row.get::<_, [u8; 32]>(column).map(Hash::from_bytes)
}

/// The newest checkpoint. Its chain is stored apart from the notes, in the same transaction.
pub(crate) fn last_checkpoint(connection: &Connection) -> Result<Option<Checkpoint>, Error> {
    let sql = "SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql).map_err(classify)?;
    let note = statement.query_row((), |row| row.get(0)).optional().map_err(classify)?;
    // Without a readable chain there is no checkpoint to resume from, until the next one is saved.
    Ok(note.zip(checkpoint_chain(connection)).map(|(note, chain)| Checkpoint { chain, note }))
}

/// The chain of the newest checkpoint, if it can be read.
pub(crate) fn checkpoint_chain(connection: &Connection) -> Option<Chain> {
    let bytes =
        connection.query_row("SELECT chain FROM resume", (), |row| row.get::<_, Vec<u8>>(0));
    Chain::decode(&bytes.ok()?).ok()
}

pub(crate) fn checkpoint_notes(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>, Error> {
    let sql = "SELECT size, note FROM checkpoint WHERE ?1 < size ORDER BY size LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(classify)?;
    let notes = statement.query_map((after, limit), |row| Ok((row.get(0)?, row.get(1)?)));
    notes.map_err(classify)?.collect::<Result<_, _>>().map_err(classify)
}

pub(crate) fn load_derived(connection: &Connection) -> Result<DerivedTables, Error> {
    let snapshot = connection.unchecked_transaction().map_err(classify)?;
    let through =
        snapshot.query_row("SELECT coalesce(max(seq), 0) FROM entry", (), |row| row.get(0));
    let items = items::load_everything(&snapshot);
    let mut statement = snapshot
        .prepare("SELECT name, value FROM counter WHERE value <> 0 ORDER BY name")
        .map_err(classify_tables)?;
    let counters =
        statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).map_err(classify_tables)?;
    Ok(DerivedTables {
        through: through.map_err(classify)?,
        items: items?,
        counters: counters.collect::<Result<_, _>>().map_err(classify_tables)?,
    })
}

/// Reads and checks the whole file, which takes long.
pub(crate) fn check_files(connection: &Connection) -> Result<(), Error> {
    let sql = "PRAGMA quick_check(1)";
    match connection.query_row(sql, (), |row| row.get::<_, String>(0)).map_err(classify)? {
        found if found == "ok" => Ok(()),
        found => Err(Error::Damaged(found)),
    }
}
