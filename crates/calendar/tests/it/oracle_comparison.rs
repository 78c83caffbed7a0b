//! Compares random expressions with the oracle: around offset changes, and day by day over years.
//!
//! `CALENDAR_CASES` sets the number of cases, for a long run.

use std::sync::LazyLock;

use calendar::{Calendar, Dst, Fold, Gap, Trigger, Zone};
use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan};
use proptest::prelude::*;
use proptest::sample::select;

use crate::oracle::{Expression, Field, Item, Rules};
use crate::support::{at, next, zone};

const SECOND_US: i64 = 1_000_000;
const HOUR_S: i64 = 3600;

/// Zones with changes at midnight, of half an hour, two hours and a day, with changed rules, and
/// ordinary ones.
const ZONES: [&str; 18] = [
    "Africa/Cairo",
    "Africa/Casablanca",
    "Africa/Monrovia",
    "America/Havana",
    "America/New_York",
    "America/Santiago",
    "America/St_Johns",
    "Antarctica/Casey",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Asia/Gaza",
    "Asia/Kathmandu",
    "Asia/Pyongyang",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Istanbul",
    "Pacific/Apia",
    "Pacific/Kwajalein",
];

/// Every offset change of these zones from 1970 to 2040.
static CHANGES: LazyLock<Vec<(&str, i64)>> = LazyLock::new(|| {
    let end = at("2040-01-01T00:00:00Z") / SECOND_US;
    let changes = ZONES.into_iter().flat_map(|name| {
        let zone = TimeZone::get(name).unwrap();
        let changes: Vec<i64> = zone
            .following(Timestamp::UNIX_EPOCH)
            .map(|change| change.timestamp().as_second())
            .take_while(|second| *second < end)
            .collect();
        changes.into_iter().map(move |second| (name, second))
    });
    changes.collect()
});

fn cases(default: u32) -> ProptestConfig {
    #[expect(clippy::disallowed_methods, reason = "the number of test cases is configurable")]
    let cases = std::env::var("CALENDAR_CASES").ok().and_then(|text| text.parse().ok());
    ProptestConfig {
        failure_persistence: None,
        ..ProptestConfig::with_cases(cases.unwrap_or(default))
    }
}

fn item(min: i64, max: i64) -> impl Strategy<Value = Item> {
    let span = max - min + 1;
    prop_oneof![
        2 => Just(Item::Star),
        2 => (1..=span).prop_map(Item::StarStep),
        4 => (min..=max).prop_map(Item::Value),
        1 => (min..=max, min..=max).prop_map(|(a, b)| Item::Range(a.min(b), a.max(b))),
        1 => (min..=max, min..=max, 1..=span)
            .prop_map(|(a, b, n)| Item::RangeStep(a.min(b), a.max(b), n)),
    ]
}

fn field(min: i64, max: i64) -> impl Strategy<Value = Field> {
    prop::collection::vec(item(min, max), 1..4)
}

fn day() -> impl Strategy<Value = Field> {
    let special = prop_oneof![
        Just(Item::Last),
        (1_i64..=30).prop_map(Item::BeforeLast),
        Just(Item::LastWeekday),
        (1_i64..=31).prop_map(Item::Nearest),
    ];
    prop::collection::vec(prop_oneof![item(1, 31), special], 1..3)
}

fn weekday() -> impl Strategy<Value = Field> {
    let special = prop_oneof![
        (0_i64..=7, 1_i64..=5).prop_map(|(day, nth)| Item::Nth(day, nth)),
        (0_i64..=7).prop_map(Item::LastOf),
    ];
    let plain = item(0, 6).prop_map(|item| match item {
        // Sunday may end a range.
        Item::Range(a, 6) => Item::Range(a, 7),
        Item::RangeStep(a, 6, n) => Item::RangeStep(a, 7, n),
        other => other,
    });
    prop::collection::vec(prop_oneof![plain, special], 1..3)
}

fn mostly_star(field: impl Strategy<Value = Field>) -> impl Strategy<Value = Field> {
    prop_oneof![3 => Just(vec![Item::Star]), 1 => field]
}

/// Often in the hours in which clocks change.
fn hour() -> impl Strategy<Value = Field> {
    let near = prop::collection::vec((0_i64..=4).prop_map(Item::Value), 1..4);
    prop_oneof![field(0, 23), near]
}

fn expression(second: impl Strategy<Value = Field>) -> impl Strategy<Value = Expression> {
    let days = (mostly_star(day()), mostly_star(field(1, 12)), mostly_star(weekday()));
    (second, field(0, 59), hour(), days, any::<bool>()).prop_map(
        |(second, minute, hour, (day, month, weekday), plus)| Expression {
            second,
            minute,
            hour,
            day,
            month,
            weekday,
            plus,
        },
    )
}

fn dst() -> impl Strategy<Value = Dst> {
    let gaps = [None, None, Some(Gap::RunAfter), Some(Gap::Skip), Some(Gap::Shift)];
    let folds = [None, None, Some(Fold::First), Some(Fold::Second), Some(Fold::Both)];
    (select(gaps.to_vec()), select(folds.to_vec())).prop_map(|(gap, fold)| Dst { gap, fold })
}

