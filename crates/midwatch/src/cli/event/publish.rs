//! `midwatch event publish`

use std::process::ExitCode;

use api::{Error, EventPublish, EventPublished};
use clap::Args;

use crate::access::send;
use crate::cli::support::render::count_of;
use crate::context::Context;

/// Publish an event; it fires the schedules added with `--event NAME`
///
/// Publishing the same id again fires nothing again, and shows the runs that the event led to.
#[derive(Debug, Args)]
pub(in crate::cli) struct Publish {
    /// The name of the event, such as `mail/arrived`
    name: String,
    /// The id of the event, unique among events of its name [default: random]
    #[arg(long, value_name = "ID")]
    id: Option<String>,
}

pub(super) async fn run(context: &Context, publish: Publish) -> Result<ExitCode, Error> {
    let Publish { name, id } = publish;
    let answer = send(context, EventPublish { name, id }).await?;
    context.output.say(&answer, render);
    Ok(ExitCode::SUCCESS)
}

fn render(EventPublished { name, id, listeners, runs }: &EventPublished) -> String {
    if *listeners == 0 {
        return format!(
            "event `{name}` published, but no schedule waits for it; add one with \
             `midwatch schedule add --event {name}`"
        );
    }
    let schedules = count_of(*listeners, "schedule", "schedules");
    let mut lines = vec![format!("event `{name}` ({id}) published to {schedules}")];
    match runs.is_empty() {
        true => lines.push("no run was queued; `midwatch why` explains it".to_owned()),
        false => lines.extend(runs.iter().map(|run| format!("run `{}` {}", run.id, run.state))),
    }
    lines.join("\n")
}
