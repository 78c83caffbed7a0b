//! The cost of a fire among a million mostly idle schedules, compared with a thousand schedules with the same rate of fires.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use agents::NoBackend;
use anyhow::ensure;

use super::backends::CountingBackend;
use super::conditions::{Bar, Conditions};
use super::cost::Cost;
use super::instance::Instance;
use super::large_store::{LargeStore, total};
use super::workload::Workload;
use super::{Options, block_on};

const SCHEDULES: usize = 1_000_000;
/// Schedules that fire.
const FIRING: usize = 10_000;
const FIRING_EVERY_MS: i64 = 60_000;
/// Schedules of the comparison, with the same rate of fires.
const FEW: usize = 1_000;
const FEW_EVERY_MS: i64 = 6_000;
/// After the check of the ledger: missed slots are caught up by then.
const WARM_UP: Duration = Duration::from_secs(10);
/// In the year 2090.
const IDLE_UNTIL_US: i64 = 3_786_912_000_000_000;
const YEAR_MS: i64 = 365 * 86_400_000;
const RATIO_MAX: f64 = 1.5;

pub(crate) fn run(options: &Options, large: &mut LargeStore) -> anyhow::Result<()> {
    let workloads = workloads(options.schedules(SCHEDULES));
    let dir = tempfile::tempdir_in(options.dir())?;
    let what =
        format!("{} schedules compared with {FEW}, {} s", total(&workloads), options.seconds);
    let conditions = Conditions::start("growth", &what, dir.path())?;
    let few = workload("firing", FEW, FEW_EVERY_MS);
    let few_us = block_on(async {
        let instance = Instance::open(dir.path(), Arc::new(NoBackend)).await?;
        few.add(&instance.handle).await?;
        instance.close().await?;
        cost(dir.path(), FEW, options.seconds).await
    })?;
    let many_us = block_on(async {
        let data = large.prepare(&options.dir(), &workloads).await?;
        cost(&data, total(&workloads), options.seconds).await
    })?;
    Bar::AtMost(RATIO_MAX).print("processor time per fire, many to few", many_us / few_us);
    conditions.end(dir.path())
}

/// Schedules that fire, and idle ones.
pub(crate) fn workloads(schedules: usize) -> [Workload; 2] {
    let idle = Workload {
        first_us: IDLE_UNTIL_US,
        spread_us: YEAR_MS * 1_000,
        ..workload("idle", schedules.saturating_sub(FIRING), YEAR_MS)
    };
    [workload("firing", FIRING, FIRING_EVERY_MS), idle]
}

fn workload(name: &'static str, schedules: usize, every_ms: i64) -> Workload {
    let terms = api::Terms::default();
    let spread_us = every_ms * 1_000;
    Workload { name, schedules, agents: 1, first_us: 0, spread_us, every_ms, terms }
}

/// Processor time from a fire to the end of its run, in microseconds.
async fn cost(data: &Path, schedules: usize, seconds: u64) -> anyhow::Result<f64> {
    let backend = Arc::new(CountingBackend::default());
    let instance = Instance::open(data, backend.clone()).await?;
    let mut measured = Err(anyhow::anyhow!("the engine ended early"));
    let stop = async {
        measured = measure(&instance, &backend, seconds).await;
        "measured".to_owned()
    };
    instance.engine.run(&[], vec![], stop).await?;
    let (fires, cost) = measured?;
    let rate = fires as f64 / cost.seconds;
    println!("  {schedules:<8} {fires} fires, {rate:.0}/s; {}", cost.each(fires));
    instance.close().await?;
    Ok(cost.cpu_us(fires))
}

async fn measure(
    instance: &Instance,
    backend: &CountingBackend,
    seconds: u64,
) -> anyhow::Result<(u64, Cost)> {
    instance.wait_for_startup_check().await?;
    tokio::time::sleep(WARM_UP).await;
    let (started, before) = (instance.mark().await?, backend.count());
    tokio::time::sleep(Duration::from_secs(seconds)).await;
    let fires = backend.count() - before;
    ensure!(0 < fires, "nothing fired");
    Ok((fires, started.until(instance.mark().await?)))
}
