//! Slots in gaps and folds: one table per rule.

use calendar::{Calendar, Dst, Fold, Gap, Trigger};

use crate::support::{at, check, cron, cron_with, next, zone};

fn gap(gap: Gap) -> Dst {
    Dst { gap: Some(gap), fold: None }
}

fn fold(fold: Fold) -> Dst {
    Dst { gap: None, fold: Some(fold) }
}

fn daily(times: &str, weekdays: &str, zone_name: &str, dst: Dst) -> Calendar {
    let (times, weekdays) = (times.parse().unwrap(), weekdays.parse().unwrap());
    Calendar::new(Trigger::Daily { times, weekdays, dst }, zone(zone_name)).unwrap()
}

/// New York skips 02:00 to 03:00 on 8 March 2026; 03:00 is 07:00 UTC.
#[test]
fn fixed_times_in_a_gap_run_once_after_it() {
    let table: [(&str, &[&str]); 6] = [
        ("0 2 * * *", &["2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z"]),
        ("59 2 * * *", &["2026-03-08T07:00:00Z", "2026-03-09T06:59:00Z"]),
        ("0 3 * * *", &["2026-03-08T07:00:00Z", "2026-03-09T07:00:00Z"]),
        // The first instant after the gap matches, too, and is still one slot.
        ("0 2,3 * * *", &["2026-03-08T07:00:00Z", "2026-03-09T06:00:00Z", "2026-03-09T07:00:00Z"]),
        ("30 1-3 * * *", &["2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z"]),
        ("0 30 2 * * * 2026", &["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"]),
    ];
    for (expression, expected) in table {
        check(&cron(expression, "America/New_York"), "2026-03-08T06:00:00Z", expected);
    }
}

#[test]
fn star_expressions_skip_the_gap() {
    let table: [(&str, &[&str]); 4] = [
        ("* 2 * * *", &["2026-03-09T06:00:00Z", "2026-03-09T06:01:00Z"]),
        ("*/30 * * * *", &["2026-03-08T06:30:00Z", "2026-03-08T07:00:00Z"]),
        ("30 */2 * * *", &["2026-03-08T08:30:00Z", "2026-03-08T10:30:00Z"]),
        ("* 30 2 * * *", &["2026-03-09T06:30:00Z", "2026-03-09T06:30:01Z"]),
    ];
    for (expression, expected) in table {
        check(&cron(expression, "America/New_York"), "2026-03-08T06:00:00Z", expected);
    }
    // A range over the whole field is not a star.
    let ranges = cron("0 0-23/2 * * *", "America/New_York");
    check(&ranges, "2026-03-08T06:00:00Z", &["2026-03-08T07:00:00Z", "2026-03-08T08:00:00Z"]);
    // Only a leading star counts.
    let late = cron("0 2,* * * *", "America/New_York");
    check(&late, "2026-11-01T04:30:00Z", &["2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z"]);
}

#[test]
fn gap_rule_overrides_the_default() {
    let check = |expression: &str, dst: Dst, expected: &[&str]| {
        check(&cron_with(expression, "America/New_York", dst), "2026-03-08T05:30:00Z", expected);
    };
    check("0,30 2 * * *", gap(Gap::Skip), &["2026-03-09T06:00:00Z"]);
    check(
        "0,30 2 * * *",
        gap(Gap::Shift),
        &["2026-03-08T07:00:00Z", "2026-03-08T07:30:00Z", "2026-03-09T06:00:00Z"],
    );
    // A shifted time at the instant of another is one slot.
    check(
        "30 2,3 * * *",
        gap(Gap::Shift),
        &["2026-03-08T07:30:00Z", "2026-03-09T06:30:00Z", "2026-03-09T07:30:00Z"],
    );
    check("45 */2 * * *", gap(Gap::RunAfter), &["2026-03-08T05:45:00Z", "2026-03-08T07:00:00Z"]);
    check("45 */2 * * *", gap(Gap::Shift), &["2026-03-08T05:45:00Z", "2026-03-08T07:45:00Z"]);
}

