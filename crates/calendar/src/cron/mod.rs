//! Cron expressions with 5, 6 or 7 fields.
//!
//! An expression is the set of wall times that it matches, plus two facts that change its meaning:
//! which fields start with a star, and whether day-of-week starts with a plus. The original text is
//! not kept: [`Cron`] prints one canonical text per meaning, and that text parses to the same value.

mod days;
mod describe;
mod error;
mod field;
mod parse;
mod warning;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::civil::Month;
use crate::pattern::{Pattern, first_match_at_or_after};
pub use error::{InvalidCron, Problem};
pub use field::FieldName;
use field::{Field, Years, values_text};
pub use field::{YEAR_MAX, YEAR_MIN};
pub use warning::Warning;

use days::{DayOfMonthField, DayOfWeekField};
pub(crate) use days::{days_on_weekdays, weekday_text};
pub(crate) use describe::{join_with_and, weekday_list};
pub(crate) use parse::parse_weekdays;

/// At least the length of the longest canonical text.
pub const EXPRESSION_BYTES_MAX: usize = 2048;

/// A cron expression.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cron {
    // Invariant: no field is empty.
    seconds: Field,
    minutes: Field,
    hours: Field,
    days: DayOfMonthField,
    months: Field,
    weekdays: DayOfWeekField,
    /// Set by a plus before day-of-week: both day fields must match.
    requires_both_days: bool,
    years: Years,
}

/// A valid expression, and warnings about its meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParsedCron {
    pub cron: Cron,
    pub warnings: Vec<Warning>,
}

impl Cron {
    pub fn parse(text: &str) -> Result<ParsedCron, InvalidCron> {
        let mut parsed = parse::parse(text)?;
        let cron = &mut parsed.cron;
        // With a star in either day field, both must match anyway.
        cron.requires_both_days &=
            !cron.days.plain.starts_with_star && !cron.weekdays.plain.starts_with_star;
        Ok(parsed)
    }

    /// Whether it names fixed times of day. By default, such a time runs after the gap if the clock
    /// skips it, and runs once if the clock shows it twice.
    pub fn is_fixed_time(&self) -> bool {
        !self.seconds.starts_with_star
            && !self.minutes.starts_with_star
            && !self.hours.starts_with_star
    }

    /// An English phrase: `at 09:30 on Monday to Friday`.
    pub fn describe(&self) -> String {
        describe::describe(self)
    }

    /// Whether any date from 1970 to 2199 matches.
    pub fn can_fire(&self) -> bool {
        first_match_at_or_after(self, 0).is_some()
    }

    /// A suggestion for an expression that never fires: usually the last day of a short month was
    /// meant. `None` if it fires.
    pub fn suggest_if_never(&self) -> Option<Cron> {
        let days = DayOfMonthField { from_last: 1, ..DayOfMonthField::default() };
        let last_day = Cron { days, ..self.clone() };
        (!self.can_fire() && last_day.can_fire()).then_some(last_day)
    }

    fn matches_either_day(&self) -> bool {
        !self.requires_both_days
            && !self.days.plain.starts_with_star
            && !self.weekdays.plain.starts_with_star
    }
}

impl Pattern for Cron {
    fn days(&self, month: Month) -> u32 {
        if !self.months.contains(month.month) || !self.years.contains(month.year) {
            return 0;
        }
        let (days, weekdays) = (self.days.days(month), self.weekdays.days(month));
        if self.matches_either_day() { days | weekdays } else { days & weekdays }
    }

    fn time_at_or_after(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        if self.hours.contains(hour) {
            let this_minute = Some(second).filter(|_| self.minutes.contains(minute));
            if let Some(second) = this_minute.and_then(|from| self.seconds.at_or_after(from)) {
                return Some(hour * 3600 + minute * 60 + second);
            }
            if let Some(minute) = self.minutes.at_or_after(minute + 1) {
                return Some(hour * 3600 + minute * 60 + self.seconds.at_or_after(0)?);
            }
        }
        let hour = self.hours.at_or_after(hour + 1)?;
        Some(hour * 3600 + self.minutes.at_or_after(0)? * 60 + self.seconds.at_or_after(0)?)
    }

    fn time_at_or_before(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let last_second = self.seconds.at_or_before(59)?;
        if self.hours.contains(hour) {
            let this_minute = Some(second).filter(|_| self.minutes.contains(minute));
            if let Some(second) = this_minute.and_then(|until| self.seconds.at_or_before(until)) {
                return Some(hour * 3600 + minute * 60 + second);
            }
            let minute = minute.checked_sub(1).and_then(|until| self.minutes.at_or_before(until));
            if let Some(minute) = minute {
                return Some(hour * 3600 + minute * 60 + last_second);
            }
        }
        let hour = self.hours.at_or_before(hour.checked_sub(1)?)?;
        Some(hour * 3600 + self.minutes.at_or_before(59)? * 60 + last_second)
    }

    fn times_before(&self, second: u32) -> u64 {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let (per_minute, per_hour) = (self.seconds.count(), self.minutes.count());
        let hours = self.hours.count_before(hour) * per_hour * per_minute;
        let minutes = self.minutes.count_before(minute) * per_minute;
        let minutes = if self.hours.contains(hour) { minutes } else { 0 };
        let here = self.hours.contains(hour) && self.minutes.contains(minute);
        hours + minutes + if here { self.seconds.count_before(second) } else { 0 }
    }
}

impl fmt::Display for Cron {
    /// The canonical text, with as few of 5, 6 or 7 fields as possible.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_years = self.years != Years::all();
        if has_years || self.seconds != Field::only(0) {
            write!(out, "{} ", self.seconds.text(FieldName::Second))?;
        }
        write!(out, "{} ", self.minutes.text(FieldName::Minute))?;
        write!(out, "{} ", self.hours.text(FieldName::Hour))?;
        write!(out, "{} ", self.days.text())?;
        write!(out, "{} ", self.months.text(FieldName::Month))?;
        write!(out, "{}{}", if self.requires_both_days { "+" } else { "" }, self.weekdays.text())?;
        match has_years {
            true => write!(out, " {}", values_text(FieldName::Year, &self.years.values())),
            false => Ok(()),
        }
    }
}

impl fmt::Debug for Cron {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "Cron({self})")
    }
}

impl FromStr for Cron {
    type Err = InvalidCron;

    fn from_str(text: &str) -> Result<Cron, InvalidCron> {
        Cron::parse(text).map(|parsed| parsed.cron)
    }
}
