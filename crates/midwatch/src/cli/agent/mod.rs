//! `midwatch agent …`

mod add;
mod edit;
mod list;
mod remove;
mod settings;
mod show;
mod test;

use std::process::ExitCode;

use api::{Agent, Error};
use clap::Subcommand;

use super::support::render::warnings;
use crate::cli::support::shell::shell_line;
use crate::context::Context;

#[derive(Debug, Subcommand)]
pub(super) enum Command {
    Add(add::Add),
    Edit(edit::Edit),
    List(list::List),
    Show(show::Show),
    Test(test::Test),
    Remove(remove::Remove),
}

pub(super) async fn run(context: &Context, command: Command) -> Result<ExitCode, Error> {
    match command {
        Command::Add(add) => add::run(context, add).await,
        Command::Edit(edit) => edit::run(context, edit).await,
        Command::List(list) => list::run(context, list).await,
        Command::Show(show) => show::run(context, show).await,
        Command::Test(test) => test::run(context, test).await,
        Command::Remove(remove) => remove::run(context, remove).await,
    }
}

/// Prints why prompts to an agent would fail now. The agent is registered all the same.
fn show_warnings(context: &Context, agent: &Agent, found: &[String]) {
    if found.is_empty() {
        return;
    }
    let found = warnings(&context.view, found);
    let name = &agent.name;
    // An agent of tier 2 is prompted after an approval only.
    context.output.remark(&match agent.settings.tier {
        Some(2) => found,
        _ => format!("{found}\n hint: `midwatch agent test {name}` tries it with a real prompt"),
    });
}

fn summary(agent: &Agent) -> String {
    format!("{}, tier {}", agent.backend, tier(agent))
}

fn tier(agent: &Agent) -> String {
    agent.settings.tier.unwrap_or_default().to_string()
}
