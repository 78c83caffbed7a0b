//! `midwatch policy …`

mod check;
mod explain;
mod list;
mod replay;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Check the rules: those of the posture, and `policy.toml` in the data directory
    Check,
    /// List the active rules: your own, those of the baseline, and what the posture adds
    List,
    Explain(explain::Explain),
    Replay(replay::Replay),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Check => check::run(context)?,
        Command::List => list::run(context).await?,
        Command::Explain(explain) => explain::run(context, explain).await?,
        Command::Replay(replay) => replay::run(context, replay).await?,
    }
    Ok(ExitCode::SUCCESS)
}

/// The rules in the files, which may differ from those of a running daemon.
fn load_rules(context: &Context) -> Result<runtime::Rules, Error> {
    let posture = context.load_config()?.config.posture;
    runtime::rules(posture, &context.policy()?, context.directory.path())
}
