//! The raw database: writes again the rows that the engine wrote while schedules fired.
//!
//! It starts with a copy of the database from before, with the same settings and statements. Entries and rows come from the
//! ledger; those of one decision are written together, with the same average number of entries in a transaction. Decisions
//! are read and hashes computed outside the measured time.

use std::path::Path;

use ledger::Entry;
use rusqlite::{Connection, Statement};
use store::{UnchangedKeys, Write};
use store_sqlite::Sqlite;

use super::cost::{Cost, Moment};
use super::decisions::{Decision, DecisionReader};

/// Fires that are written at most: enough for a rate.
const FIRES_MAX: u64 = 400_000;
/// DecisionReader that are in memory at a time.
const DECISIONS_MAX: usize = 65_536;

/// Fires that were written, and their cost.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fires {
    pub(crate) count: u64,
    pub(crate) cost: Cost,
}

/// Entries of a ledger: those above `after`, up to `until`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EntryRange {
    pub(crate) after: u64,
    pub(crate) until: u64,
}

impl Fires {
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.cost.seconds
    }

    /// The average number of fires in a transaction.
    pub(crate) fn batch(&self) -> f64 {
        self.count as f64 / self.cost.transactions as f64
    }

    pub(crate) fn print(&self, label: &str, note: &str) {
        let each = self.cost.each(self.count);
        let (rate, batch) = (self.rate(), self.batch());
        println!("  {label:<8} {rate:.0}/s{note}; {batch:.0} per transaction, {each}");
    }
}

/// Writes a range of entries into a copy of the database, after some SQL on it; `batch` entries in a transaction.
pub(crate) async fn replay(
    log: &Path,
    part: EntryRange,
    batch: f64,
    copy: &Path,
    sql: &str,
) -> anyhow::Result<Fires> {
    let store = Sqlite::open_read_only(log)?;
    let mut decisions = DecisionReader::of(&store);
    decisions.skip(part.after).await?;
    let connection = open(copy, sql)?;
    let mut raw = Raw::prepare(&connection)?;
    let mut fires = Fires::default();
    while fires.count < FIRES_MAX {
        let found = decisions.until(part.until, DECISIONS_MAX).await?;
        if found.is_empty() {
            break;
        }
        let started = Moment::now();
        let transactions = write(&mut raw, &found, batch)?;
        fires.cost += Cost { transactions, ..started.until(Moment::now()) };
        fires.count += found.iter().map(|decision| decision.fires).sum::<u64>();
    }
    Ok(fires)
}

fn open(path: &Path, sql: &str) -> anyhow::Result<Connection> {
    let connection = Connection::open(path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
    )?;
    connection.execute_batch(sql)?;
    Ok(connection)
}

/// Returns the number of transactions.
fn write(raw: &mut Raw<'_>, decisions: &[Decision], batch: f64) -> anyhow::Result<u64> {
    let (mut entries, mut due, mut transactions) = (0, 0.0, 0);
    let mut rest = decisions.iter().peekable();
    while rest.peek().is_some() {
        // The batch size is an average: some transactions have one entry more.
        due += batch;
        transactions += 1;
        raw.begin.execute(())?;
        while (entries as f64) < due
            && let Some(decision) = rest.next()
        {
            entries += decision.entries.len();
            for it in &decision.writes {
                raw.write_item(it)?;
            }
            for it in &decision.entries {
                raw.append(it)?;
            }
        }
        raw.commit.execute(())?;
    }
    Ok(transactions)
}

/// The statements of the store's writer.
struct Raw<'c> {
    begin: Statement<'c>,
    commit: Statement<'c>,
    insert_entry: Statement<'c>,
    insert_item: Statement<'c>,
    update_item: Statement<'c>,
    update_due: Statement<'c>,
    update_body: Statement<'c>,
}

impl<'c> Raw<'c> {
    fn prepare(connection: &'c Connection) -> rusqlite::Result<Raw<'c>> {
        let sql = |text| connection.prepare(text);
        Ok(Raw {
            begin: sql("BEGIN IMMEDIATE")?,
            commit: sql("COMMIT")?,
            insert_entry: sql("INSERT INTO entry VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")?,
            insert_item: sql(
                "INSERT INTO item VALUES (?1, ?2, ?3, ?4, ?5, ?6) ON CONFLICT DO NOTHING",
            )?,
            update_item: sql("UPDATE item SET version = ?3, body = ?4, due_us = ?5, under = ?6
                              WHERE noun = ?1 AND id = ?2 AND version = ?7")?,
            update_due: sql("UPDATE item SET version = ?3, body = ?4, due_us = ?5
                             WHERE noun = ?1 AND id = ?2 AND version = ?6")?,
            update_body: sql("UPDATE item SET version = ?3, body = ?4
                              WHERE noun = ?1 AND id = ?2 AND version = ?5")?,
        })
    }

    fn write_item(&mut self, write: &Write) -> anyhow::Result<()> {
        let Write {
            noun,
            id,
            expected_version: expected,
            version,
            body,
            due_us,
            index_key: under,
            unchanged_keys: keeps,
        } = write;
        let body = body.as_deref();
        let written = match (expected, keeps) {
            (0, _) => self.insert_item.execute((noun, id, version, body, due_us, under)),
            (_, UnchangedKeys::Both) => {
                self.update_body.execute((noun, id, version, body, expected))
            }
            (_, UnchangedKeys::IndexKey) => {
                self.update_due.execute((noun, id, version, body, due_us, expected))
            }
            (_, UnchangedKeys::Unknown) => {
                self.update_item.execute((noun, id, version, body, due_us, under, expected))
            }
        };
        anyhow::ensure!(written? == 1, "the raw database has another version of {noun} `{id}`");
        Ok(())
    }

    fn append(&mut self, entry: &Entry) -> rusqlite::Result<()> {
        let values = (
            entry.seq,
            entry.ts_us,
            &entry.kind,
            entry.version,
            &entry.actor,
            &entry.role,
            &entry.cause,
            &entry.noun,
            &entry.noun_id,
            &entry.facts,
            entry.hash.as_bytes(),
        );
        self.insert_entry.execute(values).map(drop)
    }
}
