//! Steps of tests about schedules and runs.
//!
//! The test moves the clock of the engine. Tokio's time is paused and passes only when every task waits, so that
//! [`wait_until_idle`] is exact.

use std::time::Duration;

use api::{
    AgentAdd, AgentEdit, AgentSettings, Explained, LedgerRebuild, ProgressSink, Run, RunCancel,
    RunList, RunShow, ScheduleAdd, ScheduleFire, ScheduleShow, StatusShow, When, Why,
};
use futures::future::pending;
use ledger::verify::{Anchors, Verdict};
use runtime::verify;
use tokio::select;
use tokio::time::sleep;

use crate::world::{OCTOBER_US, World, builtin};

pub(crate) const SECOND_US: i64 = 1_000_000;
pub(crate) const MINUTE_US: i64 = 60 * SECOND_US;
pub(crate) const HOUR_US: i64 = 60 * MINUTE_US;
/// Concurrent runs of one agent.
pub(crate) const CONCURRENCY_MAX: usize = 16;

/// The instant this long after the start of the world, as text.
pub(crate) fn after(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(OCTOBER_US + micros).unwrap().to_string()
}

/// A schedule that prompts `ada`.
pub(crate) fn every(span: &str, prompt: &str) -> ScheduleAdd {
    let action = api::Action {
        agent: Some("ada".into()),
        prompt: Some(prompt.to_owned()),
        ..api::Action::default()
    };
    let when = When { every: Some(span.to_owned()), ..When::default() };
    ScheduleAdd { name: prompt.to_owned(), when, action, ..ScheduleAdd::default() }
}

/// The same schedule with another name and agent.
pub(crate) fn named(name: &str, agent: &str, schedule: ScheduleAdd) -> ScheduleAdd {
    let action = api::Action { agent: Some(agent.to_owned()), ..schedule.action };
    ScheduleAdd { name: name.to_owned(), action, ..schedule }
}

/// An agent whose runs must not be repeated.
pub(crate) fn program(name: &str) -> AgentAdd {
    let settings = AgentSettings { argv: vec!["true".to_owned()], ..AgentSettings::default() };
    AgentAdd { name: name.to_owned(), backend: "command".into(), settings, look: false }
}

pub(crate) fn of_tier(tier: u8, agent: AgentAdd) -> AgentAdd {
    AgentAdd { settings: AgentSettings { tier: Some(tier), ..agent.settings }, ..agent }
}

/// Changes the settings of the agent.
pub(crate) fn edit_settings(name: &str, settings: AgentSettings) -> AgentEdit {
    AgentEdit { name: name.to_owned(), settings, ..AgentEdit::default() }
}

/// A world with `ada`, whose runs may be repeated, and `smith`, whose runs must not.
pub(crate) async fn world() -> World {
    let world = World::new().await;
    world.send(builtin("ada")).await.unwrap();
    world.send(program("smith")).await.unwrap();
    world
}

/// Returns when nothing more happens until the clock moves.
pub(crate) async fn wait_until_idle() {
    sleep(Duration::from_millis(1)).await;
}

/// Moves the clock to this long after the start of the world, and waits until all consequences have happened.
pub(crate) async fn set(world: &World, micros: i64) {
    world.set_now(OCTOBER_US + micros);
    wait_until_idle().await;
}

/// Runs the engine until `meanwhile` ends, then crashes it and reopens the data.
pub(crate) async fn crash(world: &mut World, meanwhile: impl AsyncFnOnce(&World)) {
    {
        let world = &*world;
        select! {
            ended = world.engine.run(&[], world.channels(), pending()) => panic!("it ended: {ended:?}"),
            () = meanwhile(world) => {}
        }
    }
    wait_until_idle().await;
    world.reopen().await.unwrap();
}

pub(crate) async fn add(world: &World, schedule: ScheduleAdd) -> String {
    world.send(schedule).await.unwrap().schedule.id
}

pub(crate) async fn fire(world: &World, schedule: &str) -> Run {
    world.send(ScheduleFire { id: schedule.to_owned() }).await.unwrap().run
}

/// All runs, oldest first.
pub(crate) async fn runs(world: &World) -> Vec<Run> {
    let (mut runs, mut cursor) = (Vec::new(), None);
    loop {
        let request = RunList { limit: Some(1_000), cursor, ..RunList::default() };
        let page = world.send(request).await.unwrap();
        runs.extend(page.runs);
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    runs.reverse();
    runs
}

/// The only run.
pub(crate) async fn only_run(world: &World) -> Run {
    let mut runs = runs(world).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

pub(crate) async fn shown(world: &World, run: &Run) -> Run {
    world.send(RunShow { id: run.id.clone() }).await.unwrap().run
}

pub(crate) async fn cancel(world: &World, run: &Run) -> Run {
    world.send(RunCancel { id: run.id.clone(), note: None }).await.unwrap().run.unwrap()
}

pub(crate) async fn states(world: &World) -> Vec<&'static str> {
    runs(world).await.into_iter().map(|run| run.state.as_str()).collect()
}

pub(crate) async fn schedule(world: &World, id: &str) -> api::Schedule {
    world.send(ScheduleShow { id: id.to_owned() }).await.unwrap().schedule
}

pub(crate) async fn why(world: &World, schedule: &str, micros: i64) -> Explained {
    world.send(Why { id: schedule.to_owned(), at: Some(after(micros)) }).await.unwrap()
}

pub(crate) async fn entries(world: &World) -> u64 {
    world.send(StatusShow {}).await.unwrap().ledger.entries
}

/// The number of attempts that started.
pub(crate) fn started(world: &World) -> usize {
    world.backend.started.lock().unwrap().len()
}

pub(crate) fn started_by(world: &World, agent: &str) -> usize {
    let started = world.backend.started.lock().unwrap();
    started.iter().filter(|attempt| attempt.agent.name.as_str() == agent).count()
}

/// Checks that the ledger verifies, and that the tables match it.
pub(crate) async fn verify_ledger(world: &World) {
    assert_eq!(
        world
            .send_as(kernel::Role::Maintainer, LedgerRebuild {})
            .await
            .unwrap()
            .rebuilt
            .differences,
        0
    );
    let report = verify(&*world.store, Anchors::default(), &ProgressSink::default()).await.unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}
