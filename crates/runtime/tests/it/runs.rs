//! Runs, from the queue to their end: crashes, retries, cancels, and the end of the watch.

use api::{
    AgentRemove, Code, LeaseRenew, Run, RunCancel, RunEvents, RunRetry, RunSeen, RunSettle,
    RunWatch, ScheduleRemove,
};
use futures::future::{join, pending};
use tokio::select;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::steps::*;
use crate::world::{OCTOBER_US, World, builtin, keep};

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

    let retry = world.ask(RunRetry { id: run.id.clone() }).await.unwrap_err();
    assert!(retry.hint.unwrap().contains("midwatch run settle"), "nobody knows how it ended");
    let note = Some("the mail is there".to_owned());
    let settled = RunSettle { id: run.id.clone(), state: "done".into(), note: note.clone() };
    let run = world.ask(settled).await.unwrap().run;
    assert_eq!((run.state.as_str(), run.settled_by.as_deref()), ("done", Some("somebody")));
    assert_eq!((run.settled_note, run.settled_at.is_some()), (note, true));
    assert_eq!((run.reason, run.message), (None, None), "it was not known, and is");
    let cancel = world.ask(RunCancel { id: run.id, note: None }).await.unwrap_err();
    assert_eq!(cancel.code, Code::NotNow, "there is nothing to cancel");
    assert!(cancel.message.ends_with("only a run that has not ended can be cancelled"));
    let told = why(&world, &id, HOUR_US).await;
    assert_eq!(told.disposition, "unknown", "what became of the slot does not change");
    assert!(told.sentence.contains("as somebody says"), "{}", told.sentence);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn what_the_log_says_of_a_run_is_found_however_long_ago_it_was() {
    let world = world().await;
    add(&world, every("1h", "wait")).await;
    world.hands.let_go(1);
    keep(&world, set(&world, HOUR_US)).await;
    let run = the_run(&world).await;
    set(&world, 2 * HOUR_US).await;
    for _ in 0..1_001 {
        world.ask(LeaseRenew::default()).await.unwrap();
    }
    let told = world.ask(RunEvents { id: run.id.clone() }).await.unwrap();
    let kinds: Vec<&str> = told.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["run.queued", "run.started", "run.ended"]);
    assert_eq!((told.run_id, told.more_after), (run.id, None));
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

/// Has the newest try say something, which is heard as a whole by whoever has seen so much.
async fn heard(world: &World, seen: Option<RunSeen>, words: &str) -> RunSeen {
    world.hands.begun.lock().unwrap().last().unwrap().said.say(words.as_bytes());
    let id = the_run(world).await.id;
    let watched = world.ask(RunWatch { id, seen, wait_ms: 20_000 }).await.unwrap();
    assert_eq!(watched.said, words);
    watched.seen
}

#[tokio::test(start_paused = true)]
async fn what_another_try_says_is_heard_from_its_beginning() {
    let mut world = world().await;
    add(&world, every("1h", "wait")).await;
    let mut seen = None;
    crash(&mut world, async |world| {
        set(world, HOUR_US).await;
        seen = Some(heard(world, None, "many words").await);
    })
    .await;
    keep(&world, async {
        settle().await;
        assert_eq!(begun(&world), 2);
        heard(&world, seen, "few").await;
        world.hands.let_go(1);
    })
    .await;
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
        kept = old.keep(doer, vec![], pending()) => panic!("it ended: {kept:?}"),
        () = story => {}
    }
    let ended = world.kinds().await.iter().filter(|kind| *kind == "run.ended").count();
    assert_eq!(ended, 1);
    check_log(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_run_that_waits_for_a_hand_is_done_also_when_the_clock_goes_back() {
    let world = world().await;
    keep(&world, async {
        set(&world, 2 * HOUR_US).await;
        for number in 0..=LANE_HANDS {
            let id = add(&world, named(&format!("{number}"), "smith", every("1d", "wait"))).await;
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
            let id = add(&world, named(&format!("{number}"), "smith", every("1d", "wait"))).await;
            fire(&world, &id).await;
        }
        settle().await;
        let id = add(&world, named("hang", "smith", every("1d", "hang"))).await;
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
    let (kept, (twice, once)) = join(world.watch.keep(world.doer(), vec![], stop), story).await;
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

/// Whatever begins now is only cut off a moment later.
#[tokio::test(start_paused = true)]
async fn runs_that_were_taken_do_not_begin_after_the_watch_was_told_to_stop() {
    let world = World::new().await;
    for agent in 0..16 {
        let agent = format!("agent-{agent}");
        world.ask(program(&agent)).await.unwrap();
        for number in 0..LANE_HANDS {
            let name = format!("{agent}-{number}");
            add(&world, named(&name, &agent, every("1h", "hang"))).await;
        }
    }
    keep(&world, async {
        settle().await;
        world.set_now(OCTOBER_US + HOUR_US);
        for _ in 0..1_000 {
            if 0 < begun(&world) {
                break;
            }
            yield_now().await;
        }
        assert!((1..128).contains(&begun(&world)), "the others are taken, and have not begun");
    })
    .await;
    let states = states(&world).await;
    let of = |state: &str| states.iter().filter(|it| *it == state).count();
    assert_eq!(of("unknown"), begun(&world));
    assert_eq!(of("unknown") + of("queued"), 16 * LANE_HANDS);
    assert!(0 < of("queued"), "{} have begun", begun(&world));
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
