//! `midwatch schedule fire`

use std::process::ExitCode;

use api::{Error, ScheduleFire};
use clap::Args;

use super::ID;
use crate::access::send;
use crate::cli::run::render_started;
use crate::context::Context;

/// Start a run of a schedule now, even if it is paused; its next time does not change
#[derive(Debug, Args)]
pub(in crate::cli) struct Fire {
    #[arg(help = ID)]
    id: String,
}

pub(super) async fn run(context: &Context, fire: Fire) -> Result<ExitCode, Error> {
    let answer = send(context, ScheduleFire { id: fire.id }).await?;
    context.output.say(&answer, render_started);
    Ok(ExitCode::SUCCESS)
}
