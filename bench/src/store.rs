//! Durable changes per second through the handle, against a loop that writes the same rows.
//!
//! A change is one entry of the log, one guarded update of a row and, as every surface makes it, the
//! answer under its key; it is acknowledged when it is on the disk. `--no-keys` leaves the last out.
//! Each writer waits for its acknowledgement before its next change. The raw loop has the same
//! settings, schema and rows, in transactions of the same size as ours had on average, and nothing
//! around it: no kernel, no hashes to compute, nobody to wake.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{AgentAdd, AgentEdit, Call, Handle, ask};
use futures::future::try_join_all;
use kernel::Actor;
use runtime::{Settings, SystemClock, Watch};
use rusqlite::Connection;
use store_sqlite::Sqlite;
use tempfile::TempDir;

use crate::{machine, spread};

pub(crate) fn default_dirs() -> Vec<PathBuf> {
    vec![std::env::temp_dir(), PathBuf::from("/dev/shm")]
}

/// How much is measured, and of what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) writers: usize,
    pub(crate) span: Duration,
    pub(crate) rounds: usize,
    pub(crate) has_keys: bool,
}

pub(crate) fn run(dir: &Path, load: Load) -> anyhow::Result<()> {
    let Load { writers, span, rounds, has_keys } = load;
    let keys = if has_keys { "with keys" } else { "without keys" };
    println!(
        "\nstore: {writers} writers {keys}, {rounds} rounds of {span:?}, in {}",
        dir.display()
    );
    let (mut ours, mut raws, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let place = tempfile::tempdir_in(dir)?;
        let (p50, p99) = machine::flush_ms(place.path())?;
        let our = through_the_handle(&place, load)?;
        let raw = raw_sqlite(&place, load, our.batch)?;
        println!("round {round}: flush p50 {p50:.2} ms, p99 {p99:.2} ms");
        println!("  handle {our}\n  raw    {raw}\n  ratio  {:.2}", our.rate / raw.rate);
        ours.push(our.rate);
        raws.push(raw.rate);
        ratios.push(our.rate / raw.rate);
    }
    let (our, ..) = spread(ours);
    let (raw, ..) = spread(raws);
    let (ratio, least, most) = spread(ratios);
    println!("median: handle {our:.0}/s, raw {raw:.0}/s, ratio {ratio:.2} [{least:.2}–{most:.2}]");
    Ok(())
}

/// What one side did.
#[derive(Clone, Copy, Debug)]
struct Measured {
    /// Changes per second.
    rate: f64,
    /// Changes in one transaction, on average.
    batch: f64,
    /// Processor time of one change.
    cpu_us: f64,
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { rate, batch, cpu_us } = self;
        write!(out, "{rate:>7.0}/s, {batch:.1} in a transaction, {cpu_us:.1} µs of processor each")
    }
}

fn through_the_handle(place: &TempDir, load: Load) -> anyhow::Result<Measured> {
    let Load { writers, span, has_keys, .. } = load;
    let data = place.path().join("ours");
    std::fs::create_dir(&data)?;
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    runtime.block_on(async {
        let store = Arc::new(Sqlite::open(&data.join("midwatch.db"))?);
        let watch = watch_on(store.clone(), &data).await?;
        let handle: Arc<dyn Handle> = Arc::new(watch.handle(Actor::local_user(0)));
        for writer in 0..writers {
            ask(
                &*handle,
                AgentAdd { name: name(writer), backend: "builtin".into(), ..AgentAdd::default() },
            )
            .await?;
        }
        let (transactions, cpu) = (store.transactions(), machine::cpu_seconds());
        let started = Instant::now();
        let tasks = (0..writers).map(|writer| {
            let handle = Arc::clone(&handle);
            runtime.spawn(async move {
                let mut changes = 0_u64;
                while started.elapsed() < span {
                    let tier = Some(if changes.is_multiple_of(2) { 1 } else { 2 });
                    let edit = AgentEdit { name: name(writer), tier, ..AgentEdit::default() };
                    let key = has_keys.then(|| key(changes, writer));
                    Call { key, ..Call::new(edit) }.ask::<AgentEdit>(&*handle).await?;
                    changes += 1;
                }
                Ok::<u64, api::Error>(changes)
            })
        });
        let changes = try_join_all(tasks).await?.into_iter().sum::<Result<u64, _>>()? as f64;
        Ok(Measured {
            rate: changes / started.elapsed().as_secs_f64(),
            batch: changes / (store.transactions() - transactions) as f64,
            cpu_us: (machine::cpu_seconds() - cpu) * 1e6 / changes,
        })
    })
}

