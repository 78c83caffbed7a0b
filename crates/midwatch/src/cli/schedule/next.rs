//! `midwatch schedule next`. Pure but for the clock, which the caller reads.

use std::process::ExitCode;

use api::{Code, Error};
use calendar::format_instant;
use clap::{ArgGroup, Args};
use runtime::trigger::{ParsedWhen, parse, parse_instant};
use serde::Serialize;

use super::trigger::{Days, TIME_TRIGGERS, TimeTrigger};
use super::upcoming::{slot_table, when};
use crate::cli::support::render::{paragraphs, warnings};
use crate::output::Output;
use crate::view::View;
use crate::wrap::fit;

const COUNT_MAX: u32 = 1000;

/// Show when a trigger would fire, without adding a schedule
///
/// Needs no data directory and no daemon, and changes nothing. With --json it prints
/// `{"next":[…],"describe":"…","warnings":[…]}`: the next instants in UTC, the trigger in words, and
/// warnings, usually none. A trigger that never fires again has an empty `next` and a warning.
///
/// An expression has 5 fields (minute hour day-of-month month day-of-week), 6 with seconds first,
/// or 7 with the year last. Besides `*`, lists, ranges, steps and names it may have `L`, `L-2`,
/// `LW` and `15W` as days of the month, `TUE#3` and `FRI#L` as days of the week, and `+` before
/// the day of the week when both day fields must match. A time that the clock skips fires right
/// after; a time that it shows twice fires once; expressions with `*` in minute or hour follow the
/// wall clock.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("trigger").required(true).args(TIME_TRIGGERS))]
pub(in crate::cli) struct Next {
    #[command(flatten)]
    trigger: TimeTrigger,
    #[command(flatten)]
    days: Days,

    /// Show times after this instant, exclusive [default: now]
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

pub(in crate::cli) fn run(next: Next, view: &View, output: &Output) -> Result<ExitCode, Error> {
    if !(1..=COUNT_MAX).contains(&next.count) {
        let what = format!("`--count` must be from 1 to {COUNT_MAX}, not {}", next.count);
        return Err(Error::new(Code::InvalidInput, what).hint("omit it to see five"));
    }
    let ParsedWhen { calendar, zone, warnings: mut found } = parse(&next.trigger.on(next.days))?;
    let from = next.from.as_deref().map(|text| parse_instant(text, zone.as_ref())).transpose()?;
    let from_us = from.unwrap_or(view.now_us);
    let slots: Vec<i64> = calendar.slots_after(from_us).take(next.count as usize).collect();
    found.extend(calendar.no_next_slot(from_us).map(|reason| reason.to_string()));
    let answer = Answer {
        next: slots.iter().copied().map(format_instant).collect(),
        describe: calendar.describe(),
        warnings: found,
    };
    output.show(&answer, |answer| {
        let distance_head = if from.is_some() { "AFTER --from" } else { "IN" };
        let zone = calendar.zone();
        paragraphs([
            fit(&when(&answer.describe, zone.name()), view.width),
            slot_table(view, zone, &slots, (from_us, distance_head)),
            warnings(view, &answer.warnings),
        ])
    });
    Ok(ExitCode::SUCCESS)
}

fn count(text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("write a whole number from 1 to {COUNT_MAX}"))
}
