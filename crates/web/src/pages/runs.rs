//! Runs: the list, one run with its attempts and output, and the pages that settle and cancel it.

use api::display::on_one_line;
use api::{
    Error, Role, Run, RunEvents, RunList, RunOrigin, RunShow, RunState, RunWatch, SettledState,
};
use maud::{Markup, html};

use super::Content;
use crate::parts::{
    agent_link, button, empty, facts, foreign_text, form, next_page, number, reason_field,
    run_link, run_state, schedule_link, short, size, table,
};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::{RunFilter, encode};

/// A running run shows its output this often.
const REFRESH_MS: u32 = 1_000;
/// Output that the page of a run shows, from its end.
const OUTPUT_CHARS_MAX: usize = 16_000;

const FILTERS: [(Option<RunState>, &str); 7] = [
    (None, "All"),
    (Some(RunState::Running), "Running"),
    (Some(RunState::WaitingPermission), "Waiting"),
    (Some(RunState::Queued), "Queued"),
    (Some(RunState::Failed), "Failed"),
    (Some(RunState::Unknown), "Unknown"),
    (Some(RunState::Done), "Done"),
];

pub(super) async fn list(scene: &Scene<'_>, filter: &RunFilter) -> Result<Content, Error> {
    let RunFilter { state, agent, schedule, cursor } = filter.clone();
    let request = RunList { state, agent, schedule, cursor, limit: None };
    let page = scene.ask(request).await?;
    let rows: Vec<Vec<Markup>> = page.runs.iter().map(|run| list_row(scene, run)).collect();
    let others = filter_query(&RunFilter { state: None, cursor: None, ..filter.clone() });
    let here = filter_query(&RunFilter { cursor: None, ..filter.clone() });
    let columns = ["State", "Schedule", "Agent", "Planned", "Began", "Took", "Attempt", "Reason"];
    let content = html! {
        header.title {
            h1 { "Runs" }
            nav.tabs aria-label="Which runs" {
                @for (state, name) in FILTERS {
                    @let query = state.map(|state| format!("state={state}&")).unwrap_or_default() + &others;
                    a href={ "/runs?" (query.trim_end_matches('&')) } aria-current=[(filter.state == state).then_some("page")] { (name) }
                }
            }
        }
        @if let Some(agent) = &filter.agent { p { "Of the agent " (agent_link(agent)) ". " a href="/runs" { "Show all" } } }
        @if filter.schedule.is_some() { p { "Of one schedule. " a href="/runs" { "Show all" } } }
        section.card {
            @if rows.is_empty() {
                (empty("No run is like this.", html! { "A run is one execution of a schedule. " a href="/schedules" { "Schedules" } " say when the next one is due." }))
            } @else {
                (table("Runs", &columns, &rows))
            }
        }
        (next_page("/runs", &here, page.cursor.as_deref()))
    };
    Ok(Content::new("Runs", vec![Region::new("runs", &content)]))
}

/// A filter as a query that ends with `&` if it is not empty.
fn filter_query(RunFilter { state, agent, schedule, cursor }: &RunFilter) -> String {
    let pairs = [
        ("state", state.map(|state| state.to_string())),
        ("agent", agent.clone()),
        ("schedule", schedule.clone()),
        ("cursor", cursor.clone()),
    ];
    let pairs = pairs.into_iter().filter_map(|(name, value)| Some((name, value?)));
    pairs.map(|(name, value)| format!("{name}={}&", encode(&value))).collect()
}

/// The cells of a run in a list.
pub(super) fn list_row(scene: &Scene<'_>, run: &Run) -> Vec<Markup> {
    let reason = run.message.as_ref().or(run.reason.as_ref());
    vec![
        html! { a.row-link href={ "/runs/" (encode(&run.id)) } { (run_state(run.state)) } },
        schedule_link(run.schedule_id.as_deref(), run.schedule_name.as_deref()),
        run.agent.as_deref().map_or(html! { "–" }, agent_link),
        match &run.slot {
            Some(slot) => scene.time(slot),
            None => html! { span.muted { (origin(run.origin)) } },
        },
        run.started_at.as_ref().map_or(html! { "–" }, |at| scene.moment(at)),
        took(run.started_at.as_deref(), run.finished_at.as_deref()),
        html! { (run.attempt) },
        html! { @if let Some(reason) = reason { span.muted.clip { (scene.sentence(reason)) } } },
    ]
}

/// The duration between two instants.
fn took(from: Option<&str>, to: Option<&str>) -> Markup {
    let us = |instant: &str| calendar::parse_instant(instant, None).ok();
    let took = from.and_then(us).zip(to.and_then(us)).map(|(from, to)| to - from);
    html! {
        @match took {
            Some(us) if us < 1_000_000 => { ((us / 1_000).max(0)) " ms" },
            Some(us) => (calendar::distance(us)),
            None => "–",
        }
    }
}

