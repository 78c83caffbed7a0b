//! The clock and the hands: slots that are due, runs that are done, and what comes in their way.
//!
//! The test moves the watch's clock. Tokio's own time is paused and passes only when nothing else can
//! happen, so that "everything has happened that can" is an instant and not a guess.

use std::collections::BTreeSet;
use std::time::Duration;

use api::{
    AgentAdd, AgentRemove, Code, Explained, LedgerRebuild, ProgressSink, Run, RunCancel, RunList,
    RunRetry, RunSettle, RunShow, ScheduleAdd, ScheduleFire, ScheduleList, ScheduleRemove,
    ScheduleResume, ScheduleShow, StatusAsk, Terms, When, Why,
};
use futures::future::{join, join_all, pending};
use ledger::verify::{Anchors, Verdict};
use runtime::verify;
use tokio::select;
use tokio::sync::oneshot;
use tokio::time::sleep;

use crate::world::{DAY_US, OCTOBER_US, World, builtin, keep};

const SECOND_US: i64 = 1_000_000;
const MINUTE_US: i64 = 60 * SECOND_US;
const HOUR_US: i64 = 60 * MINUTE_US;
/// Runs of one agent that are at work at a time.
const LANE_HANDS: usize = 16;

/// An instant so long after the world began, as people read it.
fn after(micros: i64) -> String {
    jiff::Timestamp::from_microsecond(OCTOBER_US + micros).unwrap().to_string()
}

/// A schedule of a prompt to `ada`.
fn every(span: &str, prompt: &str) -> ScheduleAdd {
    let action = api::Action {
        agent: Some("ada".into()),
        prompt: Some(prompt.to_owned()),
        ..api::Action::default()
    };
    let when = When { every: Some(span.to_owned()), ..When::default() };
    ScheduleAdd { name: prompt.to_owned(), when, action, ..ScheduleAdd::default() }
}

/// The same with a name of its own, and for another agent.
fn named(name: &str, agent: &str, schedule: ScheduleAdd) -> ScheduleAdd {
    let action = api::Action { agent: Some(agent.to_owned()), ..schedule.action };
    ScheduleAdd { name: name.to_owned(), action, ..schedule }
}

/// An agent whose work must not be done twice.
fn program(name: &str) -> AgentAdd {
    let argv = vec!["true".to_owned()];
    AgentAdd { name: name.to_owned(), backend: "command".into(), argv, ..AgentAdd::default() }
}

/// A world with `ada`, whose work may be done twice.
async fn world() -> World {
    let world = World::new().await;
    world.ask(builtin("ada")).await.unwrap();
    world
}

/// Returns when nothing more can happen before the clock moves.
async fn settle() {
    sleep(Duration::from_millis(1)).await;
}

/// The clock shows this long after the world began, and all that follows from it has happened.
async fn set(world: &World, micros: i64) {
    world.set_now(OCTOBER_US + micros);
    settle().await;
}

/// Keeps the watch while `meanwhile` goes on; then the process ends without a word, and another opens
/// what it left.
async fn crash(world: &mut World, meanwhile: impl AsyncFnOnce(&World)) {
    {
        let world = &*world;
        select! {
            kept = world.watch.keep(world.doer(), pending()) => panic!("it ended: {kept:?}"),
            () = meanwhile(world) => {}
        }
    }
    settle().await;
    world.reopen().await.unwrap();
}

async fn add(world: &World, schedule: ScheduleAdd) -> String {
    world.ask(schedule).await.unwrap().schedule.id
}

async fn fire(world: &World, schedule: &str) -> Run {
    world.ask(ScheduleFire { id: schedule.to_owned() }).await.unwrap().run
}

