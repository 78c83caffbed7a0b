//! Cron expressions with 5, 6 or 7 fields.
//!
//! An expression is the set of wall times that it matches, plus two facts about its text that the
//! rules ask for: which fields start with a star, and whether day-of-week starts with a plus. What
//! was typed is not kept: [`Cron`] prints one text for one meaning, and that text parses to it.

mod days;
mod describe;
mod field;
mod parse;
mod refusal;
mod warning;

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::civil::Month;
use crate::pattern::{Pattern, first_from};
pub use field::FieldName;
use field::{Field, Years, values_text};
pub use field::{YEAR_MAX, YEAR_MIN};
pub use refusal::{Problem, Refusal};
pub use warning::Warning;

use days::{MonthDays, WeekDays};
pub(crate) use days::{weekday_text, weekly};
pub(crate) use describe::{listed, weekday_list};
pub(crate) use parse::parse_weekdays;

/// Long enough for the longest text that an expression prints.
pub const EXPRESSION_BYTES_MAX: usize = 2048;

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Cron {
    // Invariant: no field is empty.
    seconds: Field,
    minutes: Field,
    hours: Field,
    days: MonthDays,
    months: Field,
    weekdays: WeekDays,
    /// A plus in front of day-of-week: both day fields must match.
    both: bool,
    years: Years,
}

/// An accepted expression, and what its author should know about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Parsed {
    pub cron: Cron,
    pub warnings: Vec<Warning>,
}

impl Cron {
    pub fn parse(text: &str) -> Result<Parsed, Refusal> {
        let mut parsed = parse::parse(text)?;
        let cron = &mut parsed.cron;
        // With a star in either day field both must match anyway.
        cron.both &= !cron.days.plain.star && !cron.weekdays.plain.star;
        Ok(parsed)
    }

    /// Whether it names times of the day: then a time that the clock skips is made up for, and a
    /// time that the clock shows twice is used once.
    pub fn is_fixed_time(&self) -> bool {
        !self.seconds.star && !self.minutes.star && !self.hours.star
    }

    /// In words, for every expression: `at 09:30 on Monday to Friday`.
    pub fn describe(&self) -> String {
        describe::describe(self)
    }

    /// Whether any date from 1970 to 2199 matches.
    pub fn ever_fires(&self) -> bool {
        first_from(self, 0).is_some()
    }

    /// What to suggest for an expression that never fires: mostly, the last day of a short month
    /// was meant.
    pub fn instead_of_never(&self) -> Option<Cron> {
        let days = MonthDays { from_last: 1, ..MonthDays::default() };
        let last_day = Cron { days, ..self.clone() };
        (!self.ever_fires() && last_day.ever_fires()).then_some(last_day)
    }

    fn either_day(&self) -> bool {
        !self.both && !self.days.plain.star && !self.weekdays.plain.star
    }
}

impl Pattern for Cron {
    fn days(&self, month: Month) -> u32 {
        if !self.months.has(month.month) || !self.years.has(month.year) {
            return 0;
        }
        let (days, weekdays) = (self.days.days(month), self.weekdays.days(month));
        if self.either_day() { days | weekdays } else { days & weekdays }
    }

    fn time_from(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        if self.hours.has(hour) {
            let this_minute = Some(second).filter(|_| self.minutes.has(minute));
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

    fn time_until(&self, second: u32) -> Option<u32> {
        let (hour, minute, second) = (second / 3600, second / 60 % 60, second % 60);
        let last_second = self.seconds.at_or_before(59)?;
        if self.hours.has(hour) {
            let this_minute = Some(second).filter(|_| self.minutes.has(minute));
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
        let minutes = if self.hours.has(hour) { minutes } else { 0 };
        let here = self.hours.has(hour) && self.minutes.has(minute);
        hours + minutes + if here { self.seconds.count_before(second) } else { 0 }
    }
}

impl fmt::Display for Cron {
    /// The shortest of 5, 6 and 7 fields that says it.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_years = self.years != Years::all();
        if has_years || self.seconds != Field::only(0) {
            write!(out, "{} ", self.seconds.text(FieldName::Second))?;
        }
        write!(out, "{} ", self.minutes.text(FieldName::Minute))?;
        write!(out, "{} ", self.hours.text(FieldName::Hour))?;
        write!(out, "{} ", self.days.text())?;
        write!(out, "{} ", self.months.text(FieldName::Month))?;
        write!(out, "{}{}", if self.both { "+" } else { "" }, self.weekdays.text())?;
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
    type Err = Refusal;

    fn from_str(text: &str) -> Result<Cron, Refusal> {
        Cron::parse(text).map(|parsed| parsed.cron)
    }
}
