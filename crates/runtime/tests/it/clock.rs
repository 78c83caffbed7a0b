//! Due slots: each is decided once, at its time, whatever the clock does.

use std::collections::BTreeSet;

use api::{Code, Run, ScheduleAdd, ScheduleFire, ScheduleList, ScheduleResume, Terms, Why};
use futures::future::join_all;

use crate::steps::*;
use crate::world::{DAY_US, builtin, run_engine};

#[tokio::test(start_paused = true)]
async fn every_slot_runs_once_without_drift() {
    for step in [SECOND_US, 7 * SECOND_US] {
        let world = world().await;
        add(&world, every("10s", "hello")).await;
        run_engine(&world, async {
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
        assert!(runs.iter().all(|run| run.state.as_str() == "done" && run.attempt == 1));
        let is_on_time = |run: &Run| run.slot.as_ref() == Some(&run.queued_at);
        assert!(step != SECOND_US || runs.iter().all(is_on_time), "decided when it was due");
        assert_eq!(started(&world), 60);
    }
}

/// Five minutes after the last of many undecided slots.
#[tokio::test(start_paused = true)]
async fn the_missed_term_decides_after_a_clock_jump() {
    let (hour, year) = (HOUR_US, 365 * DAY_US);
    let rows = [
        ("latest", None, hour, 1),
        ("latest", None, year, 1),
        ("earliest", None, hour, 1),
        ("earliest", None, year, 1),
        ("skip", None, hour, 0),
        ("skip", None, year, 0),
        // The default window is three intervals.
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
        run_engine(&world, async {
            wait_until_idle().await;
            set(&world, jump + 5 * MINUTE_US).await;
            assert_eq!(started(&world), expected, "{missed} {jump}");
            assert!(entries(&world).await < 1_000, "a year of slots takes a few entries");
            // It continues as before.
            set(&world, jump + 10 * MINUTE_US).await;
            assert_eq!(started(&world), expected + 1, "{missed} {jump}");
        })
        .await;
        assert_eq!(schedule(&world, &id).await.failures, 0);
        assert_ne!(why(&world, &id, 10 * MINUTE_US).await.disposition.as_str(), "none");
        verify_ledger(&world).await;
    }
}

#[tokio::test(start_paused = true)]
async fn no_slot_fires_twice_when_the_clock_goes_back() {
    let world = world().await;
    add(&world, every("10m", "hello")).await;
    run_engine(&world, async {
        for slot in 1..=12 {
            set(&world, slot * 10 * MINUTE_US).await;
        }
        assert_eq!(started(&world), 12);
        for minute in 60..=129 {
            set(&world, minute * MINUTE_US).await;
        }
        assert_eq!(started(&world), 12);
        set(&world, 130 * MINUTE_US).await;
        assert_eq!(started(&world), 13);
    })
    .await;
    let slots: BTreeSet<_> = runs(&world).await.into_iter().map(|run| run.slot).collect();
    assert_eq!(slots.len(), 13);
}

#[tokio::test(start_paused = true)]
async fn a_buffered_slot_fires_when_the_previous_run_ends() {
    let world = world().await;
    let terms = Terms { overlap: Some("buffer_one".into()), ..Terms::default() };
    let id = add(&world, ScheduleAdd { terms, ..every("10m", "wait") }).await;
    run_engine(&world, async {
        for slot in 1..=3 {
            set(&world, slot * 10 * MINUTE_US).await;
        }
        set(&world, 31 * MINUTE_US).await;
        assert_eq!(started(&world), 1);
        let coalesced = why(&world, &id, 20 * MINUTE_US).await;
        assert_eq!(coalesced.disposition.as_str(), "coalesced");
        assert_eq!(coalesced.into, Some(why(&world, &id, 30 * MINUTE_US).await.slot));
        assert_eq!(why(&world, &id, 30 * MINUTE_US).await.disposition.as_str(), "buffered");
        world.backend.release(2);
        wait_until_idle().await;
    })
    .await;
    let runs = runs(&world).await;
    let ended: Vec<_> = runs.iter().map(|run| (run.origin.as_str(), run.state.as_str())).collect();
    assert_eq!(ended, [("slot", "done"), ("buffer", "done")]);
    assert_eq!(runs[1].queued_at, after(31 * MINUTE_US));
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn consecutive_failures_pause_a_schedule_until_it_is_resumed() {
    let world = world().await;
    let id = add(&world, every("1m", "fail for good")).await;
    run_engine(&world, async {
        for minute in 1..=7 {
            set(&world, minute * MINUTE_US).await;
        }
        assert_eq!(states(&world).await, ["failed"; 5]);
        assert_eq!(started(&world), 5, "one attempt each");
        let paused = schedule(&world, &id).await.paused.unwrap();
        assert_eq!(paused.by, "midwatch");
        assert_eq!(paused.note.as_deref(), Some("the last 5 runs failed"));
        let resumed = world.send(ScheduleResume { id: id.clone() }).await.unwrap();
        assert_eq!((resumed.changed, resumed.skipped), (true, 2));
        wait_until_idle().await;
        assert_eq!(started(&world), 5);
        set(&world, 8 * MINUTE_US).await;
        assert_eq!(started(&world), 6);
        let after = schedule(&world, &id).await;
        assert_eq!((after.status.as_str(), after.failures), ("active", 1));
    })
    .await;
    verify_ledger(&world).await;
}

#[tokio::test(start_paused = true)]
async fn a_repeated_key_fires_once_and_no_fire_overlaps_a_live_run() {
    let world = world().await;
    let id = add(&world, every("1h", "wait")).await;
    let request = || ScheduleFire { id: id.clone() };
    run_engine(&world, async {
        let first = world.send_with_key("k1", request()).await.unwrap();
        wait_until_idle().await;
        assert_eq!(world.send_with_key("k1", request()).await.unwrap(), first);
        assert_eq!(world.send(request()).await.unwrap_err().code, Code::NotNow);
        assert_eq!(world.send_with_key("k2", request()).await.unwrap_err().code, Code::NotNow);
        world.backend.release(1);
        wait_until_idle().await;
        assert_eq!(only_run(&world).await.state.as_str(), "done");
        assert_eq!(world.send_with_key("k1", request()).await.unwrap(), first);
        wait_until_idle().await;
        assert_eq!((runs(&world).await.len(), started(&world)), (1, 1));
        // A refused fire does not use its key.
        world.send_with_key("k2", request()).await.unwrap();
        world.backend.release(1);
        wait_until_idle().await;
        assert_eq!(states(&world).await, ["done", "done"]);
    })
    .await;
    assert_eq!(schedule(&world, &id).await.next_run_at, Some(after(HOUR_US)), "no slot was used");
}

#[tokio::test(start_paused = true)]
async fn simultaneous_schedules_fire_once_each_and_a_long_queue_delays_no_other_agent() {
    const MANY: usize = 2_000;
    let world = world().await;
    world.send(builtin("bob")).await.unwrap();
    for number in 1..MANY {
        add(&world, named(&format!("{number}"), "smith", every("1h", "wait"))).await;
    }
    add(&world, named("last", "bob", every("1h", "hello"))).await;
    run_engine(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!(runs(&world).await.len(), MANY);
        assert_eq!((started_by(&world, "smith"), started_by(&world, "bob")), (CONCURRENCY_MAX, 1));
        world.backend.release(10);
        wait_until_idle().await;
        assert_eq!(started_by(&world, "smith"), CONCURRENCY_MAX + 10);
        world.backend.release(MANY);
        wait_until_idle().await;
    })
    .await;
    let runs = runs(&world).await;
    let fired: BTreeSet<_> = runs.iter().map(|run| run.schedule_id.clone()).collect();
    assert_eq!((runs.len(), fired.len(), started(&world)), (MANY, MANY, MANY));
    let is_on_time = |run: &Run| run.state.as_str() == "done" && run.queued_at == after(HOUR_US);
    assert!(runs.iter().all(is_on_time));
}

/// Neither with a running engine nor without one.
#[tokio::test(start_paused = true)]
async fn reads_do_not_decide_slots() {
    let world = world().await;
    let id = add(&world, every("1h", "hello")).await;
    let look = async || {
        let before = entries(&world).await;
        for _ in 0..20 {
            world.send(ScheduleList::default()).await.unwrap();
            schedule(&world, &id).await;
            world.send(Why { id: id.clone(), at: None }).await.unwrap();
            let shown = runs(&world).await;
            join_all(shown.iter().map(|run| self::shown(&world, run))).await;
        }
        wait_until_idle().await;
        assert_eq!(entries(&world).await, before);
    };
    set(&world, HOUR_US).await;
    look().await;
    assert_eq!(runs(&world).await.len(), 0, "the engine is not running");
    run_engine(&world, async {
        wait_until_idle().await;
        assert_eq!(states(&world).await, ["done"]);
        look().await;
        set(&world, HOUR_US + 59 * MINUTE_US).await;
        look().await;
    })
    .await;
}
