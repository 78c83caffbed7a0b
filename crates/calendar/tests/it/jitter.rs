//! Jitter, catch-up windows, and the time that a search takes.

use std::time::{Duration, Instant};

use calendar::{CATCH_UP_MAX, CATCH_UP_MIN, catch_up_window, jitter_us};

use crate::support::cron;

const SECOND_US: i64 = 1_000_000;

#[test]
fn jitter_is_deterministic() {
    // Computed with an independent implementation.
    assert_eq!(jitter_us(b"schedule", 1_750_000_000_000_000, 999_999, None), 499_178);
    for nominal in 0..1000 {
        let jitter = jitter_us(b"schedule", nominal, 9, None);
        assert!((0..=9).contains(&jitter));
        assert_eq!(jitter, jitter_us(b"schedule", nominal, 9, None));
    }
}

#[test]
fn jitter_spreads_and_stays_before_the_next_slot() {
    let of = |id: &str, max, next| jitter_us(id.as_bytes(), 0, max, next);
    let ids: Vec<String> = (0..1000).map(|id| id.to_string()).collect();
    for value in 0..=9 {
        let count = ids.iter().filter(|id| of(id, 9, None) == value).count();
        assert!((50..150).contains(&count), "{value}: {count}");
    }
    let late = ids.iter().map(|id| of(id, 60 * SECOND_US, Some(SECOND_US))).max().unwrap();
    assert!(SECOND_US / 2 < late && late < SECOND_US, "{late}");
    for (max, next) in [(0, None), (-5, None), (9, Some(1)), (9, Some(0)), (9, Some(-9))] {
        assert_eq!(of("a", max, next), 0, "{max} {next:?}");
    }
    assert!(0 <= of("a", i64::MAX, None));
    assert!(0 <= jitter_us(b"", i64::MIN, i64::MAX, Some(i64::MAX)));
}

#[test]
fn catch_up_window_is_three_slots_within_limits() {
    let check = |distance_s: i64, expected: &str| {
        let window = catch_up_window(7, Some(7 + distance_s * SECOND_US));
        assert_eq!(window.to_string(), expected, "{distance_s}");
    };
    check(1, "1m");
    check(20, "1m");
    check(21, "1m3s");
    check(3600, "3h");
    check(8 * 3600 - 1, "23h59m57s");
    check(8 * 3600, "1d");
    check(7 * 86_400, "1d");
    assert_eq!(catch_up_window(7, None), CATCH_UP_MAX);
    assert_eq!(catch_up_window(7, Some(7)), CATCH_UP_MIN);
    assert_eq!(catch_up_window(i64::MIN, Some(i64::MAX)), CATCH_UP_MAX);
}

/// The limit is far above the unoptimised time and far below that of a search minute by minute,
/// which would take seconds. Measures the best of 20, because the machine may be busy.
#[test]
fn search_for_rare_and_impossible_dates_is_fast() {
    for expression in
        ["0 0 29 2 *", "0 0 31 2 *", "0 0 29 2 +MON", "0 0 1-7 * +MON#3", "59 59 23 31 12 * 2199"]
    {
        let calendar = cron(expression, "America/New_York");
        let durations = (0..20).map(|_| {
            #[expect(clippy::disallowed_methods, reason = "the test measures a span")]
            let start = Instant::now();
            let _ = (calendar.next_after(0), calendar.last_at_or_before(i64::MAX));
            start.elapsed()
        });
        assert!(durations.min() < Some(Duration::from_millis(20)), "{expression}");
    }
}