/// In a gap of half an hour, shifted times mix with those that the clock shows.
#[test]
fn shifted_times_are_in_order() {
    let zone = "Australia/Lord_Howe"; // 02:00 becomes 02:30 on 4 October 2026, at 15:30 UTC.
    let check = |expression: &str, expected: &[&str]| {
        check(&cron_with(expression, zone, gap(Gap::Shift)), "2026-10-03T15:00:00Z", expected);
    };
    let [five, ten] = ["2026-10-03T15:35:00Z", "2026-10-03T15:40:00Z"];
    check("10,35 2 * * *", &[five, ten, "2026-10-04T15:10:00Z"]);
    check("5,40 2 * * *", &[five, ten, "2026-10-04T15:05:00Z"]);
    check("5,35 2 * * *", &[five, "2026-10-04T15:05:00Z"]);
    let both = cron_with("10,35 2 * * *", zone, gap(Gap::Shift));
    assert_eq!(both.last_at_or_before(at(ten)), Some(at(ten)));
    assert_eq!(both.count_slots(at("2026-10-03T15:00:00Z"), at(ten)), 2);
}

/// New York shows 01:00 to 02:00 twice on 1 November 2026: at 05:00 and at 06:00 UTC.
#[test]
fn fold_rule_overrides_the_default() {
    let check = |expression: &str, dst: Dst, expected: &[&str]| {
        check(&cron_with(expression, "America/New_York", dst), "2026-11-01T04:50:00Z", expected);
    };
    let day = ["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z", "2026-11-02T06:30:00Z"];
    check("30 1 * * *", Dst::default(), &[day[0], day[2]]);
    check("30 1 * * *", fold(Fold::First), &[day[0], day[2]]);
    check("30 1 * * *", fold(Fold::Second), &[day[1], day[2]]);
    check("30 1 * * *", fold(Fold::Both), &day);
    check(
        "*/30 1 * * *",
        fold(Fold::First),
        &["2026-11-01T05:00:00Z", day[0], "2026-11-02T06:00:00Z"],
    );
    check(
        "*/30 1 * * *",
        fold(Fold::Second),
        &["2026-11-01T06:00:00Z", day[1], "2026-11-02T06:00:00Z"],
    );
    // 01:00 is in the fold, 02:00 is not.
    check("0 1,2 * * *", Dst::default(), &["2026-11-01T05:00:00Z", "2026-11-01T07:00:00Z"]);
    check("0 1,2 * * *", fold(Fold::Second), &["2026-11-01T06:00:00Z", "2026-11-01T07:00:00Z"]);
}

#[test]
fn first_pass_slot_does_not_repeat_in_the_second_pass() {
    let calendar = cron("30 1 * * *", "America/New_York");
    for from in ["2026-11-01T05:30:00Z", "2026-11-01T06:00:00Z", "2026-11-01T06:29:59.999999Z"] {
        check(&calendar, from, &["2026-11-02T06:30:00Z"]);
    }
    let second = cron_with("30 1 * * *", "America/New_York", fold(Fold::Second));
    check(&second, "2026-11-01T05:00:00Z", &["2026-11-01T06:30:00Z"]);
}

/// A daily run at a midnight in a gap must not lose a day.
#[test]
fn midnight_in_a_gap() {
    let table = [
        ("Africa/Cairo", "2026-04-23T12:00:00Z", "2026-04-23T22:00:00Z", "2026-04-24T21:00:00Z"),
        ("America/Havana", "2026-03-07T12:00:00Z", "2026-03-08T05:00:00Z", "2026-03-09T04:00:00Z"),
        ("Asia/Beirut", "2026-03-28T12:00:00Z", "2026-03-28T22:00:00Z", "2026-03-29T21:00:00Z"),
        (
            "America/Santiago",
            "2026-09-05T12:00:00Z",
            "2026-09-06T04:00:00Z",
            "2026-09-07T03:00:00Z",
        ),
    ];
    for (zone_name, from, first, second) in table {
        check(&cron("@daily", zone_name), from, &[first, second]);
        check(&daily("00:00", "*", zone_name, Dst::default()), from, &[first, second]);
        check(
            &daily("00:30", "*", zone_name, gap(Gap::Skip)),
            from,
            &[&second.replace(":00:00", ":30:00")],
        );
        // The last minute of the day before is a slot of its own.
        check(&cron("59 23 * * *", zone_name), from, &[&minute_before(first)]);
    }
}

fn minute_before(text: &str) -> String {
    calendar::format_instant(at(text) - 60_000_000)
}

