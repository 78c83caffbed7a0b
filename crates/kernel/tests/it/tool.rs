//! Metrics of tool calls and alerts about failing tools.

use kernel::installation::ToolUsage;
use kernel::tool::{CallCounts, DAYS_MAX, Event, ToolStats, add_calls, summarize_calls};
use kernel::{EventBody, Noun, State, Tables, Timestamp, notice};

const HOUR_US: i64 = 3_600_000_000;
/// Midnight UTC of some day.
const MIDNIGHT_US: i64 = 1_790_812_800_000_000;

fn at(hours: i64) -> Timestamp {
    Timestamp::from_micros(MIDNIGHT_US + hours * HOUR_US)
}

fn used(tool: &str, calls: u64, failures: u64) -> ToolUsage {
    let tally = CallCounts {
        calls,
        failures,
        took_us: 10 * calls,
        longest_us: 10,
        ..CallCounts::default()
    };
    ToolUsage { tool: tool.parse().unwrap(), tally }
}

/// Records hours of calls and failures, and checks in which an alert is raised.
fn check(hours: &[(i64, u64, u64, bool)]) -> Tables {
    let mut tables = Tables::default();
    for (hour, calls, failures, is_alert) in hours {
        let key = (Noun::Tool, "run_start".to_owned());
        let row = tables.rows.get(&key).and_then(|row| row.state.clone());
        let row: Option<ToolStats> = row.and_then(State::into_inner);
        let calls_made = [used("run_start", *calls, *failures)];
        let bodies = summarize_calls("here", |_| row.as_ref(), &calls_made, at(*hour));
        let alerts =
            bodies.iter().filter(|body| matches!(body, EventBody::Tool(_, Event::Alerted(_))));
        assert_eq!(alerts.count() == 1, *is_alert, "{hour}: {bodies:?}");
        bodies.iter().for_each(|body| tables.apply(body));
    }
    tables
}

#[test]
fn tool_failing_more_than_usual_raises_one_alert_per_hour() {
    check(&[
        (0, 10_000, 20, false),
        // Too few calls, then enough, then already alerted.
        (30, 9, 9, false),
        (30, 1, 1, true),
        (30, 50, 50, false),
        (31, 20, 9, false),
        (31, 20, 12, true),
        (32, 9, 9, false),
    ]);
    // A tool that always fails that often raises no alert.
    check(&[(0, 100, 40, false), (30, 100, 60, false)]);
    // A tool without a history.
    check(&[(0, 10, 5, true)]);
}

#[test]
fn metrics_cover_at_most_days_max() {
    let days = 3 * i64::try_from(DAYS_MAX).unwrap();
    let used = (0..days).fold(None, |used, day| {
        let tally = CallCounts { calls: 1, ..CallCounts::default() };
        Some(add_calls(used, &tally, at(24 * day)))
    });
    let used = used.unwrap();
    assert_eq!(used.days.len(), DAYS_MAX);
    // After the clock was set back, calls count towards the last day.
    let used = add_calls(Some(used), &CallCounts { calls: 1, ..CallCounts::default() }, at(0));
    assert_eq!(used.days.last().unwrap().tally.calls, 2);
}

#[test]
fn alert_notice_has_only_names_and_numbers() {
    let bodies = summarize_calls("here", |_| None, &[used("run_start", 20, 15)], at(0));
    let notice = notice::notice_for(&bodies[1]).unwrap();
    assert_eq!((notice.kind.name(), notice.subject.as_str()), ("tool_failing", "run_start"));
    assert_eq!(notice.text, "15 of 20 calls of run_start failed in this hour.");
    assert_eq!(notice::notice_for(&bodies[0]), None);
}
