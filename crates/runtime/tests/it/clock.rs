//! Slots that are due: each is decided once, at its instant, whatever the clock does.

use std::collections::BTreeSet;

use api::{Code, Run, ScheduleAdd, ScheduleFire, ScheduleList, ScheduleResume, Terms, Why};
use futures::future::join_all;

use crate::steps::*;
use crate::world::{DAY_US, builtin, keep};

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
async fn a_slot_that_waits_fires_as_soon_as_the_run_before_it_ends() {
    let world = world().await;
    let terms = Terms { overlap: Some("buffer_one".into()), ..Terms::default() };
    let id = add(&world, ScheduleAdd { terms, ..every("10m", "wait") }).await;
    keep(&world, async {
        for slot in 1..=3 {
            set(&world, slot * 10 * MINUTE_US).await;
        }
        set(&world, 31 * MINUTE_US).await;
        assert_eq!(begun(&world), 1);
        let coalesced = why(&world, &id, 20 * MINUTE_US).await;
        assert_eq!(coalesced.disposition, "coalesced");
        assert_eq!(coalesced.into, Some(why(&world, &id, 30 * MINUTE_US).await.slot));
        assert_eq!(why(&world, &id, 30 * MINUTE_US).await.disposition, "buffered");
        world.hands.let_go(2);
        settle().await;
    })
    .await;
    let runs = runs(&world).await;
    let told: Vec<_> = runs.iter().map(|run| (run.origin.as_str(), run.state.as_str())).collect();
    assert_eq!(told, [("slot", "done"), ("buffer", "done")]);
    assert_eq!(runs[1].queued_at, after(31 * MINUTE_US));
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
        add(&world, named(&format!("{number}"), "smith", every("1h", "wait"))).await;
    }
    add(&world, named("last", "bob", every("1h", "hello"))).await;
    keep(&world, async {
        set(&world, HOUR_US).await;
        assert_eq!(runs(&world).await.len(), MANY);
        assert_eq!((begun_by(&world, "smith"), begun_by(&world, "bob")), (LANE_HANDS, 1));
        world.hands.let_go(10);
        settle().await;
        assert_eq!(begun_by(&world, "smith"), LANE_HANDS + 10);
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
