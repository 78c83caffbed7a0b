//! `midwatch agent show`

use std::process::ExitCode;

use api::{Agent, AgentShow, Error};
use calendar::Span;
use clap::Args;

use super::shell_line;
use crate::access::send;
use crate::cli::support::render::{pairs, yes_no};
use crate::context::Context;

/// Show an agent
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    name: String,
}

pub(super) async fn run(context: &Context, show: Show) -> Result<ExitCode, Error> {
    let answer = send(context, AgentShow { name: show.name }).await?;
    context.output.show(&answer, |answer| render(&answer.agent));
    Ok(ExitCode::SUCCESS)
}

fn render(agent: &Agent) -> String {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let argv = (!agent.argv.is_empty()).then(|| ("argv", shell_line(&agent.argv)));
    let rows = [
        Some(("name", agent.name.clone())),
        Some(("backend", agent.backend.clone())),
        some("url", &agent.url),
        some("model", &agent.model),
        some("remote id", &agent.remote_id),
        argv,
        some("cwd", &agent.cwd),
        (!agent.env.is_empty()).then(|| ("variables", agent.env.join(" "))),
        some("prompt as", &agent.prompt_as),
        agent.time_limit_seconds.map(|seconds| ("time limit", span(seconds))),
        some("script", &agent.script),
        some("api", &agent.api),
        some("send", &agent.sending),
        agent.allow_private.then(|| ("private addresses", "allowed".to_owned())),
        Some(("tier", agent.tier.to_string())),
        some("credential", &agent.credential),
        Some(("repeatable", yes_no(agent.repeatable))),
        price(agent).map(|price| ("price", price)),
        Some(("registered at", agent.registered_at.clone())),
        Some(("changed at", agent.changed_at.clone())),
    ];
    pairs(rows.into_iter().flatten())
}

fn price(agent: &Agent) -> Option<String> {
    let part =
        |price: &Option<String>, unit: &str| price.as_ref().map(|price| format!("{price} {unit}"));
    let parts = [
        part(&agent.price_input, "per million input tokens"),
        part(&agent.price_output, "per million output tokens"),
        part(&agent.price_run, "per attempt"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `600` as `10m`.
fn span(seconds: u32) -> String {
    let span = Span::from_millis(i64::from(seconds) * 1000);
    span.map_or_else(|| format!("{seconds}s"), |span| span.to_string())
}
