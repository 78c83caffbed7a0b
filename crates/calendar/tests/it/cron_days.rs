//! Which days match: tables for every form of the day fields, and the first and last year.

use crate::support::{check, cron};

fn check_days(expression: &str, from: &str, expected: &[&str]) {
    let expected: Vec<String> = expected.iter().map(|day| format!("{day}T00:00:00Z")).collect();
    let expected: Vec<&str> = expected.iter().map(String::as_str).collect();
    let calendar = cron(&format!("0 0 {expression}"), "UTC");
    check(&calendar, &format!("{from}T00:00:00Z"), &expected);
}

#[test]
fn days_counted_from_the_end_of_the_month() {
    check_days("L * *", "2027-01-31", &["2027-02-28", "2027-03-31", "2027-04-30"]);
    check_days("L-1 2 *", "2027-01-01", &["2027-02-27", "2028-02-28"]);
    // Only months of 31 days have an `L-30`.
    check_days("L-30 * *", "2027-01-02", &["2027-03-01", "2027-05-01", "2027-07-01"]);
    check_days("L-29 * *", "2027-01-02", &["2027-03-02", "2027-04-01"]);
    check_days("L,L-1,15 * *", "2027-02-01", &["2027-02-15", "2027-02-27", "2027-02-28"]);
    check_days("l * *", "2027-01-31", &["2027-02-28"]);
}

#[test]
fn nearest_weekday_stays_in_the_month() {
    // 31 January 2027 is a Sunday, 28 February too; 31 March is a Wednesday.
    check_days("LW * *", "2027-01-01", &["2027-01-29", "2027-02-26", "2027-03-31"]);
    // 1 May 2027 is a Saturday: on to Monday the 3rd, not back into April.
    check_days("1W 5 *", "2027-01-01", &["2027-05-03"]);
    // 1 August 2027 is a Sunday.
    check_days("1W 8 *", "2027-01-01", &["2027-08-02"]);
    // 31 July 2027 is a Saturday, 31 October a Sunday: back, not into the next month.
    check_days("31W 7,10 *", "2027-01-01", &["2027-07-30", "2027-10-29", "2028-07-31"]);
    // 28 February 2027 is a Sunday and the last day.
    check_days("28W 2 *", "2027-01-01", &["2027-02-26", "2028-02-28"]);
    // A day that the month does not have never matches, even if it would be a Saturday or a Sunday.
    check_days("30W,31W 2 *", "2027-01-01", &[]);
    check_days("31W * *", "2027-04-01", &["2027-05-31", "2027-07-30"]);
    check_days("31W 4,6,9,11 *", "1970-01-01", &[]);
    check_days("15W,16W 5 *", "2027-01-01", &["2027-05-14", "2027-05-17"]);
}

#[test]
fn nth_and_last_weekday_of_the_month() {
    check_days("* * 1#1", "2027-01-01", &["2027-01-04", "2027-02-01", "2027-03-01"]);
    // February 2027 has exactly four weeks, so no weekday occurs a fifth time.
    check_days("* * mon#5", "2027-01-01", &["2027-03-29", "2027-05-31", "2027-08-30"]);
    check_days("* * 7#2", "2027-01-01", &["2027-01-10", "2027-02-14"]);
    check_days("* * 5L", "2027-01-01", &["2027-01-29", "2027-02-26"]);
    check_days("* * SunL", "2027-01-01", &["2027-01-31", "2027-02-28"]);
    check_days("* * 0#L,0#1", "2027-01-01", &["2027-01-03", "2027-01-31", "2027-02-07"]);
    check_days("* 2 2#3,TUE#4", "2027-01-01", &["2027-02-16", "2027-02-23", "2028-02-15"]);
}

#[test]
fn weekdays_by_number_name_and_range() {
    let week = ["2027-01-04", "2027-01-05", "2027-01-06", "2027-01-07", "2027-01-08", "2027-01-09"];
    check_days("* * 1-6", "2027-01-03", &week);
    check_days("* * mon-SAT", "2027-01-03", &week);
    check_days("* * 0", "2027-01-01", &["2027-01-03", "2027-01-10"]);
    check_days("* * 7", "2027-01-01", &["2027-01-03", "2027-01-10"]);
    check_days("* * 5-7", "2027-01-01", &["2027-01-02", "2027-01-03", "2027-01-08"]);
    check_days("* * SUN-MON", "2027-01-01", &["2027-01-03", "2027-01-04", "2027-01-10"]);
    check_days("* * 0-7", "2027-01-01", &["2027-01-02", "2027-01-03", "2027-01-04"]);
    check_days("* * SUN-SUN", "2027-01-01", &["2027-01-03", "2027-01-10"]);
    // Steps count from the start of the range: Tuesday, Thursday, Saturday.
    check_days("* * 2-7/2", "2027-01-03", &["2027-01-05", "2027-01-07", "2027-01-09"]);
    check_days("* * */3", "2027-01-01", &["2027-01-02", "2027-01-03", "2027-01-06"]);
}

