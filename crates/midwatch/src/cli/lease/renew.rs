//! `midwatch lease renew`

use std::process::ExitCode;

use api::{AuthorityChanged, Error, LeaseRenew};
use clap::Args;

use crate::access::send;
use crate::cli::support::lease::deadline;
use crate::context::Context;
use crate::run_text::schedule_of;
use crate::view::View;

/// Confirm that you are still here: renew the lease for the span that `[lease]` configures
///
/// Any other command that you run in a terminal renews it too, unless it has expired. Runs that waited for approval only because
/// the lease had expired are queued again; each is decided afresh when it starts.
#[derive(Debug, Args)]
pub(in crate::cli) struct Renew {
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, renew: Renew) -> Result<ExitCode, Error> {
    let answer = send(context, LeaseRenew { note: renew.reason }).await?;
    context.output.say(&answer, |answer| render(answer, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(AuthorityChanged { authority, released, .. }: &AuthorityChanged, view: &View) -> String {
    let mut text = format!("lease renewed; {}", deadline(&authority.lease, view));
    if !released.is_empty() {
        let noun = if released.len() == 1 { "run" } else { "runs" };
        let names: Vec<&str> = released.iter().map(schedule_of).collect();
        text.push_str(&format!(
            "\n{} {noun} waited only for this and can start now: {}",
            released.len(),
            names.join(", ")
        ));
    }
    text
}
