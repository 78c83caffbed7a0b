//! The next times of a schedule, in UTC and in its zone.

use api::{Schedule, ScheduleStatus};
use calendar::{Zone, format_instant, parse_instant};
use kernel::Timestamp;

use crate::cli::support::render::table;

const SECOND_US: i64 = 1_000_000;
/// In seconds, largest first.
const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

/// A trigger in words, with its zone.
pub(super) fn when(describe: &str, zone: &str) -> String {
    format!("{describe} ({zone})")
}

/// The next slots of a schedule.
pub(super) fn upcoming(schedule: &Schedule, next: &[String], now: Timestamp) -> String {
    let slots = slots(schedule, next, now);
    match schedule.status {
        ScheduleStatus::Paused if !slots.is_empty() => {
            format!("it is paused; if it were resumed now, its next times would be\n{slots}")
        }
        ScheduleStatus::Active | ScheduleStatus::Paused | ScheduleStatus::Ended => slots,
    }
}

fn slots(schedule: &Schedule, next: &[String], now: Timestamp) -> String {
    // The daemon may know zones that this program does not.
    let Ok(zone) = schedule.tz.parse() else { return next.join("\n") };
    let slots: Vec<i64> = next.iter().filter_map(|text| parse_instant(text, None).ok()).collect();
    slot_table(&zone, &slots, now.as_micros(), "IN")
}

/// One line per slot. A zone other than UTC has its own column. `distance_head` is the heading of the
/// distance from `from_us`.
pub(super) fn slot_table(zone: &Zone, slots: &[i64], from_us: i64, distance_head: &str) -> String {
    let wall = |at_us: i64| zone.wall_time(at_us).to_string();
    let slots =
        slots.iter().map(|at_us| (*at_us, format_instant(*at_us), distance(at_us - from_us)));
    match zone.name() {
        _ if slots.len() == 0 => String::new(),
        "UTC" => table(["UTC", distance_head], slots.map(|(_, utc, away)| [utc, away])),
        zone => table(
            ["UTC", zone, distance_head],
            slots.map(|(at_us, utc, away)| [utc, wall(at_us), away]),
        ),
    }
}

/// A span in its two largest units.
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
    fn distance_has_the_two_largest_units() {
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
