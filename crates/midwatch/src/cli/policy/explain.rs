//! `midwatch policy explain`

use std::io;

use api::display::on_one_line;
use api::{Error, PolicyExplain, PolicyExplained, PolicyFacts, PolicyRequest};
use clap::Args;
use serde::Serialize;

use super::load_rules;
use crate::access::send;
use crate::cli::support::render::{fitted_pairs, paragraphs, yes_no};
use crate::cli::support::text_arg;
use crate::context::Context;
use crate::view::View;
use crate::wrap::fit;

/// Explain what the policy decided on a run, or would decide on a request, and by which rules
#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(in crate::cli) struct Explain {
    /// The id of a run: explain the decision on it
    #[arg(long, value_name = "ID")]
    run: Option<String>,
    /// A request, such as {"capability": "agent.prompt", "agent": "ada"}: evaluate the rules in the
    /// files; `-` reads stdin, `@FILE` reads a file. It needs a `capability`, and may have `principal`,
    /// `role`, `agent`, `tier`, `resource`, `host`, `path` and `argv`
    #[arg(long, value_name = "JSON")]
    request: Option<String>,
}

#[derive(Serialize)]
struct Evaluated {
    ruling: api::PolicyDecision,
    sentence: String,
}

pub(super) async fn run(context: &Context, explain: Explain) -> Result<(), Error> {
    let Explain { run, request } = explain;
    if let Some(run) = run {
        let answer = send(context, PolicyExplain { run }).await?;
        context.output.show(&answer, |answer| render(answer, &context.view));
        return Ok(());
    }
    let request = text_arg::read("request", request.unwrap_or_default(), io::stdin().lock())?;
    let (ruling, sentence) = runtime::evaluate_document(&load_rules(context)?, &request)?;
    context.output.say(&Evaluated { ruling, sentence }, |Evaluated { ruling, sentence }| {
        format!("{sentence} (policy version {})", ruling.policy)
    });
    Ok(())
}

/// The decision, then the request and the facts that it was based on.
fn render(answer: &PolicyExplained, view: &View) -> String {
    let PolicyExplained { request, facts, sentence, containment, .. } = answer;
    let containment = containment.map(|it| ("containment", it.description().to_owned()));
    let rows = request.iter().flat_map(request_rows).chain(facts.iter().flat_map(fact_rows));
    let rows = rows.chain(containment);
    let rows = fitted_pairs(view, rows.map(|(name, value)| (name, on_one_line(&value))));
    paragraphs([fit(sentence, view.width), rows])
}

fn request_rows(request: &PolicyRequest) -> Vec<(&'static str, String)> {
    let PolicyRequest { principal, role, capability, tier, .. } = request.clone();
    let mut rows = vec![
        ("principal", principal),
        ("role", role.to_string()),
        ("capability", capability),
        ("tier", tier.to_string()),
    ];
    let PolicyRequest { agent, resource, host, path, argv, .. } = request.clone();
    let argv = (!argv.is_empty()).then(|| argv.join(" "));
    let optional =
        [("agent", agent), ("resource", resource), ("host", host), ("path", path), ("argv", argv)];
    rows.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    rows
}

fn fact_rows(facts: &PolicyFacts) -> Vec<(&'static str, String)> {
    let PolicyFacts { runs_left, tokens_left, money_left, unattended, lease, off } = facts;
    let optional = [
        ("runs left", runs_left.map(|it| it.to_string())),
        ("tokens left", tokens_left.map(|it| it.to_string())),
        ("money left", money_left.clone()),
        ("switched off", (!off.is_empty()).then(|| off.join(", "))),
    ];
    let mut rows = vec![("unattended", yes_no(*unattended)), ("lease", lease.to_string())];
    rows.extend(optional.into_iter().filter_map(|(name, value)| Some((name, value?))));
    rows
}
