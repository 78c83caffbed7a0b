//! The cron expressions and daily times of simulated schedules, each with its meaning.

use std::iter;

const DAY_S: i64 = 86_400;

/// A set of wall-clock times.
#[derive(Debug)]
pub(super) struct Pattern {
    /// The cron expression, if it has one.
    pub(super) cron: Option<&'static str>,
    /// Times and weekdays, if it has no expression.
    pub(super) daily: Option<(&'static str, Option<&'static str>)>,
    /// The text of the stored trigger.
    stored: &'static str,
    /// Whether neither minute nor hour has a star.
    pub(super) is_fixed: bool,
    minutes: &'static [(i64, i64)],
    /// Instead of pairs of hour and minute: a step in minutes, and the hours in which it applies.
    step: Option<(i64, std::ops::Range<i64>)>,
    seconds: &'static [i64],
    days: Days,
}

/// Sunday is 0.
#[derive(Debug)]
enum Days {
    All,
    Week(&'static [i64]),
    Month(&'static [i64]),
    /// A day that is in either list.
    Or(&'static [i64], &'static [i64]),
}

const fn cron(text: &'static str, is_fixed: bool) -> Pattern {
    Pattern {
        cron: Some(text),
        daily: None,
        stored: text,
        is_fixed,
        minutes: &[],
        step: None,
        seconds: &[0],
        days: Days::All,
    }
}

const fn daily(
    times: &'static str,
    on: Option<&'static str>,
    stored: &'static str,
    minutes: &'static [(i64, i64)],
) -> Pattern {
    Pattern { cron: None, daily: Some((times, on)), stored, minutes, ..cron("", true) }
}

pub(super) static PATTERNS: &[Pattern] = &[
    Pattern { step: Some((1, 0..24)), ..cron("* * * * *", false) },
    Pattern { step: Some((1, 0..24)), seconds: &[0, 20, 40], ..cron("*/20 * * * * *", false) },
    Pattern {
        step: Some((5, 9..18)),
        days: Days::Week(&[1, 2, 3, 4, 5]),
        ..cron("*/5 9-17 * * MON-FRI", false)
    },
    Pattern { step: Some((30, 1..2)), ..cron("*/30 1 * * *", false) },
    Pattern { step: Some((10, 0..24)), ..cron("*/10 * * * *", false) },
    Pattern { minutes: &[(2, 30)], ..cron("30 2 * * *", true) },
    Pattern { minutes: &[(2, 0), (2, 30)], ..cron("0,30 2 * * *", true) },
    Pattern { minutes: &[(0, 15)], days: Days::Month(&[1]), ..cron("15 0 1 * *", true) },
    Pattern { minutes: &[(0, 0)], days: Days::Or(&[13], &[5]), ..cron("0 0 13 * FRI", true) },
    daily("09:00", None, r#"["09:00"]"#, &[(9, 0)]),
    daily("00:00,02:30", None, r#"["00:00","02:30"]"#, &[(0, 0), (2, 30)]),
    Pattern {
        days: Days::Week(&[1, 2, 3, 4, 5]),
        ..daily(
            "01:15,02:15,23:59",
            Some("mon-fri"),
            r#"["01:15","02:15","23:59"]"#,
            &[(1, 15), (2, 15), (23, 59)],
        )
    },
];

pub(super) fn find(stored: &str) -> Option<&'static Pattern> {
    PATTERNS.iter().find(|pattern| pattern.stored == stored)
}

impl Pattern {
    /// The seconds of a wall-clock minute that are in the pattern.
    pub(super) fn seconds_in(&self, wall_s: i64) -> impl Iterator<Item = i64> + use<> {
        let (day, second) = (wall_s.div_euclid(DAY_S), wall_s.rem_euclid(DAY_S));
        let (hour, minute) = (second / 3_600, second / 60 % 60);
        let is_time = match &self.step {
            Some((step, hours)) => hours.contains(&hour) && minute % step == 0,
            None => self.minutes.contains(&(hour, minute)),
        };
        let is_day = || {
            // 1970-01-01 was a Thursday.
            let weekday = (day + 4).rem_euclid(7);
            match &self.days {
                Days::All => true,
                Days::Week(days) => days.contains(&weekday),
                Days::Month(days) => days.contains(&day_of_month(day)),
                Days::Or(month, week) => {
                    month.contains(&day_of_month(day)) || week.contains(&weekday)
                }
            }
        };
        let seconds = if is_time && is_day() { self.seconds } else { &[] };
        let mut rest = seconds.iter();
        iter::from_fn(move || rest.next().copied())
    }
}

/// Counts through the years.
fn day_of_month(day: i64) -> i64 {
    let is_leap = |year: i64| year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let (mut year, mut rest) = (1970, day);
    loop {
        let days = if is_leap(year) { 366 } else { 365 };
        if rest < days {
            break;
        }
        rest -= days;
        year += 1;
    }
    let february = if is_leap(year) { 29 } else { 28 };
    for days in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if rest < days {
            break;
        }
        rest -= days;
    }
    rest + 1
}
