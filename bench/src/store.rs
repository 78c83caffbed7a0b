//! Durable changes per second through the handle, compared with a loop that writes the same rows.
//!
//! A change is one entry of the ledger, one conditional update of a row and, unless `--no-keys` is given, the response under
//! its key; it is acknowledged when it is on the disk. Each writer waits for that before its next change. Afterwards
//! `raw` writes the same rows again.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use agents::{AgentBackend, NoBackend};
use api::{AgentAdd, AgentEdit, AgentSettings, Call, Handle, send};
use futures::future::try_join_all;
use kernel::Actor;
use ledger::Entry;
use runtime::{Components, Engine, ReloadableConfig, Settings, SystemClock};
use store::{PAGE_ENTRIES_MAX, Store};
use store_postgres::{Postgres, Target};
use store_sqlite::Sqlite;
use tempfile::TempDir;
use test_postgres::{Options, PostgresServer};

use crate::{machine, raw, raw_postgres, spread};

pub(crate) fn default_dirs(engine: Database) -> Vec<PathBuf> {
    match engine {
        Database::Sqlite => vec![std::env::temp_dir(), PathBuf::from("/dev/shm")],
        Database::Postgres => vec![std::env::temp_dir()],
    }
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
pub(crate) enum Database {
    Sqlite,
    Postgres,
}

/// The parameters of a measurement.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Load {
    pub(crate) engine: Database,
    pub(crate) writers: usize,
    pub(crate) span: Duration,
    pub(crate) rounds: usize,
    pub(crate) nodes: usize,
    pub(crate) has_keys: bool,
}

