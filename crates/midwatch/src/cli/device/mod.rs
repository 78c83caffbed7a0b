//! `midwatch device …`

mod list;
mod revoke;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    List(list::List),
    Revoke(revoke::Revoke),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::List(list) => list::run(context, list).await,
        Command::Revoke(revoke) => revoke::run(context, revoke).await,
    }
}