/// The fold starts or ends at midnight, so it touches two dates.
#[test]
fn fold_at_midnight() {
    let havana = "America/Havana"; // 01:00 becomes 00:00 on 1 November 2026.
    check(
        &cron("@daily", havana),
        "2026-10-31T12:00:00Z",
        &["2026-11-01T04:00:00Z", "2026-11-02T05:00:00Z"],
    );
    let cairo = "Africa/Cairo"; // 24:00 on 29 October 2026 becomes 23:00.
    check(
        &cron("30 23 * * *", cairo),
        "2026-10-29T12:00:00Z",
        &["2026-10-29T20:30:00Z", "2026-10-30T21:30:00Z"],
    );
    check(&cron("@daily", cairo), "2026-10-29T12:00:00Z", &["2026-10-29T22:00:00Z"]);
    check(
        &cron("30 * 29 * *", cairo),
        "2026-10-29T20:00:00Z",
        &["2026-10-29T20:30:00Z", "2026-10-29T21:30:00Z", "2026-11-28T22:30:00Z"],
    );
}

#[test]
fn half_hour_gap_and_fold_of_lord_howe() {
    let zone = "Australia/Lord_Howe";
    // 02:00 becomes 02:30 on 4 October 2026, and 02:00 becomes 01:30 on 5 April 2026.
    check(
        &cron("0,15,29,30 2 * * *", zone),
        "2026-10-03T15:00:00Z",
        &["2026-10-03T15:30:00Z", "2026-10-04T15:00:00Z"],
    );
    check(
        &cron("*/15 * * * *", zone),
        "2026-10-03T15:00:00Z",
        &["2026-10-03T15:15:00Z", "2026-10-03T15:30:00Z"],
    );
    check(
        &cron("*/15 1 * * *", zone),
        "2026-04-04T14:10:00Z",
        &[
            "2026-04-04T14:15:00Z",
            "2026-04-04T14:30:00Z",
            "2026-04-04T14:45:00Z",
            "2026-04-04T15:00:00Z",
            "2026-04-04T15:15:00Z",
            "2026-04-05T14:30:00Z",
        ],
    );
    check(
        &cron("45 1 * * *", zone),
        "2026-04-04T14:10:00Z",
        &["2026-04-04T14:45:00Z", "2026-04-05T15:15:00Z"],
    );
}

/// A skipped day is a correction of the zone, so the gap rule does not apply.
#[test]
fn skipped_day_has_no_slots() {
    let apia = ["2011-12-30T09:30:00Z", "2011-12-30T22:30:00Z"];
    for dst in [Dst::default(), gap(Gap::RunAfter), gap(Gap::Shift)] {
        // 29 December 23:30, then 31 December 12:30: the 30th does not exist.
        check(
            &cron_with("30 12,23 29-31 12 *", "Pacific/Apia", dst),
            "2011-12-30T00:00:00Z",
            &apia,
        );
        check(
            &cron_with("0 12 30 12 *", "Pacific/Apia", dst),
            "2011-12-29T00:00:00Z",
            &["2012-12-29T22:00:00Z"],
        );
    }
    check(
        &cron("0 0 21 8 *", "Pacific/Kwajalein"),
        "1993-08-01T00:00:00Z",
        &["1994-08-20T12:00:00Z"],
    );
}

#[test]
fn gap_rule_applies_to_gaps_of_up_to_three_hours() {
    // Troll: 01:00 becomes 03:00 on 29 March 2026.
    check(
        &cron("30 1,2 * * *", "Antarctica/Troll"),
        "2026-03-28T12:00:00Z",
        &["2026-03-29T01:00:00Z", "2026-03-29T23:30:00Z"],
    );
    // Casey: 00:00 became 03:00 on 22 October 2016, the longest gap to which the rule applies.
    check(
        &cron("0 1 * * *", "Antarctica/Casey"),
        "2016-10-21T00:00:00Z",
        &["2016-10-21T16:00:00Z", "2016-10-22T14:00:00Z"],
    );
}

