//! Runs from due to done when all are due at once, beside the jobs that queues on PostgreSQL execute.
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
    let (mut ours, mut ratios) = (Vec::new(), Vec::new());
    for _ in 0..options.rounds {
        let place = tempfile::tempdir_in(options.dir())?;
        let our = block_on(drain(place.path(), schedules))?;
        ours.push(our);
        if let Some(peers) = peers {
            ratios.push(our / best(peers, schedules)?);
        }
    }
    let (rate, least, most) = spread(ours);
    println!("  median   {rate:.0}/s [{least:.0}–{most:.0}]");
    match ratios.is_empty() {
        true => peers::none(),
        false => Bar::AtLeast(RATIO_MIN).show("runs to the best peer's jobs", spread(ratios).0),
    }
    conditions.end(dir.path())
}

async fn drain(data: &Path, schedules: usize) -> anyhow::Result<f64> {
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
    let doer = Arc::new(Counting::default());
    let mut measured = Err(anyhow::anyhow!("the watch ended early"));
    let stop = async {
        measured = until_done(&place, first_us, schedules as u64).await;
        "measured".to_owned()
    };
    place.watch.keep(Arc::clone(&doer) as Arc<_>, vec![], stop).await?;
    let between = measured?;
    ensure!(doer.count() == schedules as u64, "{} of {schedules} runs", doer.count());
    let rate = schedules as f64 / between.seconds;
    println!(
        "  ours     {rate:.0}/s in {:.1} s, {} transactions; {}",
        between.seconds,
        between.transactions,
        between.each(schedules as u64)
    );
    Ok(rate)
}

async fn until_done(place: &Place, first_us: i64, runs: u64) -> anyhow::Result<Between> {
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
    Ok(started.until(ended))
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
