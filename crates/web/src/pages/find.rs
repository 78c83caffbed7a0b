//! Find: pages by name, and what an id or a name leads to.

use api::{AgentShow, ApprovalShow, Error, RunShow, ScheduleShow};
use maud::{Markup, html};

use super::Content;
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

const PAGES: [(&str, &str); 18] = [
    ("Watch", "/"),
    ("Timeline", "/timeline"),
    ("Approvals", "/approvals"),
    ("Schedules", "/schedules"),
    ("Add a schedule", "/schedules/new"),
    ("Runs", "/runs"),
    ("Failed runs", "/runs?state=failed"),
    ("Agents", "/agents"),
    ("Budgets", "/budgets"),
    ("Policy", "/policy"),
    ("Ledger", "/ledger"),
    ("Settings", "/settings"),
    ("Devices", "/settings/devices"),
    ("Notices", "/settings/notices"),
    ("Configuration", "/settings/config"),
    ("Doctor", "/settings/doctor"),
    ("Freeze", "/freeze"),
    ("Lease", "/lease"),
];

pub(super) async fn page(scene: &Scene<'_>, query: &str) -> Result<Content, Error> {
    let found = found(scene, query).await;
    let content = html! {
        h1 { "Find" }
        form method="get" action="/find" role="search" {
            label { "A page, the name of a schedule or agent, or the beginning of an id" input name="q" type="search" value=(query) autocomplete="off"; }
            button.primary { "Find" }
        }
        (results(&found, query))
    };
    Ok(Content::new("Find", vec![Region::new("found", &content)]))
}

fn results(found: &[(&'static str, String, String)], query: &str) -> Markup {
    html! {
        ul.found {
            @for (kind, name, href) in found { li { a href=(href) { span.muted { (kind) } " " (api::display::on_one_line(name)) } } }
        }
        @if found.is_empty() { p.muted { "Nothing begins with “" (api::display::on_one_line(query)) "”." } }
    }
}

/// What a text leads to: kind, name and address. A reference that names nothing, or several things, leads nowhere.
async fn found(scene: &Scene<'_>, query: &str) -> Vec<(&'static str, String, String)> {
    let lower = query.to_lowercase();
    let is_match = |name: &str| name.to_lowercase().split(' ').any(|word| word.starts_with(&lower));
    let pages = PAGES.iter().filter(|(name, _)| is_match(name));
    let mut found: Vec<_> =
        pages.map(|(name, path)| ("page", (*name).to_owned(), (*path).to_owned())).collect();
    if query.is_empty() {
        return found;
    }
    let text = || query.to_owned();
    if let Ok(it) = scene.ask(ScheduleShow { id: text() }).await {
        found.push((
            "schedule",
            it.schedule.name,
            format!("/schedules/{}", encode(&it.schedule.id)),
        ));
    }
    if let Ok(it) = scene.ask(AgentShow { name: text() }).await {
        found.push(("agent", it.agent.name.clone(), format!("/agents/{}", encode(&it.agent.name))));
    }
    if let Ok(it) = scene.ask(RunShow { id: text() }).await {
        found.push(("run", it.run.id.clone(), format!("/runs/{}", encode(&it.run.id))));
    }
    if let Ok(it) = scene.ask(ApprovalShow { id: text() }).await {
        found.push((
            "approval",
            it.approval.id.clone(),
            format!("/approvals/{}", encode(&it.approval.id)),
        ));
    }
    found
}
