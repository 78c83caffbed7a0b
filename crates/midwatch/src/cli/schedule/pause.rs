//! `midwatch schedule pause`

use std::process::ExitCode;

use api::{Error, SchedulePause};
use clap::Args;

use super::{ID, name_and_id};
use crate::access::send;
use crate::context::Context;

/// Pause a schedule until it is resumed; its live runs continue
#[derive(Debug, Args)]
pub(in crate::cli) struct Pause {
    #[arg(help = ID)]
    id: String,
    /// Why; shown with the schedule
    #[arg(long, alias = "note", value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, pause: Pause) -> Result<ExitCode, Error> {
    let Pause { id, reason: note } = pause;
    let answer = send(context, SchedulePause { id, note }).await?;
    context.output.say(&answer, |answer| {
        let result = if answer.changed { "paused" } else { "was already paused" };
        format!("schedule {} {result}", name_and_id(&answer.schedule))
    });
    Ok(ExitCode::SUCCESS)
}
