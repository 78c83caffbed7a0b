//! Wall times, and parsing and printing of instants.
//!
//! Instants are RFC 3339, from 1970 to 2199, to the microsecond. A text without an offset is a
//! wall time and needs a zone. If the zone's clock skips it or shows it twice, parsing fails with the
//! two candidates, because only the user knows which one was meant.

use std::fmt;

use crate::civil::{DAY_S, Date, SECOND_US};
use crate::hint::display_with_hint;
use crate::text::truncate_for_message;
use crate::zone::WallResolution;
use crate::{END_US, Hint, START_US, Zone};

const TEXT_BYTES_MAX: usize = 64;

/// Date and time of day in a zone, with the UTC offset at that time. Ordered by wall clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct WallTime {
    local_us: i64,
    offset_s: i64,
}

impl WallTime {
    pub(crate) fn new(at_us: i64, offset_s: i64) -> WallTime {
        WallTime { local_us: at_us.saturating_add(offset_s * SECOND_US), offset_s }
    }

    /// Microseconds since 1970-01-01 00:00 *wall time*: for comparing wall times, not instants.
    pub fn local_us(self) -> i64 {
        self.local_us
    }

    /// What a calendar and a clock on the wall show.
    pub fn civil(self) -> CivilTime {
        let seconds = self.local_us.div_euclid(SECOND_US);
        let Date { year, month, day } = Date::from_day_number(seconds.div_euclid(DAY_S));
        let of_day = seconds.rem_euclid(DAY_S);
        let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
        CivilTime { year, month, day, hour, minute, second }
    }
}

/// A date and a time of day, to the second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CivilTime {
    pub year: i64,
    /// 1 to 12.
    pub month: u32,
    /// 1 to 31.
    pub day: u32,
    pub hour: i64,
    pub minute: i64,
    pub second: i64,
}

impl fmt::Display for WallTime {
    /// RFC 3339 with the offset, which has seconds in a few historical zones.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_local(out, *self)?;
        let sign = if self.offset_s < 0 { '-' } else { '+' };
        let offset = self.offset_s.abs();
        write!(out, "{sign}{:02}:{:02}", offset / 3600, offset / 60 % 60)?;
        match offset % 60 {
            0 => Ok(()),
            seconds => write!(out, ":{seconds:02}"),
        }
    }
}

fn write_local(out: &mut impl fmt::Write, time: WallTime) -> fmt::Result {
    let CivilTime { year, month, day, hour, minute, second } = time.civil();
    write!(out, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}")?;
    match time.local_us.rem_euclid(SECOND_US) {
        0 => Ok(()),
        fraction => write!(out, "{}", format!(".{fraction:06}").trim_end_matches('0')),
    }
}

/// An instant in microseconds since 1970, as RFC 3339 in UTC.
pub fn format_instant(at_us: i64) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_local(&mut text, WallTime::new(at_us, 0));
    text + "Z"
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidInstant {
    Malformed(String),
    OutOfRange(String),
    NoZone(String),
    Skipped { text: String, zone: Zone, candidates_us: [i64; 2] },
    Repeated { text: String, zone: Zone, candidates_us: [i64; 2] },
}

display_with_hint!(InvalidInstant);

impl Hint for InvalidInstant {
    fn reason(&self) -> String {
        match self {
            InvalidInstant::Malformed(text) => format!("`{text}` is not a timestamp"),
            InvalidInstant::OutOfRange(text) => format!("`{text}` is out of range"),
            InvalidInstant::NoZone(text) => format!("`{text}` has no offset"),
            InvalidInstant::Skipped { text, zone, .. } => {
                format!("in {zone} the clock skips `{text}`")
            }
            InvalidInstant::Repeated { text, zone, .. } => {
                format!("in {zone} the clock shows `{text}` twice")
            }
        }
    }

    fn hint(&self) -> String {
        match self {
            InvalidInstant::Malformed(_) => {
                "write it as `2026-07-01T09:00:00Z` or with an offset".to_owned()
            }
            InvalidInstant::OutOfRange(_) => "timestamps are from 1970 to 2199".to_owned(),
            InvalidInstant::NoZone(_) => {
                "add `Z` or an offset such as `+02:00`, or name a zone".to_owned()
            }
            InvalidInstant::Skipped { zone, candidates_us, .. }
            | InvalidInstant::Repeated { zone, candidates_us, .. } => {
                format!("use {}", format_candidates(candidates_us, zone))
            }
        }
    }
}

fn format_candidates(candidates_us: &[i64; 2], zone: &Zone) -> String {
    let [first, second] = candidates_us
        .map(|at_us| format!("`{}` ({})", format_instant(at_us), zone.wall_time(at_us)));
    format!("{first} or {second}")
}

impl InvalidInstant {
    /// The instants that a skipped or repeated wall time may mean, in microseconds since 1970.
    pub fn candidates_us(&self) -> &[i64] {
        match self {
            InvalidInstant::Skipped { candidates_us, .. }
            | InvalidInstant::Repeated { candidates_us, .. } => candidates_us,
            InvalidInstant::Malformed(_)
            | InvalidInstant::OutOfRange(_)
            | InvalidInstant::NoZone(_) => &[],
        }
    }
}

