//! How tools have done: what is kept of it, and when it calls for a human.

use kernel::tool::{DAYS_MAX, Event, Tally, Use, add, summary};
use kernel::watch::Used;
use kernel::{Body, Noun, State, Tables, Timestamp, notice};

const HOUR_US: i64 = 3_600_000_000;
/// An instant at the beginning of a day.
const BEGIN_US: i64 = 1_790_812_800_000_000;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_micros(BEGIN_US + hours * HOUR_US)
}

fn used(tool: &str, calls: u64, failures: u64) -> Used {
    let tally = Tally { calls, failures, took_us: 10 * calls, longest_us: 10, ..Tally::default() };
    Used { tool: tool.parse().unwrap(), tally }
}

/// What a tool does in some hours, and whether it calls for a human in each.
fn check(hours: &[(i64, u64, u64, bool)]) -> Tables {
    let mut tables = Tables::default();
    for (hour, calls, failures, is_alert) in hours {
        let key = (Noun::Tool, "run_start".to_owned());
        let row = tables.rows.get(&key).and_then(|row| row.state.clone());
        let row: Option<Use> = row.and_then(State::tool);
        let told = [used("run_start", *calls, *failures)];
        let bodies = summary("here", |_| row.as_ref(), &told, at(*hour));
        let alerts = bodies.iter().filter(|body| matches!(body, Body::Tool(_, Event::Alerted(_))));
        assert_eq!(alerts.count() == 1, *is_alert, "{hour}: {bodies:?}");
        bodies.iter().for_each(|body| tables.apply(body));
    }
    tables
}

#[test]
fn a_tool_that_fails_far_more_often_than_usual_is_told_once_in_an_hour() {
    check(&[
        (0, 10_000, 20, false),
        // Too few to say anything, then enough, then known.
        (30, 9, 9, false),
        (30, 1, 1, true),
        (30, 50, 50, false),
        (31, 20, 9, false),
        (31, 20, 12, true),
        (32, 9, 9, false),
    ]);
    // One that always fails that often is nothing new.
    check(&[(0, 100, 40, false), (30, 100, 60, false)]);
    // One that nobody knows yet.
    check(&[(0, 10, 5, true)]);
}

#[test]
fn so_many_days_are_kept() {
    let days = 3 * i64::try_from(DAYS_MAX).unwrap();
    let used = (0..days).fold(None, |used, day| {
        let tally = Tally { calls: 1, ..Tally::default() };
        Some(add(used, &tally, at(24 * day)))
    });
    let used = used.unwrap();
    assert_eq!(used.days.len(), DAYS_MAX);
    // A clock that was set back adds to the last day.
    let used = add(Some(used), &Tally { calls: 1, ..Tally::default() }, at(0));
    assert_eq!(used.days.last().unwrap().tally.calls, 2);
}

#[test]
fn an_alert_is_a_notice_of_names_and_numbers() {
    let bodies = summary("here", |_| None, &[used("run_start", 20, 15)], at(0));
    let told = notice::of(&bodies[1]).unwrap();
    assert_eq!((told.kind.name(), told.subject.as_str()), ("tool_failing", "run_start"));
    assert_eq!(told.text, "Of 20 calls of run_start in this hour 15 failed.");
    assert_eq!(notice::of(&bodies[0]), None);
}
