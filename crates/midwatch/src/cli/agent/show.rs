//! `midwatch agent show`

use std::process::ExitCode;

use api::{Agent, AgentSettings, AgentShow, Error};
use calendar::Span;
use clap::Args;

use super::{shell_line, tier};
use crate::access::send;
use crate::cli::support::render::{fitted_pairs, yes_no};
use crate::context::Context;
use crate::view::View;

/// Show an agent
#[derive(Debug, Args)]
pub(in crate::cli) struct Show {
    /// The name of the agent
    name: String,
}

pub(super) async fn run(context: &Context, show: Show) -> Result<ExitCode, Error> {
    let answer = send(context, AgentShow { name: show.name }).await?;
    context.output.show(&answer, |answer| render(&answer.agent, &context.view));
    Ok(ExitCode::SUCCESS)
}

fn render(agent: &Agent, view: &View) -> String {
    let some = |name, value: &Option<String>| value.clone().map(|value| (name, value));
    let settings = &agent.settings;
    let argv = (!settings.argv.is_empty()).then(|| ("argv", shell_line(&settings.argv)));
    let rows = [
        Some(("name", agent.name.clone())),
        Some(("backend", agent.backend.clone())),
        agent.containment.map(|it| ("containment", it.description().to_owned())),
        some("url", &settings.url),
        some("model", &settings.model),
        some("remote id", &settings.remote_id),
        argv,
        some("cwd", &settings.cwd),
        (!settings.env.is_empty()).then(|| ("variables", settings.env.join(" "))),
        some("prompt as", &settings.prompt_as),
        settings.time_limit_seconds.map(|seconds| ("time limit", span(seconds))),
        some("script", &settings.script),
        some("api", &settings.api),
        some("send", &settings.sending),
        (settings.allow_private == Some(true))
            .then(|| ("may reach", "private networks".to_owned())),
        Some(("tier", tier(agent))),
        some("credential", &settings.credential),
        Some(("repeatable", yes_no(settings.repeatable == Some(true)))),
        price(settings).map(|price| ("price", price)),
        Some(("registered", view.moment(&agent.registered_at))),
        Some(("changed", view.moment(&agent.changed_at))),
        Some(("times are", view.zone_name().to_owned())),
    ];
    fitted_pairs(view, rows.into_iter().flatten())
}

fn price(settings: &AgentSettings) -> Option<String> {
    let part =
        |price: &Option<String>, unit: &str| price.as_ref().map(|price| format!("{price} {unit}"));
    let parts = [
        part(&settings.price_input, "per million input tokens"),
        part(&settings.price_output, "per million output tokens"),
        part(&settings.price_run, "per attempt"),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// `600` as `10m`.
fn span(seconds: u32) -> String {
    let span = Span::from_millis(i64::from(seconds) * 1000);
    span.map_or_else(|| format!("{seconds}s"), |span| span.to_string())
}
