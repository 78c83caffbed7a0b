//! The raw database: writes again the rows that were written through the handle.
//!
//! Schema, settings, rows and their order are the same, and so is the average size of a transaction. One loop writes them
//! from memory: without the kernel, hashing and waking of callers.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Instant;

use ledger::Entry;
use rusqlite::Connection;
use store_sqlite::Sqlite;

use crate::machine;
use crate::store::Measured;

/// A row's body, like those that the handle writes.
pub(crate) const BODY: &[u8] = br#"{"backend":{"kind":"builtin"},"changed_at":1794771785426889,"name":"writer-0001","registered_at":1794771785426889,"tier":1}"#;
/// A stored response, like those that the handle writes.
pub(crate) const RESPONSE: &[u8] = br#"{"call":"agent.edit","answer":{"agent":{"name":"writer-0001","backend":"builtin","tier":1,"registered_at":"2026-11-15T19:43:05.426889Z","changed_at":"2026-11-15T19:43:05.426889Z"},"changed":true}}"#;

pub(crate) fn replay(dir: &Path, rows: &[Entry], batch: f64) -> anyhow::Result<Measured> {
    let path = dir.join("raw.db");
    let runtime = tokio::runtime::Builder::new_current_thread().build()?;
    runtime.block_on(async { Sqlite::open(&path).map(drop) })?;
    let connection = Connection::open(&path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
    )?;
    let mut versions: BTreeMap<&str, u64> = BTreeMap::new();
    let mut insert_item = connection
        .prepare("INSERT INTO item (noun, id, version, body) VALUES ('agent', ?1, 1, ?2)")?;
    for row in rows {
        if versions.insert(&row.noun_id, 1).is_none() {
            insert_item.execute((&row.noun_id, BODY))?;
        }
    }
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut commit = connection.prepare("COMMIT")?;
    let mut insert_entry =
        connection.prepare("INSERT INTO entry VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")?;
    let mut update_item = connection.prepare(
        "UPDATE item SET version = ?3, body = ?4 WHERE noun = ?1 AND id = ?2 AND version = ?5",
    )?;
    let mut insert_response =
        connection.prepare("INSERT INTO answer VALUES (?1, ?2, ?3, ?4) ON CONFLICT DO NOTHING")?;

    let (started, cpu) = (Instant::now(), machine::cpu_seconds());
    let (mut written, mut due) = (0_u64, 0.0);
    let mut rest = rows.iter().peekable();
    while rest.peek().is_some() {
        // The batch size is an average: some transactions have one change more.
        due += batch;
        begin.execute(())?;
        while (written as f64) < due
            && let Some(row) = rest.next()
        {
            written += 1;
            if let Some(key) = row.cause.strip_prefix("key:") {
                insert_response.execute((key, row.hash.as_bytes(), RESPONSE, row.ts_us))?;
            }
            let version = versions.entry(&row.noun_id).or_default();
            update_item.execute((&row.noun, &row.noun_id, *version + 1, BODY, *version))?;
            *version += 1;
            insert_entry.execute((
                written,
                row.ts_us,
                &row.kind,
                row.version,
                &row.actor,
                &row.role,
                &row.cause,
                &row.noun,
                &row.noun_id,
                &row.facts,
                row.hash.as_bytes(),
            ))?;
        }
        commit.execute(())?;
    }
    let written = written as f64;
    let cpu_us = (machine::cpu_seconds() - cpu) * 1e6 / written;
    Ok(Measured { rate: written / started.elapsed().as_secs_f64(), batch, cpu_us })
}