pub(crate) async fn open(data: &Path) -> anyhow::Result<Watch> {
    watch_on(Arc::new(Sqlite::open(&data.join("midwatch.db"))?), data).await
}

async fn watch_on(store: Arc<Sqlite>, data: &Path) -> anyhow::Result<Watch> {
    let settings = Settings {
        data: data.to_owned(),
        version: "bench".into(),
        posture: "staging".into(),
        config_hash: String::new(),
        checkpoint_copy: None,
        heartbeat: Duration::ZERO,
    };
    Ok(Watch::open(store, Arc::new(SystemClock), settings).await?)
}

fn name(writer: usize) -> String {
    format!("writer-{writer:04}")
}

/// In the order of time, as the keys of the commands are.
fn key(change: u64, writer: usize) -> String {
    format!("01a1e0bc-{change:012}-{writer:04}")
}

/// The same rows in transactions of the same size.
fn raw_sqlite(place: &TempDir, load: Load, batch: f64) -> anyhow::Result<Measured> {
    let Load { writers, span, has_keys, .. } = load;
    let path = place.path().join("raw.db");
    // The store's own schema and settings, without the store.
    drop(Sqlite::open(&path)?);
    let connection = Connection::open(&path)?;
    connection.execute_batch(
        "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL; PRAGMA wal_autocheckpoint = 4000;
         PRAGMA foreign_keys = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON;",
    )?;
    let facts = br#"{"at":1794771785426889,"backend":{"kind":"builtin"},"tier":1}"#;
    let body = br#"{"backend":{"kind":"builtin"},"changed_at":1794771785426889,"name":"writer-0001","registered_at":1794771785426889,"tier":1}"#;
    let answer = br#"{"call":"agent.edit","answer":{"agent":{"name":"writer-0001","backend":"builtin","tier":1,"registered_at":"2026-11-15T19:43:05.426889Z","changed_at":"2026-11-15T19:43:05.426889Z"},"changed":true}}"#;
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut commit = connection.prepare("COMMIT")?;
    let mut insert_item = connection.prepare("INSERT INTO item VALUES ('agent', ?1, 1, ?2)")?;
    let mut insert_entry =
        connection.prepare("INSERT INTO entry VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")?;
    let mut update_item = connection.prepare(
        "UPDATE item SET version = ?3, body = ?4 WHERE noun = ?1 AND id = ?2 AND version = ?5",
    )?;
    let mut insert_answer = connection.prepare("INSERT INTO answer VALUES (?1, ?2, ?3, ?4)")?;
    let names: Vec<String> = (0..writers).map(name).collect();
    for name in &names {
        insert_item.execute((name, body))?;
    }
    let mut versions = vec![1_u64; writers];
    let (mut changes, mut due) = (0_u64, 0.0);
    let (started, cpu) = (Instant::now(), machine::cpu_seconds());
    while started.elapsed() < span {
        // A batch need not be a whole number: some transactions have one change more.
        due += batch;
        begin.execute(())?;
        while (changes as f64) < due {
            let writer = changes as usize % writers;
            let (Some(name), Some(version)) = (names.get(writer), versions.get_mut(writer)) else {
                anyhow::bail!("no writers");
            };
            changes += 1;
            insert_entry.execute((
                changes,
                1_794_771_785_426_889_i64,
                "agent.changed",
                1,
                "uid:0",
                "maintainer",
                if has_keys { "key:uid:0/01a1e0bc-000000000001-0001" } else { "" },
                "agent",
                name,
                facts,
                [changes as u8; 32],
            ))?;
            update_item.execute(("agent", name, *version + 1, body, *version))?;
            *version += 1;
            if has_keys {
                let key = format!("uid:0/{}", key(*version, writer));
                insert_answer.execute((key, [7_u8; 32], answer, 1_794_771_785_426_889_i64))?;
            }
        }
        commit.execute(())?;
    }
    let changes = changes as f64;
    let cpu_us = (machine::cpu_seconds() - cpu) * 1e6 / changes;
    Ok(Measured { rate: changes / started.elapsed().as_secs_f64(), batch, cpu_us })
}
