//! `midwatch lease renew`

use std::process::ExitCode;

use api::{AuthorityChanged, Error, LeaseRenew};
use clap::Args;

use crate::access::send;
use crate::cli::support::lease::deadline;
use crate::context::Context;

/// Renew the lease for the span that `[lease]` configures
#[derive(Debug, Args)]
pub(in crate::cli) struct Renew {
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, renew: Renew) -> Result<ExitCode, Error> {
    let answer = send(context, LeaseRenew { note: renew.reason }).await?;
    context.output.show(&answer, |AuthorityChanged { authority, .. }| {
        format!("lease renewed; {}", deadline(&authority.lease, &context.view))
    });
    Ok(ExitCode::SUCCESS)
}
