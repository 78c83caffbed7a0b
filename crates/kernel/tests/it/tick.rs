//! Decisions about due slots, by overlap and missed policy.

use calendar::Trigger;
use kernel::schedule::terms::{Missed, Overlap, Terms};

use crate::support::{Op, World, at, every};
use Op::{Add, Fire, Pause, Resume, Tick};

const DAY: i64 = 86_400;

/// Second, operation, decided events.
type Step = (i64, Op, &'static str);

fn check(trigger: Trigger, terms: Terms, story: &[Step]) {
    let mut world = World::new(trigger, terms);
    for (second, op, expected) in story {
        assert_eq!(&world.perform(*second, op), expected, "at {second}: {op:?}");
    }
}

fn terms() -> Terms {
    Terms::default()
}

/// Starts a run and reports its success.
fn done(number: u128) -> [Op; 2] {
    [Op::Start(number), Op::Finish(number, 1, Ok(()))]
}

fn start(number: u128) -> Op {
    done(number)[0].clone()
}

fn end(number: u128) -> Op {
    done(number)[1].clone()
}

const STARTED: &str = "started 1 1 tier 0 repeatable";

#[test]
fn due_slot_fires_once() {
    check(
        every(60),
        terms(),
        &[
            (0, Add, "added, next 60"),
            (59, Tick, ""),
            (60, Tick, "slot fires 60"),
            (60, Tick, ""),
            (61, start(1), STARTED),
            (62, end(1), "done"),
            // The clock is set back, and reaches the slot again.
            (30, Tick, ""),
            (60, Tick, ""),
            (123, Tick, "slot fires 120 late 3"),
        ],
    );
}

#[test]
fn slot_within_a_minute_is_on_time() {
    let late = |second, expected| {
        check(every(3_600), terms(), &[(0, Add, "added, next 3600"), (second, Tick, expected)])
    };
    late(3_660, "slot fires 3600 late 60");
    late(3_661, "catch_up fires 3600 late 61");
}

#[test]
fn missed_slots_follow_the_missed_policy() {
    // Slots at 600, 1200, 1800; the window is half an hour. The newest is on time, or missed as well.
    let cases = [
        (Missed::Latest, 1_800, "coalesced 600..1200 ×2 into 1800, slot fires 1800"),
        (Missed::Latest, 1_900, "coalesced 600..1200 ×2 into 1800, catch_up fires 1800 late 100"),
        (Missed::Latest, 700, "catch_up fires 600 late 100"),
        (
            Missed::Earliest,
            1_800,
            "catch_up fires 600 late 1200, coalesced 1200 into 600, skipped_overlap 1800",
        ),
        (Missed::Earliest, 1_900, "catch_up fires 600 late 1300, coalesced 1200..1800 ×2 into 600"),
        (Missed::Skip, 1_800, "skipped_missed 600..1200 ×2 (policy), slot fires 1800"),
        (Missed::Skip, 1_900, "skipped_missed 600..1800 ×3 (policy)"),
        (
            Missed::All(2),
            1_900,
            "skipped_missed 600 (cap), catch_up fires 1200 late 700, waits 1800",
        ),
        (Missed::All(3), 1_800, "catch_up fires 600 late 1200, waits 1200, skipped_overlap 1800"),
    ];
    for (missed, second, expected) in cases {
        let terms = Terms { missed, ..terms() };
        check(every(600), terms, &[(0, Add, "added, next 600"), (second, Tick, expected)]);
    }
}

#[test]
fn slots_older_than_the_window_are_not_caught_up() {
    let window = |text: &str| Terms { window: Some(text.parse().unwrap()), ..terms() };
    // The default is three times the interval, at least a minute and at most a day.
    let cases = [
        (
            600,
            terms(),
            2_500,
            "skipped_missed 600 (window), coalesced 1200..1800 ×2 into 2400, catch_up fires 2400 late 100",
        ),
        (
            10,
            terms(),
            100,
            "skipped_missed 10..30 ×3 (window), coalesced 40..90 ×6 into 100, slot fires 100",
        ),
        (2 * DAY, terms(), 3 * DAY, "catch_up fires 172800 late 86400"),
        (2 * DAY, terms(), 3 * DAY + 1, "skipped_missed 172800 (window)"),
        (
            600,
            window("10m"),
            1_800,
            "skipped_missed 600 (window), coalesced 1200 into 1800, slot fires 1800",
        ),
        (600, window("2d"), 700, "catch_up fires 600 late 100"),
        (600, window("1s"), 602, "skipped_missed 600 (window)"),
        (600, window("1s"), 601, "slot fires 600 late 1"),
    ];
    for (seconds, terms, second, expected) in cases {
        let mut world = World::new(every(seconds), terms);
        world.perform(0, &Add);
        assert_eq!(world.perform(second, &Tick), expected, "every {seconds}, at {second}");
    }
}

#[test]
fn window_still_applies_after_the_schedule_ended() {
    let terms = Terms { end_at: Some(at(120)), ..terms() };
    check(
        every(60),
        terms,
        &[
            (0, Add, "added, next 60"),
            (7_200, Tick, "skipped_missed 60..120 ×2 (window)"),
            (9_000, Tick, ""),
        ],
    );
}

#[test]
fn jitter_delays_without_counting_as_late() {
    let (jitter, window) = ("20h".parse().ok(), "1m".parse().ok());
    let mut world = World::new(every(DAY), Terms { jitter, window, ..terms() });
    world.perform(0, &Add);
    let ahead = world.progress().unwrap().next_fire;
    let (next, due) = (ahead.slot.unwrap(), ahead.due.unwrap());
    assert_eq!(next, at(DAY));
    let delay = (due.as_micros() - next.as_micros()) / 1_000_000;
    assert!((60..72_000).contains(&delay), "{delay} is too short for this test");
    assert_eq!(world.perform(DAY + delay, &Tick), "");
    // The window counts from the due instant, not from the nominal one.
    let events = world.perform(DAY + delay + 1, &Tick);
    assert!(events.starts_with("slot fires 86400 late 0."), "{events}");
}

#[test]
fn live_run_is_handled_by_the_overlap_policy() {
    let allow = Overlap::Allow(2);
    let cases: [(Overlap, &[Step]); 4] = [
        (Overlap::Skip, &[(120, Tick, "skipped_overlap 120"), (180, Tick, "skipped_overlap 180")]),
        (
            Overlap::BufferOne,
            &[
                (120, Tick, "waits 120"),
                (180, Tick, "coalesced 120 that waited into 180, waits 180"),
                (190, start(1), STARTED),
                (191, end(1), "done"),
                (191, Tick, "buffer fires 180 late 11"),
                (191, Tick, ""),
            ],
        ),
        (
            Overlap::BufferAll(2),
            &[
                (120, Tick, "waits 120"),
                (180, Tick, "waits 180"),
                (240, Tick, "skipped_full 240"),
                (250, start(1), STARTED),
                (251, end(1), "done"),
                (300, Tick, "buffer fires 120 late 180, waits 300"),
                (301, start(2), STARTED),
                (302, end(2), "done"),
                (302, Tick, "buffer fires 180 late 122"),
            ],
        ),
        (allow, &[(120, Tick, "slot fires 120"), (180, Tick, "skipped_overlap 180")]),
    ];
    for (overlap, rest) in cases {
        let first = [(0, Add, "added, next 60"), (60, Tick, "slot fires 60")];
        let story: Vec<_> = first.into_iter().chain(rest.iter().cloned()).collect();
        check(every(60), Terms { overlap, ..terms() }, &story);
    }
}

#[test]
fn missed_slots_share_the_outcome_of_the_slot_that_covers_them() {
    let setup = [(0, Add, "added, next 600"), (0, Fire("k"), "manual fires k")];
    let cases = [
        (Missed::Latest, Overlap::Skip, "skipped_overlap 600..1800 ×3"),
        (Missed::Earliest, Overlap::Skip, "skipped_overlap 600..1800 ×3"),
        (Missed::Latest, Overlap::BufferOne, "coalesced 600..1200 ×2 into 1800, waits 1800"),
        (Missed::Earliest, Overlap::BufferOne, "waits 600, coalesced 1200..1800 ×2 into 600"),
        (Missed::All(9), Overlap::Skip, "waits 600, waits 1200, waits 1800"),
        (Missed::All(2), Overlap::Skip, "skipped_missed 600 (cap), waits 1200, waits 1800"),
    ];
    for (missed, overlap, expected) in cases {
        let terms = Terms { missed, overlap, ..terms() };
        let story: Vec<_> = setup.clone().into_iter().chain([(1_900, Tick, expected)]).collect();
        check(every(600), terms, &story);
    }
}

#[test]
fn waiting_slots_are_limited_by_the_catch_up_limit() {
    let window = "1d".parse().ok();
    check(
        every(600),
        Terms { missed: Missed::All(2), window, ..terms() },
        &[
            (0, Add, "added, next 600"),
            (0, Fire("k"), "manual fires k"),
            (1_300, Tick, "waits 600, waits 1200"),
            (3_700, Tick, "skipped_missed 1800..2400 ×2 (cap), skipped_full 3000..3600 ×2"),
        ],
    );
    // A slot that is on time replaces the newest waiting one.
    check(
        every(600),
        Terms { missed: Missed::All(2), overlap: Overlap::BufferOne, window, ..terms() },
        &[
            (0, Add, "added, next 600"),
            (0, Fire("k"), "manual fires k"),
            (1_300, Tick, "waits 600, waits 1200"),
            (1_800, Tick, "coalesced 1200 that waited into 1800, waits 1800"),
        ],
    );
}

#[test]
fn daily_limit_resets_at_utc_midnight() {
    let until = DAY - 60;
    check(
        every(60),
        Terms { per_day: Some(1), overlap: Overlap::Allow(9), ..terms() },
        &[
            (until - 60, Add, "added, next 86340"),
            (until, Tick, "slot fires 86340"),
            (DAY, Tick, "slot fires 86400"),
            (DAY + 60, Tick, "skipped_budget 86460..87000 ×10"),
            (DAY + 61, Fire("k"), "no: the schedule has reached its limit of 1 runs today"),
            // A clock that is set back restores neither day's limit.
            (until, Fire("k"), "no: the schedule has reached its limit of 1 runs today"),
            (DAY + 120, Tick, ""),
            (DAY + 660, Tick, "skipped_budget 87060..87600 ×10"),
            // The last range of a day ends before midnight.
            (
                2 * DAY - 60,
                Tick,
                "skipped_missed 87660..172500 ×1415 (window), skipped_budget 172560..172740 ×4",
            ),
            (2 * DAY, Tick, "slot fires 172800"),
        ],
    );
}

#[test]
fn waiting_slots_are_skipped_at_the_daily_limit() {
    check(
        every(60),
        Terms { per_day: Some(1), overlap: Overlap::BufferAll(9), max_fires: Some(2), ..terms() },
        &[
            (0, Add, "added, next 60"),
            (60, Tick, "slot fires 60"),
            (120, Tick, "waits 120"),
            // A waiting slot counts towards max_fires.
            (180, Tick, ""),
            (200, start(1), STARTED),
            (201, end(1), "done"),
            // It is skipped, so another slot may run.
            (201, Tick, "skipped_budget 120 that waited, skipped_budget 180..780 ×11"),
            (
                DAY,
                Tick,
                "skipped_missed 840..86160 ×1423 (window), coalesced 86220..86340 ×3 into 86400, slot fires 86400",
            ),
            (2 * DAY, Tick, ""),
        ],
    );
}

#[test]
fn default_daily_limit_allows_all_catch_ups() {
    let window = "3d".parse().ok();
    let mut world =
        World::new(every(2 * DAY / 10), Terms { missed: Missed::All(9), window, ..terms() });
    world.perform(0, &Add);
    world.perform(2 * DAY, &Tick);
    let mut fired = 1;
    loop {
        world.perform(2 * DAY, &Op::Start(fired));
        world.perform(2 * DAY, &Op::Finish(fired, 1, Ok(())));
        match world.perform(2 * DAY, &Tick) {
            events if events.starts_with("buffer fires") => fired += 1,
            events => break assert_eq!(events, ""),
        }
    }
    assert_eq!(fired, 9);
}

#[test]
fn start_at_end_at_and_max_fires_bound_the_slots() {
    check(
        every(60),
        Terms {
            start_at: Some(at(120)),
            end_at: Some(at(180)),
            overlap: Overlap::Allow(9),
            ..terms()
        },
        &[
            (0, Add, "added, next 120"),
            (60, Tick, ""),
            (120, Tick, "slot fires 120"),
            (180, Tick, "slot fires 180"),
            (240, Tick, ""),
        ],
    );
    check(
        every(60),
        Terms { max_fires: Some(2), overlap: Overlap::Skip, ..terms() },
        &[
            (0, Add, "added, next 60"),
            (60, Tick, "slot fires 60"),
            // A skipped slot does not count.
            (120, Tick, "skipped_overlap 120"),
            (121, start(1), STARTED),
            (122, end(1), "done"),
            (180, Tick, "slot fires 180"),
            (240, Tick, ""),
        ],
    );
    let once = Trigger::Once { at_us: at(60).as_micros() };
    check(
        once,
        terms(),
        &[
            (0, Add, "added, next 60"),
            (DAY, Tick, "catch_up fires 60 late 86340"),
            (2 * DAY, Tick, ""),
        ],
    );
}

#[test]
fn max_fires_may_be_reached_within_a_backlog() {
    let cases = [
        (Missed::All(9), "catch_up fires 600 late 1200, waits 1200"),
        (Missed::Earliest, "catch_up fires 600 late 1200, coalesced 1200 into 600, waits 1800"),
        (Missed::Latest, "coalesced 600..1200 ×2 into 1800, slot fires 1800"),
    ];
    for (missed, expected) in cases {
        let terms = Terms { missed, max_fires: Some(2), overlap: Overlap::BufferAll(9), ..terms() };
        check(every(600), terms, &[(0, Add, "added, next 600"), (1_800, Tick, expected)]);
    }
    // Later instants are not slots.
    let terms =
        Terms { missed: Missed::All(9), max_fires: Some(2), overlap: Overlap::Allow(9), ..terms() };
    check(
        every(600),
        terms,
        &[
            (0, Add, "added, next 600"),
            (1_800, Tick, "catch_up fires 600 late 1200, catch_up fires 1200 late 600"),
            (9_000, Tick, ""),
        ],
    );
}

#[test]
fn waiting_slot_runs_after_the_end_and_after_a_pause() {
    let terms = Terms { overlap: Overlap::BufferOne, end_at: Some(at(120)), ..terms() };
    check(
        every(60),
        terms,
        &[
            (0, Add, "added, next 60"),
            (60, Tick, "slot fires 60"),
            (120, Tick, "waits 120"),
            (130, Pause, "paused"),
            (131, start(1), STARTED),
            (132, end(1), "done"),
            (133, Tick, ""),
            (500, Resume, "resumed"),
            (500, Tick, "buffer fires 120 late 380"),
            (501, Tick, ""),
        ],
    );
}

#[test]
fn manual_run_delays_a_waiting_slot() {
    let terms = Terms { overlap: Overlap::BufferOne, ..terms() };
    check(
        every(600),
        terms,
        &[
            (0, Add, "added, next 600"),
            (600, Tick, "slot fires 600"),
            (1_200, Tick, "waits 1200"),
            (1_201, start(1), STARTED),
            (1_202, end(1), "done"),
            (1_202, Fire("k"), "manual fires k"),
            // The waiting slot cannot run before the manual run ends.
            (1_202, Tick, ""),
            (1_203, start(2), STARTED),
            (1_204, end(2), "done"),
            (1_204, Tick, "buffer fires 1200 late 4"),
        ],
    );
}
