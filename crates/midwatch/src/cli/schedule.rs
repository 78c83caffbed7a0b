//! `midwatch schedule …`

mod add;
mod backfill;
mod edit;
mod flags;
mod import;
mod list;
pub(super) mod next;
mod page;
mod times;
mod trigger;

use std::process::ExitCode;

use api::{
    Error, ScheduleBackfillEnd, ScheduleFire, ScheduleList, SchedulePause, ScheduleRemove,
    ScheduleResume, ScheduleShow,
};
use clap::Subcommand;
use runtime::{Clock, SystemClock};

use super::list_limit;
use crate::access::ask;
use crate::context::Context;
use add::Asked;
pub(super) use import::promptyoself_database;
pub(super) use page::called;

const ID: &str = "Its id, as `midwatch schedule list` shows it";

const EXAMPLES: &str = "\
Examples:
  midwatch schedule add --name standup --cron '30 9 * * MON-FRI' --tz Europe/Berlin \\
      --agent ada --prompt 'Summarise what changed since yesterday.'
  midwatch schedule add --name triage --every 10m --agent ada --prompt @triage.md --per-day 50
  midwatch schedule add --name report --after sch_0a1b2c3d --agent ada --prompt 'Say how it went.'
  midwatch schedule add --file schedules.toml --dry-run";

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Add a schedule; the same one again changes nothing
    ///
    /// The answer says in words when it is due, and shows the next five times; if its runs do not begin
    /// by themselves, it says that too. `--dry-run` says all of it beforehand. `midwatch schedule next`
    /// tries a trigger out first, and its help tells how triggers are written.
    #[command(after_help = EXAMPLES)]
    Add(Box<add::Add>),
    /// Change a schedule; what is not said stays as it is
    ///
    /// Its id stays, and so do its runs. A trigger takes the place of the one before as a whole. Slots
    /// that were due and not decided are left out.
    Edit(Box<edit::Edit>),
    /// List the schedules
    List {
        /// Only schedules for this agent
        #[arg(long, value_name = "NAME")]
        agent: Option<String>,
        /// Most schedules to show
        #[arg(long, value_name = "N", value_parser = list_limit, allow_negative_numbers = true)]
        limit: Option<u32>,
        /// Go on where an earlier list ended
        #[arg(long, value_name = "CURSOR")]
        cursor: Option<String>,
    },
    /// Show one schedule, with its terms, its next times and what the standing orders say of its runs
    Show {
        #[arg(help = ID)]
        id: String,
    },
    /// Make no more runs of a schedule until it is resumed; a run that goes on is left alone
    Pause {
        #[arg(help = ID)]
        id: String,
        /// Why, for whoever looks at it later
        #[arg(long, value_name = "TEXT")]
        note: Option<String>,
    },
    /// End a pause, and say what was left out meanwhile
    Resume {
        #[arg(help = ID)]
        id: String,
    },
    /// Remove a schedule; its runs and its past stay in the log
    Remove {
        #[arg(help = ID)]
        id: String,
    },
    /// Run a schedule now, paused or not; its next time stays as it is
    Fire {
        #[arg(help = ID)]
        id: String,
    },
    /// Run slots of the past that have no run
    ///
    /// One after the other, and never in the place of a slot that is due. More than 100 need a look at
    /// the dry run first.
    Backfill(backfill::Backfill),
    /// Add schedules from a crontab, promptyoself, Astra or Agent Blob
    ///
    /// Each line of a crontab becomes a schedule that prompts an agent with the line's command; an agent
    /// that is a shell runs it as cron did. What cannot be carried over is told one by one, the rest is
    /// added at once, and the same again adds nothing. Ends with code 10 if nothing can be carried over.
    #[command(after_help = import::EXAMPLES)]
    Import(import::Import),
    /// Show when a trigger would fire, without making a schedule
    ///
    /// Needs no data directory and no daemon, and changes nothing. With --json it prints
    /// `{"next":[…],"describe":"…","warnings":[…]}`: instants in UTC, in order; the trigger in words;
    /// what its author should know, which mostly is an empty list. A trigger that never fires again
    /// has an empty `next` and a warning.
    ///
    /// An expression has 5 fields (minute hour day-of-month month day-of-week), 6 with seconds first,
    /// or 7 with the year last. Besides `*`, lists, ranges, steps and names it may hold `L`, `L-2`,
    /// `LW` and `15W` as days of the month, `TUE#3` and `FRI#L` as days of the week, and `+` before
    /// the latter when both day fields must match. A time that the clock skips is made up for right
    /// after; a time that it shows twice is used once; but what has a star in its time follows the
    /// clock.
    Next(next::Next),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let output = context.output;
    match command {
        Command::Add(add) => match add.request()? {
            Asked::One(add) => {
                let answer = ask(context, *add).await?;
                output.show(&answer, |answer| page::added(answer, SystemClock.now()));
            }
            Asked::List(list) => {
                let answer = ask(context, list).await?;
                output.show(&answer, page::all_added);
            }
        },
        Command::Edit(edit) => {
            let answer = ask(context, edit.request()?).await?;
            output.show(&answer, |answer| page::edited(answer, SystemClock.now()));
        }
        Command::List { agent, limit, cursor } => {
            let answer = ask(context, ScheduleList { agent, limit, cursor }).await?;
            output.show(&answer, page::list);
        }
        Command::Show { id } => {
            let answer = ask(context, ScheduleShow { id }).await?;
            output.show(&answer, |answer| page::shown(answer, SystemClock.now()));
        }
        Command::Pause { id, note } => {
            let answer = ask(context, SchedulePause { id, note }).await?;
            output.show(&answer, |answer| {
                let verb = if answer.changed { "paused" } else { "was paused already" };
                format!("schedule {} {verb}", called(&answer.schedule))
            });
        }
        Command::Resume { id } => {
            let answer = ask(context, ScheduleResume { id }).await?;
            output.show(&answer, |answer| page::resumed(answer, SystemClock.now()));
        }
        Command::Remove { id } => {
            let answer = ask(context, ScheduleRemove { id }).await?;
            output.show(&answer, |answer| format!("schedule {} removed", called(&answer.schedule)));
        }
        Command::Fire { id } => {
            let answer = ask(context, ScheduleFire { id }).await?;
            output.show(&answer, super::run::started);
        }
        Command::Backfill(backfill) if backfill.end => {
            let answer = ask(context, ScheduleBackfillEnd { id: backfill.id }).await?;
            output.show(&answer, backfill::ended);
        }
        Command::Backfill(backfill) => {
            let answer = ask(context, backfill.request()).await?;
            output.show(&answer, backfill::begun);
        }
        Command::Import(asked) => return import::run(context, asked, SystemClock.now()).await,
        Command::Next(next) => return next::run(next, SystemClock.now(), &output),
    }
    Ok(ExitCode::SUCCESS)
}
