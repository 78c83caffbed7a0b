//! Reading: a small pool of read-only connections, and the queries that run on them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ledger::{Chain, Fields, Hash, PrivateRef};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OptionalExtension, Row as SqlRow};
use store::{Answer, Checkpoint, Derived, Error, PAGE_ENTRIES_MAX, Page};

use crate::error::{meaning, of_tables};
use crate::items;
use crate::open::{self, Sharing};

/// Connections kept for the next reader; more are opened when more read at once.
const IDLE_READERS_MAX: usize = 4;

#[derive(Debug)]
pub(crate) struct Readers {
    path: PathBuf,
    sharing: Sharing,
    idle: Mutex<Vec<Connection>>,
}

impl Readers {
    pub(crate) fn new(path: PathBuf, sharing: Sharing) -> Readers {
        Readers { path, sharing, idle: Mutex::new(Vec::new()) }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn is_outdated(&self) -> bool {
        self.sharing == Sharing::AtRest && Sharing::of(&self.path) == Sharing::Written
    }

    pub(crate) fn read<T>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        let idle = self.idle().pop();
        let connection = idle.map_or_else(|| open::reader(&self.path, self.sharing), Ok)?;
        let answer = query(&connection);
        let mut idle = self.idle();
        if idle.len() < IDLE_READERS_MAX {
            idle.push(connection);
        }
        answer
    }

    fn idle(&self) -> MutexGuard<'_, Vec<Connection>> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

pub(crate) fn counter(connection: &Connection, name: &str) -> Result<i64, Error> {
    let sql = "SELECT value FROM counter WHERE name = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(of_tables)?;
    let found = statement.query_row([name], |row| row.get(0)).optional();
    Ok(found.map_err(of_tables)?.unwrap_or_default())
}

pub(crate) fn answer(connection: &Connection, key: &str) -> Result<Option<Answer>, Error> {
    let sql = "SELECT key, request_hash, body, at_us FROM answer WHERE key = ?1";
    let mut statement = connection.prepare_cached(sql).map_err(meaning)?;
    statement.query_row([key], answer_in).optional().map_err(meaning)
}

pub(crate) fn answers(
    connection: &Connection,
    after: &str,
    limit: usize,
) -> Result<Vec<Answer>, Error> {
    let sql =
        "SELECT key, request_hash, body, at_us FROM answer WHERE ?1 < key ORDER BY key LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(meaning)?;
    let answers = statement.query_map((after, limit), answer_in).map_err(meaning)?;
    answers.collect::<Result<_, _>>().map_err(meaning)
}

fn answer_in(row: &SqlRow<'_>) -> Result<Answer, rusqlite::Error> {
    let request_hash = hash(row, 1)?;
    Ok(Answer { key: row.get(0)?, request_hash, body: row.get(2)?, at_us: row.get(3)? })
}

/// One page of the log, seen at one moment. Most entries have no private part, and then the table of
/// those is not looked at.
pub(crate) fn entries(connection: &Connection, after: u64, limit: usize) -> Result<Page, Error> {
    let after = i64::try_from(after).unwrap_or(i64::MAX);
    let limit = i64::try_from(limit.min(PAGE_ENTRIES_MAX)).unwrap_or(i64::MAX);
    let moment = connection.unchecked_transaction().map_err(meaning)?;
    let sql = "SELECT EXISTS (SELECT 1 FROM entry_private WHERE ?1 < seq AND seq <= ?2)";
    let mut statement = moment.prepare_cached(sql).map_err(meaning)?;
    let range = (after, after.saturating_add(limit));
    let sql = match statement.query_row(range, |row| row.get(0)).map_err(meaning)? {
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
    let mut statement = moment.prepare_cached(sql).map_err(meaning)?;
    let has_private = 11 < statement.column_count();
    let mut rows = statement.query((after, limit)).map_err(meaning)?;
    let mut page = Page::default();
    while let Some(row) = rows.next().map_err(meaning)? {
        match fields(row, has_private) {
            Ok(fields) => page.push(&fields),
            // What is good comes first; the next page begins with what is not.
            Err(_) if !page.is_empty() => break,
            Err(error) => return Err(Error::Damaged(format!("an entry cannot be read: {error}"))),
        }
        if page.is_full() {
            break;
        }
    }
    Ok(page)
}

fn fields<'a>(row: &'a SqlRow<'_>, has_private: bool) -> Result<Fields<'a>, rusqlite::Error> {
    Ok(Fields {
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

/// The chain at the newest checkpoint is kept apart from the notes; both are written together.
pub(crate) fn last_checkpoint(connection: &Connection) -> Result<Option<Checkpoint>, Error> {
    let sql = "SELECT note FROM checkpoint ORDER BY size DESC LIMIT 1";
    let mut statement = connection.prepare_cached(sql).map_err(meaning)?;
    let note = statement.query_row((), |row| row.get(0)).optional().map_err(meaning)?;
    // Without the place there is nothing to resume from, and the next checkpoint brings a new one.
    Ok(note.zip(resume(connection)).map(|(note, chain)| Checkpoint { chain, note }))
}

/// Where a start may begin to read, if that can be read itself.
pub(crate) fn resume(connection: &Connection) -> Option<Chain> {
    let kept = connection.query_row("SELECT chain FROM resume", (), |row| row.get::<_, Vec<u8>>(0));
    Chain::decode(&kept.ok()?).ok()
}

pub(crate) fn checkpoint_notes(
    connection: &Connection,
    after: u64,
    limit: usize,
) -> Result<Vec<(u64, String)>, Error> {
    let sql = "SELECT size, note FROM checkpoint WHERE ?1 < size ORDER BY size LIMIT ?2";
    let mut statement = connection.prepare_cached(sql).map_err(meaning)?;
    let notes = statement.query_map((after, limit), |row| Ok((row.get(0)?, row.get(1)?)));
    notes.map_err(meaning)?.collect::<Result<_, _>>().map_err(meaning)
}

pub(crate) fn derived(connection: &Connection) -> Result<Derived, Error> {
    let moment = connection.unchecked_transaction().map_err(meaning)?;
    let through = moment.query_row("SELECT coalesce(max(seq), 0) FROM entry", (), |row| row.get(0));
    let items = items::all(&moment);
    let mut statement = moment
        .prepare("SELECT name, value FROM counter WHERE value <> 0 ORDER BY name")
        .map_err(of_tables)?;
    let counters =
        statement.query_map((), |row| Ok((row.get(0)?, row.get(1)?))).map_err(of_tables)?;
    Ok(Derived {
        through: through.map_err(meaning)?,
        items: items?,
        counters: counters.collect::<Result<_, _>>().map_err(of_tables)?,
    })
}

/// Reads the whole file, so it is for a quiet moment.
pub(crate) fn check_files(connection: &Connection) -> Result<(), Error> {
    let sql = "PRAGMA quick_check(1)";
    match connection.query_row(sql, (), |row| row.get::<_, String>(0)).map_err(meaning)? {
        found if found == "ok" => Ok(()),
        found => Err(Error::Damaged(found)),
    }
}
