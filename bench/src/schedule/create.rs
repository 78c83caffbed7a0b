//! Schedules added per second: in batches by a few callers, and one by one by many.

use std::path::Path;
use std::sync::Arc;

use agents::NoBackend;
use api::send;
use futures::future::try_join_all;

use super::conditions::{Bar, Conditions};
use super::cost::Cost;
use super::instance::{Instance, now_us};
use super::workload::Workload;
use super::{Options, block_on};

const SCHEDULES: usize = 100_000;
/// Divides the number of schedules that are added one by one.
const SINGLY_DIVISOR: usize = 10;
const CALLERS: usize = 256;
const DAY_MS: i64 = 86_400_000;
const RATE_MIN: f64 = 20_000.0;

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let dir = tempfile::tempdir_in(options.dir())?;
    let conditions = Conditions::start("create", &format!("{schedules} schedules"), dir.path())?;
    let rate = block_on(in_batches(dir.path(), schedules))?;
    Bar::AtLeast(RATE_MIN).print("added per second", rate);
    let dir = tempfile::tempdir_in(options.dir())?;
    block_on(singly(dir.path(), schedules / SINGLY_DIVISOR))?;
    conditions.end(dir.path())
}

async fn in_batches(data: &Path, schedules: usize) -> anyhow::Result<f64> {
    let instance = Instance::open(data, Arc::new(NoBackend)).await?;
    let started = instance.mark().await?;
    let rate = workload(schedules).add(&instance.handle).await?;
    let cost = started.until(instance.mark().await?);
    show("batches", rate, schedules as u64, cost);
    Ok(rate)
}

async fn singly(data: &Path, schedules: usize) -> anyhow::Result<()> {
    let instance = Instance::open(data, Arc::new(NoBackend)).await?;
    let workload = workload(schedules);
    workload.add_agents(&*instance.handle).await?;
    let started = instance.mark().await?;
    let numbers: Vec<usize> = (0..schedules).collect();
    for part in numbers.chunks(CALLERS) {
        let calls = part.iter().map(|number| send(&*instance.handle, workload.schedule(*number)));
        try_join_all(calls).await?;
    }
    let cost = started.until(instance.mark().await?);
    show("singly", schedules as f64 / cost.seconds, schedules as u64, cost);
    Ok(())
}

fn workload(schedules: usize) -> Workload {
    Workload {
        name: "schedule",
        schedules,
        agents: 1,
        first_us: now_us(),
        spread_us: DAY_MS * 1_000,
        every_ms: DAY_MS,
        terms: api::Terms::default(),
    }
}

fn show(how: &str, rate: f64, count: u64, cost: Cost) {
    let group = count / cost.transactions;
    println!("  {how:<8} {rate:.0}/s; {group} per transaction, {}", cost.each(count));
}
