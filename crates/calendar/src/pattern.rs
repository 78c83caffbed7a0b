//! Wall times that match, found without walking them: months by a mask of their days, then the
//! time within the day. Nothing here knows a zone.

use crate::END_S;
use crate::civil::{DAY_S, Date, Month};
use crate::cron::{Cron, YEAR_MAX, YEAR_MIN};
use crate::daily::Daily;

const LAST_SECOND: u32 = DAY_S as u32 - 1;

/// A set of wall times: the product of a set of days and a set of times of the day.
pub(crate) trait Pattern {
    /// The matching days of a month as bits 1 to 31; bits beyond its end do not count.
    fn days(&self, month: Month) -> u32;

    /// The first matching second of the day from this one on.
    fn time_from(&self, second: u32) -> Option<u32>;

    /// The last matching second of the day up to this one.
    fn time_until(&self, second: u32) -> Option<u32>;

    /// How many seconds of the day match before this one.
    fn times_before(&self, second: u32) -> u64;
}

/// The wall times of a trigger.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Walls<'a> {
    Cron(&'a Cron),
    Daily(Daily<'a>),
}

impl Pattern for Walls<'_> {
    fn days(&self, month: Month) -> u32 {
        match self {
            Walls::Cron(cron) => cron.days(month),
            Walls::Daily(daily) => daily.days(month),
        }
    }

    fn time_from(&self, second: u32) -> Option<u32> {
        match self {
            Walls::Cron(cron) => cron.time_from(second),
            Walls::Daily(daily) => daily.time_from(second),
        }
    }

    fn time_until(&self, second: u32) -> Option<u32> {
        match self {
            Walls::Cron(cron) => cron.time_until(second),
            Walls::Daily(daily) => daily.time_until(second),
        }
    }

    fn times_before(&self, second: u32) -> u64 {
        match self {
            Walls::Cron(cron) => cron.times_before(second),
            Walls::Daily(daily) => daily.times_before(second),
        }
    }
}

/// The first match at or after a wall time, in seconds since 1970 on that clock.
pub(crate) fn first_from(pattern: &impl Pattern, wall_s: i64) -> Option<i64> {
    let wall_s = wall_s.max(0);
    if END_S <= wall_s {
        return None;
    }
    let day = wall_s / DAY_S;
    let date = Date::of_day(day);
    let mut month = Month::of(date);
    let mut days = days_from(pattern.days(month) & real(month), date.day);
    if days & (1 << date.day) != 0 {
        if let Some(time) = pattern.time_from((wall_s % DAY_S) as u32) {
            return Some(day * DAY_S + i64::from(time));
        }
        days &= !(1 << date.day);
    }
    while days == 0 {
        month = month.next();
        if i64::from(YEAR_MAX) < month.year {
            return None;
        }
        days = pattern.days(month) & real(month);
    }
    let day = month.first_day() + i64::from(days.trailing_zeros()) - 1;
    pattern.time_from(0).map(|time| day * DAY_S + i64::from(time))
}

/// The last match at or before a wall time.
pub(crate) fn last_until(pattern: &impl Pattern, wall_s: i64) -> Option<i64> {
    let wall_s = wall_s.min(END_S - 1);
    let day = wall_s.div_euclid(DAY_S);
    let date = Date::of_day(day);
    let mut month = Month::of(date);
    if month.year < i64::from(YEAR_MIN) {
        return None;
    }
    let mut days = pattern.days(month) & real(month) & !days_from(u32::MAX, date.day + 1);
    if days & (1 << date.day) != 0 {
        if let Some(time) = pattern.time_until(wall_s.rem_euclid(DAY_S) as u32) {
            return Some(day * DAY_S + i64::from(time));
        }
        days &= !(1 << date.day);
    }
    while days == 0 {
        month = month.previous();
        if month.year < i64::from(YEAR_MIN) {
            return None;
        }
        days = pattern.days(month) & real(month);
    }
    let day = month.first_day() + i64::from(31 - days.leading_zeros()) - 1;
    pattern.time_until(LAST_SECOND).map(|time| day * DAY_S + i64::from(time))
}

/// How many wall times match from `start` to before `end`.
pub(crate) fn count(pattern: &impl Pattern, start_s: i64, end_s: i64) -> u64 {
    let (start_s, end_s) = (start_s.clamp(0, END_S), end_s.clamp(0, END_S));
    let (first, last) = (start_s / DAY_S, end_s / DAY_S);
    let part = |day: i64, wall_s: i64| {
        let date = Date::of_day(day);
        let matches = pattern.days(Month::of(date)) & (1 << date.day) != 0;
        if matches { pattern.times_before((wall_s % DAY_S) as u32) } else { 0 }
    };
    let whole = count_days(pattern, first, last) * pattern.times_before(DAY_S as u32);
    (whole + part(last, end_s)).saturating_sub(part(first, start_s))
}

/// How many days match from the first to before the last.
fn count_days(pattern: &impl Pattern, first: i64, last: i64) -> u64 {
    let mut month = Month::of(Date::of_day(first));
    let mut count = 0;
    let mut begin = month.first_day();
    while begin < last {
        let days = days_from(pattern.days(month) & real(month), (first - begin).max(0) as u32 + 1);
        let end = begin + i64::from(month.days());
        let late = if last < end { days_from(days, (last - begin) as u32 + 1) } else { 0 };
        count += u64::from((days & !late).count_ones());
        (month, begin) = (month.next(), end);
    }
    count
}

/// The days that a month has.
fn real(month: Month) -> u32 {
    !1 >> (31 - month.days())
}

fn days_from(days: u32, day: u32) -> u32 {
    days & u32::MAX.checked_shl(day).unwrap_or(0)
}
