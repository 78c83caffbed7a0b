//! `midwatch cleanup`

use std::process::ExitCode;

use api::{CleanedUp, Cleanup as Request, Error, Removed};
use clap::Args;

use super::support::NOTHING_TO_DO;
use super::support::render::{count_of, size};
use crate::access::send;
use crate::context::Context;

/// Remove outputs, logs and exports beyond the limits of `[retention]`
///
/// The daemon does the same once a day. Exits with 10 if there was nothing to remove. The ledger, the
/// outputs of runs that have not ended, and runs themselves are never removed.
#[derive(Debug, Args)]
pub(super) struct Cleanup {
    /// Only show what would be removed
    #[arg(long)]
    dry_run: bool,
}

pub(super) async fn run(context: &Context, cleanup: Cleanup) -> Result<ExitCode, Error> {
    let answer = send(context, Request { dry_run: cleanup.dry_run }).await?;
    context.output.say(&answer, render);
    Ok(match answer.removed.is_empty() {
        true => ExitCode::from(NOTHING_TO_DO),
        false => ExitCode::SUCCESS,
    })
}

fn render(CleanedUp { dry_run, removed }: &CleanedUp) -> String {
    if removed.is_empty() {
        return "nothing is beyond the limits of `[retention]`".to_owned();
    }
    let Removed { outputs, logs, exports, leftovers, bytes } = removed;
    let parts = [
        (*outputs, "output", "outputs"),
        (*logs, "log file", "log files"),
        (*exports, "exported month", "exported months"),
        (*leftovers, "interrupted backup", "interrupted backups"),
    ];
    let parts = parts.into_iter().filter(|(count, ..)| *count != 0);
    let parts: Vec<String> = parts.map(|(count, one, many)| count_of(count, one, many)).collect();
    let verb = if *dry_run { "would remove" } else { "removed" };
    format!("{verb} {} ({})", parts.join(", "), size(*bytes))
}
