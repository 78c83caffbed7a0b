//! Slots decided and runs queued in a second, for as long as asked for, beside the raw engine.
//!
//! A fire is an entry of the log, the row of a slot, the row of a run and the progress of a schedule,
//! all on the disk. Hardly any run is worked on. A little more comes due than can be decided, so that
//! a decision is about one slot, seldom two: a schedule that is far behind would share the cost of its
//! progress among many slots.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;

use super::conditions::{Bar, Conditions};
use super::doers::Hanging;
use super::place::{Mark, Place, now_us, reaches};
use super::plan::{Plan, every_slot_runs};
use super::raw::{self, Fires, Part};
use super::{Options, block_on};

const SCHEDULES: usize = 100_000;
/// Schedules whose only slot is due at once, to learn how many can be decided in a second.
const PROBED: usize = 20_000;
/// What comes due, as a part of what can be decided.
const OVERLOAD: f64 = 1.2;
const HOUR_MS: i64 = 3_600_000;
/// The shortest interval of a schedule.
const EVERY_MS_MIN: f64 = 1_000.0;
/// For the check of the log, before anything is due.
const LEAD_US_PER_SCHEDULE: f64 = 50.0;
const LEAD_US_MIN: f64 = 5e6;
const RATIO_MIN: f64 = 0.6;
const RATE_MIN: f64 = 40_000.0;

/// What the probe has found, in a second.
struct Probe {
    decided: f64,
    added: f64,
}

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!("{schedules} schedules, {} s", options.seconds);
    let conditions = Conditions::begin("fires", &what, dir.path())?;
    let place = tempfile::tempdir_in(options.dir())?;
    let probe = block_on(probe(place.path()))?;
    println!("  probe    {:.0}/s decided, {:.0}/s added", probe.decided, probe.added);
    let rate = options.rate.unwrap_or(probe.decided * OVERLOAD);
    let lead_us = LEAD_US_MIN + schedules as f64 * (1.5e6 / probe.added + LEAD_US_PER_SCHEDULE);
    let every_ms = (schedules as f64 * 1e3 / rate).max(EVERY_MS_MIN) as i64;
    let plan = Plan {
        first_us: now_us() + lead_us as i64,
        spread_us: every_ms * 1_000,
        every_ms,
        ..only_slot(schedules)
    };
    let copy = dir.path().join("raw.db");
    let (ours, part) = block_on(ours(dir.path(), &copy, &plan, options.seconds))?;
    ours.show("ours", &format!(" of {:.0}/s due", schedules as f64 * 1e3 / every_ms as f64));
    let again = |sql| replayed(dir.path(), &copy, part, ours.batch(), sql);
    let raw = again("")?;
    raw.show("raw", "");
    for sql in &options.raw_sql {
        again(sql)?.show("raw", &format!(" after `{sql}`"));
    }
    Bar::AtLeast(RATIO_MIN).show("fires to the raw engine's", ours.rate() / raw.rate());
    Bar::AtLeast(RATE_MIN).show("fires in a second", ours.rate());
    conditions.end(dir.path())
}

/// Each time on a copy of its own.
fn replayed(data: &Path, copy: &Path, part: Part, batch: f64, sql: &str) -> anyhow::Result<Fires> {
    let place = tempfile::tempdir_in(data)?;
    let raw = place.path().join("raw.db");
    std::fs::copy(copy, &raw)?;
    block_on(raw::replay(&data.join("midwatch.db"), part, batch, &raw, sql))
}

fn only_slot(schedules: usize) -> Plan {
    Plan {
        name: "schedule",
        schedules,
        agents: 1,
        first_us: now_us() + LEAD_US_MIN as i64 + schedules as i64 * 400,
        spread_us: 0,
        every_ms: HOUR_MS,
        terms: every_slot_runs(),
    }
}

async fn probe(data: &Path) -> anyhow::Result<Probe> {
    let place = Place::open(data).await?;
    let plan = only_slot(PROBED);
    let added = plan.add(&place.handle).await?;
    let mut decided = Err(anyhow::anyhow!("the watch ended early"));
    let stop = async {
        decided = probed(&place, plan.first_us).await;
        "measured".to_owned()
    };
    place.watch.keep(Arc::new(Hanging), vec![], stop).await?;
    Ok(Probe { decided: decided?, added })
}

async fn probed(place: &Place, first_us: i64) -> anyhow::Result<f64> {
    place.checked().await?;
    // Taken before, because the first are decided before this task has its turn again.
    let size = place.mark().await?.size;
    reaches(first_us).await;
    let started = place.mark().await?;
    place.grows_to(size + PROBED as u64).await?;
    Ok(PROBED as f64 / started.until(place.mark().await?).seconds)
}

/// What was measured, and the part of the log that the raw engine writes again.
async fn ours(
    data: &Path,
    copy: &Path,
    plan: &Plan,
    seconds: u64,
) -> anyhow::Result<(Fires, Part)> {
    let place = Place::open(data).await?;
    plan.add(&place.handle).await?;
    place.close().await?;
    std::fs::copy(data.join("midwatch.db"), copy)?;

    let place = Place::open(data).await?;
    let copied = place.mark().await?;
    let mut measured = Err(anyhow::anyhow!("the watch ended early"));
    let stop = async {
        measured = sustained(&place, plan, seconds).await;
        "measured".to_owned()
    };
    place.watch.keep(Arc::new(Hanging), vec![], stop).await?;
    let (started, ended) = measured?;
    let count = place.count("run.queued", started.size, ended.size).await?;
    let passed = place.count("schedule.passed", started.size, ended.size).await?;
    ensure!(passed == 0, "{passed} slots were left out");
    place.close().await?;
    let part = Part { after: copied.size, until: ended.size };
    Ok((Fires { count, between: started.until(ended) }, part))
}

async fn sustained(place: &Place, plan: &Plan, seconds: u64) -> anyhow::Result<(Mark, Mark)> {
    place.checked().await?;
    ensure!(now_us() < plan.first_us, "the schedules were due before all was ready");
    reaches(plan.first_us).await;
    let started = place.mark().await?;
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    Ok((started, place.mark().await?))
}
