//! `midwatch schedule backfill`

use std::process::ExitCode;

use api::{BackfillEnded, Error, ScheduleBackfill, ScheduleBackfillEnd, ScheduleBackfilled};
use clap::{ArgGroup, Args};

use super::{ID, name_and_id};
use crate::access::send;
use crate::cli::support::render::{count_of, paragraphs};
use crate::cli::support::value_parsers::whole_number;
use crate::context::Context;

/// Run past slots that have no run
///
/// Slots run one after the other and never displace a slot that is due. More than 100 slots need the
/// confirmation that a dry run prints.
#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("what").required(true).args(["from", "end"]))]
pub(in crate::cli) struct Backfill {
    #[arg(help = ID)]
    id: String,

    /// The start of the range, in the schedule's zone if it has no offset
    #[arg(long, value_name = "INSTANT", requires = "to")]
    from: Option<String>,

    /// The end of the range
    #[arg(long, value_name = "INSTANT", requires = "from")]
    to: Option<String>,

    /// The most runs at a time [default: half of what the overlap policy allows]
    #[arg(long, value_name = "N", value_parser = whole_number::<u32>, allow_negative_numbers = true)]
    at_once: Option<u32>,

    /// The least time between two starts, such as `30s` [default: none]
    #[arg(long, value_name = "SPAN")]
    gap: Option<String>,

    /// Show what would run, without running it
    #[arg(long)]
    dry_run: bool,

    /// The token that a dry run printed; required for more than 100 slots
    #[arg(long, value_name = "TOKEN")]
    confirm: Option<String>,

    /// Stop the backfill that is in progress
    #[arg(long, conflicts_with_all = ["to", "at_once", "gap", "dry_run", "confirm"])]
    end: bool,
}

pub(super) async fn run(context: &Context, backfill: Backfill) -> Result<ExitCode, Error> {
    let output = context.output;
    match backfill.end {
        true => {
            let answer = send(context, ScheduleBackfillEnd { id: backfill.id }).await?;
            output.say(&answer, render_ended);
        }
        false => {
            let answer = send(context, backfill.into_request()).await?;
            output.say(&answer, render_started);
        }
    }
    Ok(ExitCode::SUCCESS)
}

impl Backfill {
    fn into_request(self) -> ScheduleBackfill {
        ScheduleBackfill {
            id: self.id,
            from: self.from.unwrap_or_default(),
            to: self.to.unwrap_or_default(),
            at_once: self.at_once,
            gap: self.gap,
            dry_run: self.dry_run,
            confirm: self.confirm,
        }
    }
}

fn render_started(answer: &ScheduleBackfilled) -> String {
    let ScheduleBackfilled { schedule_id, first, last, slots, taken, token, started } = answer;
    let range = format!("{} from {first} to {last}", count_of(*slots, "slot", "slots"));
    let skipped = match taken {
        0 => String::new(),
        taken => format!("{taken} of them already have a run and are skipped"),
    };
    let next = match started {
        _ if taken == slots => "nothing is left to run".to_owned(),
        true => format!(
            "they run one after the other; `midwatch schedule show {schedule_id}` shows the progress"
        ),
        false => format!("nothing was changed; repeat it with `--confirm {token}` to run them"),
    };
    paragraphs([range, skipped, next])
}

fn render_ended(BackfillEnded { schedule, changed }: &BackfillEnded) -> String {
    let result = if *changed { "the backfill is stopped" } else { "no backfill is in progress" };
    format!("schedule {}: {result}", name_and_id(schedule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_run_is_announced_if_every_slot_has_one() {
        let answer = |taken| ScheduleBackfilled {
            schedule_id: "sch_1".to_owned(),
            first: "a".to_owned(),
            last: "b".to_owned(),
            slots: 3,
            taken,
            token: "t".to_owned(),
            started: true,
        };
        assert!(render_started(&answer(3)).ends_with("nothing is left to run"));
        assert!(render_started(&answer(2)).contains("they run one after the other"));
    }
}
