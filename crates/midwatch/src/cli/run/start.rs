//! `midwatch run start`

use std::process::ExitCode;

use api::{Error, Run, ScheduleFire, ScheduleFired, StartObstacle};
use clap::Args;

use crate::access::send;
use crate::context::Context;

/// Start a run of a schedule now; the same as `midwatch schedule fire`
#[derive(Debug, Args)]
pub(in crate::cli) struct Start {
    /// The schedule: its name, its id, or the beginning of its id
    schedule: String,
}

pub(super) async fn run(context: &Context, start: Start) -> Result<ExitCode, Error> {
    let answer = send(context, ScheduleFire { id: start.schedule }).await?;
    context.output.say(&answer, render);
    Ok(ExitCode::SUCCESS)
}

pub(in crate::cli) fn render(answer: &ScheduleFired) -> String {
    let ScheduleFired { run: Run { id, state, .. }, held_by } = answer;
    let obstacle = match held_by {
        Some(StartObstacle::NoDaemon) => {
            "no daemon is running, so it does not start; `midwatch up` starts one"
        }
        Some(StartObstacle::Stopping) => {
            "the daemon is stopping, so it does not start; `midwatch up` starts another"
        }
        Some(StartObstacle::Frozen) => {
            "Midwatch is frozen, so it does not start before `midwatch thaw`"
        }
        None => return format!("run `{id}` {state}; `midwatch run watch {id}` follows it"),
    };
    format!("run `{id}` {state}: {obstacle}")
}
