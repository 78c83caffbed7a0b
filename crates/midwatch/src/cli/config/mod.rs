//! `midwatch config …`

mod check;
mod init;
pub(super) mod reload;
mod show;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Write a configuration file that explains every key
    Init,
    /// Check the configuration for errors
    Check,
    /// Show every active value and where it comes from
    ///
    /// The values come from the files and this command's environment. If the daemon uses other values,
    /// because it has another environment or has not reloaded the files, they follow.
    Show,
    /// Make the daemon reload the configuration and `policy.toml`
    Reload,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Init => init::run(context)?,
        Command::Check => check::run(context)?,
        Command::Show => show::run(context).await?,
        Command::Reload => reload::run(context).await?,
    }
    Ok(ExitCode::SUCCESS)
}
