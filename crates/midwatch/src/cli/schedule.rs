//! `midwatch schedule …`

mod next;
mod times;
mod trigger;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;
use runtime::Clock;

use crate::output::Output;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
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

/// Nothing here opens a store.
pub(super) fn run(
    command: Command,
    clock: &impl Clock,
    output: &Output,
) -> Result<ExitCode, Error> {
    match command {
        Command::Next(next) => next::run(next, clock.now(), output),
    }
}
