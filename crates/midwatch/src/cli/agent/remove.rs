//! `midwatch agent remove`

use std::process::ExitCode;

use api::{AgentRemove, Error, Schedule, ScheduleList};
use clap::Args;

use crate::access::send;
use crate::cli::schedule::name_and_id;
use crate::context::Context;

/// Remove an agent
#[derive(Debug, Args)]
pub(in crate::cli) struct Remove {
    /// The name of the agent
    name: String,
}

pub(super) async fn run(context: &Context, remove: Remove) -> Result<ExitCode, Error> {
    let Remove { name } = remove;
    let answer = send(context, AgentRemove { name: name.clone() }).await?;
    let schedules = ScheduleList { agent: Some(name), limit: Some(1), ..ScheduleList::default() };
    // The agent is removed, whether or not its schedules can be listed.
    let schedules = send(context, schedules).await.map(|it| it.schedules).unwrap_or_default();
    context.output.say(&answer, |answer| render(&answer.agent.name, schedules.first()));
    Ok(ExitCode::SUCCESS)
}

/// Warns that schedules of the agent remain and will fail.
fn render(name: &str, schedule: Option<&Schedule>) -> String {
    let removed = format!("agent `{name}` removed");
    match schedule {
        Some(schedule) => format!(
            "{removed}; schedule {} still prompts it and fails until an agent `{name}` exists: \
             `midwatch schedule list --agent {name}` lists all of them",
            name_and_id(schedule)
        ),
        None => removed,
    }
}
