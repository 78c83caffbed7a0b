//! `midwatch event …`

mod publish;

use std::process::ExitCode;

use api::Error;
use clap::Subcommand;

use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    #[command(alias = "tell")]
    Publish(publish::Publish),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Publish(publish) => publish::run(context, publish).await,
    }
}