/// All runs, oldest first.
async fn runs(world: &World) -> Vec<Run> {
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
async fn the_run(world: &World) -> Run {
    let mut runs = runs(world).await;
    assert_eq!(runs.len(), 1, "{runs:?}");
    runs.remove(0)
}

async fn shown(world: &World, run: &Run) -> Run {
    world.ask(RunShow { id: run.id.clone() }).await.unwrap().run
}

async fn cancel(world: &World, run: &Run) -> Run {
    world.ask(RunCancel { id: run.id.clone(), note: None }).await.unwrap().run
}

async fn states(world: &World) -> Vec<String> {
    runs(world).await.into_iter().map(|run| run.state).collect()
}

async fn schedule(world: &World, id: &str) -> api::Schedule {
    world.ask(ScheduleShow { id: id.to_owned() }).await.unwrap().schedule
}

async fn why(world: &World, schedule: &str, micros: i64) -> Explained {
    world.ask(Why { id: schedule.to_owned(), at: Some(after(micros)) }).await.unwrap()
}

async fn entries(world: &World) -> u64 {
    world.ask(StatusAsk {}).await.unwrap().log.entries
}

/// How often an agent was prompted.
fn begun(world: &World) -> usize {
    world.hands.begun.lock().unwrap().len()
}

fn begun_by(world: &World, agent: &str) -> usize {
    let begun = world.hands.begun.lock().unwrap();
    begun.iter().filter(|work| work.agent.name.as_str() == agent).count()
}

/// The log verifies, and the tables are what it says.
async fn check_log(world: &World) {
    assert_eq!(world.ask(LedgerRebuild {}).await.unwrap().rebuilt.differences, 0);
    let report = verify(&*world.store, Anchors::default(), &ProgressSink::default()).await.unwrap();
    assert_eq!(report.verdict, Verdict::Ok, "{report:?}");
}

#[tokio::test(start_paused = true)]
async fn a_run_that_a_crash_cut_off_is_unknown_and_not_done_again() {
    let mut world = World::new().await;
    world.ask(program("ada")).await.unwrap();
    let id = add(&world, every("1h", "hang")).await;
    crash(&mut world, async |world| {
        set(world, HOUR_US - 1).await;
        assert_eq!(runs(world).await.len(), 0);
        set(world, HOUR_US).await;
        let run = the_run(world).await;
        let told = (run.state.as_str(), run.slot, run.queued_at);
        assert_eq!(told, ("running", Some(after(HOUR_US)), after(HOUR_US)));
        assert_eq!(begun(world), 1);
    })
    .await;
    keep(&world, async {
        set(&world, HOUR_US + 10 * MINUTE_US).await;
    })
    .await;

    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.attempt, begun(&world)), ("unknown", 1, 1));
    let told = why(&world, &id, HOUR_US).await;
    let reason = told.reason.as_deref();
    assert_eq!((told.disposition.as_str(), reason), ("unknown", Some("interrupted")));
    assert!(told.sentence.contains("nobody knows how it ended"), "{}", told.sentence);

    let settled = RunSettle { id: run.id.clone(), state: "done".into(), note: None };
    let run = world.ask(settled).await.unwrap().run;
    assert_eq!((run.state.as_str(), run.settled_by.as_deref()), ("done", Some("somebody")));
    let told = why(&world, &id, HOUR_US).await;
    assert_eq!(told.disposition, "unknown", "what became of the slot does not change");
    assert!(told.sentence.contains("as somebody says"), "{}", told.sentence);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_may_be_done_twice_is_done_again_after_a_crash() {
    let mut world = world().await;
    let id = add(&world, every("1h", "wait")).await;
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    world.hands.let_go(1);
    keep(&world, settle()).await;
    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.attempt, begun(&world)), ("done", 2, 2));
    assert_eq!(why(&world, &id, HOUR_US).await.disposition, "ran");
    check_log(&world).await;
}

/// It may be what brings the watch down.
#[tokio::test(start_paused = true)]
async fn a_run_that_ends_every_process_is_given_up() {
    let mut world = world().await;
    add(&world, every("1h", "hang")).await;
    for crashes in 1..=5 {
        crash(&mut world, async |world| set(world, HOUR_US).await).await;
        assert_eq!(begun(&world), crashes);
    }
    keep(&world, settle()).await;
    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("interrupted")));
    assert_eq!(begun(&world), 5);
}

