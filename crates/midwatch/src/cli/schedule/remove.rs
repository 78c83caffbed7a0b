//! `midwatch schedule remove`

use std::process::ExitCode;

use api::{Error, ScheduleRemove};
use clap::Args;

use super::{ID, name_and_id};
use crate::access::send;
use crate::context::Context;

/// Remove a schedule; its runs and history stay in the ledger
#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, remove: Remove) -> Result<ExitCode, Error> {
    let answer = send(context, ScheduleRemove { id: remove.id }).await?;
    context
        .output
        .say(&answer, |answer| format!("schedule {} removed", name_and_id(&answer.schedule)));
    Ok(ExitCode::SUCCESS)
}