/// Compares the slots in a window, and every query result that follows from them.
fn check(
    expression: &Expression,
    dst: Dst,
    (zone_name, window): (&str, (i64, i64)),
    step_s: i64,
    probe: f64,
) -> Result<(), TestCaseError> {
    let text = expression.text();
    let trigger = Trigger::Cron { expression: text.parse().unwrap(), dst };
    let calendar = Calendar::new(trigger, zone_name.parse::<Zone>().unwrap()).unwrap();
    let rules = Rules { gap: dst.gap, fold: dst.fold };
    let walked = expression.slots(&TimeZone::get(zone_name).unwrap(), window, step_s, &rules);
    let before_us = window.0 * SECOND_US - 1;
    let until_us = window.1 * SECOND_US;
    let found = next(&calendar, before_us, walked.len() + 1);
    let found: Vec<i64> = found.into_iter().filter(|slot| *slot <= until_us).collect();
    let expected: Vec<i64> = walked.iter().map(|second| second * SECOND_US).collect();
    prop_assert_eq!(&found, &expected, "{} in {}", text, zone_name);
    prop_assert_eq!(calendar.count_slots(before_us, until_us), expected.len() as u64, "{}", text);
    // S13: slots increase, and a query between two of them returns its neighbours.
    prop_assert!(found.is_sorted_by(|a, b| a < b));
    let length_us = (window.1 - window.0) * SECOND_US;
    let probe_us = window.0 * SECOND_US + (length_us as f64 * probe) as i64;
    let after = expected.partition_point(|slot| *slot <= probe_us);
    if let Some(slot) = expected.get(after) {
        prop_assert_eq!(calendar.next_after(probe_us), Some(*slot), "{} {}", text, probe_us);
        prop_assert_eq!(calendar.next_after(*slot - 1), Some(*slot), "{}", text);
    }
    if let Some(slot) = after.checked_sub(1).map(|last| expected[last]) {
        prop_assert_eq!(calendar.last_at_or_before(probe_us), Some(slot), "{} {}", text, probe_us);
        prop_assert_eq!(calendar.last_at_or_before(slot), Some(slot), "{}", text);
    }
    prop_assert_eq!(
        calendar.count_slots(before_us, probe_us),
        after as u64,
        "{} {}",
        text,
        probe_us
    );
    Ok(())
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn minutes_around_an_offset_change(
        expression in expression(Just(vec![Item::Value(0)])),
        dst in dst(),
        change in any::<prop::sample::Index>(),
        probe in 0.0..1.0_f64,
    ) {
        let (zone, second) = *change.get(&CHANGES);
        // Monrovia's offset was not a whole number of minutes until 1972.
        let step_s = if zone == "Africa/Monrovia" { 30 } else { 60 };
        let start = second - second.rem_euclid(HOUR_S) - 26 * HOUR_S;
        check(&expression, dst, (zone, (start, start + 52 * HOUR_S)), step_s, probe)?;
    }
}

proptest! {
    #![proptest_config(cases(60))]

    #[test]
    fn seconds_around_an_offset_change(
        expression in expression(field(0, 59)),
        dst in dst(),
        change in any::<prop::sample::Index>(),
        probe in 0.0..1.0_f64,
    ) {
        let (zone, second) = *change.get(&CHANGES);
        check(&expression, dst, (zone, (second - 4 * HOUR_S, second + 4 * HOUR_S)), 1, probe)?;
    }
}

proptest! {
    #![proptest_config(cases(600))]

    #[test]
    fn day_fields_over_three_years(
        day in mostly_star(day()),
        month in mostly_star(field(1, 12)),
        weekday in mostly_star(weekday()),
        plus in any::<bool>(),
        year in 1970_i16..2196,
    ) {
        let value = |value| vec![Item::Value(value)];
        let (second, minute, hour) = (value(15), value(30), value(12));
        let expression = Expression { second, minute, hour, day, month, weekday, plus };
        let first = Date::new(year, 1, 1).unwrap();
        let last = Date::new(year + 2, 12, 31).unwrap();
        let matching = first.series(1.day()).take_while(|date| *date <= last);
        let matching = matching.filter(|date| expression.matches_date(*date));
        let micros = |date: Date, second: i8| {
            let noon = date.at(12, 30, second, 0).to_zoned(TimeZone::UTC).unwrap();
            noon.timestamp().as_microsecond()
        };
        let expected: Vec<i64> = matching.map(|date| micros(date, 15)).collect();
        let text = expression.text();
        let trigger = Trigger::Cron { expression: text.parse().unwrap(), dst: Dst::default() };
        let calendar = Calendar::new(trigger, zone("UTC")).unwrap();
        let (from, until) = (micros(first, 0), micros(last, 59));
        let mut found = next(&calendar, from, expected.len() + 1);
        found.retain(|slot| *slot <= until);
        prop_assert_eq!(&found, &expected, "{}", text);
        prop_assert_eq!(calendar.count_slots(from, until), expected.len() as u64, "{}", text);
    }

    #[test]
    fn canonical_text_has_the_same_meaning(expression in expression(field(0, 59))) {
        let parsed: calendar::Cron = expression.text().parse().unwrap();
        let printed = parsed.to_string();
        let again: calendar::Cron = printed.parse().unwrap();
        prop_assert_eq!(&again, &parsed, "{}", printed);
        prop_assert_eq!(again.to_string(), printed);
        prop_assert_eq!(again.is_fixed_time(), expression.is_fixed_time());
    }
}

/// The daylight-saving rules handle one offset change at a time, which is correct only if no two
/// changes affect the same wall times.
#[test]
fn offset_changes_are_far_apart_in_every_zone() {
    let end = at("2045-01-01T00:00:00Z") / SECOND_US;
    for name in Zone::names() {
        let zone = TimeZone::get(name).unwrap();
        let mut last = (i64::MIN / 2, zone.to_offset(Timestamp::UNIX_EPOCH));
        for change in zone.following(Timestamp::UNIX_EPOCH) {
            let second = change.timestamp().as_second();
            if end < second {
                break;
            }
            if change.offset() != last.1 {
                let jump = i64::from((change.offset().seconds() - last.1.seconds()).abs());
                assert!(2 * jump < second - last.0, "{name} {}", change.timestamp());
                last = (second, change.offset());
            }
        }
    }
}