/// The epoch tells the tries apart.
#[tokio::test(start_paused = true)]
async fn what_a_process_says_that_has_lost_its_run_does_not_count() {
    let mut world = world().await;
    add(&world, every("1h", "wait")).await;
    let (old, old_hands, doer) = (world.watch.clone(), world.hands.clone(), world.doer());
    let story = async {
        set(&world, HOUR_US).await;
        world.reopen().await.unwrap();
        world.hands = Default::default();
        keep(&world, async {
            settle().await;
            let run = the_run(&world).await;
            assert_eq!((run.state.as_str(), run.attempt, begun(&world)), ("running", 2, 1));
            // The first try comes to its end after all.
            old_hands.let_go(1);
            settle().await;
            assert_eq!(the_run(&world).await.state, "running");
            world.hands.let_go(1);
            settle().await;
            assert_eq!(the_run(&world).await.state, "done");
        })
        .await;
    };
    select! {
        kept = old.keep(doer, pending()) => panic!("it ended: {kept:?}"),
        () = story => {}
    }
    let ended = world.kinds().await.iter().filter(|kind| *kind == "run.ended").count();
    assert_eq!(ended, 1);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn every_slot_of_ten_minutes_runs_once_and_none_drifts() {
    for step in [SECOND_US, 7 * SECOND_US] {
        let world = world().await;
        add(&world, every("10s", "hello")).await;
        keep(&world, async {
            let mut now = 0;
            while now < 10 * MINUTE_US {
                now = (now + step).min(10 * MINUTE_US);
                set(&world, now).await;
            }
        })
        .await;
        let runs = runs(&world).await;
        let slots: Vec<String> = runs.iter().filter_map(|run| run.slot.clone()).collect();
        let expected: Vec<String> = (1..=60).map(|slot| after(slot * 10 * SECOND_US)).collect();
        assert_eq!(slots, expected);
        assert!(runs.iter().all(|run| run.state == "done" && run.attempt == 1));
        let is_on_time = |run: &Run| run.slot.as_ref() == Some(&run.queued_at);
        assert!(step != SECOND_US || runs.iter().all(is_on_time), "decided when it was due");
        assert_eq!(begun(&world), 60);
    }
}

/// Five minutes after the last of many slots that nobody decided.
#[tokio::test(start_paused = true)]
async fn the_policy_for_missed_slots_decides_when_the_clock_jumps() {
    let (hour, year) = (HOUR_US, 365 * DAY_US);
    let rows = [
        ("latest", None, hour, 1),
        ("latest", None, year, 1),
        ("earliest", None, hour, 1),
        ("earliest", None, year, 1),
        ("skip", None, hour, 0),
        ("skip", None, year, 0),
        // The window is three times the distance of the slots unless it is given.
        ("all:100", None, hour, 3),
        ("all:100", None, year, 3),
        ("all:100", Some("1d"), hour, 6),
        ("all:100", Some("1d"), year, 100),
    ];
    for (missed, window, jump, expected) in rows {
        let world = world().await;
        let window = window.map(str::to_owned);
        let terms = Terms { missed: Some(missed.into()), window, ..Terms::default() };
        let id = add(&world, ScheduleAdd { terms, ..every("10m", "hello") }).await;
        keep(&world, async {
            settle().await;
            set(&world, jump + 5 * MINUTE_US).await;
            assert_eq!(begun(&world), expected, "{missed} {jump}");
            assert!(entries(&world).await < 1_000, "a year of slots is a handful of entries");
            // It goes on as before.
            set(&world, jump + 10 * MINUTE_US).await;
            assert_eq!(begun(&world), expected + 1, "{missed} {jump}");
        })
        .await;
        assert_eq!(schedule(&world, &id).await.failures, 0);
        assert_ne!(why(&world, &id, 10 * MINUTE_US).await.disposition, "none");
        check_log(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn nothing_fires_twice_when_the_clock_goes_back() {
    let world = world().await;
    add(&world, every("10m", "hello")).await;
    keep(&world, async {
        for slot in 1..=12 {
            set(&world, slot * 10 * MINUTE_US).await;
        }
        assert_eq!(begun(&world), 12);
        for minute in 60..=129 {
            set(&world, minute * MINUTE_US).await;
        }
        assert_eq!(begun(&world), 12);
        set(&world, 130 * MINUTE_US).await;
        assert_eq!(begun(&world), 13);
    })
    .await;
    let slots: BTreeSet<_> = runs(&world).await.into_iter().map(|run| run.slot).collect();
    assert_eq!(slots.len(), 13);
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_hand_is_done_also_when_the_clock_goes_back() {
    let world = world().await;
    keep(&world, async {
        set(&world, 2 * HOUR_US).await;
        for number in 0..=LANE_HANDS {
            let id = add(&world, named(&format!("{number}"), "ada", every("1d", "wait"))).await;
            fire(&world, &id).await;
        }
        settle().await;
        assert_eq!(begun(&world), LANE_HANDS);
        set(&world, HOUR_US).await;
        world.hands.let_go(LANE_HANDS + 1);
        settle().await;
        set(&world, 2 * HOUR_US).await;
        assert_eq!(begun(&world), LANE_HANDS + 1);
        assert!(states(&world).await.iter().all(|state| state == "done"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_fails_is_tried_as_often_as_it_may_with_the_delays_between() {
    let world = world().await;
    let id = add(&world, every("1h", "fail")).await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        while let Some(retry_at) = the_run(&world).await.retry_at {
            let run = the_run(&world).await;
            let tries = begun(&world);
            assert_eq!((run.state.as_str(), run.attempt as usize), ("queued", tries));
            let at: jiff::Timestamp = retry_at.parse().unwrap();
            let started: jiff::Timestamp = run.started_at.unwrap().parse().unwrap();
            let delay_us = at.as_microsecond() - started.as_microsecond();
            assert!(delay_us <= SECOND_US << (tries - 1), "{delay_us} after {tries} tries");
            set(&world, at.as_microsecond() - OCTOBER_US - 1).await;
            assert_eq!(begun(&world), tries, "not before the delay is over");
            set(&world, at.as_microsecond() - OCTOBER_US).await;
            assert!(tries < begun(&world), "then at once");
        }
        set(&world, HOUR_US + 30 * MINUTE_US).await;
    })
    .await;
    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.attempt, begun(&world)), ("failed", 5, 5));
    assert_eq!(run.reason.as_deref(), Some("script"));
    assert_eq!(why(&world, &id, HOUR_US).await.disposition, "failed");
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn failed_runs_in_a_row_pause_a_schedule_until_it_is_resumed() {
    let world = world().await;
    let id = add(&world, every("1m", "fail for good")).await;
    keep(&world, async {
        for minute in 1..=7 {
            set(&world, minute * MINUTE_US).await;
        }
        assert_eq!(states(&world).await, ["failed"; 5]);
        assert_eq!(begun(&world), 5, "each was tried once");
        let paused = schedule(&world, &id).await.paused.unwrap();
        assert_eq!(paused.by, "midwatch");
        assert_eq!(paused.note.as_deref(), Some("the last 5 runs failed"));
        let resumed = world.ask(ScheduleResume { id: id.clone() }).await.unwrap();
        assert_eq!((resumed.changed, resumed.skipped), (true, 2));
        settle().await;
        assert_eq!(begun(&world), 5);
        set(&world, 8 * MINUTE_US).await;
        assert_eq!(begun(&world), 6);
        let after = schedule(&world, &id).await;
        assert_eq!((after.status.as_str(), after.failures), ("active", 1));
    })
    .await;
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_that_is_cancelled_never_begins() {
    let world = world().await;
    let id = add(&world, every("1h", "fail")).await;
    keep(&world, async {
        let run = fire(&world, &id).await;
        settle().await;
        assert_eq!(shown(&world, &run).await.state, "queued");
        let tries = begun(&world);
        assert_eq!(cancel(&world, &run).await.state, "cancelled");
        set(&world, 30 * MINUTE_US).await;
        assert_eq!(begun(&world), tries);
        let run = shown(&world, &run).await;
        assert_eq!((run.state.as_str(), run.reason.as_deref()), ("cancelled", Some("cancelled")));
    })
    .await;
    assert_eq!(schedule(&world, &id).await.live, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_running_run_that_is_cancelled_is_stopped() {
    let world = world().await;
    let id = add(&world, every("1h", "hang")).await;
    keep(&world, async {
        let run = fire(&world, &id).await;
        settle().await;
        assert_eq!(cancel(&world, &run).await.state, "running");
        settle().await;
        let stopped = shown(&world, &run).await;
        assert_eq!(stopped.state, "cancelled");
        assert_eq!(stopped.message.as_deref(), Some("somebody cancelled it"));
        set(&world, 30 * MINUTE_US).await;
        assert_eq!(begun(&world), 1);
        assert!(!world.ask(RunCancel { id: run.id, note: None }).await.unwrap().changed);
    })
    .await;
}

/// What waits for a hand twice, because somebody changed their mind, is at work once.
#[tokio::test(start_paused = true)]
async fn a_run_that_was_cancelled_and_asked_for_again_can_be_stopped() {
    let world = world().await;
    keep(&world, async {
        for number in 0..LANE_HANDS {
            let id = add(&world, named(&format!("{number}"), "ada", every("1d", "wait"))).await;
            fire(&world, &id).await;
        }
        settle().await;
        let id = add(&world, every("1d", "hang")).await;
        let run = fire(&world, &id).await;
        set(&world, SECOND_US).await;
        cancel(&world, &run).await;
        world.ask(RunRetry { id: run.id.clone() }).await.unwrap();
        settle().await;
        world.hands.let_go(LANE_HANDS);
        settle().await;
        assert_eq!(shown(&world, &run).await.state, "running");
        cancel(&world, &run).await;
        settle().await;
        assert_eq!(shown(&world, &run).await.state, "cancelled");
        assert_eq!(begun(&world), LANE_HANDS + 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_is_told_to_stop_ends_its_runs_and_begins_none() {
    let mut world = world().await;
    world.ask(program("bob")).await.unwrap();
    let twice = add(&world, every("1h", "hang")).await;
    let once = add(&world, named("once", "bob", every("1h", "hang"))).await;
    let quick = add(&world, named("quick", "ada", every("1s", "hello"))).await;
    let (tell, told) = oneshot::channel::<()>();
    let stop = async {
        let _ = told.await;
        "told to".to_owned()
    };
    let story = async {
        let runs = (fire(&world, &twice).await, fire(&world, &once).await);
        settle().await;
        assert_eq!(begun(&world), 2);
        drop(tell);
        settle().await;
        fire(&world, &quick).await;
        set(&world, MINUTE_US).await;
        assert_eq!(begun(&world), 2, "nothing is begun any more");
        assert_eq!(shown(&world, &runs.0).await.state, "running", "it may still end by itself");
        runs
    };
    let (kept, (twice, once)) = join(world.watch.keep(world.doer(), stop), story).await;
    kept.unwrap();
    assert_eq!(shown(&world, &twice).await.state, "queued");
    assert_eq!(shown(&world, &once).await.state, "unknown");
    assert_eq!((begun(&world), runs(&world).await.len()), (2, 3), "no slot was decided");
    assert_eq!(world.kinds().await.last().unwrap(), "watch.stopped");
    world.reopen().await.unwrap();
    keep(&world, async {
        settle().await;
        assert_eq!(shown(&world, &twice).await.state, "running");
    })
    .await;
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_ends_when_its_agent_or_its_schedule_is_gone() {
    let world = world().await;
    world.ask(builtin("bob")).await.unwrap();
    let (of_ada, of_bob) = (
        add(&world, every("1h", "hello")).await,
        add(&world, named("bob", "bob", every("1h", "hello"))).await,
    );
    // Nobody keeps the watch, so they stay queued.
    let runs = (fire(&world, &of_ada).await, fire(&world, &of_bob).await);
    world.ask(ScheduleRemove { id: of_ada }).await.unwrap();
    world.ask(AgentRemove { name: "bob".into() }).await.unwrap();
    keep(&world, settle()).await;
    let told = async |run: &Run| {
        let run = shown(&world, run).await;
        (run.state, run.reason.unwrap())
    };
    assert_eq!(told(&runs.0).await, ("cancelled".to_owned(), "schedule_removed".to_owned()));
    assert_eq!(told(&runs.1).await, ("failed".to_owned(), "agent_missing".to_owned()));
    assert_eq!(begun(&world), 0);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_schedule_of_a_tool_fails_because_there_are_none() {
    let world = world().await;
    let action = api::Action { tool: Some("files.read".into()), ..api::Action::default() };
    let id = add(&world, ScheduleAdd { action, ..every("1h", "tool") }).await;
    keep(&world, set(&world, HOUR_US)).await;
    let run = the_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("tool_missing")));
    assert_eq!(why(&world, &id, HOUR_US).await.disposition, "failed");
    assert_eq!(begun(&world), 0);
}

#[tokio::test(start_paused = true)]
async fn one_key_fires_once_and_nothing_fires_beside_a_live_run() {
    let world = world().await;
    let id = add(&world, every("1h", "wait")).await;
    let asked = || ScheduleFire { id: id.clone() };
    keep(&world, async {
        let first = world.ask_with_key("k1", asked()).await.unwrap();
        settle().await;
        assert_eq!(world.ask_with_key("k1", asked()).await.unwrap(), first);
        assert_eq!(world.ask(asked()).await.unwrap_err().code, Code::NotNow);
        assert_eq!(world.ask_with_key("k2", asked()).await.unwrap_err().code, Code::NotNow);
        world.hands.let_go(1);
        settle().await;
        assert_eq!(the_run(&world).await.state, "done");
        assert_eq!(world.ask_with_key("k1", asked()).await.unwrap(), first);
        settle().await;
        assert_eq!((runs(&world).await.len(), begun(&world)), (1, 1));
        // What was refused did not use up its key.
        world.ask_with_key("k2", asked()).await.unwrap();
        world.hands.let_go(1);
        settle().await;
        assert_eq!(states(&world).await, ["done", "done"]);
    })
    .await;
    assert_eq!(schedule(&world, &id).await.next_run_at, Some(after(HOUR_US)), "no slot was used");
}

#[tokio::test(start_paused = true)]
async fn many_schedules_of_one_instant_fire_once_each_and_a_long_lane_holds_up_nobody() {
    const MANY: usize = 2_000;
    let world = world().await;
    world.ask(builtin("bob")).await.unwrap();
    for number in 1..MANY {
        add(&world, named(&format!("{number}"), "ada", every("1h", "wait"))).await;
    }
    add(&world, named("last", "bob", every("1h", "hello"))).await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!(runs(&world).await.len(), MANY);
        assert_eq!((begun_by(&world, "ada"), begun_by(&world, "bob")), (LANE_HANDS, 1));
        world.hands.let_go(10);
        settle().await;
        assert_eq!(begun_by(&world, "ada"), LANE_HANDS + 10);
        world.hands.let_go(MANY);
        settle().await;
    })
    .await;
    let runs = runs(&world).await;
    let fired: BTreeSet<_> = runs.iter().map(|run| run.schedule_id.clone()).collect();
    assert_eq!((runs.len(), fired.len(), begun(&world)), (MANY, MANY, MANY));
    let is_on_time = |run: &Run| run.state == "done" && run.queued_at == after(HOUR_US);
    assert!(runs.iter().all(is_on_time));
}

/// Neither by a watch nor by somebody who only looks at what is overdue.
#[tokio::test(start_paused = true)]
async fn reading_decides_nothing() {
    let world = world().await;
    let id = add(&world, every("1h", "hello")).await;
    let look = async || {
        let before = entries(&world).await;
        for _ in 0..20 {
            world.ask(ScheduleList::default()).await.unwrap();
            schedule(&world, &id).await;
            world.ask(Why { id: id.clone(), at: None }).await.unwrap();
            let shown = runs(&world).await;
            join_all(shown.iter().map(|run| self::shown(&world, run))).await;
        }
        settle().await;
        assert_eq!(entries(&world).await, before);
    };
    set(&world, HOUR_US).await;
    look().await;
    assert_eq!(runs(&world).await.len(), 0, "nobody keeps the watch");
    keep(&world, async {
        settle().await;
        assert_eq!(states(&world).await, ["done"]);
        look().await;
        set(&world, HOUR_US + 59 * MINUTE_US).await;
        look().await;
    })
    .await;
}
