//! Durations as users write them: `10s`, `5m`, `1h30m`, `2d`.
//!
//! A day is 24 hours and a week is 7 days: daylight saving has no effect. Months and years are not
//! supported, because their length varies.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::Hint;
use crate::hint::display_with_hint;
use crate::text::truncate_for_message;

/// Ten years.
pub const SPAN_MAX: Span = Span(3660 * DAY_MS);

const TEXT_BYTES_MAX: usize = 64;
const DAY_MS: i64 = 86_400_000;
/// Largest first, as they are printed.
const UNITS: [(&str, i64); 6] =
    [("w", 7 * DAY_MS), ("d", DAY_MS), ("h", 3_600_000), ("m", 60_000), ("s", 1000), ("ms", 1)];

/// A positive duration in whole milliseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct Span(i64);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidSpan {
    Malformed(String),
    OutOfRange(String),
}

display_with_hint!(InvalidSpan);

impl Hint for InvalidSpan {
    fn reason(&self) -> String {
        match self {
            InvalidSpan::Malformed(text) => format!("`{text}` is not a duration"),
            InvalidSpan::OutOfRange(text) => format!("`{text}` is out of range"),
        }
    }

    fn hint(&self) -> String {
        match self {
            InvalidSpan::Malformed(_) => "write it as `10s`, `5m`, `1h30m` or `2d`".to_owned(),
            InvalidSpan::OutOfRange(_) => format!("a duration is from 1ms to {SPAN_MAX}"),
        }
    }
}

impl Span {
    pub const fn from_millis(millis: i64) -> Option<Span> {
        if 0 < millis && millis <= SPAN_MAX.0 { Some(Span(millis)) } else { None }
    }

    pub const fn as_millis(self) -> i64 {
        self.0
    }

    pub const fn as_micros(self) -> i64 {
        self.0 * 1000
    }

    pub(crate) const fn from_days(days: i64) -> Span {
        Span(days * DAY_MS)
    }

    pub(crate) const fn from_seconds(seconds: i64) -> Span {
        Span(seconds * 1000)
    }

    /// `1 hour and 30 minutes`.
    pub fn describe(self) -> String {
        let names = [("d", "day"), ("h", "hour"), ("m", "minute"), ("s", "second")];
        let name = |unit| names.iter().find(|known| known.0 == unit).map_or(unit, |known| known.1);
        let parts = self.parts().into_iter().map(|(count, unit)| match (count, name(unit)) {
            (count, "ms") => format!("{count} ms"),
            (1, name) => format!("1 {name}"),
            (count, name) => format!("{count} {name}s"),
        });
        crate::cron::join_with_and(&parts.collect::<Vec<_>>())
    }

    /// Counts and units. Weeks are printed as days.
    fn parts(self) -> Vec<(i64, &'static str)> {
        let mut rest = self.0;
        let mut parts = Vec::new();
        for (unit, millis) in UNITS.into_iter().skip(1).filter(|(_, millis)| *millis <= self.0) {
            let count = rest / millis;
            rest %= millis;
            if 0 < count {
                parts.push((count, unit));
            }
        }
        parts
    }
}

impl FromStr for Span {
    type Err = InvalidSpan;

    /// Each unit may occur once, from the largest to the smallest.
    fn from_str(text: &str) -> Result<Span, InvalidSpan> {
        let malformed = || InvalidSpan::Malformed(truncate_for_message(text, TEXT_BYTES_MAX));
        let out_of_range = || InvalidSpan::OutOfRange(truncate_for_message(text, TEXT_BYTES_MAX));
        let mut rest = Some(text.trim()).filter(|text| text.len() <= TEXT_BYTES_MAX);
        let mut total: i64 = 0;
        let mut smallest = i64::MAX;
        while let Some(part) = rest.filter(|part| !part.is_empty()) {
            let (number, tail) = split_while(part, |c| c.is_ascii_digit());
            let (unit, tail) = split_while(tail, |c| c.is_ascii_alphabetic());
            let unit = UNITS.into_iter().find(|(name, _)| *name == unit).ok_or_else(malformed)?.1;
            if number.is_empty() || smallest <= unit {
                return Err(malformed());
            }
            let count = number.parse::<i64>().ok();
            let part = count.and_then(|count| count.checked_mul(unit)).ok_or_else(out_of_range)?;
            total = total.checked_add(part).ok_or_else(out_of_range)?;
            (smallest, rest) = (unit, Some(tail));
        }
        match smallest == i64::MAX {
            true => Err(malformed()),
            false => Span::from_millis(total).ok_or_else(out_of_range),
        }
    }
}

fn split_while(text: &str, is_part: impl Fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !is_part(c)).unwrap_or(text.len());
    text.split_at_checked(end).unwrap_or((text, ""))
}

impl fmt::Display for Span {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.parts().into_iter().try_for_each(|(count, unit)| write!(out, "{count}{unit}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        let printed = match text.parse::<Span>() {
            Ok(span) => {
                assert_eq!(span.to_string().parse(), Ok(span), "{text}");
                format!("{span}, {}", span.describe())
            }
            Err(error) => error.to_string(),
        };
        assert_eq!(printed, expected, "{text}");
    }

    #[test]
    fn spans_are_parsed_printed_and_described() {
        check("10s", "10s, 10 seconds");
        check("1h30m", "1h30m, 1 hour and 30 minutes");
        check("90m", "1h30m, 1 hour and 30 minutes");
        check(" 2d ", "2d, 2 days");
        check("1w1d1h1m1s1ms", "8d1h1m1s1ms, 8 days, 1 hour, 1 minute, 1 second and 1 ms");
        check("0h5m", "5m, 5 minutes");
        check("1500ms", "1s500ms, 1 second and 500 ms");
        check("3660d", "3660d, 3660 days");
    }

    #[test]
    fn malformed_and_out_of_range_spans_are_refused() {
        let malformed =
            |text| format!("`{text}` is not a duration: write it as `10s`, `5m`, `1h30m` or `2d`");
        let texts =
            ["", "5", "s", "5m1h", "5m5m", "-5m", "1.5h", "5 m", "5y", "5M", "1h 30m", "5µ"];
        for text in texts {
            check(text, &malformed(text));
        }
        check(&"1".repeat(65), &malformed(&format!("{}…", "1".repeat(32))));
        for text in ["0s", "3660d1ms", "99999999999999999999s", "9223372036854775807w"] {
            check(text, &format!("`{text}` is out of range: a duration is from 1ms to 3660d"));
        }
    }
}
