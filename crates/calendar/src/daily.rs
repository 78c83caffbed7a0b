//! Times of the day on weekdays: the readable form of cron expressions with fixed times.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Advice;
use crate::advice::said_with_advice;
use crate::civil::Month;
use crate::cron::{Refusal, listed, parse_weekdays, weekday_list, weekday_text, weekly};
use crate::pattern::Pattern;
use crate::text::shorten;
use crate::wall::seconds_of_day;

pub const TIMES_MAX: usize = 100;

const TEXT_BYTES_MAX: usize = 1024;
const ALL_DAYS: u8 = 0x7f;

/// A time of the day, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct TimeOfDay(u32);

/// Some times of the day. Invariant: at least one, at most [`TIMES_MAX`], sorted, none twice.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "Vec<TimeOfDay>", try_from = "Vec<TimeOfDay>")]
pub struct Times(Vec<TimeOfDay>);

/// Some days of the week. Invariant: at least one; Sunday is bit 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Weekdays(u8);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidTimes {
    Malformed(String),
    Count(usize),
}

said_with_advice!(InvalidTimes);

impl Advice for InvalidTimes {
    fn reason(&self) -> String {
        match self {
            InvalidTimes::Malformed(text) => format!("`{text}` is not a time of the day"),
            InvalidTimes::Count(count) => format!("{count} times of the day"),
        }
    }

    fn advice(&self) -> String {
        match self {
            InvalidTimes::Malformed(_) => "write it as `09:00` or `09:00:30`".to_owned(),
            InvalidTimes::Count(_) => format!("at least one and at most {TIMES_MAX} are allowed"),
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

/// What a daily trigger matches.
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
        format!("at {} {days}", listed(&times))
    }
}

impl Pattern for Daily<'_> {
    fn days(&self, month: Month) -> u32 {
        weekly(u32::from(self.weekdays.0), month.first_weekday())
    }

    fn time_from(&self, second: u32) -> Option<u32> {
        let Times(times) = self.times;
        times.get(times.partition_point(|time| time.0 < second)).map(|time| time.0)
    }

    fn time_until(&self, second: u32) -> Option<u32> {
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
        let malformed = || InvalidTimes::Malformed(shorten(text, TEXT_BYTES_MAX / 16));
        seconds_of_day(text.trim()).map(TimeOfDay).ok_or_else(malformed)
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

    /// A list with commas: `09:00,17:30`.
    fn from_str(text: &str) -> Result<Times, InvalidTimes> {
        if TEXT_BYTES_MAX < text.len() {
            return Err(InvalidTimes::Malformed(shorten(text, TEXT_BYTES_MAX / 16)));
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
    type Err = Refusal;

    /// As in the day-of-week field of cron: `MON-FRI`, `sat,sun`, `1,3`, `*`.
    fn from_str(text: &str) -> Result<Weekdays, Refusal> {
        parse_weekdays(text.trim()).map(|bits| Weekdays(bits & ALL_DAYS))
    }
}

impl fmt::Display for Weekdays {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&weekday_text(self.0))
    }
}
