//! `midwatch freeze`

use std::process::ExitCode;

use api::{AuthorityChanged, Error};
use clap::Args;
use runtime::StopTarget;

use super::support::lease::frozen_by;
use super::support::stop;
use crate::access::{Stopped, send_stop};
use crate::context::Context;
use crate::view::View;

/// Cancel every running run and start none until `midwatch thaw`
///
/// It takes effect at once, even if the disk is full or the database does not answer. If the daemon does not answer
/// within two seconds, the command leaves a marker file, which the daemon obeys as soon as it continues or starts.
#[derive(Debug, Args)]
pub(super) struct Freeze {
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, freeze: Freeze) -> Result<ExitCode, Error> {
    let note = freeze.reason.as_deref();
    let request = api::Freeze { note: freeze.reason.clone() };
    match send_stop(context, request, StopTarget::Installation, note).await? {
        Stopped::Answered(answer) => {
            context.output.say(&answer, |answer| render(answer, &context.view));
        }
        Stopped::Marked(why) => stop::show_marked(context, &why),
    }
    Ok(ExitCode::SUCCESS)
}

fn render(answer: &AuthorityChanged, view: &View) -> String {
    match answer {
        AuthorityChanged { recorded: false, .. } => {
            "frozen: running runs are cancelled, and none starts until `midwatch thaw`\n\
             not recorded yet: the ledger cannot be written; the daemon records it as soon as it can"
                .into()
        }
        AuthorityChanged { changed: true, .. } => {
            "frozen: running runs are cancelled, and none starts until `midwatch thaw`".into()
        }
        AuthorityChanged { authority, .. } => {
            format!("already frozen{}", frozen_by(authority, view))
        }
    }
}
