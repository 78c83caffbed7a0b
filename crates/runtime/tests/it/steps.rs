//! The steps of which stories about schedules and runs are made.
//!
//! The test moves the watch's clock. Tokio's own time is paused and passes only when nothing else can
//! happen, so that "everything has happened that can" is an instant and not a guess.

use std::time::Duration;

use api::{
    AgentAdd, Explained, LedgerRebuild, ProgressSink, Run, RunCancel, RunList, RunShow,
    ScheduleAdd, ScheduleFire, ScheduleShow, StatusAsk, When, Why,
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
/// Runs of one agent that are at work at a time.
pub(crate) const LANE_HANDS: usize = 16;

/// An instant so long after the world began, as people read it.
pub(crate) fn after(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(OCTOBER_US + micros).unwrap().to_string()
}

/// A schedule of a prompt to `ada`.
pub(crate) fn every(span: &str, prompt: &str) -> ScheduleAdd {
    let action = api::Action {
        agent: Some("ada".into()),
        prompt: Some(prompt.to_owned()),
        ..api::Action::default()
    };
    let when = When { every: Some(span.to_owned()), ..When::default() };
    ScheduleAdd { name: prompt.to_owned(), when, action, ..ScheduleAdd::default() }
}

/// The same with a name of its own, and for another agent.
pub(crate) fn named(name: &str, agent: &str, schedule: ScheduleAdd) -> ScheduleAdd {
    let action = api::Action { agent: Some(agent.to_owned()), ..schedule.action };
    ScheduleAdd { name: name.to_owned(), action, ..schedule }
}

/// An agent whose work must not be done twice.
pub(crate) fn program(name: &str) -> AgentAdd {
    let argv = vec!["true".to_owned()];
    AgentAdd { name: name.to_owned(), backend: "command".into(), argv, ..AgentAdd::default() }
}

/// A world with `ada`, whose work may be done twice.
pub(crate) async fn world() -> World {
    let world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    world.ask(program("smith")).await.unwrap();
    world
}

/// Returns when nothing more can happen before the clock moves.
pub(crate) async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// The clock shows this long after the world began, and all that follows from it has happened.
pub(crate) async fn set(world: &World, micros: i64) {
    world.set_now(OCTOBER_US + micros);
    settle().await;
}

/// Keeps the watch while `meanwhile` goes on; then the process ends without a word, and another opens
/// what it left.
pub(crate) async fn crash(world: &mut World, meanwhile: impl AsyncFnOnce(&World)) {
    {
        let world = &*world;
        select! {
            kept = world.watch.keep(world.doer(), world.messengers(), pending()) => panic!("it ended: {kept:?}"),
            () = meanwhile(world) => {}
        }
    }
    settle().await;
    world.reopen().await.unwrap();
}

pub(crate) async fn add(world: &World, schedule: ScheduleAdd) -> String {
    world.ask(schedule).await.unwrap().schedule.id
}

pub(crate) async fn fire(world: &World, schedule: &str) -> Run {
    world.ask(ScheduleFire { id: schedule.to_owned() }).await.unwrap().run
}

/// All runs, oldest first.
pub(crate) async fn runs(world: &World) -> Vec<Run> {
    let (mut runs, mut cursor) = (Vec::new(), None);
    loop {
        let asked = RunList { limit: Some(1_000), cursor, ..RunList::default() };
        let page = world.ask(asked).await.unwrap();
        runs.extend(page.runs);
        cursor = page.cursor;
        if cursor.is_none() {
            break;
        }
    }
    runs.reverse();
    runs
}

/// The only run that there is.
pub(crate) async fn the_run(world: &World) -> Run {
    let mut runs = runs(world).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

pub(crate) async fn shown(world: &World, run: &Run) -> Run {
    world.ask(RunShow { id: run.id.clone() }).await.unwrap().run
}

pub(crate) async fn cancel(world: &World, run: &Run) -> Run {
    world.ask(RunCancel { id: run.id.clone(), note: None }).await.unwrap().run
}

pub(crate) async fn states(world: &World) -> Vec<String> {
    runs(world).await.into_iter().map(|run| run.state).collect()
}

pub(crate) async fn schedule(world: &World, id: &str) -> api::Schedule {
    world.ask(ScheduleShow { id: id.to_owned() }).await.unwrap().schedule
}

pub(crate) async fn why(world: &World, schedule: &str, micros: i64) -> Explained {
    world.ask(Why { id: schedule.to_owned(), at: Some(after(micros)) }).await.unwrap()
}

pub(crate) async fn entries(world: &World) -> u64 {
    world.ask(StatusAsk {}).await.unwrap().log.entries
}

/// How often an agent was prompted.
pub(crate) fn begun(world: &World) -> usize {
    world.hands.begun.lock().unwrap().len()
}

pub(crate) fn begun_by(world: &World, agent: &str) -> usize {
    let begun = world.hands.begun.lock().unwrap();
    begun.iter().filter(|work| work.agent.name.as_str() == agent).count()
}

/// The log verifies, and the tables are what it says.
pub(crate) async fn check_log(world: &World) {
    assert_eq!(
        world.ask_as(kernel::Role::Maintainer, LedgerRebuild {}).await.unwrap().rebuilt.differences,
        0
    );
    let report = verify(&*world.store, Anchors::default(), &ProgressSink::default()).await.unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}
