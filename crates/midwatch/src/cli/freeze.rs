//! `midwatch freeze`

use std::process::ExitCode;

use api::Error;
use clap::Args;

use super::support::lease::frozen_by;
use crate::access::send;
use crate::context::Context;

/// Cancel every running run and start none until `midwatch thaw`
#[derive(Debug, Args)]
pub(super) struct Freeze {
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, freeze: Freeze) -> Result<ExitCode, Error> {
    let answer = send(context, api::Freeze { note: freeze.reason }).await?;
    context.output.show(&answer, |it| match it.changed {
        true => "frozen: running runs are cancelled, and none starts until `midwatch thaw`".into(),
        false => format!("already frozen{}", frozen_by(&it.authority)),
    });
    Ok(ExitCode::SUCCESS)
}
