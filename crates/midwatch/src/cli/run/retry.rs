//! `midwatch run retry`

use std::process::ExitCode;

use api::{Error, RunRetry};
use clap::Args;

use super::{ID, render_change};
use crate::access::send;
use crate::context::Context;

/// Retry a run that failed or was cancelled
#[derive(Debug, Args)]
pub(in crate::cli) struct Retry {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, retry: Retry) -> Result<ExitCode, Error> {
    let answer = send(context, RunRetry { id: retry.id }).await?;
    context.output.say(&answer, |answer| render_change(answer, "will be retried"));
    Ok(ExitCode::SUCCESS)
}
