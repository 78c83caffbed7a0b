//! The flags that say when, and the calendar that they mean. The rules are those of `calendar`; here
//! its refusals get the words of the command line.

use api::{Code, Error};
use calendar::cron::{Parsed, Problem, Refusal};
use calendar::{Advice, InvalidInstant, InvalidSpan, InvalidTimes, UnknownZone, parse_instant};
use calendar::{Calendar, Cron, Dst, EVERY_MIN, SPAN_MAX, START_US, Span, Trigger, Weekdays, Zone};
use clap::{ArgGroup, Args};

#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("trigger").required(true).args(["cron", "every", "daily", "at"]))]
pub(super) struct When {
    /// A cron expression, such as `30 9 * * MON-FRI`
    #[arg(long, value_name = "EXPRESSION", allow_hyphen_values = true)]
    cron: Option<String>,

    /// An interval, such as `10s`, `1h30m` or `2d`; daylight saving does not change it
    #[arg(long, value_name = "SPAN", allow_hyphen_values = true)]
    every: Option<String>,

    /// Times of the day, such as `09:00,17:30`
    #[arg(long, value_name = "TIMES")]
    daily: Option<String>,

    /// One instant, such as `2026-07-01T09:00:00Z`; without an offset it is a time in the zone
    #[arg(long, value_name = "INSTANT")]
    at: Option<String>,

    /// The time zone, such as `Europe/Berlin`; there is no default, but --every and an instant with
    /// an offset need none
    #[arg(long, value_name = "ZONE")]
    tz: Option<String>,

    /// With --every: the first time of the interval [default: 1970-01-01T00:00:00Z]
    #[arg(long, value_name = "INSTANT", requires = "every")]
    #[arg(conflicts_with_all = ["cron", "daily", "at"])]
    anchor: Option<String>,

    /// With --daily: only on these days, such as `mon,fri` or `mon-fri`
    #[arg(long, value_name = "DAYS", requires = "daily")]
    #[arg(conflicts_with_all = ["cron", "every", "at"])]
    on: Option<String>,
}

/// What the flags mean.
#[derive(Debug)]
pub(super) struct Meant {
    pub(super) calendar: Calendar,
    /// As given, and so absent if none was.
    pub(super) zone: Option<Zone>,
    pub(super) warnings: Vec<String>,
}

impl When {
    pub(super) fn meant(&self) -> Result<Meant, Error> {
        // The trigger first: it is what most often is wrong.
        let parsed = self.cron.as_deref().map(cron).transpose()?;
        let zone = self.tz.as_deref().map(zone_named).transpose()?;
        let warnings = parsed.iter().flat_map(|parsed| &parsed.warnings).map(ToString::to_string);
        let warnings = warnings.collect();
        let trigger = match parsed {
            Some(Parsed { cron, .. }) => Trigger::Cron { expression: cron, dst: Dst::default() },
            None => self.other(zone.as_ref())?,
        };
        let shown_in = match (&zone, &trigger) {
            (Some(zone), _) => zone.clone(),
            (None, Trigger::Once { .. } | Trigger::Interval { .. }) => zone_named("UTC")?,
            (None, Trigger::Cron { .. }) => return Err(no_zone("a cron expression")),
            (None, Trigger::Daily { .. }) => return Err(no_zone("a time of the day")),
        };
        let calendar = Calendar::new(trigger, shown_in).map_err(|error| refused(&error))?;
        Ok(Meant { calendar, zone, warnings })
    }

    /// A trigger that is not cron.
    fn other(&self, zone: Option<&Zone>) -> Result<Trigger, Error> {
        if let Some(every) = &self.every {
            let every = span(every)?;
            let anchor = self.anchor.as_deref().map(|text| instant(text, zone)).transpose()?;
            return Ok(Trigger::Interval { every, anchor_us: anchor.unwrap_or(START_US) });
        }
        if let Some(times) = &self.daily {
            let times = times.parse().map_err(|error: InvalidTimes| refused(&error))?;
            let weekdays = self.on.as_deref().map(weekdays).transpose()?.unwrap_or_default();
            return Ok(Trigger::Daily { times, weekdays, dst: Dst::default() });
        }
        // The parser of the command line asks for one of the four.
        let at_us = instant(self.at.as_deref().unwrap_or_default(), zone)?;
        Ok(Trigger::Once { at_us })
    }
}

/// An instant; without an offset it is a time in the zone.
pub(super) fn instant(text: &str, zone: Option<&Zone>) -> Result<i64, Error> {
    parse_instant(text, zone).map_err(|error| match error {
        InvalidInstant::NoZone(_) => refused(&error)
            .hint("name its zone, as in `--tz Europe/Berlin`, or add `Z` or an offset to it"),
        _ => refused(&error),
    })
}

fn cron(text: &str) -> Result<Parsed, Error> {
    Cron::parse(text).map_err(|refusal| match (&refusal.problem, &refusal.fix) {
        (Problem::Every, Some(every)) => {
            refused(&refusal).hint(format!("use `--{every}` in the place of `--cron`"))
        }
        (Problem::Every, None) => refused(&refusal).hint("use `--every`, as in `--every 10m`"),
        _ => refused(&refusal),
    })
}

fn span(text: &str) -> Result<Span, Error> {
    text.parse().map_err(|error| match error {
        InvalidSpan::OutOfRange(_) => {
            refused(&error).hint(format!("an interval is from {EVERY_MIN} to {SPAN_MAX}"))
        }
        InvalidSpan::Malformed(_) => refused(&error),
    })
}

fn weekdays(text: &str) -> Result<Weekdays, Error> {
    text.parse().map_err(|refusal: Refusal| match &refusal.fix {
        Some(_) => refused(&refusal),
        // The advice would be on all that an expression may hold there.
        None => refused(&refusal).hint("write days as `mon,fri` or `mon-fri`"),
    })
}

fn zone_named(text: &str) -> Result<Zone, Error> {
    text.parse().map_err(|error: UnknownZone| refused(&error))
}

fn no_zone(what: &str) -> Error {
    let what = format!("{what} needs a time zone, and there is no default");
    Error::new(Code::InvalidInput, what).hint("name it, as in `--tz Europe/Berlin` or `--tz UTC`")
}

fn refused(error: &impl Advice) -> Error {
    Error::new(Code::InvalidInput, error.reason()).hint(error.advice())
}
