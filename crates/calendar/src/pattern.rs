//! Finds matching wall times without iterating over all of them: first the month, by a mask of its
//! days, then the time of day. Independent of zones.

use crate::END_S;
use crate::civil::{DAY_S, Date, Month};
use crate::cron::{Cron, YEAR_MAX, YEAR_MIN};
use crate::daily::Daily;

const LAST_SECOND: u32 = DAY_S as u32 - 1;

/// A set of wall times: the product of a set of days and a set of times of day.
pub(crate) trait Pattern {
    /// The matching days of a month as bits 1 to 31; callers ignore bits past its last day.
    fn days(&self, month: Month) -> u32;

    /// The first matching second of the day at or after `second`.
    fn time_at_or_after(&self, second: u32) -> Option<u32>;

    /// The last matching second of the day at or before `second`.
    fn time_at_or_before(&self, second: u32) -> Option<u32>;

    /// The number of matching seconds of the day before `second`.
    fn times_before(&self, second: u32) -> u64;
}

/// The wall times of a trigger.
#[derive(Clone, Copy, Debug)]
pub(crate) enum WallPattern<'a> {
    Cron(&'a Cron),
    Daily(Daily<'a>),
}

impl Pattern for WallPattern<'_> {
    fn days(&self, month: Month) -> u32 {
        match self {
            WallPattern::Cron(cron) => cron.days(month),
            WallPattern::Daily(daily) => daily.days(month),
        }
    }

    fn time_at_or_after(&self, second: u32) -> Option<u32> {
        match self {
            WallPattern::Cron(cron) => cron.time_at_or_after(second),
            WallPattern::Daily(daily) => daily.time_at_or_after(second),
        }
    }

    fn time_at_or_before(&self, second: u32) -> Option<u32> {
        match self {
            WallPattern::Cron(cron) => cron.time_at_or_before(second),
            WallPattern::Daily(daily) => daily.time_at_or_before(second),
        }
    }

    fn times_before(&self, second: u32) -> u64 {
        match self {
            WallPattern::Cron(cron) => cron.times_before(second),
            WallPattern::Daily(daily) => daily.times_before(second),
        }
    }
}

/// The first match at or after a wall time, in seconds since 1970-01-01 00:00 wall time.
pub(crate) fn first_match_at_or_after(pattern: &impl Pattern, wall_s: i64) -> Option<i64> {
    let wall_s = wall_s.max(0);
    if END_S <= wall_s {
        return None;
    }
    let day = wall_s / DAY_S;
    let date = Date::from_day_number(day);
    let mut month = Month::of(date);
    let mut days = days_from(pattern.days(month) & month_mask(month), date.day);
    if days & (1 << date.day) != 0 {
        if let Some(time) = pattern.time_at_or_after((wall_s % DAY_S) as u32) {
            return Some(day * DAY_S + i64::from(time));
        }
        days &= !(1 << date.day);
    }
    while days == 0 {
        month = month.next();
        if i64::from(YEAR_MAX) < month.year {
            return None;
        }
        days = pattern.days(month) & month_mask(month);
    }
    let day = month.first_day() + i64::from(days.trailing_zeros()) - 1;
    pattern.time_at_or_after(0).map(|time| day * DAY_S + i64::from(time))
}

/// The last match at or before a wall time.
pub(crate) fn last_match_at_or_before(pattern: &impl Pattern, wall_s: i64) -> Option<i64> {
    let wall_s = wall_s.min(END_S - 1);
    let day = wall_s.div_euclid(DAY_S);
    let date = Date::from_day_number(day);
    let mut month = Month::of(date);
    if month.year < i64::from(YEAR_MIN) {
        return None;
    }
    let mut days = pattern.days(month) & month_mask(month) & !days_from(u32::MAX, date.day + 1);
    if days & (1 << date.day) != 0 {
        if let Some(time) = pattern.time_at_or_before(wall_s.rem_euclid(DAY_S) as u32) {
            return Some(day * DAY_S + i64::from(time));
        }
        days &= !(1 << date.day);
    }
    while days == 0 {
        month = month.previous();
        if month.year < i64::from(YEAR_MIN) {
            return None;
        }
        days = pattern.days(month) & month_mask(month);
    }
    let day = month.first_day() + i64::from(31 - days.leading_zeros()) - 1;
    pattern.time_at_or_before(LAST_SECOND).map(|time| day * DAY_S + i64::from(time))
}

/// The number of matching wall times from `start_s` to before `end_s`.
pub(crate) fn count_matches(pattern: &impl Pattern, start_s: i64, end_s: i64) -> u64 {
    let (start_s, end_s) = (start_s.clamp(0, END_S), end_s.clamp(0, END_S));
    let (first, last) = (start_s / DAY_S, end_s / DAY_S);
    let matches_in_day = |day: i64, wall_s: i64| {
        let date = Date::from_day_number(day);
        let matches = pattern.days(Month::of(date)) & (1 << date.day) != 0;
        if matches { pattern.times_before((wall_s % DAY_S) as u32) } else { 0 }
    };
    let whole_days = count_days(pattern, first, last) * pattern.times_before(DAY_S as u32);
    (whole_days + matches_in_day(last, end_s)).saturating_sub(matches_in_day(first, start_s))
}

/// The number of matching days from `first` to before `last`.
fn count_days(pattern: &impl Pattern, first: i64, last: i64) -> u64 {
    let mut month = Month::of(Date::from_day_number(first));
    let mut count = 0;
    let mut begin = month.first_day();
    while begin < last {
        let days =
            days_from(pattern.days(month) & month_mask(month), (first - begin).max(0) as u32 + 1);
        let end = begin + i64::from(month.days());
        let late = if last < end { days_from(days, (last - begin) as u32 + 1) } else { 0 };
        count += u64::from((days & !late).count_ones());
        (month, begin) = (month.next(), end);
    }
    count
}

/// The days of a month as bits, from bit 1 on.
fn month_mask(month: Month) -> u32 {
    !1 >> (31 - month.days())
}

fn days_from(days: u32, day: u32) -> u32 {
    days & u32::MAX.checked_shl(day).unwrap_or(0)
}
