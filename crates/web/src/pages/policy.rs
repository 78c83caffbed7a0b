//! The policy: the active rules, and why a run was allowed, asked or denied.

use api::display::on_one_line;
use api::{Error, PolicyExplain, PolicyList, PolicyRule, Verdict};
use maud::{Markup, html};

use super::Content;
use crate::parts::{Tone, chip, facts, run_link, run_state, table};
use crate::region::Region;
use crate::scene::Scene;

pub(super) async fn list(scene: &Scene<'_>) -> Result<Content, Error> {
    let policy = scene.ask(PolicyList {}).await?;
    let rows: Vec<Vec<Markup>> = policy.rules.iter().map(list_row).collect();
    let content = html! {
        h1 { "Policy" }
        p.lead { "Posture " strong { (policy.posture) } ", version " code { (policy.policy) } ". Deny wins over ask, ask over allow." }
        section.card { (table("Rules", &["Verdict", "Rule", "Applies to", "From"], &rows)) }
        p.muted { "Your own rules are in " code { "policy.toml" } " in the data directory; " code { "midwatch policy check" } " tests them, " code { "midwatch config reload" } " activates them." }
    };
    Ok(Content::new("Policy", vec![Region::new("policy", &content)]))
}

fn list_row(rule: &PolicyRule) -> Vec<Markup> {
    let applies = html! {
        @if !rule.classes.is_empty() { (rule.classes.join(", ")) " " }
        @for condition in &rule.conditions { span.condition { (condition.key) " " code { (on_one_line(&condition.values.join(", "))) } } " " }
        @if let Some(when) = &rule.when { (when) }
        @if let Some(approvers) = &rule.approvers { span.muted { " approved by " (on_one_line(approvers)) } }
        @if rule.classes.is_empty() && rule.conditions.is_empty() && rule.when.is_none() { "everything" }
    };
    let line = rule.line.map(|line| format!(", line {line}")).unwrap_or_default();
    vec![
        verdict_word(&rule.effect),
        html! { code { (on_one_line(&rule.name)) } },
        applies,
        html! { (rule.origin) (line) },
    ]
}

fn verdict_word(verdict: &str) -> Markup {
    match verdict {
        "allow" => chip(Tone::Ok, "allow"),
        "ask" => chip(Tone::Wait, "ask"),
        _ => chip(Tone::Fail, verdict),
    }
}

fn verdict(verdict: Verdict) -> Markup {
    verdict_word(verdict.as_str())
}

pub(super) async fn explain(scene: &Scene<'_>, run: &str) -> Result<Content, Error> {
    let explained = scene.ask(PolicyExplain { run: run.to_owned() }).await?;
    let ruling = explained.ruling.as_ref().map(|ruling| {
        facts(&[
            ("verdict", verdict(ruling.verdict)),
            ("rules", html! { @for rule in &ruling.rules { code { (on_one_line(rule)) } " " } }),
            ("posture", html! { (ruling.posture) }),
            ("policy version", html! { code { (ruling.policy) } }),
        ])
    });
    let request = explained.request.as_ref().map(|it| {
        let text = |text: &Option<String>| html! { (on_one_line(text.as_deref().unwrap_or("–"))) };
        facts(&[
            ("principal", html! { (on_one_line(&it.principal)) ", " (it.role) }),
            ("capability", html! { (it.capability) ", tier " (it.tier) }),
            ("agent", text(&it.agent)),
            ("host", text(&it.host)),
            ("path", text(&it.path)),
            ("program", html! { code { (on_one_line(&it.argv.join(" "))) } }),
        ])
    });
    let known = explained.facts.as_ref().map(|it| {
        let left =
            |left: Option<i64>| html! { @match left { Some(left) => (left), None => "no limit" } };
        facts(&[
            ("runs left today", left(it.runs_left)),
            ("tokens left today", left(it.tokens_left)),
            ("money left today", html! { (it.money_left.as_deref().unwrap_or("no limit")) }),
            ("lease", html! { (it.lease) }),
            ("attended", html! { @if it.unattended { "no" } @else { "yes" } }),
        ])
    });
    let content = html! {
        header.title { h1 { "Why" } (run_state(explained.state)) }
        p.lead { (scene.sentence(&explained.sentence)) }
        p { (run_link(&explained.run_id, "The run")) }
        div.columns {
            @if let Some(ruling) = ruling { section.card { h2 { "The ruling" } (ruling) } }
            @if let Some(request) = request { section.card { h2 { "The request" } (request) } }
            @if let Some(known) = known { section.card { h2 { "What was known" } (known) } }
        }
    };
    Ok(Content::new("Why", vec![Region::new("explain", &content)]))
}
