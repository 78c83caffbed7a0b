//! `midwatch schedule next`: a trigger, tried out. Pure but for the clock, which the caller reads.

use std::process::ExitCode;

use api::{Code, Error};
use calendar::format_instant;
use clap::{ArgGroup, Args};
use kernel::Timestamp;
use runtime::when::{Meant, instant, meant};
use serde::Serialize;

use super::times::{times, warned, when};
use super::trigger::{Days, TIMED, When};
use crate::output::{Output, paragraphs};

const COUNT_MAX: u32 = 1000;

#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("trigger").required(true).args(TIMED))]
pub(in crate::cli) struct Next {
    #[command(flatten)]
    when: When,
    #[command(flatten)]
    days: Days,

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

/// Opens no store.
pub(in crate::cli) fn run(next: Next, now: Timestamp, output: &Output) -> Result<ExitCode, Error> {
    if !(1..=COUNT_MAX).contains(&next.count) {
        let what = format!("`--count` is from 1 to {COUNT_MAX}, not {}", next.count);
        return Err(Error::new(Code::InvalidInput, what).hint("leave it out to see five"));
    }
    let Meant { calendar, zone, mut warnings } = meant(&next.when.on(next.days))?;
    let from = next.from.as_deref().map(|text| instant(text, zone.as_ref())).transpose()?;
    let from_us = from.unwrap_or(now.as_micros());
    let slots: Vec<i64> = calendar.slots_after(from_us).take(next.count as usize).collect();
    warnings.extend(calendar.silence_after(from_us).map(|silence| silence.to_string()));
    let answer = Answer {
        next: slots.iter().copied().map(format_instant).collect(),
        describe: calendar.describe(),
        warnings,
    };
    output.show(&answer, |Answer { describe, warnings, .. }| {
        let away = if from.is_some() { "AFTER --from" } else { "IN" };
        let zone = calendar.zone();
        paragraphs([
            when(describe, zone.name()),
            times(zone, &slots, from_us, away),
            warned(warnings),
        ])
    });
    Ok(ExitCode::SUCCESS)
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("give a whole number from 1 to {COUNT_MAX}"))
}
