//! `midwatch approval deny`

use std::process::ExitCode;

use api::{Decision, Error};
use clap::Args;

use super::decide::{decide, decision};
use super::{ID, REASON};
use crate::context::Context;

/// Deny the start of a run, or another attempt of it
///
/// A run that has not run ends cancelled; one whose earlier attempt failed ends failed, with its output.
#[derive(Debug, Args)]
pub(in crate::cli) struct Deny {
    #[arg(help = ID)]
    id: String,
    #[arg(long, value_name = "TEXT", help = REASON)]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, deny: Deny) -> Result<ExitCode, Error> {
    decide(context, decision(deny.id, Decision::Deny, deny.reason), None).await?;
    Ok(ExitCode::SUCCESS)
}
