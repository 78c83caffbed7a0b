//! The raw engine: the rows that the watch has written while schedules fired, written again.
//!
//! It begins with a copy of the database as it was before, and has the same settings and statements.
//! Entries and rows come from the log; those of one decision are written together, and as many
//! entries are in a transaction as there were on average. Nothing is decided and no hash computed while
//! the clock runs.

use std::path::Path;

use ledger::Entry;
use rusqlite::{Connection, Statement};
use store::{Keeps, Write};
use store_sqlite::Sqlite;

use super::cost::{Between, Moment};
use super::steps::{Step, Steps};

/// Fires that are written again: enough for a rate.
const FIRES_MAX: u64 = 400_000;
/// Steps that are in memory at a time.
const STEPS_MAX: usize = 65_536;

/// Fires that were written, and what that took.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Fires {
    pub(crate) count: u64,
    pub(crate) between: Between,
}

/// A part of a log.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) after: u64,
    pub(crate) until: u64,
}

impl Fires {
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.between.seconds
    }

    /// Fires in a transaction, on average.
    pub(crate) fn batch(&self) -> f64 {
        self.count as f64 / self.between.transactions as f64
    }

    pub(crate) fn show(&self, whose: &str, how: &str) {
        let each = self.between.each(self.count);
        let (rate, batch) = (self.rate(), self.batch());
        println!("  {whose:<8} {rate:.0}/s{how}; {batch:.0} in a transaction, {each}");
    }
}

/// Writes a part of a log into a copy of the database, after some SQL on it; `batch` entries in a transaction.
pub(crate) async fn replay(
    log: &Path,
    part: Part,
    batch: f64,
    copy: &Path,
    sql: &str,
) -> anyhow::Result<Fires> {
    let store = Sqlite::open_read_only(log)?;
    let mut steps = Steps::of(&store);
    steps.skip(part.after).await?;
    let connection = open(copy, sql)?;
    let mut raw = Raw::prepare(&connection)?;
    let mut fires = Fires::default();
    while fires.count < FIRES_MAX {
        let gathered = steps.until(part.until, STEPS_MAX).await?;
        if gathered.is_empty() {
            break;
        }
        let started = Moment::now();
        let transactions = write(&mut raw, &gathered, batch)?;
        fires.between += Between { transactions, ..started.until(Moment::now()) };
        fires.count += gathered.iter().map(|step| step.fires).sum::<u64>();
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

/// Says in how many transactions.
fn write(raw: &mut Raw<'_>, steps: &[Step], batch: f64) -> anyhow::Result<u64> {
    let (mut entries, mut due, mut transactions) = (0, 0.0, 0);
    let mut rest = steps.iter().peekable();
    while rest.peek().is_some() {
        // A batch need not be a whole number: some transactions have one entry more.
        due += batch;
        transactions += 1;
        raw.begin.execute(())?;
        while (entries as f64) < due
            && let Some(step) = rest.next()
        {
            entries += step.entries.len();
            for it in &step.writes {
                raw.write_item(it)?;
            }
            for it in &step.entries {
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
        let Write { noun, id, expected, version, body, due_us, under, keeps } = write;
        let body = body.as_deref();
        let written = match (expected, keeps) {
            (0, _) => self.insert_item.execute((noun, id, version, body, due_us, under)),
            (_, Keeps::Both) => self.update_body.execute((noun, id, version, body, expected)),
            (_, Keeps::Under) => {
                self.update_due.execute((noun, id, version, body, due_us, expected))
            }
            (_, Keeps::Unknown) => {
                self.update_item.execute((noun, id, version, body, due_us, under, expected))
            }
        };
        anyhow::ensure!(written? == 1, "the raw engine has another {noun} `{id}`");
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
