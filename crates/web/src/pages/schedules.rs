//! Schedules: the list, one schedule with its slots, and why a slot became what it is.

use api::display::on_one_line;
use api::{
    Error, Explained, Role, RunList, Schedule, ScheduleList, ScheduleShow, ScheduleShown,
    ScheduleSlots, ScheduleStatus, Why,
};
use maud::{Markup, html};

use super::{Content, runs, strip};
use crate::parts::{
    agent_link, button, chip, disposition, empty, facts, foreign_text, form, next_page, number,
    run_link, schedule_link, schedule_status, table,
};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

/// Slots on the page of a schedule.
const SLOTS_MAX: u32 = 60;
const RUNS_MAX: u32 = 10;

pub(super) async fn list(
    scene: &Scene<'_>,
    agent: Option<String>,
    cursor: Option<String>,
) -> Result<Content, Error> {
    let query = agent.as_ref().map(|agent| format!("agent={}&", encode(agent))).unwrap_or_default();
    let request = ScheduleList { agent: agent.clone(), cursor, ..ScheduleList::default() };
    let page = scene.ask(request).await?;
    let rows: Vec<Vec<Markup>> = page.schedules.iter().map(|it| list_row(scene, it)).collect();
    let columns = ["State", "Name", "When", "Prompts", "Last run", "Next run"];
    let content = html! {
        header.title {
            h1 { "Schedules" }
            span.muted { (number(scene.status.schedules.unsigned_abs())) }
            span.spring {}
            a.button.primary href="/schedules/new" { "Add a schedule" }
        }
        @if let Some(agent) = &agent { p { "Of the agent " (agent_link(agent)) ". " a href="/schedules" { "Show all" } } }
        section.card {
            @if rows.is_empty() {
                (empty("No schedule yet.", html! { "A schedule prompts an agent again and again. " a href="/schedules/new" { "Add the first one" } ", or bring yours along: " code { "midwatch schedule import --help" } "." }))
            } @else {
                (table("Schedules", &columns, &rows))
            }
        }
        (next_page("/schedules", &query, page.cursor.as_deref()))
    };
    Ok(Content::new("Schedules", vec![Region::new("schedules", &content)]))
}

fn list_row(scene: &Scene<'_>, schedule: &Schedule) -> Vec<Markup> {
    let id = encode(&schedule.id);
    let about = schedule.action.agent.as_deref().map_or_else(
        || html! { code { (schedule.action.tool.as_deref().unwrap_or_default()) } },
        agent_link,
    );
    vec![
        schedule_status(schedule.status),
        html! { a.row-link href={ "/schedules/" (id) } { (on_one_line(&schedule.name)) } },
        html! { (schedule.describe) },
        about,
        schedule.last_run_at.as_ref().map_or(html! { "–" }, |at| scene.moment(at)),
        schedule.next_run_at.as_ref().map_or(html! { "–" }, |at| scene.moment(at)),
    ]
}

pub(super) async fn show(scene: &Scene<'_>, id: &str) -> Result<Content, Error> {
    let shown = scene.ask(ScheduleShow { id: id.to_owned() }).await?;
    let id = &shown.schedule.id;
    let slots = ScheduleSlots { id: id.clone(), limit: Some(SLOTS_MAX) };
    let slots = scene.ask(slots).await?.slots;
    let why = scene.ask(Why { id: id.clone(), at: None }).await?;
    let limit = Some(RUNS_MAX);
    let list = RunList { schedule: Some(id.clone()), limit, ..RunList::default() };
    let list = scene.ask(list).await?.runs;
    let rows: Vec<Vec<Markup>> = list
        .iter()
        .map(|run| {
            let mut row = runs::list_row(scene, run);
            // The schedule and its agent are those of this page.
            row.drain(1..3);
            row
        })
        .collect();
    let columns = ["State", "Planned", "Began", "Took", "Attempt", "Reason"];
    let recent = html! {
        section.card {
            header { h2 { "Last runs" } a href={ "/runs?schedule=" (encode(id)) } { "All" } }
            @if rows.is_empty() { (empty("It has not run yet.", html! {})) } @else { (table("Last runs", &columns, &rows)) }
        }
    };
    let strip = html! {
        section.card {
            header { h2 { "Slots" } span.muted { "newest right" } }
            (strip::strip(scene, id, &slots, &shown.next))
            p.why { (scene.sentence(&why.sentence)) }
        }
    };
    let regions = vec![
        Region::new("schedule", &heading(scene, &shown)),
        Region::new("strip", &strip),
        Region::new("terms", &terms(scene, &shown)),
        Region::new("runs", &recent),
    ];
    Ok(Content::new(on_one_line(&shown.schedule.name), regions))
}

fn heading(scene: &Scene<'_>, shown: &ScheduleShown) -> Markup {
    let Schedule { id, name, describe, status, paused, .. } = &shown.schedule;
    let path = format!("/schedules/{}", encode(id));
    let viewer = scene.viewer;
    html! {
        header.title {
            h1 { (on_one_line(name)) }
            (schedule_status(*status))
        }
        p.lead {
            (describe)
            @if let Some(next) = &shown.schedule.next_run_at { ", next " (scene.moment(next)) } "."
        }
        @if let Some(paused) = paused {
            p { "Paused by " (on_one_line(&paused.by)) ", " (scene.moment(&paused.at)) @if let Some(note) = &paused.note { ": " (on_one_line(note)) } "." }
        }
        p { (scene.sentence(&shown.policy.sentence)) }
        @if *status != ScheduleStatus::Removed {
            div.buttons {
                (button(viewer, Role::Operator, &format!("{path}/fire"), "Run now", "quiet"))
                @match status {
                    ScheduleStatus::Paused => (button(viewer, Role::Operator, &format!("{path}/resume"), "Resume", "quiet")),
                    ScheduleStatus::Active | ScheduleStatus::Ended | ScheduleStatus::Removed => (button(viewer, Role::Operator, &format!("{path}/pause"), "Pause", "quiet")),
                }
                a.button href={ (path) "/edit" } { "Edit" }
                a.button.danger href={ (path) "/remove" } { "Remove…" }
            }
        }
    }
}