const fn origin(origin: RunOrigin) -> &'static str {
    match origin {
        RunOrigin::Slot => "a slot",
        RunOrigin::CatchUp => "caught up",
        RunOrigin::Buffer => "waited for the run before",
        RunOrigin::Manual => "by hand",
        RunOrigin::After => "after another schedule",
        RunOrigin::Event => "an event",
        RunOrigin::Backfill => "backfill",
    }
}

pub(super) async fn show(scene: &Scene<'_>, id: &str) -> Result<Content, Error> {
    let run = scene.ask(RunShow { id: id.to_owned() }).await?.run;
    let name = on_one_line(run.schedule_name.as_deref().unwrap_or("a removed schedule"));
    let is_running = run.state == RunState::Running;
    let events = events(scene, &run).await?;
    let regions = vec![
        Region::new("run", &heading(scene, &run, &name)),
        Region::new("output", &output(scene, &run).await?),
        Region::new("facts", &run_facts(scene, &run)),
        Region::new("entries", &events),
    ];
    let refresh_ms = is_running.then_some(REFRESH_MS);
    Ok(Content { refresh_ms, ..Content::new(format!("Run of {name}"), regions) })
}

fn heading(scene: &Scene<'_>, run: &Run, name: &str) -> Markup {
    let id = encode(&run.id);
    let viewer = scene.viewer;
    let reason = run.message.as_ref().or(run.reason.as_ref());
    html! {
        header.title {
            h1 { "Run of " (schedule_link(run.schedule_id.as_deref(), Some(name))) }
            (run_state(run.state))
        }
        @if let Some(reason) = reason { p.lead { (scene.sentence(reason)) } }
        @if let (Some(approval), RunState::WaitingPermission) = (&run.approval_id, run.state) {
            p { a.button.primary href={ "/approvals/" (encode(approval)) } { "Decide" } }
        }
        div.buttons {
            @match run.state {
                RunState::Queued | RunState::Running | RunState::WaitingPermission => a.button.danger href={ "/runs/" (id) "/cancel" } { "Cancel…" },
                RunState::Failed | RunState::Cancelled => (button(viewer, Role::Operator, &format!("/runs/{id}/retry"), "Try once more", "quiet")),
                RunState::Unknown => a.button.primary href={ "/runs/" (id) "/settle" } { "Settle…" },
                RunState::Done => {},
            }
        }
    }
}

/// When it was planned, began and ended; attempts; cost.
fn run_facts(scene: &Scene<'_>, run: &Run) -> Markup {
    let instant = |instant: &Option<String>| instant.as_ref().map(|at| scene.moment(at));
    let rows = [
        Some(("planned", run.slot.as_ref().map_or(html! { (origin(run.origin)) }, |at| scene.moment(at)))),
        Some(("queued", scene.moment(&run.queued_at))),
        instant(&run.started_at).map(|at| ("began", at)),
        instant(&run.finished_at).map(|at| ("ended", at)),
        run.finished_at.as_ref().map(|_| ("took", took(run.started_at.as_deref(), run.finished_at.as_deref()))),
        instant(&run.retry_at).map(|at| ("tries again", at)),
        run.agent.as_ref().map(|agent| ("agent", html! { (agent_link(agent)) @if let Some(containment) = run.containment { span.muted { " " (containment.description()) } } })),
        run.usage.map(|usage| ("tokens", html! { (number(usage.input.into())) " read, " (number(usage.output.into())) " written" })),
        run.cost.as_ref().map(|cost| ("cost", html! { (cost) })),
        run.settled_by.as_ref().map(|by| ("settled by", html! { (on_one_line(by)) @if let Some(at) = &run.settled_at { ", " (scene.moment(at)) } @if let Some(note) = &run.settled_note { ": " (on_one_line(note)) } })),
        Some(("policy", html! { a href={ "/policy/explain?run=" (encode(&run.id)) } { "why it was allowed, asked or denied" } })),
        Some(("id", html! { code.copy { (run.id) } })),
    ];
    let rows: Vec<_> = rows.into_iter().flatten().collect();
    let most = run.attempts_max.map(|most| format!(" of {most}")).unwrap_or_default();
    let attempts: Vec<Vec<Markup>> = run.attempts.iter().map(|attempt| vec![
        html! { (attempt.number) (most) },
        run_state(attempt.outcome),
        scene.moment(&attempt.started_at),
        took(Some(&attempt.started_at), attempt.ended_at.as_deref()),
        html! { @if let Some(reason) = attempt.message.as_ref().or(attempt.reason.as_ref()) { (scene.sentence(reason)) } },
    ]).collect();
    html! {
        div.columns {
            section.card { h2 { "Facts" } (facts(&rows)) }
            section.card {
                h2 { "Attempts" }
                @if attempts.is_empty() { p.muted { "It has not started." } } @else {
                    (table("Attempts", &["Attempt", "Outcome", "Began", "Took", "Reason"], &attempts))
                }
            }
        }
    }
}