/// Parses an instant to microseconds since 1970. A text without an offset is a wall time in `zone`.
pub fn parse_instant(text: &str, zone: Option<&Zone>) -> Result<i64, InvalidInstant> {
    let quoted = || truncate_for_message(text, TEXT_BYTES_MAX);
    let parsed = if text.len() <= TEXT_BYTES_MAX { ParsedInstant::parse(text) } else { None };
    let ParsedInstant { local_us, offset_s } =
        parsed.ok_or_else(|| InvalidInstant::Malformed(quoted()))?;
    let at_us = match (offset_s, zone) {
        (Some(offset_s), _) => local_us - offset_s * SECOND_US,
        (None, Some(zone)) => resolve_in_zone(local_us, zone, &quoted())?,
        (None, None) => return Err(InvalidInstant::NoZone(quoted())),
    };
    match (START_US..=END_US).contains(&at_us) {
        true => Ok(at_us),
        false => Err(InvalidInstant::OutOfRange(quoted())),
    }
}

fn resolve_in_zone(local_us: i64, zone: &Zone, text: &str) -> Result<i64, InvalidInstant> {
    let (text, zone, fraction) = (text.to_owned(), zone.clone(), local_us.rem_euclid(SECOND_US));
    let micros = |seconds: i64| seconds * SECOND_US;
    match zone.resolve_wall(local_us.div_euclid(SECOND_US)) {
        WallResolution::Unique(second) => Ok(micros(second) + fraction),
        WallResolution::Gap { after_s, shifted_s } => {
            let candidates_us = [micros(after_s), micros(shifted_s) + fraction];
            Err(InvalidInstant::Skipped { text, zone, candidates_us })
        }
        WallResolution::Fold { first_s, second_s } => {
            let candidates_us = [first_s, second_s].map(|second| micros(second) + fraction);
            Err(InvalidInstant::Repeated { text, zone, candidates_us })
        }
    }
}

struct ParsedInstant {
    local_us: i64,
    offset_s: Option<i64>,
}

impl ParsedInstant {
    fn parse(text: &str) -> Option<ParsedInstant> {
        let text = text.trim();
        let (date, rest) = text.split_once(['T', 't', ' '])?;
        let offset_at = rest.find(['Z', 'z', '+', '-']).unwrap_or(rest.len());
        let (time, offset) = rest.split_at_checked(offset_at)?;
        let local_us = parse_date(date)? * DAY_S * SECOND_US + parse_time(time)?;
        Some(ParsedInstant { local_us, offset_s: parse_offset(offset)? })
    }
}

/// `YYYY-MM-DD` as the number of the day since 1970-01-01.
fn parse_date(text: &str) -> Option<i64> {
    let mut parts = text.split('-');
    let (year, month, day) = (parts.next()?, parts.next()?, parts.next()?);
    let date = Date {
        year: parse_digits(year, 4)?,
        month: parse_digits(month, 2)? as u32,
        day: parse_digits(day, 2)? as u32,
    };
    (parts.next().is_none() && date.is_valid()).then(|| date.day_number())
}

/// `HH:MM`, `HH:MM:SS` or with a fraction, as microseconds of the day.
fn parse_time(text: &str) -> Option<i64> {
    let (time, fraction) = match text.split_once('.') {
        Some((time, fraction)) => (time, parse_fraction(fraction)?),
        None => (text, 0),
    };
    // A fraction is allowed only after seconds.
    let seconds =
        parse_seconds_of_day(time).filter(|_| time.len() == text.len() || time.len() == 8)?;
    Some(i64::from(seconds) * SECOND_US + fraction)
}

/// `HH:MM` or `HH:MM:SS`, as seconds of the day.
pub(crate) fn parse_seconds_of_day(text: &str) -> Option<u32> {
    let mut parts = text.split(':');
    let (hour, minute) = (parse_digits(parts.next()?, 2)?, parse_digits(parts.next()?, 2)?);
    let second = parts.next().map_or(Some(0), |second| parse_digits(second, 2))?;
    let is_valid = hour < 24 && minute < 60 && second < 60 && parts.next().is_none();
    is_valid.then_some((hour * 3600 + minute * 60 + second) as u32)
}

fn parse_fraction(text: &str) -> Option<i64> {
    let scale = 6_usize.checked_sub(text.len())?;
    Some(parse_digits(text, text.len())? * 10_i64.pow(scale as u32))
}

/// The offset in seconds: `Some(None)` if the text is empty, `None` if it is invalid.
fn parse_offset(text: &str) -> Option<Option<i64>> {
    let (sign, rest) = match text.split_at_checked(1) {
        None => return Some(None),
        Some(("Z" | "z", "")) => return Some(Some(0)),
        Some(("+", rest)) => (1, rest),
        Some(("-", rest)) => (-1, rest),
        Some(_) => return None,
    };
    Some(Some(sign * i64::from(parse_seconds_of_day(rest)?)))
}

/// A number of exactly `count` digits.
fn parse_digits(text: &str, count: usize) -> Option<i64> {
    let is_number =
        !text.is_empty() && text.len() == count && text.bytes().all(|b| b.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}
