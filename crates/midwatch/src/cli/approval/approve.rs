//! `midwatch approval approve`

use std::process::ExitCode;

use api::{ApprovalDecide, Decision, Error};
use clap::Args;

use super::decide::{decide, decision};
use super::{ID, REASON};
use crate::context::Context;

/// Show the plan of a run and approve exactly that plan
///
/// The run starts once. If its plan has changed meanwhile, it does not start.
#[derive(Debug, Args)]
pub(in crate::cli) struct Approve {
    #[arg(help = ID)]
    id: String,
    #[arg(long, value_name = "TEXT", help = REASON)]
    reason: Option<String>,
    /// Approve only if the hash of the plan starts with this; `midwatch approval show` prints it. Required
    /// without a terminal
    #[arg(long, value_name = "HASH")]
    plan: Option<String>,
    /// A signature by `midwatch approval sign`; its signer counts as the approver
    #[arg(long, value_name = "SIGNATURE")]
    signature: Option<String>,
    /// Also print a rule that would allow the same from now on; approving never adds one
    #[arg(long)]
    remember: bool,
}

pub(super) async fn run(context: &Context, approve: Approve) -> Result<ExitCode, Error> {
    let Approve { id, reason, plan, signature, remember } = approve;
    let decision =
        ApprovalDecide { signature, remember, ..decision(id, Decision::Approve, reason) };
    decide(context, decision, plan.as_deref()).await?;
    Ok(ExitCode::SUCCESS)
}
