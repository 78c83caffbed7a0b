//! A calendar month in UTC, and the names of its files.

use std::fmt;
use std::str::FromStr;

use serde::de::{self, Deserialize, Deserializer};
use serde::ser::{Serialize, Serializer};

const FILE_PREFIX: &str = "ledger-";
const LINES_SUFFIX: &str = ".ndjson.gz";
const NEW_LINES_SUFFIX: &str = ".ndjson.gz.new";
const MANIFEST_SUFFIX: &str = ".manifest";

const YEAR_MIN: i64 = 1970;
const YEAR_MAX: i64 = 9999;
const DAY_US: i64 = 24 * 60 * 60 * 1_000_000;

/// A month, written as `2026-07`. Invariant: `year` is 1970 to 9999, `month` 1 to 12.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Month {
    year: i64,
    month: i64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid month; write it as `2026-07`")]
pub struct NotAMonth;

/// The kinds of files of a month.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FileKind {
    Lines,
    /// Lines that replace the existing ones once the manifest is replaced.
    NewLines,
    Manifest,
}

impl Month {
    /// The month of an instant in microseconds since 1970, clamped to the years 1970 to 9999.
    pub fn containing(ts_us: i64) -> Month {
        let (year, month) = year_and_month(ts_us.div_euclid(DAY_US));
        if year < YEAR_MIN {
            return Month { year: YEAR_MIN, month: 1 };
        }
        if YEAR_MAX < year {
            return Month { year: YEAR_MAX, month: 12 };
        }
        Month { year, month }
    }

    pub fn lines_file_name(self) -> String {
        format!("{FILE_PREFIX}{self}{LINES_SUFFIX}")
    }

    /// The file for the lines of a month that is written again, until its manifest is replaced.
    pub fn new_lines_file_name(self) -> String {
        format!("{FILE_PREFIX}{self}{NEW_LINES_SUFFIX}")
    }

    pub fn manifest_file_name(self) -> String {
        format!("{FILE_PREFIX}{self}{MANIFEST_SUFFIX}")
    }

    /// `None` for a file that is not part of an export.
    pub(crate) fn parse_file_name(name: &str) -> Option<(Month, FileKind)> {
        let rest = name.strip_prefix(FILE_PREFIX)?;
        let suffixes = [
            (LINES_SUFFIX, FileKind::Lines),
            (NEW_LINES_SUFFIX, FileKind::NewLines),
            (MANIFEST_SUFFIX, FileKind::Manifest),
        ];
        let parse = |(suffix, kind)| Some((rest.strip_suffix(suffix)?.parse().ok()?, kind));
        suffixes.into_iter().find_map(parse)
    }
}

impl FromStr for Month {
    type Err = NotAMonth;

    fn from_str(text: &str) -> Result<Month, NotAMonth> {
        let (year, month) = text.split_once('-').ok_or(NotAMonth)?;
        let month = Month {
            year: year.parse().map_err(|_| NotAMonth)?,
            month: month.parse().map_err(|_| NotAMonth)?,
        };
        let in_range =
            (YEAR_MIN..=YEAR_MAX).contains(&month.year) && (1..=12).contains(&month.month);
        if in_range && month.to_string() == text { Ok(month) } else { Err(NotAMonth) }
    }
}

impl fmt::Display for Month {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:04}-{:02}", self.year, self.month)
    }
}

impl Serialize for Month {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Month {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Month, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(de::Error::custom)
    }
}

/// The year and month of a day counted from 1970, in the Gregorian calendar.
///
/// Internally a year starts in March, so that the leap day is its last day. Eras of 400 years all have
/// the same number of days.
fn year_and_month(day: i64) -> (i64, i64) {
    const ERA_DAYS: i64 = 146_097;
    const DAYS_FROM_MARCH_OF_YEAR_0_TO_1970: i64 = 719_468;

    let day = day + DAYS_FROM_MARCH_OF_YEAR_0_TO_1970;
    let day_of_era = day.rem_euclid(ERA_DAYS);
    let leap_days = day_of_era / 1_460 - day_of_era / 36_524 + day_of_era / 146_096;
    let year_of_era = (day_of_era - leap_days) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let months_after_march = (5 * day_of_year + 2) / 153;

    let year = day.div_euclid(ERA_DAYS) * 400 + year_of_era;
    if months_after_march < 10 {
        (year, months_after_march + 3)
    } else {
        (year + 1, months_after_march - 9)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(day: i64, expected: &str) {
        assert_eq!(Month::containing(day * DAY_US).to_string(), expected, "day {day}");
        assert_eq!(
            Month::containing(day * DAY_US + DAY_US - 1).to_string(),
            expected,
            "end of day {day}"
        );
    }

    #[test]
    fn first_and_last_days_belong_to_their_months() {
        check(0, "1970-01");
        check(30, "1970-01");
        check(31, "1970-02");
        check(58, "1970-02");
        check(59, "1970-03");
        check(364, "1970-12");
        check(365, "1971-01");
        check(11_016, "2000-02"); // The 29th: 2000 was a leap year.
        check(11_017, "2000-03");
        check(47_540, "2100-02"); // 2100 is not a leap year.
        check(47_541, "2100-03");
        check(2_932_896, "9999-12");
        check(2_932_897, "9999-12");
        check(-1, "1970-01");
    }

    #[test]
    fn every_month_has_its_calendar_length() {
        let mut day = 0;
        for year in 1970..2420 {
            let leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
            let february = if leap { 29 } else { 28 };
            for (month, days) in
                [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31].iter().enumerate()
            {
                let expected = (year, month as i64 + 1);
                assert_eq!(year_and_month(day), expected);
                assert_eq!(year_and_month(day + days - 1), expected);
                day += days;
            }
        }
    }

    #[test]
    fn only_the_canonical_text_parses() {
        for text in ["2026-07", "1970-01", "9999-12"] {
            assert_eq!(text.parse::<Month>().unwrap().to_string(), text);
        }
        for text in
            ["2026-7", "2026-13", "2026-00", "1969-12", "10000-01", "+999-01", "", "2026-07 "]
        {
            assert_eq!(text.parse::<Month>(), Err(NotAMonth), "{text}");
        }
    }

    #[test]
    fn file_names_parse_back_to_month_and_kind() {
        let month = Month::containing(0);
        assert_eq!(
            Month::parse_file_name(&month.lines_file_name()),
            Some((month, FileKind::Lines))
        );
        assert_eq!(
            Month::parse_file_name(&month.new_lines_file_name()),
            Some((month, FileKind::NewLines))
        );
        assert_eq!(
            Month::parse_file_name(&month.manifest_file_name()),
            Some((month, FileKind::Manifest))
        );
        assert_eq!(Month::parse_file_name("ledger-1970-01.ndjson.gz.tmp"), None);
        assert_eq!(Month::parse_file_name("checkpoints.log"), None);
    }
}
