//! `midwatch approval revoke`

use std::process::ExitCode;

use api::{Decision, Error};
use clap::Args;

use super::decide::{decide, decision};
use super::{ID, REASON};
use crate::context::Context;

/// Revoke an approval before its run starts
#[derive(Debug, Args)]
pub(in crate::cli) struct Revoke {
    #[arg(help = ID)]
    id: String,
    #[arg(long, value_name = "TEXT", help = REASON)]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, revoke: Revoke) -> Result<ExitCode, Error> {
    decide(context, decision(revoke.id, Decision::Revoke, revoke.reason), None).await?;
    Ok(ExitCode::SUCCESS)
}
