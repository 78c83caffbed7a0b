//! When something is due, as people read it: in words, and slot by slot in UTC and in the zone.

use api::Schedule;
use calendar::{Zone, format_instant, parse_instant};
use kernel::Timestamp;

use crate::output::table;

const SECOND_US: i64 = 1_000_000;
/// In seconds, largest first.
const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

pub(super) fn when(describe: &str, zone: &str) -> String {
    format!("{describe} ({zone})")
}

pub(super) fn warned(warnings: &[String]) -> String {
    let lines = warnings.iter().map(|warning| format!("warning: {warning}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// The slots to come of a schedule.
pub(super) fn upcoming(schedule: &Schedule, next: &[String], now: Timestamp) -> String {
    let slots = slots(schedule, next, now);
    match schedule.status.as_str() {
        "paused" if !slots.is_empty() => {
            format!("it is paused; if it were resumed now, it would go on at\n{slots}")
        }
        _ => slots,
    }
}

fn slots(schedule: &Schedule, next: &[String], now: Timestamp) -> String {
    // Whoever answered may know zones that are not known here.
    let Ok(zone) = schedule.tz.parse() else { return next.join("\n") };
    let slots: Vec<i64> = next.iter().filter_map(|text| parse_instant(text, None).ok()).collect();
    times(&zone, &slots, now.as_micros(), "IN")
}

/// One line for each; the zone has a column if it is not UTC.
pub(super) fn times(zone: &Zone, slots: &[i64], from_us: i64, away: &str) -> String {
    let wall = |at_us: i64| zone.wall_time(at_us).to_string();
    let slots =
        slots.iter().map(|at_us| (*at_us, format_instant(*at_us), distance(at_us - from_us)));
    match zone.name() {
        _ if slots.len() == 0 => String::new(),
        "UTC" => table(["UTC", away], slots.map(|(_, utc, away)| [utc, away])),
        zone => {
            table(["UTC", zone, away], slots.map(|(at_us, utc, away)| [utc, wall(at_us), away]))
        }
    }
}

/// The two largest units are enough to see whether it is what was meant.
fn distance(us: i64) -> String {
    let seconds = us / SECOND_US;
    let Some(first) = UNITS.iter().position(|(_, unit)| *unit <= seconds) else {
        return "under 1s".to_owned();
    };
    let mut rest = seconds;
    let mut text = String::new();
    for (name, unit) in UNITS.iter().skip(first).take(2) {
        if *unit <= rest {
            text.push_str(&format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (seconds, expected) in [
            (1, "1s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m59s"),
            (3600, "1h"),
            (3601, "1h"),
            (86_399, "23h59m"),
            (86_400, "1d"),
            (86_400 * 14_610 + 7200, "14610d2h"),
        ] {
            assert_eq!(distance(seconds * SECOND_US), expected);
        }
        assert_eq!(distance(SECOND_US - 1), "under 1s");
    }
}
