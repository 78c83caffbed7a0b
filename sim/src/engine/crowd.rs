//! S12: a run of one agent does not wait behind thousands of runs of another agent.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{Action, ApiRequest, ScheduleAdd, ScheduleAddAll, Terms, When};
use tokio::time::sleep;

use super::generate::{self, ECHO, PROGRAM, instant};
use super::naive_calendar::SECOND_US;
use super::simulation::Simulation;
use super::summary::Summary;

/// Schedules that one request adds.
const BATCH: u64 = 500;
/// The time until all of them are due.
const AHEAD_US: i64 = 600 * SECOND_US;
/// The time within which the one run must start: due schedules are decided a thousand at a time.
const WAIT_US_MAX: i64 = 5 * SECOND_US;

pub(super) async fn simulate(seed: u64, many: u64) -> Result<Summary> {
    let mut simulation = Simulation::new(seed, 0).await?;
    simulation.backend.hang();
    let at_us = simulation.clock.now_us() / SECOND_US * SECOND_US + AHEAD_US;
    for first in (0..many).step_by(usize::try_from(BATCH)?) {
        let numbers = first..many.min(first + BATCH);
        let schedules = numbers.map(|number| one(&format!("{number}"), PROGRAM, 9, at_us));
        simulation
            .send(ScheduleAddAll { schedules: schedules.collect(), dry_run: false }.into_request());
    }
    // The lowest priority, and added last.
    simulation.send(one("the one", ECHO, 0, at_us).into_request());
    sleep(Duration::from_micros(u64::try_from(AHEAD_US + WAIT_US_MAX)?)).await;
    simulation.check()?;
    let (waiting, _) = simulation.audit.queue_of_agent(PROGRAM);
    ensure!(many / 2 < waiting, "only {waiting} of {many} runs wait: there is no crowd");
    let (_, started_us) = simulation.audit.queue_of_agent(ECHO);
    let started_us = started_us.context("S12: the one run did not start beside the crowd")?;
    let waited_us = started_us - at_us;
    ensure!(
        waited_us <= WAIT_US_MAX,
        "S12: the one run waited {waited_us} µs while {waiting} others were queued"
    );
    simulation.audit.count_into(&mut simulation.summary);
    Ok(simulation.summary)
}

fn one(name: &str, agent: &str, priority: u8, at_us: i64) -> ScheduleAdd {
    let when = When { at: Some(instant(at_us)), ..When::default() };
    let action = Action {
        agent: Some(agent.to_owned()),
        prompt: Some(generate::PROMPT.to_owned()),
        ..Action::default()
    };
    let terms = Terms { priority: Some(priority), ..Terms::default() };
    ScheduleAdd { name: name.to_owned(), when, action, terms, ..ScheduleAdd::default() }
}
