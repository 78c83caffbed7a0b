//! What a fire costs among a million schedules of which most are idle, beside a thousand that fire as
//! often altogether.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use anyhow::ensure;

use super::conditions::{Bar, Conditions};
use super::cost::Between;
use super::doers::Counting;
use super::large::{Large, total};
use super::place::Place;
use super::plan::Plan;
use super::{Options, block_on};

const SCHEDULES: usize = 1_000_000;
/// Of those.
const FIRING: usize = 10_000;
const FIRING_EVERY_MS: i64 = 60_000;
/// So that it is as many fires in a second.
const FEW: usize = 1_000;
const FEW_EVERY_MS: i64 = 6_000;
/// After the check of the log: what was missed is caught up by then.
const WARM_UP: Duration = Duration::from_secs(10);
/// In 2090.
const IDLE_UNTIL_US: i64 = 3_786_912_000_000_000;
const YEAR_MS: i64 = 365 * 86_400_000;
const RATIO_MAX: f64 = 1.5;

pub(crate) fn run(options: &Options, large: &mut Large) -> anyhow::Result<()> {
    let plans = plans(options.schedules(SCHEDULES));
    let dir = tempfile::tempdir_in(options.dir())?;
    let what = format!("{} schedules beside {FEW}, {} s", total(&plans), options.seconds);
    let conditions = Conditions::begin("growth", &what, dir.path())?;
    let few = plan("firing", FEW, FEW_EVERY_MS);
    let few_us = block_on(async {
        let place = Place::open(dir.path()).await?;
        few.add(&place.handle).await?;
        place.close().await?;
        cost(dir.path(), FEW, options.seconds).await
    })?;
    let many_us = block_on(async {
        let data = large.with(&options.dir(), &plans).await?;
        cost(&data, total(&plans), options.seconds).await
    })?;
    Bar::AtMost(RATIO_MAX).show("processor for a fire, many to few", many_us / few_us);
    conditions.end(dir.path())
}

/// Those that fire, and those that wait for another age.
pub(crate) fn plans(schedules: usize) -> [Plan; 2] {
    let idle = Plan {
        first_us: IDLE_UNTIL_US,
        spread_us: YEAR_MS * 1_000,
        ..plan("idle", schedules.saturating_sub(FIRING), YEAR_MS)
    };
    [plan("firing", FIRING, FIRING_EVERY_MS), idle]
}

fn plan(name: &'static str, schedules: usize, every_ms: i64) -> Plan {
    let terms = api::Terms::default();
    let spread_us = every_ms * 1_000;
    Plan { name, schedules, agents: 1, first_us: 0, spread_us, every_ms, terms }
}

/// Processor time of one fire to done, in microseconds.
async fn cost(data: &Path, schedules: usize, seconds: u64) -> anyhow::Result<f64> {
    let place = Place::open(data).await?;
    let doer = Arc::new(Counting::default());
    let mut measured = Err(anyhow::anyhow!("the watch ended early"));
    let stop = async {
        measured = measure(&place, &doer, seconds).await;
        "measured".to_owned()
    };
    place.watch.keep(Arc::clone(&doer) as Arc<_>, vec![], stop).await?;
    let (fires, between) = measured?;
    let rate = fires as f64 / between.seconds;
    println!("  {schedules:<8} {fires} fires, {rate:.0}/s; {}", between.each(fires));
    place.close().await?;
    Ok(between.cpu_us(fires))
}

async fn measure(place: &Place, doer: &Counting, seconds: u64) -> anyhow::Result<(u64, Between)> {
    place.checked().await?;
    tokio::time::sleep(WARM_UP).await;
    let (started, before) = (place.mark().await?, doer.count());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let fires = doer.count() - before;
    ensure!(0 < fires, "nothing fired");
    Ok((fires, started.until(place.mark().await?)))
}
