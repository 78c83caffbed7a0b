//! `midwatch event …`

use std::process::ExitCode;

use api::{Error, EventTell, EventTold};
use clap::Subcommand;

use crate::access::ask;
use crate::context::Context;
use crate::output::counted;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    /// Tell of an event; schedules that were added with `--event NAME` fire
    ///
    /// Told of again with the same id, it is the same event, and fires nothing again; the answer names the
    /// runs that it has led to.
    Tell {
        /// Its name, such as `mail/arrived`
        name: String,
        /// What tells it from others of its name [default: made up]
        #[arg(long, value_name = "ID")]
        id: Option<String>,
    },
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    let Command::Tell { name, id } = command;
    let answer = ask(context, EventTell { name, id }).await?;
    context.output.show(&answer, page);
    Ok(ExitCode::SUCCESS)
}

fn page(EventTold { name, id, told, runs }: &EventTold) -> String {
    if *told == 0 {
        return format!(
            "event `{name}` told, and no schedule waits for it; add one with `midwatch schedule add \
             --event {name}`"
        );
    }
    let schedules = counted(*told, "schedule", "schedules");
    let mut lines = vec![format!("event `{name}` ({id}) told to {schedules}")];
    match runs.is_empty() {
        true => lines.push("no run was queued; `midwatch why` tells the reason".to_owned()),
        false => lines.extend(runs.iter().map(|run| format!("run `{}` {}", run.id, run.state))),
    }
    lines.join("\n")
}
