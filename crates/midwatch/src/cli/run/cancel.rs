//! `midwatch run cancel`

use std::process::ExitCode;

use api::{Error, RunCancel, RunState};
use clap::Args;

use super::{ID, render_change};
use crate::access::send;
use crate::context::Context;

/// Cancel a run, before it starts or while it runs
#[derive(Debug, Args)]
pub(in crate::cli) struct Cancel {
    #[arg(help = ID)]
    id: String,
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    note: Option<String>,
}

pub(super) async fn run(context: &Context, cancel: Cancel) -> Result<ExitCode, Error> {
    let Cancel { id, note } = cancel;
    let answer = send(context, RunCancel { id, note }).await?;
    context.output.show(&answer, |answer| {
        let is_cancelled = answer.run.state == RunState::Cancelled;
        render_change(answer, if is_cancelled { "cancelled" } else { "is being cancelled" })
    });
    Ok(ExitCode::SUCCESS)
}