pub(crate) fn run(dir: &Path, load: Load) -> anyhow::Result<()> {
    let Load { engine, writers, span, rounds, nodes, has_keys } = load;
    let keys = if has_keys { "with keys" } else { "without keys" };
    println!(
        "\nstore: {engine:?}, {writers} writers {keys}, nodes: {nodes}, {rounds} rounds of {span:?}, in {}",
        dir.display()
    );
    let (mut ours, mut raws, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=rounds {
        let temp = tempfile::tempdir_in(dir)?;
        let (p50, p99) = machine::flush_ms(temp.path())?;
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
        let (our, raw) = match engine {
            Database::Sqlite => {
                let (our, rows) = runtime.block_on(on_sqlite(&temp, load))?;
                (our, raw::replay(temp.path(), &rows, our.batch)?)
            }
            Database::Postgres => {
                let postgres = PostgresServer::start_with(Options::default().durable())?;
                let (our, rows) = runtime.block_on(on_postgres(&postgres, &temp, load))?;
                let database = postgres.create_database()?;
                let raw = raw_postgres::replay(&database, &rows, our.batch);
                (our, runtime.block_on(raw)?)
            }
        };
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

#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    /// Changes per second.
    pub(crate) rate: f64,
    /// Changes in one transaction, on average.
    pub(crate) batch: f64,
    /// Processor time for one change.
    pub(crate) cpu_us: f64,
}

impl fmt::Display for Measured {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measured { rate, batch, cpu_us } = self;
        write!(
            out,
            "{rate:>7.0}/s, {batch:.1} per transaction, {cpu_us:.1} µs of processor time each"
        )
    }
}

async fn on_sqlite(temp: &TempDir, load: Load) -> anyhow::Result<(Measured, Vec<Entry>)> {
    let data = temp.path().join("ours");
    std::fs::create_dir(&data)?;
    let store = Arc::new(Sqlite::open(&data.join("midwatch.db"))?);
    let counted = Arc::clone(&store);
    measure_handles(vec![store], &data, load, move || counted.transactions()).await
}

async fn on_postgres(
    postgres: &PostgresServer,
    temp: &TempDir,
    load: Load,
) -> anyhow::Result<(Measured, Vec<Entry>)> {
    let data = temp.path().join("ours");
    std::fs::create_dir(&data)?;
    let target = Target::new(&postgres.create_database()?, None, None)?;
    let mut stores: Vec<Arc<dyn Store>> = Vec::new();
    let mut counted = Vec::new();
    for _ in 0..load.nodes {
        let store = Arc::new(Postgres::open(&target).await?);
        counted.push(Arc::clone(&store));
        stores.push(store);
    }
    let transactions = move || counted.iter().map(|store| store.transactions()).sum();
    measure_handles(stores, &data, load, transactions).await
}

/// The result, and the entries that were written.
async fn measure_handles(
    stores: Vec<Arc<dyn Store>>,
    data: &Path,
    load: Load,
    transactions: impl Fn() -> u64,
) -> anyhow::Result<(Measured, Vec<Entry>)> {
    let Load { writers, span, has_keys, .. } = load;
    let mut handles: Vec<Arc<dyn Handle>> = Vec::new();
    for store in &stores {
        let engine = engine_on(Arc::clone(store), data, Arc::new(NoBackend)).await?;
        handles.push(Arc::new(engine.handle(Actor::local_user(0))));
    }
    for (writer, handle) in (0..writers).zip(handles.iter().cycle()) {
        let agent =
            AgentAdd { name: name(writer), backend: "builtin".into(), ..AgentAdd::default() };
        send(&**handle, agent).await?;
    }
    let (before, cpu) = (transactions(), machine::cpu_seconds());
    let started = Instant::now();
    let tasks = (0..writers).zip(handles.iter().cycle()).map(|(writer, handle)| {
        let handle = Arc::clone(handle);
        tokio::task::spawn(async move {
            let mut changes = 0_u64;
            while started.elapsed() < span {
                let tier = Some(if changes.is_multiple_of(2) { 1 } else { 2 });
                let settings = AgentSettings { tier, ..AgentSettings::default() };
                let edit = AgentEdit { name: name(writer), settings, ..AgentEdit::default() };
                let key = has_keys.then(|| key(changes, writer));
                Call { key, ..Call::new(edit) }.send::<AgentEdit>(&*handle).await?;
                changes += 1;
            }
            Ok::<u64, api::Error>(changes)
        })
    });
    let changes = try_join_all(tasks).await?.into_iter().sum::<Result<u64, _>>()? as f64;
    let measured = Measured {
        rate: changes / started.elapsed().as_secs_f64(),
        batch: changes / (transactions() - before) as f64,
        cpu_us: (machine::cpu_seconds() - cpu) * 1e6 / changes,
    };
    let rows = match stores.first() {
        Some(store) => read_changes(&**store).await?,
        None => Vec::new(),
    };
    Ok((measured, rows))
}

async fn read_changes(store: &dyn Store) -> anyhow::Result<Vec<Entry>> {
    let (mut rows, mut after) = (Vec::new(), 0);
    loop {
        let page = store.entries(after, PAGE_ENTRIES_MAX).await?;
        let Some(last) = page.last_seq() else { return Ok(rows) };
        after = last;
        rows.extend(page.iter().filter(|it| it.kind == "agent.changed").map(|it| it.to_owned()));
    }
}

pub(crate) async fn open(data: &Path) -> anyhow::Result<Engine> {
    engine_on(Arc::new(Sqlite::open(&data.join("midwatch.db"))?), data, Arc::new(NoBackend)).await
}

pub(crate) async fn engine_on(
    store: Arc<dyn Store>,
    data: &Path,
    backend: Arc<dyn AgentBackend>,
) -> anyhow::Result<Engine> {
    let settings = Settings {
        data: data.to_owned(),
        version: "bench".into(),
        posture: kernel::posture::Posture::Staging,
        checkpoint_copy: None,
        heartbeat: Duration::ZERO,
        drain: Duration::ZERO,
        secret_variables: Vec::new(),
    };
    let components = Components { backend, ..Components::new(store, Arc::new(SystemClock)) };
    Ok(Engine::open(components, settings, ReloadableConfig::default()).await?)
}

fn name(writer: usize) -> String {
    format!("writer-{writer:04}")
}

/// Sorted by time, like the keys of the command line.
fn key(change: u64, writer: usize) -> String {
    format!("01a1e0bc-{change:012}-{writer:04}")
}
