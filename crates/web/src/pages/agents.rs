//! Agents: the list, and one agent with its settings.

use api::display::on_one_line;
use api::{Agent, AgentList, AgentShow, Error, Role, RunList, ScheduleList};
use maud::{Markup, html};

use super::{Content, runs};
use crate::parts::{agent_link, empty, facts, form, next_page, schedule_link, table};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

const RUNS_MAX: u32 = 10;
const SCHEDULES_MAX: u32 = 50;

pub(super) async fn list(scene: &Scene<'_>, cursor: Option<String>) -> Result<Content, Error> {
    let page = scene.ask(AgentList { cursor, ..AgentList::default() }).await?;
    let rows: Vec<Vec<Markup>> = page.agents.iter().map(|agent| list_row(scene, agent)).collect();
    let content = html! {
        h1 { "Agents" }
        section.card {
            @if rows.is_empty() {
                (empty("No agent yet.", html! { "An agent answers prompts: a program, a Letta agent, a webhook. " code { "midwatch agent add reviewer --backend command --cwd ~/src/project -- claude -p" } " registers one." }))
            } @else {
                (table("Agents", &["Name", "Kind", "Tier", "Contained by", "Target", "Registered"], &rows))
            }
        }
        (next_page("/agents", "", page.cursor.as_deref()))
    };
    Ok(Content::new("Agents", vec![Region::new("agents", &content)]))
}

fn list_row(scene: &Scene<'_>, agent: &Agent) -> Vec<Markup> {
    vec![
        agent_link(&agent.name),
        html! { (agent.backend) },
        html! { (agent.settings.tier.unwrap_or_default()) },
        html! { (agent.containment.map(api::Containment::as_str).unwrap_or("–")) },
        target(agent),
        scene.moment(&agent.registered_at),
    ]
}

/// The program or the address that a prompt goes to.
fn target(agent: &Agent) -> Markup {
    let argv = agent.settings.argv.join(" ");
    let target = agent.settings.url.as_deref().or((!argv.is_empty()).then_some(argv.as_str()));
    html! { @match target { Some(target) => code { (on_one_line(target)) }, None => "–" } }
}

pub(super) async fn show(scene: &Scene<'_>, name: &str) -> Result<Content, Error> {
    let agent = scene.ask(AgentShow { name: name.to_owned() }).await?.agent;
    let list =
        RunList { agent: Some(agent.name.clone()), limit: Some(RUNS_MAX), ..RunList::default() };
    let list = scene.ask(list).await?.runs;
    let rows: Vec<Vec<Markup>> = list
        .iter()
        .map(|run| {
            let mut row = runs::list_row(scene, run);
            row.remove(2);
            row
        })
        .collect();
    let schedules = ScheduleList {
        agent: Some(agent.name.clone()),
        limit: Some(SCHEDULES_MAX),
        ..ScheduleList::default()
    };
    let schedules = scene.ask(schedules).await?.schedules;
    let heading = html! {
        h1 { (on_one_line(&agent.name)) }
        p.lead { "A " (agent.backend) " agent of tier " (agent.settings.tier.unwrap_or_default()) @if let Some(containment) = agent.containment { ", contained: " (containment.description()) } "." }
        div.columns {
            section.card { h2 { "Settings" } (settings(scene, &agent)) }
            section.card {
                h2 { "Try it" }
                p.muted { "Prompts it once, now, without a schedule." }
                (form(scene.viewer, Role::Operator, &format!("/agents/{}/test", encode(&agent.name)), html! {
                    label { "Prompt" textarea name="prompt" rows="2" {} }
                    button.quiet type="submit" { "Send the prompt" }
                }))
            }
        }
    };
    let work = html! {
        section.card {
            header { h2 { "Schedules" } a href={ "/schedules?agent=" (encode(&agent.name)) } { "All" } }
            @if schedules.is_empty() { (empty("No schedule prompts it.", html! { a href={ "/schedules/new?agent=" (encode(&agent.name)) } { "Add one" } })) }
            ul.rows { @for it in &schedules { li.row { (schedule_link(Some(&it.id), Some(&it.name))) span.what.muted { (it.describe) } @if let Some(next) = &it.next_run_at { span.when { (scene.moment(next)) } } } } }
        }
        section.card {
            header { h2 { "Last runs" } a href={ "/runs?agent=" (encode(&agent.name)) } { "All" } }
            @if rows.is_empty() { (empty("It has not run yet.", html! {})) } @else {
                (table("Last runs", &["State", "Schedule", "Planned", "Began", "Took", "Attempt", "Reason"], &rows))
            }
        }
    };
    let regions = vec![Region::new("agent", &heading), Region::new("work", &work)];
    Ok(Content::new(on_one_line(&agent.name), regions))
}

fn settings(scene: &Scene<'_>, agent: &Agent) -> Markup {
    let it = &agent.settings;
    let text = |name, text: &Option<String>| {
        text.as_ref().map(|text| (name, html! { (on_one_line(text)) }))
    };
    let rows = [
        Some(("target", target(agent))),
        text("directory", &it.cwd),
        (!it.env.is_empty()).then(|| ("environment", html! { (it.env.join(", ")) })),
        text("model", &it.model),
        text("credential", &it.credential),
        it.time_limit_seconds.map(|seconds| ("time limit", html! { (seconds) " s" })),
        it.repeatable
            .filter(|it| *it)
            .map(|_| ("repeatable", html! { "yes: an interrupted prompt is sent again" })),
        text("price of input", &it.price_input),
        text("price of output", &it.price_output),
        text("price of a run", &it.price_run),
        Some(("registered", scene.moment(&agent.registered_at))),
        Some(("changed", scene.moment(&agent.changed_at))),
    ];
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    facts(&rows)
}
