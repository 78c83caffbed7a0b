//! `midwatch schedule next`: a trigger, tried out. Pure but for the clock, which the caller reads.

use std::process::ExitCode;

use api::{Code, Error};
use calendar::{Calendar, format_instant};
use clap::Args;
use kernel::Timestamp;
use runtime::when::{Meant, instant, meant};
use serde::Serialize;

use super::trigger::When;
use crate::output::{Output, table};

const COUNT_MAX: u32 = 1000;

const SECOND_US: i64 = 1_000_000;
/// In seconds, largest first.
const UNITS: [(&str, i64); 4] = [("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)];

#[derive(Debug, Args)]
pub(in crate::cli) struct Next {
    #[command(flatten)]
    when: When,

    /// Look for times after this instant, which is not among them [default: now]
    #[arg(long, value_name = "INSTANT")]
    from: Option<String>,

    /// How many times to show, up to 1000
    #[arg(long, value_name = "N", default_value = "5", value_parser = count)]
    count: u32,
}

#[derive(Debug, Serialize)]
struct Answer {
    next: Vec<String>,
    describe: String,
    warnings: Vec<String>,
}

pub(super) fn run(next: Next, now: Timestamp, output: &Output) -> Result<ExitCode, Error> {
    if !(1..=COUNT_MAX).contains(&next.count) {
        let what = format!("`--count` is from 1 to {COUNT_MAX}, not {}", next.count);
        return Err(Error::new(Code::InvalidInput, what).hint("leave it out to see five"));
    }
    let Meant { calendar, zone, mut warnings } = meant(&next.when.into())?;
    let from = next.from.as_deref().map(|text| instant(text, zone.as_ref())).transpose()?;
    let from_us = from.unwrap_or(now.as_micros());
    let slots: Vec<i64> = calendar.slots_after(from_us).take(next.count as usize).collect();
    warnings.extend(calendar.silence_after(from_us).map(|silence| silence.to_string()));
    let answer = Answer {
        next: slots.iter().copied().map(format_instant).collect(),
        describe: calendar.describe(),
        warnings,
    };
    output.show(&answer, |answer| {
        let away = if from.is_some() { "AFTER --from" } else { "IN" };
        page(answer, calendar.zone().name(), &times(&calendar, &slots, from_us, away))
    });
    Ok(ExitCode::SUCCESS)
}

fn page(Answer { describe, warnings, .. }: &Answer, zone: &str, times: &str) -> String {
    let warnings: Vec<String> = warnings.iter().map(|it| format!("warning: {it}")).collect();
    let parts = [format!("{describe} ({zone})"), times.to_owned(), warnings.join("\n")];
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// One line for each; the zone has a column if it is not UTC.
fn times(calendar: &Calendar, slots: &[i64], from_us: i64, away: &str) -> String {
    let wall = |at_us: i64| calendar.wall_time(at_us).to_string();
    let slots =
        slots.iter().map(|at_us| (*at_us, format_instant(*at_us), distance(at_us - from_us)));
    match calendar.zone().name() {
        _ if slots.len() == 0 => String::new(),
        "UTC" => table(["UTC", away], slots.map(|(_, utc, away)| [utc, away])),
        zone => {
            table(["UTC", zone, away], slots.map(|(at_us, utc, away)| [utc, wall(at_us), away]))
        }
    }
}

/// The two largest units are enough to see whether it is what was meant.
fn distance(us: i64) -> String {
    let seconds = us / SECOND_US;
    let Some(first) = UNITS.iter().position(|(_, unit)| *unit <= seconds) else {
        return "under 1s".to_owned();
    };
    let mut rest = seconds;
    let mut text = String::new();
    for (name, unit) in UNITS.iter().skip(first).take(2) {
        if *unit <= rest {
            text.push_str(&format!("{}{name}", rest / unit));
        }
        rest %= unit;
    }
    text
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("give a whole number from 1 to {COUNT_MAX}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distances() {
        for (seconds, expected) in [
            (1, "1s"),
            (59, "59s"),
            (60, "1m"),
            (3599, "59m59s"),
            (3600, "1h"),
            (3601, "1h"),
            (86_399, "23h59m"),
            (86_400, "1d"),
            (86_400 * 14_610 + 7200, "14610d2h"),
        ] {
            assert_eq!(distance(seconds * SECOND_US), expected);
        }
        assert_eq!(distance(SECOND_US - 1), "under 1s");
    }
}