async fn output(scene: &Scene<'_>, run: &Run) -> Result<Markup, Error> {
    let live = match run.state {
        RunState::Running => {
            let watch = RunWatch { id: run.id.clone(), seen: None, wait_ms: 0 };
            Some(scene.ask(watch).await?.output)
        }
        _ => None,
    };
    let stored = run.output.as_ref();
    let text = live.as_deref().or(stored.map(|it| it.text.as_str())).unwrap_or_default();
    Ok(html! {
        section.card {
            header {
                h2 { "Output" }
                @if live.is_some() { span.muted { "live" } }
                @if let Some(output) = stored { span.muted { (size(output.bytes)) } }
            }
            @if stored.is_some_and(|it| it.sealed) {
                p.muted { "Hidden, because the schedule is sensitive." }
            } @else if text.is_empty() {
                p.muted { @if run.finished_at.is_some() { "It wrote nothing." } @else { "Nothing yet." } }
            } @else {
                div.output data-follow[live.is_some()] tabindex="0" role="region" aria-label="Output of the run" { (foreign_text(tail(text.strip_suffix('\n').unwrap_or(text)))) }
                @if let Some(file) = stored.and_then(|it| it.file.as_ref()) {
                    p.muted { "The whole output is in " code { (file) } "; " code { "midwatch run output " (short(&run.id)) } " prints it." }
                }
            }
        }
    })
}

/// The end of a text.
fn tail(text: &str) -> &str {
    let start = text.char_indices().rev().nth(OUTPUT_CHARS_MAX).map_or(0, |(at, _)| at);
    text.get(start..).unwrap_or_default()
}

async fn events(scene: &Scene<'_>, run: &Run) -> Result<Markup, Error> {
    let list = scene.ask(RunEvents { id: run.id.clone() }).await?;
    Ok(html! {
        details.card #entries-of-run {
            summary { "Ledger entries of this run (" (list.events.len()) @if list.more_after.is_some() { " or more" } ")" }
            ol.lines {
                @for event in &list.events {
                    li {
                        span.when { (scene.time(&event.at)) }
                        a.about href={ "/ledger/" (event.seq) } { (number(event.seq)) }
                        span.what { (event.kind) span.muted { " by " (on_one_line(&event.actor)) } }
                    }
                }
            }
        }
    })
}

/// The page that settles a run whose outcome is unknown.
pub(super) async fn settle(scene: &Scene<'_>, id: &str) -> Result<Content, Error> {
    let run = scene.ask(RunShow { id: id.to_owned() }).await?.run;
    let action = format!("/runs/{}/settle", encode(&run.id));
    let content = html! {
        h1 { "Settle a run of " (schedule_link(run.schedule_id.as_deref(), run.schedule_name.as_deref())) }
        @if run.state == RunState::Unknown {
            p.lead { "It was interrupted while it ran, so nobody knows whether it took effect. Check what it did, then say how it ended. It is not started again." }
            section.card {
                (form(scene.viewer, Role::Operator, &action, html! {
                    (reason_field())
                    div.buttons {
                        button.primary type="submit" name="state" value=(SettledState::Done) { "It is done" }
                        button.danger type="submit" name="state" value=(SettledState::Failed) { "It failed" }
                    }
                }))
            }
        } @else {
            p.lead { "There is nothing to settle: the run is " (run_state(run.state)) "." }
        }
        p { (run_link(&run.id, "Back to the run")) }
    };
    Ok(Content::new("Settle", vec![Region::new("settle", &content)]))
}

/// The page that confirms a cancel.
pub(super) async fn cancel(scene: &Scene<'_>, id: &str) -> Result<Content, Error> {
    let run = scene.ask(RunShow { id: id.to_owned() }).await?.run;
    let action = format!("/runs/{}/cancel", encode(&run.id));
    let content = html! {
        h1 { "Cancel the run of " (schedule_link(run.schedule_id.as_deref(), run.schedule_name.as_deref())) "?" }
        p.lead {
            @match run.state {
                RunState::Running => "It is running: its program is ended at once, and what it has done so far stays done.",
                RunState::Queued | RunState::WaitingPermission => "It has not started, and then never will.",
                _ => "It has ended already.",
            }
        }
        section.card {
            (form(scene.viewer, Role::Operator, &action, html! {
                (reason_field())
                div.buttons { button.danger type="submit" { "Cancel the run" } }
            }))
        }
        p { (run_link(&run.id, "Back to the run")) }
    };
    Ok(Content::new("Cancel", vec![Region::new("cancel", &content)]))
}
