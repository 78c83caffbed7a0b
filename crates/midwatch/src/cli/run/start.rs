//! `midwatch run start`

use std::process::ExitCode;

use api::{Error, Run, ScheduleFire, ScheduleFired};
use clap::Args;

use crate::access::send;
use crate::context::Context;

/// Start a run of a schedule now; the same as `midwatch schedule fire`
#[derive(Debug, Args)]
pub(in crate::cli) struct Start {
    /// The id of the schedule, from `midwatch schedule list`
    schedule: String,
}

pub(super) async fn run(context: &Context, start: Start) -> Result<ExitCode, Error> {
    let answer = send(context, ScheduleFire { id: start.schedule }).await?;
    context.output.show(&answer, render);
    Ok(ExitCode::SUCCESS)
}

pub(in crate::cli) fn render(answer: &ScheduleFired) -> String {
    let ScheduleFired { run: Run { id, state, .. } } = answer;
    format!("run `{id}` {state}; `midwatch run watch {id}` follows it")
}