/// What it does, and its terms.
fn terms(scene: &Scene<'_>, shown: &ScheduleShown) -> Markup {
    let Schedule { id, tz, action, tier, terms, followers, made_by, revision, .. } =
        &shown.schedule;
    let text = |text: &Option<String>| text.as_ref().map(|text| html! { (on_one_line(text)) });
    let number_of = |number: Option<u32>| number.map(|number| html! { (number) });
    let rows = [
        Some(("time zone", html! { (tz) })),
        action.agent.as_ref().map(|agent| ("prompts", agent_link(agent))),
        action.tool.as_ref().map(|tool| ("calls", html! { code { (on_one_line(tool)) } })),
        tier.map(|tier| ("tier", html! { (tier) })),
        text(&terms.overlap).map(|it| ("if a run is live", it)),
        text(&terms.missed).map(|it| ("missed slots", it)),
        shown
            .bounds
            .as_ref()
            .and_then(|it| it.window.as_ref())
            .map(|it| ("caught up within", html! { (it) })),
        shown
            .bounds
            .as_ref()
            .map(|it| ("runs a day", html! { "at most " (number(it.per_day.into())) })),
        number_of(terms.attempts).map(|it| ("attempts", it)),
        text(&terms.backoff).map(|it| ("between attempts", it)),
        number_of(terms.pause_after).map(|it| ("pauses after failures", it)),
        text(&terms.money_per_day).map(|it| ("money a day", it)),
        number_of(terms.tokens_per_day).map(|it| ("tokens a day", it)),
        (!followers.is_empty()).then(|| {
            (
                "then fires",
                html! { @for follower in followers { (schedule_link(Some(follower), None)) " " } },
            )
        }),
        made_by.as_ref().map(|it| ("added by the agent", agent_link(&it.agent))),
        Some(("revision", html! { (revision) })),
        Some(("id", html! { code.copy { (id) } })),
    ];
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    html! {
        div.columns {
            section.card { h2 { "Terms" } (facts(&rows)) }
            section.card {
                h2 { "Prompt" }
                @match (&action.prompt, &action.payload) {
                    (Some(prompt), _) => (foreign_text(prompt)),
                    (None, Some(payload)) => (foreign_text(payload)),
                    (None, None) => p.muted { "Sensitive: it is not shown here." },
                }
                h2 { "Next" }
                @if shown.next.is_empty() { p.muted { "Nothing is due." } }
                ol.lines { @for next in &shown.next { li { (scene.moment(next)) } } }
            }
        }
    }
}

/// Why a slot ran, was skipped or is late.
pub(super) async fn slot(scene: &Scene<'_>, id: &str, at: &str) -> Result<Content, Error> {
    let why = scene.ask(Why { id: id.to_owned(), at: Some(at.to_owned()) }).await?;
    let shown = scene.ask(ScheduleShow { id: id.to_owned() }).await?;
    let content = why_panel(scene, &why, &shown.schedule.name);
    Ok(Content::new("Slot", vec![Region::new("slot", &content)]))
}

fn why_panel(scene: &Scene<'_>, why: &Explained, name: &str) -> Markup {
    let (tone, word) = disposition(why.disposition);
    let rows = [
        Some(("planned", html! { (scene.moment(&why.slot)) span.muted { " (" (why.wall) ")" } })),
        why.run_id.as_ref().map(|run| ("run", run_link(run, run))),
        why.into.as_ref().map(|into| ("merged into", html! { a href={ "/schedules/" (encode(&why.schedule_id)) "/slots/" (encode(into)) } { (scene.times.time(into)) } })),
        why.reason.as_ref().map(|reason| ("reason", html! { code { (on_one_line(reason)) } })),
    ];
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    html! {
        header.title { h1 { "A slot of " (schedule_link(Some(&why.schedule_id), Some(name))) } (chip(tone, word)) }
        p.lead { (scene.sentence(&why.sentence)) }
        section.card { (facts(&rows)) }
    }
}

/// The page that confirms a removal.
pub(super) async fn remove(scene: &Scene<'_>, id: &str) -> Result<Content, Error> {
    let Schedule { id, name, live, .. } =
        scene.ask(ScheduleShow { id: id.to_owned() }).await?.schedule;
    let path = format!("/schedules/{}", encode(&id));
    let content = html! {
        h1 { "Remove " (on_one_line(&name)) "?" }
        p.lead { "It fires no more. What it did stays in the ledger." @if !live.is_empty() { " Its runs that have not ended go on." } }
        section.card { (form(scene.viewer, Role::Operator, &format!("{path}/remove"), html! { div.buttons { button.danger type="submit" { "Remove the schedule" } } })) }
        p { a href=(path) { "Back to the schedule" } }
    };
    Ok(Content::new("Remove", vec![Region::new("remove", &content)]))
}
