//! Slots decided and runs queued per second, compared with the raw database.
//!
//! A fire is an entry of the ledger, the row of a slot, the row of a run and the progress of a schedule, all on the disk.
//! Hardly any run starts. Slightly more slots come due than can be decided, so that a decision covers one slot, seldom two:
//! a schedule that is far behind would share the cost of its progress among many slots.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;

use super::backends::HangingBackend;
use super::conditions::{Bar, Conditions};
use super::instance::{Instance, Mark, now_us, sleep_until};
use super::raw::{self, EntryRange, Fires};
use super::workload::{Workload, run_every_slot};
use super::{Options, block_on};

const SCHEDULES: usize = 100_000;
/// Schedules that are due at the same time, to measure how many can be decided per second.
const PROBED: usize = 20_000;
/// Due slots, as a multiple of those that can be decided.
const OVERLOAD: f64 = 1.2;
const HOUR_MS: i64 = 3_600_000;
/// The shortest interval of a schedule.
const EVERY_MS_MIN: f64 = 1_000.0;
/// Time for the check of the ledger before the first slot.
const LEAD_US_PER_SCHEDULE: f64 = 50.0;
const LEAD_US_MIN: f64 = 5e6;
const RATIO_MIN: f64 = 0.6;
const RATE_MIN: f64 = 40_000.0;

/// Rates per second.
struct Probe {
    decided: f64,
    added: f64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!("{schedules} schedules, {} s", options.seconds);
    let conditions = Conditions::start("fires", &what, dir.path())?;
    let probe_dir = tempfile::tempdir_in(options.dir())?;
    let probe = block_on(probe(probe_dir.path()))?;
    println!("  probe    {:.0}/s decided, {:.0}/s added", probe.decided, probe.added);
    let rate = options.rate.unwrap_or(probe.decided * OVERLOAD);
    let lead_us = LEAD_US_MIN + schedules as f64 * (1.5e6 / probe.added + LEAD_US_PER_SCHEDULE);
    let every_ms = (schedules as f64 * 1e3 / rate).max(EVERY_MS_MIN) as i64;
    let workload = Workload {
        first_us: now_us() + lead_us as i64,
        spread_us: every_ms * 1_000,
        every_ms,
        ..only_slot(schedules)
    };
    let copy = dir.path().join("raw.db");
    let (ours, part) = block_on(ours(dir.path(), &copy, &workload, options.seconds))?;
    ours.print("ours", &format!(" of {:.0}/s due", schedules as f64 * 1e3 / every_ms as f64));
    let replay = |sql| replay_copy(dir.path(), &copy, part, ours.batch(), sql);
    let raw = replay("")?;
    raw.print("raw", "");
    for sql in &options.raw_sql {
        replay(sql)?.print("raw", &format!(" after `{sql}`"));
    }
    Bar::AtLeast(RATIO_MIN).print("fires to the raw database's", ours.rate() / raw.rate());
    Bar::AtLeast(RATE_MIN).print("fires per second", ours.rate());
    conditions.end(dir.path())
}

/// Replays on a new copy of the database.
fn replay_copy(
    data: &Path,
    copy: &Path,
    part: EntryRange,
    batch: f64,
    sql: &str,
) -> anyhow::Result<Fires> {
    let dir = tempfile::tempdir_in(data)?;
    let raw = dir.path().join("raw.db");
    std::fs::copy(copy, &raw)?;
    block_on(raw::replay(&data.join("midwatch.db"), part, batch, &raw, sql))
}

fn only_slot(schedules: usize) -> Workload {
    Workload {
        name: "schedule",
        schedules,
        agents: 1,
        first_us: now_us() + LEAD_US_MIN as i64 + schedules as i64 * 400,
        spread_us: 0,
        every_ms: HOUR_MS,
        terms: run_every_slot(),
    }
}

async fn probe(data: &Path) -> anyhow::Result<Probe> {
    let instance = Instance::open(data, Arc::new(HangingBackend)).await?;
    let workload = only_slot(PROBED);
    let added = workload.add(&instance.handle).await?;
    let mut decided = Err(anyhow::anyhow!("the engine ended early"));
    let stop = async {
        decided = measure_probe(&instance, workload.first_us).await;
        "measured".to_owned()
    };
    instance.engine.run(&[], vec![], stop).await?;
    Ok(Probe { decided: decided?, added })
}

async fn measure_probe(instance: &Instance, first_us: i64) -> anyhow::Result<f64> {
    instance.wait_for_startup_check().await?;
    // Read before, because the first slots are decided before this task runs again.
    let size = instance.mark().await?.size;
    sleep_until(first_us).await;
    let started = instance.mark().await?;
    instance.wait_for_entries(size + PROBED as u64).await?;
    Ok(PROBED as f64 / started.until(instance.mark().await?).seconds)
}

/// The result, and the entries that the raw database writes again.
async fn ours(
    data: &Path,
    copy: &Path,
    workload: &Workload,
    seconds: u64,
) -> anyhow::Result<(Fires, EntryRange)> {
    let instance = Instance::open(data, Arc::new(HangingBackend)).await?;
    workload.add(&instance.handle).await?;
    instance.close().await?;
    std::fs::copy(data.join("midwatch.db"), copy)?;

    let instance = Instance::open(data, Arc::new(HangingBackend)).await?;
    let copied = instance.mark().await?;
    let mut measured = Err(anyhow::anyhow!("the engine ended early"));
    let stop = async {
        measured = sustained(&instance, workload, seconds).await;
        "measured".to_owned()
    };
    instance.engine.run(&[], vec![], stop).await?;
    let (started, ended) = measured?;
    let count = instance.count("run.queued", started.size, ended.size).await?;
    let passed = instance.count("schedule.passed", started.size, ended.size).await?;
    ensure!(passed == 0, "{passed} slots were skipped");
    instance.close().await?;
    let part = EntryRange { after: copied.size, until: ended.size };
    Ok((Fires { count, cost: started.until(ended) }, part))
}

async fn sustained(
    instance: &Instance,
    workload: &Workload,
    seconds: u64,
) -> anyhow::Result<(Mark, Mark)> {
    instance.wait_for_startup_check().await?;
    ensure!(now_us() < workload.first_us, "the schedules were due before the setup was done");
    sleep_until(workload.first_us).await;
    let started = instance.mark().await?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok((started, instance.mark().await?))
}
