//! How many schedules are added in a second: in lists by a few callers, and one by one by many.

use std::path::Path;

use api::ask;
use futures::future::try_join_all;

use super::conditions::{Bar, Conditions};
use super::cost::Between;
use super::place::{Place, now_us};
use super::plan::Plan;
use super::{Options, block_on};

const SCHEDULES: usize = 100_000;
/// Added one by one, as a part of those that are added in lists.
const SINGLY_DIVISOR: usize = 10;
const CALLERS: usize = 256;
const DAY_MS: i64 = 86_400_000;
const RATE_MIN: f64 = 20_000.0;

pub(crate) fn run(options: &Options) -> anyhow::Result<()> {
    let schedules = options.schedules(SCHEDULES);
    let place = tempfile::tempdir_in(options.dir())?;
    let conditions = Conditions::begin("create", &format!("{schedules} schedules"), place.path())?;
    let rate = block_on(in_lists(place.path(), schedules))?;
    Bar::AtLeast(RATE_MIN).show("added in a second", rate);
    let place = tempfile::tempdir_in(options.dir())?;
    block_on(singly(place.path(), schedules / SINGLY_DIVISOR))?;
    conditions.end(place.path())
}

async fn in_lists(data: &Path, schedules: usize) -> anyhow::Result<f64> {
    let place = Place::open(data).await?;
    let started = place.mark().await?;
    let rate = plan(schedules).add(&place.handle).await?;
    let between = started.until(place.mark().await?);
    show("lists", rate, schedules as u64, between);
    Ok(rate)
}

async fn singly(data: &Path, schedules: usize) -> anyhow::Result<()> {
    let place = Place::open(data).await?;
    let plan = plan(schedules);
    plan.add_agents(&*place.handle).await?;
    let started = place.mark().await?;
    let numbers: Vec<usize> = (0..schedules).collect();
    for part in numbers.chunks(CALLERS) {
        let calls = part.iter().map(|number| ask(&*place.handle, plan.schedule(*number)));
        try_join_all(calls).await?;
    }
    let between = started.until(place.mark().await?);
    show("singly", schedules as f64 / between.seconds, schedules as u64, between);
    Ok(())
}

fn plan(schedules: usize) -> Plan {
    Plan {
        name: "schedule",
        schedules,
        agents: 1,
        first_us: now_us(),
        spread_us: DAY_MS * 1_000,
        every_ms: DAY_MS,
        terms: api::Terms::default(),
    }
}

fn show(how: &str, rate: f64, count: u64, between: Between) {
    let group = count / between.transactions;
    println!("  {how:<8} {rate:.0}/s; {group} in a transaction, {}", between.each(count));
}
