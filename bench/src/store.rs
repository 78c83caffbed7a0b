//! Durable changes per second through the handle, against a loop that writes the same rows.
//!
//! A change is one entry of the log and one guarded update of a row, acknowledged when it is on the
//! disk. Each writer waits for its acknowledgement before its next change. The raw loop has the same
//! settings, schema and rows, one transaction for as many changes as there are writers, and nothing
//! around it: no kernel, no hashes to compute, nobody to wake.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use api::{AgentAdd, AgentEdit, Handle, ask};
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

pub(crate) fn run(dir: &Path, writers: usize, seconds: u64, rounds: usize) -> anyhow::Result<()> {
    let span = Duration::from_secs(seconds);
    println!("\nstore: {writers} writers, {rounds} rounds of {seconds} s, in {}", dir.display());
    let (mut ours, mut raws, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let place = tempfile::tempdir_in(dir)?;
        let (p50, p99) = machine::flush_ms(place.path())?;
        let our = through_the_handle(&place, writers, span)?;
        let raw = raw_sqlite(&place, writers, span)?;
        println!(
            "round {round}: handle {our:>9.0}/s  raw {raw:>9.0}/s  ratio {:.2}  (flush p50 {p50:.2} ms, p99 {p99:.2} ms)",
            our / raw
        );
        ours.push(our);
        raws.push(raw);
        ratios.push(our / raw);
    }
    let (our, ..) = spread(ours);
    let (raw, ..) = spread(raws);
    let (ratio, least, most) = spread(ratios);
    println!("median: handle {our:.0}/s, raw {raw:.0}/s, ratio {ratio:.2} [{least:.2}–{most:.2}]");
    Ok(())
}

fn through_the_handle(place: &TempDir, writers: usize, span: Duration) -> anyhow::Result<f64> {
    let data = place.path().join("ours");
    std::fs::create_dir(&data)?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        let watch = open(&data).await?;
        let handle: Arc<dyn Handle> = Arc::new(watch.handle(Actor::local_user(0)));
        for writer in 0..writers {
            ask(&*handle, AgentAdd { name: name(writer), backend: "builtin".into(), ..AgentAdd::default() })
                .await?;
        }
        let started = Instant::now();
        let tasks = (0..writers).map(|writer| {
            let handle = Arc::clone(&handle);
            runtime.spawn(async move {
                let mut changes = 0_u64;
                while started.elapsed() < span {
                    let tier = Some(if changes % 2 == 0 { 1 } else { 2 });
                    ask(&*handle, AgentEdit { name: name(writer), tier, ..AgentEdit::default() }).await?;
                    changes += 1;
                }
                Ok::<u64, api::Error>(changes)
            })
        });
        let changes = try_join_all(tasks).await?.into_iter().sum::<Result<u64, _>>()?;
        Ok(changes as f64 / started.elapsed().as_secs_f64())
    })
}

pub(crate) async fn open(data: &Path) -> anyhow::Result<Watch> {
    let settings = Settings {
        data: data.to_owned(),
        version: "bench".into(),
        posture: "staging".into(),
        config_hash: String::new(),
        checkpoint_copy: None,
        heartbeat: Duration::ZERO,
    };
    let store = Arc::new(Sqlite::open(&data.join("midwatch.db"))?);
    Ok(Watch::open(store, Arc::new(SystemClock), settings).await?)
}

fn name(writer: usize) -> String {
    format!("writer-{writer:04}")
}

fn raw_sqlite(place: &TempDir, writers: usize, span: Duration) -> anyhow::Result<f64> {
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
    let mut begin = connection.prepare("BEGIN IMMEDIATE")?;
    let mut commit = connection.prepare("COMMIT")?;
    let mut insert_item = connection.prepare("INSERT INTO item VALUES ('agent', ?1, 1, ?2)")?;
    let mut insert_entry =
        connection.prepare("INSERT INTO entry VALUES (?1,?2,?3,?4,?5,?6,?7,?8,?9,?10,?11)")?;
    let mut update_item = connection.prepare(
        "UPDATE item SET version = ?3, body = ?4 WHERE noun = ?1 AND id = ?2 AND version = ?5",
    )?;
    let names: Vec<String> = (0..writers).map(name).collect();
    for name in &names {
        insert_item.execute((name, body))?;
    }
    let (mut seq, mut version) = (0_u64, 1_u64);
    let started = Instant::now();
    while started.elapsed() < span {
        begin.execute(())?;
        for name in &names {
            seq += 1;
            insert_entry.execute((
                seq,
                1_794_771_785_426_889_i64,
                "agent.changed",
                1,
                "uid:0",
                "maintainer",
                "",
                "agent",
                name,
                facts,
                [seq as u8; 32],
            ))?;
            update_item.execute(("agent", name, version + 1, body, version))?;
        }
        version += 1;
        commit.execute(())?;
    }
    Ok(seq as f64 / started.elapsed().as_secs_f64())
}
