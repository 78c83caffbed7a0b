//! Runs from due to done when all are due at the same time, compared with the raw database, and with the jobs of queues on
//! PostgreSQL.
//!
//! Midwatch fires, starts and ends each run, with every step on the disk; a peer's jobs are added before the measurement.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents::NoBackend;
use anyhow::ensure;
use test_postgres::{Options as Server, PostgresServer};

use super::backends::CountingBackend;
use super::conditions::{Bar, Conditions};
use super::cost::Cost;
use super::instance::{Instance, now_us, sleep_until};
use super::peers::{self, Peers};
use super::raw::{self, EntryRange, Fires};
use super::workload::{Workload, run_every_slot};
use super::{Options, block_on};
use crate::spread;

const SCHEDULES: usize = 20_000;
const AGENTS: usize = 16;
const HOUR_MS: i64 = 3_600_000;
/// Queued, started, ended.
const ENTRIES_PER_RUN: u64 = 3;
/// Time to add the schedules and check the ledger before the first slot.
const LEAD_US_PER_SCHEDULE: i64 = 400;
const LEAD_US_MIN: i64 = 5_000_000;
const RATIO_MIN: f64 = 1.5;
const PEER_TIMEOUT: Duration = Duration::from_secs(300);

pub(crate) fn run(options: &Options, peers: Option<&Peers>) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!(
        "{schedules} runs due at the same time, {AGENTS} agents, {} rounds",
        options.rounds
    );
    let conditions = Conditions::start("done", &what, dir.path())?;
    let (mut ours, mut to_raw, mut to_peers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let dir = tempfile::tempdir_in(options.dir())?;
        let copy = dir.path().join("raw.db");
        let (our, part) = block_on(drain(dir.path(), &copy, schedules))?;
        our.print("ours", "");
        let entries = our.batch() * ENTRIES_PER_RUN as f64;
        let ledger = dir.path().join("midwatch.db");
        let raw = block_on(raw::replay(&ledger, part, entries, &copy, ""))?;
        raw.print("raw", "");
        ours.push(our.rate());
        to_raw.push(our.rate() / raw.rate());
        if let Some(peers) = peers {
            to_peers.push(our.rate() / best_peer_rate(peers, schedules)?);
        }
    }
    let (rate, least, most) = spread(ours);
    println!("  median   {rate:.0}/s [{least:.0}–{most:.0}]");
    let (ratio, least, most) = spread(to_raw);
    println!("  to raw   {ratio:.2} [{least:.2}–{most:.2}]");
    match to_peers.is_empty() {
        true => peers::print_not_measured(),
        false => Bar::AtLeast(RATIO_MIN).print("runs to the best peer's jobs", spread(to_peers).0),
    }
    conditions.end(dir.path())
}

/// The result, and the entries that the raw database writes again into a copy from before.
async fn drain(data: &Path, copy: &Path, schedules: usize) -> anyhow::Result<(Fires, EntryRange)> {
    let instance = Instance::open(data, Arc::new(NoBackend)).await?;
    let lead_us = LEAD_US_MIN + LEAD_US_PER_SCHEDULE * schedules as i64;
    let first_us = now_us() + lead_us;
    let workload = Workload {
        name: "schedule",
        schedules,
        agents: AGENTS,
        first_us,
        spread_us: 0,
        every_ms: HOUR_MS,
        terms: run_every_slot(),
    };
    workload.add(&instance.handle).await?;
    instance.close().await?;
    std::fs::copy(data.join("midwatch.db"), copy)?;

    let backend = Arc::new(CountingBackend::default());
    let instance = Instance::open(data, backend.clone()).await?;
    let after = instance.mark().await?.size;
    let mut measured = Err(anyhow::anyhow!("the engine ended early"));
    let stop = async {
        measured = until_done(&instance, first_us, schedules as u64).await;
        "measured".to_owned()
    };
    instance.engine.run(&[], vec![], stop).await?;
    let (cost, until) = measured?;
    let count = backend.count();
    ensure!(count == schedules as u64, "{count} of {schedules} runs");
    instance.close().await?;
    Ok((Fires { count, cost }, EntryRange { after, until }))
}

/// The cost, and the size of the ledger at the end.
async fn until_done(instance: &Instance, first_us: i64, runs: u64) -> anyhow::Result<(Cost, u64)> {
    instance.wait_for_startup_check().await?;
    ensure!(now_us() < first_us, "the schedules were due before the setup was done");
    // Read before, because the first slots are decided before this task runs again.
    let size = instance.mark().await?.size;
    sleep_until(first_us).await;
    let started = instance.mark().await?;
    instance.wait_for_entries(size + ENTRIES_PER_RUN * runs).await?;
    let ended = instance.mark().await?;
    let found = instance.count("run.ended", size, ended.size).await?;
    ensure!(found == runs, "{found} of {runs} runs ended");
    Ok((started.until(ended), ended.size))
}

/// Jobs per second of the faster peer. Each peer has its own server.
fn best_peer_rate(peers: &Peers, jobs: usize) -> anyhow::Result<f64> {
    let mut best: f64 = 0.0;
    for peer in ["graphile-worker", "pg-boss"] {
        let server = Server::default()
            .durable()
            .setting("shared_buffers", "256MB")
            .setting("max_wal_size", "4GB")
            .setting("synchronous_commit", "on");
        let postgres = PostgresServer::start_with(server)?;
        let args = [postgres.create_database()?, jobs.to_string()];
        let figures = peers.run(&format!("{peer}.mjs"), &args, PEER_TIMEOUT)?;
        let rate = figures.get("executed_per_s")?;
        println!("  {peer} {rate:.0}/s; added {:.0}/s", figures.get("added_per_s")?);
        best = best.max(rate);
    }
    Ok(best)
}
