//! `midwatch store …`

mod copy;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Copy(copy::Copy),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Copy(copy) => copy::run(context, copy).await,
    }
}
