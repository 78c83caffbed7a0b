//! `midwatch thaw`

use std::process::ExitCode;

use api::Error;
use clap::Args;

use crate::access::send;
use crate::context::Context;

/// End a freeze
#[derive(Debug, Args)]
pub(super) struct Thaw {
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, thaw: Thaw) -> Result<ExitCode, Error> {
    let answer = send(context, api::Thaw { note: thaw.reason }).await?;
    context.output.say(&answer, |it| match it.changed {
        true => "thawed: queued runs start; `midwatch run retry` repeats the cancelled ones".into(),
        false => "not frozen".into(),
    });
    Ok(ExitCode::SUCCESS)
}
