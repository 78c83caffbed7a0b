//! Runs, from the queue to their end: crashes, retries, cancels, and the stop of the engine.

use api::{
    AgentRemove, Code, LeaseRenew, Run, RunCancel, RunEvents, RunRetry, RunSettle, RunState,
    RunWatch, ScheduleRemove, SettledState, WatchCursor,
};
use futures::future::{join, pending};
use tokio::select;
use tokio::sync::oneshot;
use tokio::task::yield_now;

use crate::steps::*;
use crate::world::{OCTOBER_US, World, builtin, run_engine};

#[tokio::test(start_paused = true)]
async fn an_interrupted_run_is_unknown_and_not_repeated() {
    let mut world = World::new().await;
    world.send(program("ada")).await.unwrap();
    let id = add(&world, every("1h", "hang")).await;
    crash(&mut world, async |world| {
        set(world, HOUR_US - 1).await;
        assert_eq!(runs(world).await.len(), 0);
        set(world, HOUR_US).await;
        let run = only_run(world).await;
        let shown = (run.state.as_str(), run.slot, run.queued_at);
        assert_eq!(shown, ("running", Some(after(HOUR_US)), after(HOUR_US)));
        assert_eq!(started(world), 1);
    })
    .await;
    run_engine(&world, async {
        set(&world, HOUR_US + 10 * MINUTE_US).await;
    })
    .await;

    let run = only_run(&world).await;
    assert_eq!((run.state.as_str(), run.attempt, started(&world)), ("unknown", 1, 1));
    let explained = why(&world, &id, HOUR_US).await;
    let reason = explained.reason.as_deref();
    assert_eq!((explained.disposition.as_str(), reason), ("unknown", Some("interrupted")));
    assert!(explained.sentence.contains("its outcome is unknown"), "{}", explained.sentence);

    let retry = world.send(RunRetry { id: run.id.clone() }).await.unwrap_err();
    assert!(retry.hint.unwrap().contains("midwatch run settle"), "its outcome is unknown");
    let note = Some("the mail is there".to_owned());
    let settled = RunSettle { id: run.id.clone(), state: SettledState::Done, note: note.clone() };
    let run = world.send(settled).await.unwrap().run;
    assert_eq!((run.state.as_str(), run.settled_by.as_deref()), ("done", Some("olga")));
    assert_eq!((run.settled_note, run.settled_at.is_some()), (note, true));
    assert_eq!((run.reason, run.message), (None, None), "the outcome is known now");
    let cancel = world.send(RunCancel { id: run.id, note: None }).await.unwrap_err();
    assert_eq!(cancel.code, Code::NotNow, "there is nothing to cancel");
    assert!(cancel.message.ends_with("only a run that has not ended can be cancelled"));
    let explained = why(&world, &id, HOUR_US).await;
    assert_eq!(
        explained.disposition.as_str(),
        "unknown",
        "the disposition of the slot does not change"
    );
    assert!(explained.sentence.contains("settled by olga"), "{}", explained.sentence);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn the_events_of_an_old_run_are_found() {
    let world = world().await;
    add(&world, every("1h", "wait")).await;
    world.backend.release(1);
    run_engine(&world, set(&world, HOUR_US)).await;
    let run = only_run(&world).await;
    set(&world, 2 * HOUR_US).await;
    for _ in 0..1_001 {
        world.send(LeaseRenew::default()).await.unwrap();
    }
    let found = world.send(RunEvents { id: run.id.clone() }).await.unwrap();
    let kinds: Vec<&str> = found.events.iter().map(|event| event.kind.as_str()).collect();
    assert_eq!(kinds, ["run.queued", "run.started", "run.ended"]);
    assert_eq!((found.run_id, found.more_after), (run.id, None));
}

#[tokio::test(start_paused = true)]
async fn a_repeatable_run_is_repeated_after_a_crash() {
    let mut world = world().await;
    let id = add(&world, every("1h", "wait")).await;
    crash(&mut world, async |world| set(world, HOUR_US).await).await;
    world.backend.release(1);
    run_engine(&world, wait_until_idle()).await;
    let run = only_run(&world).await;
    assert_eq!((run.state.as_str(), run.attempt, started(&world)), ("done", 2, 2));
    assert_eq!(why(&world, &id, HOUR_US).await.disposition.as_str(), "ran");
    verify_ledger(&world).await;
}

/// Lets the newest attempt write `words`, checks that a reader at `seen` gets exactly them, and returns the new cursor.
async fn read_output_after(world: &World, seen: Option<WatchCursor>, words: &str) -> WatchCursor {
    world.backend.started.lock().unwrap().last().unwrap().live_output.push(words.as_bytes());
    let id = only_run(world).await.id;
    let watched = world.send(RunWatch { id, seen, wait_ms: 20_000 }).await.unwrap();
    assert_eq!(watched.output, words);
    watched.seen
}

#[tokio::test(start_paused = true)]
async fn output_of_a_new_attempt_is_read_from_its_start() {
    let mut world = world().await;
    add(&world, every("1h", "wait")).await;
    let mut seen = None;
    crash(&mut world, async |world| {
        set(world, HOUR_US).await;
        seen = Some(read_output_after(world, None, "many words").await);
    })
    .await;
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(started(&world), 2);
        read_output_after(&world, seen, "few").await;
        world.backend.release(1);
    })
    .await;
}

