//! S12: one run of an agent does not wait behind the thousands of another.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use api::{Action, Ask, ScheduleAdd, ScheduleAddAll, Terms, When};
use tokio::time::sleep;

use super::life::Life;
use super::plan::{self, ECHO, PROGRAM, instant};
use super::slow::SECOND_US;
use super::summary::Summary;

/// Schedules that are added at once.
const LIST: u64 = 500;
/// From now to the instant that all of them wait for.
const AHEAD_US: i64 = 600 * SECOND_US;
/// In which the one run begins: what is due is decided a thousand at a time.
const WAIT_US_MAX: i64 = 5 * SECOND_US;

pub(super) async fn live(seed: u64, many: u64) -> Result<Summary> {
    let mut life = Life::new(seed, 0).await?;
    life.hands.dawdle();
    let at_us = life.clock.now_us() / SECOND_US * SECOND_US + AHEAD_US;
    for first in (0..many).step_by(usize::try_from(LIST)?) {
        let numbers = first..many.min(first + LIST);
        let schedules = numbers.map(|number| one(&format!("{number}"), PROGRAM, 9, at_us));
        life.ask(ScheduleAddAll { schedules: schedules.collect(), dry_run: false }.into_request());
    }
    // The last of all by every measure.
    life.ask(one("the one", ECHO, 0, at_us).into_request());
    sleep(Duration::from_micros(u64::try_from(AHEAD_US + WAIT_US_MAX)?)).await;
    life.check()?;
    let (waiting, _) = life.audit.of_agent(PROGRAM);
    ensure!(many / 2 < waiting, "only {waiting} of {many} wait: there is no crowd");
    let (_, began_us) = life.audit.of_agent(ECHO);
    let began_us = began_us.context("S12: the one run did not begin beside the crowd")?;
    let waited_us = began_us - at_us;
    ensure!(waited_us <= WAIT_US_MAX, "S12: it waited {waited_us} µs for {waiting} others");
    life.audit.count(&mut life.summary);
    Ok(life.summary)
}

fn one(name: &str, agent: &str, priority: u8, at_us: i64) -> ScheduleAdd {
    let when = When { at: Some(instant(at_us)), ..When::default() };
    let action = Action {
        agent: Some(agent.to_owned()),
        prompt: Some(plan::PROMPT.to_owned()),
        ..Action::default()
    };
    let terms = Terms { priority: Some(priority), ..Terms::default() };
    ScheduleAdd { name: name.to_owned(), when, action, terms, ..ScheduleAdd::default() }
}
