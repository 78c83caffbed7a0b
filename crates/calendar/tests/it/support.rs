//! Shared helpers: build a calendar and check its slots.

use calendar::{Calendar, Dst, Trigger, Zone, format_instant, parse_instant};

pub(crate) fn zone(name: &str) -> Zone {
    name.parse().unwrap()
}

pub(crate) fn at(text: &str) -> i64 {
    parse_instant(text, None).unwrap()
}

pub(crate) fn cron_with(expression: &str, zone_name: &str, dst: Dst) -> Calendar {
    let expression = expression.parse().unwrap_or_else(|error| panic!("{expression}: {error}"));
    Calendar::new(Trigger::Cron { expression, dst }, zone(zone_name)).unwrap()
}

pub(crate) fn cron(expression: &str, zone_name: &str) -> Calendar {
    cron_with(expression, zone_name, Dst::default())
}

pub(crate) fn next(calendar: &Calendar, after_us: i64, count: usize) -> Vec<i64> {
    calendar.slots_after(after_us).take(count).collect()
}

/// Checks the next slots, as UTC texts. An empty `expected` means that no slot follows.
pub(crate) fn check(calendar: &Calendar, from: &str, expected: &[&str]) {
    if expected.is_empty() {
        assert_eq!(calendar.next_after(at(from)), None, "{:?} from {from}", calendar.trigger());
    }
    let slots = next(calendar, at(from), expected.len());
    let texts: Vec<String> = slots.iter().copied().map(format_instant).collect();
    assert_eq!(texts, expected, "{:?} from {from}", calendar.trigger());
    for pair in slots.windows(2) {
        assert_eq!(
            calendar.last_at_or_before(pair[1] - 1),
            Some(pair[0]),
            "{:?}",
            calendar.trigger()
        );
    }
}