/// If a day field starts with `*` or `?`, or with a plus, both must match; otherwise either.
#[test]
fn combination_of_the_two_day_fields() {
    let fridays_the_13th = ["2026-02-13", "2026-03-13", "2026-11-13"];
    check_days("13 * +FRI", "2026-01-01", &fridays_the_13th);
    check_days("13 * FRI", "2026-02-10", &["2026-02-13", "2026-02-20", "2026-02-27", "2026-03-06"]);
    check_days("? * FRI", "2026-02-10", &["2026-02-13", "2026-02-20"]);
    check_days("13 * ?", "2026-02-10", &["2026-02-13", "2026-03-13"]);
    check_days("*/2 * MON", "2026-03-01", &["2026-03-09", "2026-03-23", "2026-04-13"]);
    check_days("*/2 * +MON", "2026-03-01", &["2026-03-09", "2026-03-23", "2026-04-13"]);
    check_days("1-31/2 * MON", "2026-03-01", &["2026-03-02", "2026-03-03", "2026-03-05"]);
    check_days("1 * */2", "2026-01-01", &["2026-02-01", "2026-03-01", "2026-08-01"]);
    check_days("*,13 * FRI", "2026-02-10", &["2026-02-13", "2026-02-20"]);
    // Only a leading star counts.
    check_days("13,* * FRI", "2026-02-10", &["2026-02-11", "2026-02-12", "2026-02-13"]);
    check_days("L * FRI", "2026-02-10", &["2026-02-13", "2026-02-20", "2026-02-27", "2026-02-28"]);
    check_days("L * +FRI", "2026-01-01", &["2026-07-31", "2027-04-30"]);
    check_days("1-7 * +MON", "2026-01-01", &["2026-01-05", "2026-02-02"]);
}

#[test]
fn leap_days() {
    let century = ["2088-02-29", "2092-02-29", "2096-02-29", "2104-02-29", "2108-02-29"];
    check_days("29 2 *", "2087-01-01", &century);
    check_days("29 2 +MON", "2044-01-01", &["2044-02-29", "2072-02-29", "2112-02-29"]);
    check_days("29 2 0", "2103-12-01", &["2104-02-03", "2104-02-10", "2104-02-17", "2104-02-24"]);
}

#[test]
fn first_and_last_year() {
    check(&cron("0 0 0 1 1 * 1970", "UTC"), "1970-01-01T00:00:00Z", &[]);
    let first = cron("0 0 0 1 1 * 1970", "UTC");
    assert_eq!([first.next_after(i64::MIN), first.next_after(-1)], [Some(0), Some(0)]);
    assert_eq!([first.last_at_or_before(i64::MAX), first.last_at_or_before(-1)], [Some(0), None]);
    let last = cron("59 59 23 31 12 * 2199", "UTC");
    check(&last, "1970-01-01T00:00:00Z", &["2199-12-31T23:59:59Z"]);
    let minutes = cron("* * * * *", "UTC");
    check(&minutes, "2199-12-31T23:58:00Z", &["2199-12-31T23:59:00Z"]);
    for calendar in [&minutes, &last, &cron("0 0 * * *", "America/New_York")] {
        assert_eq!(calendar.next_after(i64::MAX), None);
        assert_eq!(calendar.last_at_or_before(i64::MIN), None);
        assert_eq!(calendar.next_after(calendar.last_at_or_before(i64::MAX).unwrap()), None);
        assert_eq!(calendar.last_at_or_before(calendar.next_after(i64::MIN).unwrap() - 1), None);
    }
    let years = cron("0 0 12 1 7 * 2027-2031/2,2040", "UTC");
    check(
        &years,
        "2026-01-01T00:00:00Z",
        &[
            "2027-07-01T12:00:00Z",
            "2029-07-01T12:00:00Z",
            "2031-07-01T12:00:00Z",
            "2040-07-01T12:00:00Z",
        ],
    );
}

#[test]
fn impossible_dates_are_accepted_and_never_fire() {
    for expression in ["0 0 31 2 *", "0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 1-7 * +MON#3"] {
        let calendar = cron(expression, "Europe/Berlin");
        assert_eq!(calendar.next_after(i64::MIN), None, "{expression}");
        assert_eq!(calendar.last_at_or_before(i64::MAX), None, "{expression}");
        assert_eq!(calendar.count_slots(i64::MIN, i64::MAX), 0, "{expression}");
    }
    let suggested = |text: &str| {
        let cron: calendar::Cron = text.parse().unwrap();
        cron.suggest_if_never().map(|cron| cron.to_string())
    };
    assert_eq!(suggested("0 0 31 2 *").as_deref(), Some("0 0 L FEB *"));
    assert_eq!(suggested("0 0 29 2 *"), None);
}

#[test]
fn slots_are_counted_across_daylight_saving() {
    let us = |text| crate::support::at(text);
    let seconds = cron("* * * * * *", "America/New_York");
    let (start, end) = (us("2026-03-01T05:00:00Z"), us("2026-04-01T04:00:00Z"));
    assert_eq!(seconds.count_slots(start, end), 31 * 86_400 - 3600);
    let year = (us("2026-01-01T05:00:00Z") - 1, us("2027-01-01T05:00:00Z") - 1);
    assert_eq!(cron("0 2 * * *", "America/New_York").count_slots(year.0, year.1), 365);
    assert_eq!(cron("0 * * * *", "America/New_York").count_slots(year.0, year.1), 8760);
    assert_eq!(seconds.count_slots(i64::MIN, i64::MAX), 84_006 * 86_400);
    assert_eq!(seconds.count_slots(end, start), 0);
}
