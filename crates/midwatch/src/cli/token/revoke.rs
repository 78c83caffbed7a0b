//! `midwatch token revoke`

use std::process::ExitCode;

use api::{Error, TokenRevoke};
use clap::Args;

use crate::access::send;
use crate::cli::config::reload::render_finding;
use crate::context::Context;

/// Revoke a token
#[derive(Debug, Args)]
pub(in crate::cli) struct Revoke {
    /// The id of the token, from `midwatch token list`
    id: String,
    /// Why; recorded in the ledger
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
}

pub(super) async fn run(context: &Context, revoke: Revoke) -> Result<ExitCode, Error> {
    let Revoke { id, reason } = revoke;
    let answer = send(context, TokenRevoke { id, note: reason }).await?;
    context.output.say(&answer, |it| {
        let first = match it.changed {
            true => format!("revoked; `{}` can no longer use this token", it.token.name),
            false => "already revoked".to_owned(),
        };
        let warnings = it.warnings.iter().map(render_finding);
        std::iter::once(first).chain(warnings).collect::<Vec<_>>().join("\n")
    });
    Ok(ExitCode::SUCCESS)
}
