//! Times of day on weekdays: a readable alternative to cron expressions with fixed times.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Hint;
use crate::civil::Month;
use crate::cron::{
    InvalidCron, days_on_weekdays, join_with_and, parse_weekdays, weekday_list, weekday_text,
};
use crate::hint::display_with_hint;
use crate::pattern::Pattern;
use crate::text::truncate_for_message;
use crate::wall::parse_seconds_of_day;

pub const TIMES_MAX: usize = 100;

const TEXT_BYTES_MAX: usize = 1024;
const ALL_DAYS: u8 = 0x7f;

/// A time of day, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TimeOfDay(u32);

/// A set of times of day. Invariant: at least one, at most [`TIMES_MAX`], sorted, unique.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<TimeOfDay>", try_from = "Vec<TimeOfDay>")]
pub struct Times(Vec<TimeOfDay>);

/// A set of weekdays. Invariant: at least one; Sunday is bit 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Weekdays(u8);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidTimes {
    Malformed(String),
    Count(usize),
}

display_with_hint!(InvalidTimes);

impl Hint for InvalidTimes {
    fn reason(&self) -> String {
        match self {
            InvalidTimes::Malformed(text) => format!("`{text}` is not a time of day"),
            InvalidTimes::Count(count) => format!("{count} times of day"),
        }
    }

    fn hint(&self) -> String {
        match self {
            InvalidTimes::Malformed(_) => "write it as `09:00` or `09:00:30`".to_owned(),
            InvalidTimes::Count(_) => format!("1 to {TIMES_MAX} are allowed"),
        }
    }
}

impl Times {
    pub fn iter(&self) -> impl Iterator<Item = TimeOfDay> {
        self.0.iter().copied()
    }
}

impl Weekdays {
    pub const ALL: Weekdays = Weekdays(ALL_DAYS);
}

impl Default for Weekdays {
    fn default() -> Weekdays {
        Weekdays::ALL
    }
}

/// The pattern of a daily trigger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Daily<'a> {
    pub(crate) times: &'a Times,
    pub(crate) weekdays: Weekdays,
}

impl Daily<'_> {
    pub(crate) fn describe(&self) -> String {
        let times: Vec<String> = self.times.iter().map(|time| time.to_string()).collect();
        let days = match self.weekdays {
            Weekdays::ALL => "every day".to_owned(),
            Weekdays(days) => format!("on {}", weekday_list(u32::from(days))),
        };
        format!("at {} {days}", join_with_and(&times))
    }
}

impl Pattern for Daily<'_> {
    fn days(&self, month: Month) -> u32 {
        days_on_weekdays(u32::from(self.weekdays.0), month.first_weekday())
    }

    fn time_at_or_after(&self, second: u32) -> Option<u32> {
        let Times(times) = self.times;
        times.get(times.partition_point(|time| time.0 < second)).map(|time| time.0)
    }

    fn time_at_or_before(&self, second: u32) -> Option<u32> {
        let Times(times) = self.times;
        let after = times.partition_point(|time| time.0 <= second);
        times.get(after.checked_sub(1)?).map(|time| time.0)
    }

    fn times_before(&self, second: u32) -> u64 {
        self.times.0.partition_point(|time| time.0 < second) as u64
    }
}

impl FromStr for TimeOfDay {
    type Err = InvalidTimes;

    fn from_str(text: &str) -> Result<TimeOfDay, InvalidTimes> {
        let malformed = || InvalidTimes::Malformed(truncate_for_message(text, TEXT_BYTES_MAX / 16));
        parse_seconds_of_day(text.trim()).map(TimeOfDay).ok_or_else(malformed)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:02}:{:02}", self.0 / 3600, self.0 / 60 % 60)?;
        match self.0 % 60 {
            0 => Ok(()),
            second => write!(out, ":{second:02}"),
        }
    }
}

impl FromStr for Times {
    type Err = InvalidTimes;

    /// A comma-separated list: `09:00,17:30`.
    fn from_str(text: &str) -> Result<Times, InvalidTimes> {
        if TEXT_BYTES_MAX < text.len() {
            return Err(InvalidTimes::Malformed(truncate_for_message(text, TEXT_BYTES_MAX / 16)));
        }
        let times: Result<Vec<TimeOfDay>, InvalidTimes> = text.split(',').map(str::parse).collect();
        times?.try_into()
    }
}

impl TryFrom<Vec<TimeOfDay>> for Times {
    type Error = InvalidTimes;

    fn try_from(mut times: Vec<TimeOfDay>) -> Result<Times, InvalidTimes> {
        times.sort_unstable();
        times.dedup();
        match times.len() {
            1..=TIMES_MAX => Ok(Times(times)),
            count => Err(InvalidTimes::Count(count)),
        }
    }
}

impl From<Times> for Vec<TimeOfDay> {
    fn from(times: Times) -> Vec<TimeOfDay> {
        times.0
    }
}

impl FromStr for Weekdays {
    type Err = InvalidCron;

    /// As in the day-of-week field of cron: `MON-FRI`, `sat,sun`, `1,3`, `*`.
    fn from_str(text: &str) -> Result<Weekdays, InvalidCron> {
        parse_weekdays(text.trim()).map(|bits| Weekdays(bits & ALL_DAYS))
    }
}

impl fmt::Display for Weekdays {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&weekday_text(self.0))
    }
}
