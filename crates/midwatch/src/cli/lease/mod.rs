//! `midwatch lease …`

mod renew;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Renew(renew::Renew),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Renew(renew) => renew::run(context, renew).await,
    }
}