/// The run may be the cause of the crashes.
#[tokio::test(start_paused = true)]
async fn a_run_that_crashes_every_process_is_given_up() {
    let mut world = world().await;
    add(&world, every("1h", "hang")).await;
    for crashes in 1..=5 {
        crash(&mut world, async |world| set(world, HOUR_US).await).await;
        assert_eq!(started(&world), crashes);
    }
    run_engine(&world, wait_until_idle()).await;
    let run = only_run(&world).await;
    assert_eq!((run.state.as_str(), run.reason.as_deref()), ("failed", Some("interrupted")));
    assert_eq!(started(&world), 5);
}

/// The epoch distinguishes the attempts.
#[tokio::test(start_paused = true)]
async fn an_outcome_of_an_older_epoch_is_ignored() {
    let mut world = world().await;
    add(&world, every("1h", "wait")).await;
    let (old, old_hands) = (world.engine.clone(), world.backend.clone());
    let story = async {
        set(&world, HOUR_US).await;
        world.backend = Default::default();
        world.reopen().await.unwrap();
        run_engine(&world, async {
            wait_until_idle().await;
            let run = only_run(&world).await;
            assert_eq!((run.state.as_str(), run.attempt, started(&world)), ("running", 2, 1));
            // The first attempt ends now.
            old_hands.release(1);
            wait_until_idle().await;
            assert_eq!(only_run(&world).await.state.as_str(), "running");
            world.backend.release(1);
            wait_until_idle().await;
            assert_eq!(only_run(&world).await.state.as_str(), "done");
        })
        .await;
    };
    select! {
        ended = old.run(&[], vec![], pending()) => panic!("it ended: {ended:?}"),
        () = story => {}
    }
    let ended = world.kinds().await.iter().filter(|kind| *kind == "run.ended").count();
    assert_eq!(ended, 1);
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_is_executed_when_the_clock_goes_back() {
    let world = world().await;
    run_engine(&world, async {
        set(&world, 2 * HOUR_US).await;
        for number in 0..=CONCURRENCY_MAX {
            let id = add(&world, named(&format!("{number}"), "smith", every("1d", "wait"))).await;
            fire(&world, &id).await;
        }
        wait_until_idle().await;
        assert_eq!(started(&world), CONCURRENCY_MAX);
        set(&world, HOUR_US).await;
        world.backend.release(CONCURRENCY_MAX + 1);
        wait_until_idle().await;
        set(&world, 2 * HOUR_US).await;
        assert_eq!(started(&world), CONCURRENCY_MAX + 1);
        assert!(states(&world).await.iter().all(|state| *state == "done"));
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_failed_run_is_retried_up_to_its_limit_with_delays() {
    let world = world().await;
    let id = add(&world, every("1h", "fail")).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        while let Some(retry_at) = only_run(&world).await.retry_at {
            let run = only_run(&world).await;
            let attempts = started(&world);
            assert_eq!((run.state.as_str(), run.attempt as usize), ("queued", attempts));
            let at: jiff::Timestamp = retry_at.parse().unwrap();
            let started_at: jiff::Timestamp = run.started_at.unwrap().parse().unwrap();
            let delay_us = at.as_microsecond() - started_at.as_microsecond();
            let most_us = (5 * SECOND_US) << (attempts - 1);
            assert!(
                (most_us / 2..=most_us).contains(&delay_us),
                "{delay_us} after {attempts} attempts"
            );
            set(&world, at.as_microsecond() - OCTOBER_US - 1).await;
            assert_eq!(started(&world), attempts, "not before the delay is over");
            set(&world, at.as_microsecond() - OCTOBER_US).await;
            assert!(attempts < started(&world), "immediately after the delay");
        }
        set(&world, HOUR_US + 30 * MINUTE_US).await;
    })
    .await;
    let run = only_run(&world).await;
    assert_eq!((run.state.as_str(), run.attempt, started(&world)), ("failed", 5, 5));
    assert_eq!(run.reason.as_deref(), Some("script"));
    assert_eq!(why(&world, &id, HOUR_US).await.disposition.as_str(), "failed");
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_queued_run_never_starts() {
    let world = world().await;
    let id = add(&world, every("1h", "fail")).await;
    run_engine(&world, async {
        let run = fire(&world, &id).await;
        wait_until_idle().await;
        assert_eq!(shown(&world, &run).await.state.as_str(), "queued");
        let attempts = started(&world);
        assert_eq!(cancel(&world, &run).await.state.as_str(), "cancelled");
        set(&world, 30 * MINUTE_US).await;
        assert_eq!(started(&world), attempts);
        let run = shown(&world, &run).await;
        assert_eq!((run.state.as_str(), run.reason.as_deref()), ("cancelled", Some("cancelled")));
    })
    .await;
    assert_eq!(schedule(&world, &id).await.live, Vec::<String>::new());
}

#[tokio::test(start_paused = true)]
async fn a_cancelled_running_run_is_stopped() {
    let world = world().await;
    let id = add(&world, every("1h", "hang")).await;
    run_engine(&world, async {
        let run = fire(&world, &id).await;
        wait_until_idle().await;
        assert_eq!(cancel(&world, &run).await.state.as_str(), "running");
        wait_until_idle().await;
        let stopped = shown(&world, &run).await;
        assert_eq!(stopped.state.as_str(), "cancelled");
        assert_eq!(stopped.message.as_deref(), Some("olga cancelled it"));
        set(&world, 30 * MINUTE_US).await;
        assert_eq!(started(&world), 1);
        assert!(!world.send(RunCancel { id: run.id, note: None }).await.unwrap().changed);
    })
    .await;
}

/// It is in the queue twice, and runs once.
#[tokio::test(start_paused = true)]
async fn a_retried_run_runs_once_and_can_be_stopped() {
    let world = world().await;
    run_engine(&world, async {
        for number in 0..CONCURRENCY_MAX {
            let id = add(&world, named(&format!("{number}"), "smith", every("1d", "wait"))).await;
            fire(&world, &id).await;
        }
        wait_until_idle().await;
        let id = add(&world, named("hang", "smith", every("1d", "hang"))).await;
        let run = fire(&world, &id).await;
        set(&world, SECOND_US).await;
        cancel(&world, &run).await;
        world.send(RunRetry { id: run.id.clone() }).await.unwrap();
        wait_until_idle().await;
        world.backend.release(CONCURRENCY_MAX);
        wait_until_idle().await;
        assert_eq!(shown(&world, &run).await.state.as_str(), "running");
        cancel(&world, &run).await;
        wait_until_idle().await;
        assert_eq!(shown(&world, &run).await.state.as_str(), "cancelled");
        assert_eq!(started(&world), CONCURRENCY_MAX + 1);
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_stopping_engine_ends_its_runs_and_starts_none() {
    let mut world = world().await;
    world.send(program("bob")).await.unwrap();
    let twice = add(&world, every("1h", "hang")).await;
    let once = add(&world, named("once", "bob", every("1h", "hang"))).await;
    let quick = add(&world, named("quick", "ada", every("1s", "hello"))).await;
    let (request_stop, stop_requested) = oneshot::channel::<()>();
    let stop = async {
        let _ = stop_requested.await;
        "stop requested".to_owned()
    };
    let story = async {
        let runs = (fire(&world, &twice).await, fire(&world, &once).await);
        wait_until_idle().await;
        assert_eq!(started(&world), 2);
        drop(request_stop);
        wait_until_idle().await;
        fire(&world, &quick).await;
        set(&world, MINUTE_US).await;
        assert_eq!(started(&world), 2, "no run starts any more");
        assert_eq!(
            shown(&world, &runs.0).await.state.as_str(),
            "running",
            "it may still end by itself"
        );
        runs
    };
    let (result, (twice, once)) = join(world.engine.run(&[], vec![], stop), story).await;
    result.unwrap();
    assert_eq!(shown(&world, &twice).await.state.as_str(), "queued");
    assert_eq!(shown(&world, &once).await.state.as_str(), "unknown");
    assert_eq!((started(&world), runs(&world).await.len()), (2, 3), "no slot was decided");
    assert_eq!(world.kinds().await.last().unwrap(), "watch.stopped");
    world.reopen().await.unwrap();
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(shown(&world, &twice).await.state.as_str(), "running");
    })
    .await;
    verify_ledger(&world).await;
}

/// A start would only be interrupted a moment later.
#[tokio::test(start_paused = true)]
async fn claimed_runs_do_not_start_after_a_stop() {
    let world = World::new().await;
    for agent in 0..16 {
        let agent = format!("agent-{agent}");
        world.send(program(&agent)).await.unwrap();
        for number in 0..CONCURRENCY_MAX {
            let name = format!("{agent}-{number}");
            add(&world, named(&name, &agent, every("1h", "hang"))).await;
        }
    }
    run_engine(&world, async {
        wait_until_idle().await;
        world.set_now(OCTOBER_US + HOUR_US);
        for _ in 0..1_000 {
            if 0 < started(&world) {
                break;
            }
            yield_now().await;
        }
        assert!((1..128).contains(&started(&world)), "the others are claimed and have not started");
    })
    .await;
    let states = states(&world).await;
    let of = |state: &str| states.iter().filter(|it| **it == state).count();
    assert_eq!(of("unknown"), started(&world));
    assert_eq!(of("unknown") + of("queued"), 16 * CONCURRENCY_MAX);
    assert!(0 < of("queued"), "{} have started", started(&world));
}

#[tokio::test(start_paused = true)]
async fn a_queued_run_ends_when_its_agent_or_schedule_is_removed() {
    let world = world().await;
    world.send(builtin("bob")).await.unwrap();
    let (of_ada, of_bob) = (
        add(&world, every("1h", "hello")).await,
        add(&world, named("bob", "bob", every("1h", "hello"))).await,
    );
    // The engine is not running, so they stay queued.
    let runs = (fire(&world, &of_ada).await, fire(&world, &of_bob).await);
    world.send(ScheduleRemove { id: of_ada }).await.unwrap();
    world.send(AgentRemove { name: "bob".into() }).await.unwrap();
    run_engine(&world, wait_until_idle()).await;
    let outcome = async |run: &Run| {
        let run = shown(&world, run).await;
        (run.state, run.reason.unwrap())
    };
    assert_eq!(outcome(&runs.0).await, (RunState::Cancelled, "schedule_removed".to_owned()));
    assert_eq!(outcome(&runs.1).await, (RunState::Failed, "agent_missing".to_owned()));
    assert_eq!(started(&world), 0);
    verify_ledger(&world).await;
}
