//! The flags of `midwatch schedule backfill`, and what people see of it.

use api::{BackfillEnded, ScheduleBackfill, ScheduleBackfilled};
use clap::{ArgGroup, Args};

use super::ID;
use super::flags::whole;
use super::page::called;
use crate::output::{counted, paragraphs};

#[derive(Debug, Args)]
#[group(skip)]
#[command(group = ArgGroup::new("what").required(true).args(["from", "end"]))]
pub(in crate::cli) struct Backfill {
    #[arg(help = ID)]
    pub(super) id: String,

    /// The first instant to run slots of; without an offset it is a time in the schedule's zone
    #[arg(long, value_name = "INSTANT", requires = "to")]
    from: Option<String>,

    /// The last instant
    #[arg(long, value_name = "INSTANT", requires = "from")]
    to: Option<String>,

    /// Most runs of it at a time [default: half of what the overlap policy lets]
    #[arg(long, value_name = "N", value_parser = whole::<u32>, allow_negative_numbers = true)]
    at_once: Option<u32>,

    /// From one start to the next at the least, such as `30s` [default: no pause]
    #[arg(long, value_name = "SPAN")]
    gap: Option<String>,

    /// Only say what would be run
    #[arg(long)]
    dry_run: bool,

    /// The token that a dry run showed; needed for more than 100 slots
    #[arg(long, value_name = "TOKEN")]
    confirm: Option<String>,

    /// Leave out the rest of the backfill that is under way
    #[arg(long, conflicts_with_all = ["to", "at_once", "gap", "dry_run", "confirm"])]
    pub(super) end: bool,
}

impl Backfill {
    pub(super) fn request(self) -> ScheduleBackfill {
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

pub(super) fn begun(answer: &ScheduleBackfilled) -> String {
    let ScheduleBackfilled { schedule_id, first, last, slots, taken, token, begun } = answer;
    let range = format!("{} from {first} to {last}", counted(*slots, "slot", "slots"));
    let left_alone = match taken {
        0 => String::new(),
        taken => format!("{taken} of them have a run already and are left alone"),
    };
    let next = match begun {
        _ if taken == slots => "there is nothing left to run".to_owned(),
        true => format!(
            "they run one after the other; `midwatch schedule show {schedule_id}` shows how far it is"
        ),
        false => format!("nothing was changed; the same with `--confirm {token}` runs them"),
    };
    paragraphs([range, left_alone, next])
}

pub(super) fn ended(BackfillEnded { schedule, changed }: &BackfillEnded) -> String {
    let what = if *changed { "is left out" } else { "was not under way" };
    format!("schedule {}: the rest of the backfill {what}", called(schedule))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_every_slot_has_a_run_none_is_promised() {
        let filled = |taken| ScheduleBackfilled {
            schedule_id: "sch_1".to_owned(),
            first: "a".to_owned(),
            last: "b".to_owned(),
            slots: 3,
            taken,
            token: "t".to_owned(),
            begun: true,
        };
        assert!(begun(&filled(3)).ends_with("there is nothing left to run"));
        assert!(begun(&filled(2)).contains("they run one after the other"));
    }
}
