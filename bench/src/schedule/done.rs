//! Runs from due to done when all are due at once, beside the raw engine that writes the same rows, and the jobs that
//! queues on PostgreSQL execute.
//!
//! Our side fires, starts and ends each run, with every step on the disk; a peer's jobs were added
//! before the clock starts.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;
use cluster::{Cluster, Options as Server};

use super::conditions::{Bar, Conditions};
use super::cost::Between;
use super::doers::Counting;
use super::peers::{self, Peers};
use super::place::{Place, now_us, reaches};
use super::plan::{Plan, every_slot_runs};
use super::raw::{self, Fires, Part};
use super::{Options, block_on};
use crate::spread;

const SCHEDULES: usize = 20_000;
const AGENTS: usize = 16;
const HOUR_MS: i64 = 3_600_000;
/// Queued, started, ended.
const ENTRIES_OF_RUN: u64 = 3;
/// For adding the schedules and checking the log before any is due.
const LEAD_US_PER_SCHEDULE: i64 = 400;
const LEAD_US_MIN: i64 = 5_000_000;
const RATIO_MIN: f64 = 1.5;
const PEER_MOST: Duration = Duration::from_secs(300);

pub(crate) fn run(options: &Options, peers: Option<&Peers>) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!("{schedules} runs due at once, {AGENTS} agents, {} rounds", options.rounds);
    let conditions = Conditions::begin("done", &what, dir.path())?;
    let (mut ours, mut to_raw, mut to_peers) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let place = tempfile::tempdir_in(options.dir())?;
        let copy = place.path().join("raw.db");
        let (our, part) = block_on(drain(place.path(), &copy, schedules))?;
        our.show("ours", "");
        let entries = our.batch() * ENTRIES_OF_RUN as f64;
        let log = place.path().join("midwatch.db");
        let raw = block_on(raw::replay(&log, part, entries, &copy, ""))?;
        raw.show("raw", "");
        ours.push(our.rate());
        to_raw.push(our.rate() / raw.rate());
        if let Some(peers) = peers {
            to_peers.push(our.rate() / best(peers, schedules)?);
        }
    }
    let (rate, least, most) = spread(ours);
    println!("  median   {rate:.0}/s [{least:.0}–{most:.0}]");
    let (ratio, least, most) = spread(to_raw);
    println!("  to raw   {ratio:.2} [{least:.2}–{most:.2}]");
    match to_peers.is_empty() {
        true => peers::none(),
        false => Bar::AtLeast(RATIO_MIN).show("runs to the best peer's jobs", spread(to_peers).0),
    }
    conditions.end(dir.path())
}

/// What was measured, and the part of the log that the raw engine writes again into a copy of what was before.
async fn drain(data: &Path, copy: &Path, schedules: usize) -> anyhow::Result<(Fires, Part)> {
    let place = Place::open(data).await?;
    let lead_us = LEAD_US_MIN + LEAD_US_PER_SCHEDULE * schedules as i64;
    let first_us = now_us() + lead_us;
    let plan = Plan {
        name: "schedule",
        schedules,
        agents: AGENTS,
        first_us,
        spread_us: 0,
        every_ms: HOUR_MS,
        terms: every_slot_runs(),
    };
    plan.add(&place.handle).await?;
    place.close().await?;
    std::fs::copy(data.join("midwatch.db"), copy)?;

    let place = Place::open(data).await?;
    let after = place.mark().await?.size;
    let doer = Arc::new(Counting::default());
    let mut measured = Err(anyhow::anyhow!("the watch ended early"));
    let stop = async {
        measured = until_done(&place, first_us, schedules as u64).await;
        "measured".to_owned()
    };
    place.watch.keep(Arc::clone(&doer) as Arc<_>, vec![], stop).await?;
    let (between, until) = measured?;
    let count = doer.count();
    ensure!(count == schedules as u64, "{count} of {schedules} runs");
    place.close().await?;
    Ok((Fires { count, between }, Part { after, until }))
}

/// What it took, and where the log ended then.
async fn until_done(place: &Place, first_us: i64, runs: u64) -> anyhow::Result<(Between, u64)> {
    place.checked().await?;
    ensure!(now_us() < first_us, "the schedules were due before all was ready");
    // Taken before, because the first are decided before this task has its turn again.
    let size = place.mark().await?.size;
    reaches(first_us).await;
    let started = place.mark().await?;
    place.grows_to(size + ENTRIES_OF_RUN * runs).await?;
    let ended = place.mark().await?;
    let found = place.count("run.ended", size, ended.size).await?;
    ensure!(found == runs, "{found} of {runs} runs have ended");
    Ok((started.until(ended), ended.size))
}

/// Jobs that the faster of the peers executes in a second, each on a server of its own.
fn best(peers: &Peers, jobs: usize) -> anyhow::Result<f64> {
    let mut best: f64 = 0.0;
    for peer in ["graphile-worker", "pg-boss"] {
        let server = Server::default()
            .setting("shared_buffers", "256MB")
            .setting("max_wal_size", "4GB")
            .setting("synchronous_commit", "on");
        let cluster = Cluster::start_with(server)?;
        let args = [cluster.database()?, jobs.to_string()];
        let figures = peers.run(&format!("{peer}.mjs"), &args, PEER_MOST)?;
        let rate = figures.get("executed_per_s")?;
        println!("  {peer} {rate:.0}/s; added {:.0}/s", figures.get("added_per_s")?);
        best = best.max(rate);
    }
    Ok(best)
}
