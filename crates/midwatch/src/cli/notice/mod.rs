//! `midwatch notice …`

mod list;
mod test;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// List the channels, what was sent last, and what fails
    List,
    /// Send a test message through every channel of the running daemon
    Test,
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::List => list::run(context).await,
        Command::Test => test::run(context).await,
    }
}
