//! Find: pages by name, and what an id or a name leads to.

use api::{AgentList, ApprovalShow, Error, RunShow, ScheduleList, ScheduleShow};
use maud::{Markup, html};

use super::Content;
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

/// Kind, name and address.
type Found = (&'static str, String, String);

/// Agents and schedules whose names are looked at.
const NAMES_MAX: u32 = 500;
const FOUND_MAX: usize = 20;

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
    let found = found(scene, query).await?;
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

fn results(found: &[Found], query: &str) -> Markup {
    html! {
        ul.found {
            @for (kind, name, href) in found { li { a href=(href) { span.muted { (kind) } " " (api::display::on_one_line(name)) } } }
        }
        @if found.is_empty() { p.muted { "Nothing begins with “" (api::display::on_one_line(query)) "”." } }
    }
}

/// What a text leads to: kind, name and address. Names are looked for among the first agents and the schedules that are
/// due next; an id, or a unique beginning of one, among all.
async fn found(scene: &Scene<'_>, query: &str) -> Result<Vec<Found>, Error> {
    let lower = query.to_lowercase();
    let is_match = |name: &str| {
        let mut words = name.split([' ', '-', '_', '.']);
        name.to_lowercase().starts_with(&lower)
            || words.any(|it| it.to_lowercase().starts_with(&lower))
    };
    let pages = PAGES.iter().filter(|(name, _)| is_match(name));
    let mut found: Vec<Found> =
        pages.map(|(name, path)| ("page", (*name).to_owned(), (*path).to_owned())).collect();
    if query.is_empty() {
        return Ok(found);
    }
    let schedule =
        |id: &str, name: String| ("schedule", name, format!("/schedules/{}", encode(id)));
    let due = ScheduleList { limit: Some(NAMES_MAX), ..ScheduleList::default() };
    let due = scene.ask(due).await?.schedules;
    let named = due.into_iter().filter(|it| is_match(&it.name));
    found.extend(named.map(|it| schedule(&it.id, it.name.clone())));
    let agents = AgentList { limit: Some(NAMES_MAX), ..AgentList::default() };
    let agents = scene.ask(agents).await?.agents;
    let agents = agents.into_iter().filter(|it| is_match(&it.name));
    found.extend(
        agents.map(|it| ("agent", it.name.clone(), format!("/agents/{}", encode(&it.name)))),
    );
    // What the text does not refer to is not found; that is no error here.
    let text = || query.to_owned();
    if let Ok(it) = scene.ask(ScheduleShow { id: text() }).await {
        found.push(schedule(&it.schedule.id, it.schedule.name));
    }
    if let Ok(it) = scene.ask(RunShow { id: text() }).await {
        found.push(("run", it.run.id.clone(), format!("/runs/{}", encode(&it.run.id))));
    }
    if let Ok(it) = scene.ask(ApprovalShow { id: text() }).await {
        let id = it.approval.id;
        found.push(("approval", id.clone(), format!("/approvals/{}", encode(&id))));
    }
    let mut seen = std::collections::BTreeSet::new();
    found.retain(|(_, _, href)| seen.insert(href.clone()));
    found.truncate(FOUND_MAX);
    Ok(found)
}
