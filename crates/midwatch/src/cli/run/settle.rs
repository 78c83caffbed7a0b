//! `midwatch run settle`

use std::process::ExitCode;

use api::{Error, RunSettle};
use clap::Args;

use super::{ID, render_change};
use crate::access::send;
use crate::context::Context;

/// Record the outcome of an interrupted run after you have checked it
#[derive(Debug, Args)]
pub(in crate::cli) struct Settle {
    #[arg(help = ID)]
    id: String,
    /// The outcome
    #[arg(long = "as", value_name = "done|failed")]
    state: String,
    /// How you know; recorded in the ledger
    #[arg(long, alias = "note", value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, settle: Settle) -> Result<ExitCode, Error> {
    let Settle { id, state, reason: note } = settle;
    let answer = send(context, RunSettle { id, state: state.parse()?, note }).await?;
    context.output.say(&answer, |answer| render_change(answer, "settled"));
    Ok(ExitCode::SUCCESS)
}