#[test]
fn zones_with_changed_rules() {
    // Istanbul abolished winter time in 2016.
    let istanbul = cron("0 9 1 1,7 *", "Europe/Istanbul");
    check(
        &istanbul,
        "2015-06-01T00:00:00Z",
        &[
            "2015-07-01T06:00:00Z",
            "2016-01-01T07:00:00Z",
            "2016-07-01T06:00:00Z",
            "2017-01-01T06:00:00Z",
        ],
    );
    // Pyongyang moved by half an hour at 23:30 on 4 May 2018: the gap spans midnight.
    check(
        &cron("45 23 * * *", "Asia/Pyongyang"),
        "2018-05-04T00:00:00Z",
        &["2018-05-04T15:00:00Z", "2018-05-05T14:45:00Z"],
    );
    check(
        &cron("0 0 * * *", "Asia/Pyongyang"),
        "2018-05-04T00:00:00Z",
        &["2018-05-04T15:00:00Z", "2018-05-05T15:00:00Z"],
    );
    // London had summer time all year until October 1971.
    check(
        &cron("0 12 1 1 *", "Europe/London"),
        "1970-06-01T00:00:00Z",
        &["1971-01-01T11:00:00Z", "1972-01-01T12:00:00Z"],
    );
    // Monrovia was 44 minutes and 30 seconds behind until 1972.
    check(
        &cron("@daily", "Africa/Monrovia"),
        "1972-01-06T00:00:00Z",
        &["1972-01-06T00:44:30Z", "1972-01-07T00:44:30Z", "1972-01-08T00:00:00Z"],
    );
    // The last known rule applies to the far future.
    check(
        &cron("0 2 * 7 *", "America/New_York"),
        "2199-06-30T00:00:00Z",
        &["2199-07-01T06:00:00Z"],
    );
}

#[test]
fn daily_trigger_follows_the_fixed_time_rules() {
    let new_york = "America/New_York";
    check(
        &daily("02:30", "*", new_york, Dst::default()),
        "2026-03-07T12:00:00Z",
        &["2026-03-08T07:00:00Z", "2026-03-09T06:30:00Z"],
    );
    check(
        &daily("01:30", "*", new_york, Dst::default()),
        "2026-10-31T12:00:00Z",
        &["2026-11-01T05:30:00Z", "2026-11-02T06:30:00Z"],
    );
    check(
        &daily("01:30", "*", new_york, fold(Fold::Both)),
        "2026-10-31T12:00:00Z",
        &["2026-11-01T05:30:00Z", "2026-11-01T06:30:00Z"],
    );
    check(
        &daily("17:30:15,09:00", "MON-FRI", "UTC", Dst::default()),
        "2026-07-03T10:00:00Z",
        &["2026-07-03T17:30:15Z", "2026-07-06T09:00:00Z", "2026-07-06T17:30:15Z"],
    );
    let calendar = daily("09:00,17:30", "sat,sun", "Europe/Berlin", Dst::default());
    let expression = cron("0,30 9,17 * * 6,0", "Europe/Berlin");
    let subset = next(&calendar, at("2026-01-01T00:00:00Z"), 400);
    let all = next(&expression, at("2026-01-01T00:00:00Z"), 800);
    assert!(subset.iter().all(|slot| all.contains(slot)));
}

#[test]
fn intervals_ignore_the_zone() {
    let every: calendar::Span = "90m".parse().unwrap();
    let anchor_us = at("2026-03-08T06:00:00Z");
    let interval =
        Calendar::new(Trigger::Interval { every, anchor_us }, zone("America/New_York")).unwrap();
    check(
        &interval,
        "2026-03-01T00:00:00Z",
        &["2026-03-08T06:00:00Z", "2026-03-08T07:30:00Z", "2026-03-08T09:00:00Z"],
    );
    check(&interval, "2026-03-08T07:29:59.999999Z", &["2026-03-08T07:30:00Z"]);
    check(&interval, "2026-03-08T07:30:00Z", &["2026-03-08T09:00:00Z"]);
    assert_eq!(interval.last_at_or_before(anchor_us - 1), None);
    assert_eq!(interval.last_at_or_before(anchor_us), Some(anchor_us));
    assert_eq!(interval.count_slots(anchor_us - 1, anchor_us), 1);
    assert_eq!(interval.count_slots(anchor_us, at("2026-03-09T06:00:00Z")), 16);
    assert_eq!(interval.count_slots(i64::MIN, at("2026-03-09T06:00:00Z")), 17);
    assert_eq!(interval.count_slots(anchor_us, anchor_us), 0);
    assert_eq!(interval.count_slots(anchor_us, i64::MIN), 0);
}

#[test]
fn once_has_one_slot() {
    let at_us = at("2026-03-08T06:00:00.5Z");
    let once = Calendar::new(Trigger::Once { at_us }, zone("UTC")).unwrap();
    assert_eq!(once.next_after(at_us - 1), Some(at_us));
    assert_eq!(once.next_after(at_us), None);
    assert_eq!(once.last_at_or_before(at_us), Some(at_us));
    assert_eq!(once.last_at_or_before(at_us - 1), None);
    assert_eq!([once.count_slots(at_us - 1, at_us), once.count_slots(at_us, at_us + 1)], [1, 0]);
}
