//! `midwatch agent list`

use std::process::ExitCode;

use api::{Agent, AgentList, Error};
use clap::Args;

use super::{shell_line, tier};
use crate::access::send;
use crate::cli::support::page::Page;
use crate::cli::support::table::{Column, shortened, table_with_cursor, whole};
use crate::context::Context;
use crate::view::View;

const COLUMNS: [Column; 5] = [
    shortened("NAME", 16),
    whole("BACKEND"),
    whole("TIER"),
    whole("CONTAINMENT"),
    shortened("TARGET", 10),
];

/// List agents by name
#[derive(Debug, Args)]
pub(in crate::cli) struct List {
    #[command(flatten)]
    page: Page,
}

pub(super) async fn run(context: &Context, list: List) -> Result<ExitCode, Error> {
    let List { page: Page { limit, cursor } } = list;
    let answer = send(context, AgentList { limit, cursor, ..AgentList::default() }).await?;
    context
        .output
        .show(&answer, |answer| render(&answer.agents, answer.cursor.as_deref(), &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(agents: &[Agent], cursor: Option<&str>, view: &View) -> String {
    if agents.is_empty() {
        return "no agents yet; register one with `midwatch agent add NAME --backend builtin`"
            .into();
    }
    let rows = agents.iter().map(|agent| {
        let containment = agent.containment.map(|it| it.to_string()).unwrap_or_default();
        [agent.name.clone(), agent.backend.clone(), tier(agent), containment, target(agent)]
    });
    table_with_cursor(view, COLUMNS, rows, cursor)
}

/// Where its prompts go.
fn target(agent: &Agent) -> String {
    let settings = &agent.settings;
    let model = settings.model.as_deref().or(settings.remote_id.as_deref());
    match (&settings.url, model) {
        (Some(url), Some(model)) => format!("{model} at {url}"),
        (Some(url), None) => url.clone(),
        (None, _) => settings.script.clone().unwrap_or_else(|| shell_line(&settings.argv)),
    }
}
