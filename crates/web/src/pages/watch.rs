//! The first page. In this order: is it safe, what waits for the viewer, what happened, what runs now and next.

use api::{Error, Failures, LeaseState, Role, RunState, Status, TimelineShow};
use maud::{Markup, html};

use super::{Content, timeline};
use crate::parts::{Tone, chip, count, empty, form, glyph, number, run_link, schedule_link};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

/// Rows of one kind that the page names.
const NAMED_MAX: usize = 8;
/// Events before the end of the ledger that the page looks at for its last lines.
const RECENT_EVENTS: u64 = 60;
const RECENT_LINES: usize = 8;

pub(super) async fn page(scene: &Scene<'_>) -> Result<Content, Error> {
    let mut regions = vec![Region::new("headline", &headline(scene))];
    if scene.status.schedules == 0 {
        regions.push(Region::new("first", &first_steps(scene)));
    }
    regions.push(Region::new("needs", &needs(scene)));
    regions.push(Region::new("safety", &safety(scene)));
    regions.push(Region::new("now", &now_and_next(scene)));
    let after = scene.status.ledger.entries.saturating_sub(RECENT_EVENTS);
    let limit = Some(RECENT_EVENTS as u32);
    let recent = TimelineShow { after: Some(after), limit, ..TimelineShow::default() };
    let mut lines = scene.ask(recent).await?.lines;
    let older = lines.len().saturating_sub(RECENT_LINES);
    let lines = lines.split_off(older);
    let recent = html! {
        section.card {
            header { h2 { "Last events" } a href="/timeline" { "Timeline" } }
            (timeline::lines(scene, &lines))
        }
    };
    regions.push(Region::new("recent", &recent));
    Ok(Content::new("Watch", regions))
}

/// One sentence that says whether the night was quiet.
fn headline(scene: &Scene<'_>) -> Markup {
    let Status { daemon, failures, .. } = &scene.status;
    let needs = number_of_needs(&scene.status);
    html! {
        header.title {
            h1 { "Watch" }
            @if daemon.running {
                (chip(Tone::Ok, "running"))
                @if let Some(since) = &daemon.since { span.muted { "since " (scene.moment(since)) } }
            }
            span.spring {}
            a.button.danger.quiet href="/freeze" { (glyph("frozen")) "Freeze…" }
        }
        p.lead {
            @if needs == 0 { "All is well: nothing needs you. " } @else { (count(needs, "thing needs", "things need")) " you. " }
            (quiet_since(scene, failures))
        }
    }
}

/// What failed since the viewer last looked.
fn quiet_since(scene: &Scene<'_>, failures: &Failures) -> Markup {
    let since = match failures.seen {
        true => html! { "since you last looked, " (scene.moment(&failures.since)) },
        false => html! { "in the last 24 hours" },
    };
    html! {
        @match failures.runs.len() {
            0 if failures.incomplete => "Nothing failed among the newest runs; older ones were not looked at.",
            0 => { "Nothing failed " (since) "." },
            runs => { (count(runs, "run", "runs")) " failed or ended unknown " (since) "." },
        }
    }
}

fn number_of_needs(status: &Status) -> usize {
    let Status { failures, waiting, unknown_runs, paused_schedules, silenced, .. } = status;
    let failed = failures.runs.iter().filter(|run| run.state == RunState::Failed).count();
    let channels = status.notices.iter().filter(|it| it.failing_since.is_some()).count();
    failed
        + waiting.len()
        + unknown_runs.len()
        + paused_schedules.len()
        + silenced.len()
        + status.budget.used_up.len()
        + channels
}

/// What needs a person, most urgent first: one row per cause, with one action.
fn needs(scene: &Scene<'_>) -> Markup {
    let rows = need_rows(scene);
    html! {
        section.card.needs[!rows.is_empty()] {
            header {
                h2 { "Needs you" }
                @if let Some(newest) = scene.status.failures.runs.first() { (seen_form(scene, &newest.at)) }
            }
            @if rows.is_empty() {
                p.muted { "Nothing waits for you." }
            } @else {
                ul.rows { @for row in rows.iter().take(3 * NAMED_MAX) { (row) } }
            }
        }
    }
}

/// Marks everything up to the newest failure as seen.
fn seen_form(scene: &Scene<'_>, until: &str) -> Markup {
    let content = html! {
        input type="hidden" name="until" value=(until);
        button.quiet type="submit" { "I have seen it" }
    };
    form(scene.viewer, Role::Operator, "/status/seen", content)
}

fn need_rows(scene: &Scene<'_>) -> Vec<Markup> {
    let Status { waiting, unknown_runs, paused_schedules, failures, silenced, .. } = &scene.status;
    let mut rows = Vec::new();
    for run in waiting.iter().take(NAMED_MAX) {
        let href = format!("/approvals/{}", encode(&run.approval_id));
        let name = run.schedule_name.as_deref().unwrap_or(&run.schedule_id);
        rows.push(row(
            chip(Tone::Wait, "approval"),
            html! { a href=(href) { (name) } @if let Some(agent) = &run.agent { span.muted { " by " (agent) } } },
            html! { "expires " (scene.distance(&run.approve_by)) },
            html! { a.button.primary href=(href) { "Decide" } },
        ));
    }
    for run in unknown_runs.iter().take(NAMED_MAX) {
        rows.push(row(
            chip(Tone::Unknown, "unknown"),
            html! { (run_link(&run.run_id, run.schedule_name.as_deref().unwrap_or(&run.run_id))) span.muted { ": interrupted, and may have taken effect" } },
            scene.moment(&run.at),
            html! { a.button href={ "/runs/" (encode(&run.run_id)) "/settle" } { "Settle" } },
        ));
    }
    for schedule in paused_schedules.iter().take(NAMED_MAX) {
        let id = &schedule.schedule_id;
        rows.push(row(
            chip(Tone::Paused, "paused"),
            html! { (schedule_link(Some(id), schedule.schedule_name.as_deref())) span.muted { ": its runs failed" } },
            html! {},
            html! { a.button href={ "/schedules/" (encode(id)) } { "Look" } },
        ));
    }
    for run in failures.runs.iter().filter(|run| run.state == RunState::Failed).take(NAMED_MAX) {
        let reason = run.message.as_ref().or(run.reason.as_ref());
        rows.push(row(
            chip(Tone::Fail, "failed"),
            html! { (run_link(&run.run_id, run.schedule_name.as_deref().unwrap_or(&run.run_id))) @if let Some(reason) = reason { span.muted { ": " (scene.sentence(reason)) } } },
            scene.moment(&run.at),
            html! { a.button href={ "/runs/" (encode(&run.run_id)) } { "Look" } },
        ));
    }
    for agent in silenced.iter().take(NAMED_MAX) {
        rows.push(row(
            chip(Tone::Wait, "silenced"),
            html! { a href={ "/agents/" (encode(agent)) } { (agent) } span.muted { ": no more approval requests, after too many denials" } },
            html! {},
            html! { a.button href={ "/agents/" (encode(agent)) } { "Look" } },
        ));
    }
    for limit in scene.status.budget.used_up.iter().take(NAMED_MAX) {
        let owner = limit.schedule_name.as_ref().or(limit.name.as_ref());
        rows.push(row(
            chip(Tone::Wait, "budget"),
            html! { "today's " (limit.what) " of " (owner.map_or("the installation", String::as_str)) " are used up (" (limit.used) " of " (limit.most) ")" },
            html! { "starts again " (scene.distance(&scene.status.budget.until)) },
            html! { a.button href="/budgets" { "Look" } },
        ));
    }
    for channel in &scene.status.notices {
        let Some(since) = &channel.failing_since else { continue };
        rows.push(row(
            chip(Tone::Fail, "notices"),
            html! { "notices do not reach " (channel.channel) },
            html! { "since " (scene.moment(since)) },
            html! { a.button href="/settings/notices" { "Look" } },
        ));
    }
    rows
}

fn row(mark: Markup, what: Markup, when: Markup, action: Markup) -> Markup {
    html! { li.row { (mark) span.what { (what) } span.when { (when) } (action) } }
}

/// Posture, lease, budget and evidence.
fn safety(scene: &Scene<'_>) -> Markup {
    let Status { daemon, authority, budget, ledger, .. } = &scene.status;
    let lease = &authority.lease;
    let (used, most) = match (&budget.money_max, budget.runs_max) {
        (Some(most), _) => (budget.money.clone(), format!("of {most} spent")),
        (None, Some(most)) => (budget.runs.to_string(), format!("of {most} runs")),
        (None, None) => (budget.runs.to_string(), "runs, without a limit".to_owned()),
    };
    let signed = match ledger.checkpoint {
        0 => "not signed yet".to_owned(),
        signed => format!("signed up to {}", number(signed)),
    };
    let (lease_word, lease_tone) = match lease.state {
        LeaseState::Full => ("in force", Tone::Ok),
        LeaseState::Ask => ("asks", Tone::Wait),
        LeaseState::Paused => ("expired", Tone::Fail),
    };
    let is_sound = ledger.stopped.is_none() && ledger.failing.is_none();
    let evidence = if is_sound { chip(Tone::Ok, "sound") } else { chip(Tone::Fail, "stopped") };
    html! {
        ul.tiles {
            li { a href="/policy" { span.name { "Posture" } span.figure { (daemon.posture) } span.muted { "what runs may do alone" } } }
            li { a href="/lease" {
                span.name { "Lease" } span.figure { (chip(lease_tone, lease_word)) }
                @if let (LeaseState::Full, Some(asks)) = (lease.state, &lease.asks_from) { span.muted { "asks " (scene.distance(asks)) } }
            } }
            li { a href="/budgets" { span.name { "Budget today" } span.figure { (used) } span.muted { (most) ", starts again " (scene.distance(&budget.until)) } } }
            li { a href="/ledger" { span.name { "Evidence" } span.figure { (evidence) } span.muted { (number(ledger.entries)) " entries, " (signed) } } }
        }
    }
}

fn now_and_next(scene: &Scene<'_>) -> Markup {
    let Status { running, runs, upcoming, .. } = &scene.status;
    html! {
        div.columns {
            section.card {
                header { h2 { "Running now" } a href="/runs?state=running" { "Runs" } }
                @if running.is_empty() { p.muted { "Nothing is running." } }
                ul.rows {
                    @for run in running.iter().take(NAMED_MAX) {
                        (row(
                            html! {},
                            run_link(&run.run_id, run.schedule_name.as_deref().unwrap_or(&run.run_id)),
                            html! { "since " (scene.moment(&run.at)) },
                            html! {},
                        ))
                    }
                }
                @if runs.queued != 0 { p.muted { (count(runs.queued, "run is", "runs are")) " queued." } }
            }
            section.card {
                header { h2 { "Next" } a href="/schedules" { "Schedules" } }
                @if upcoming.is_empty() { (empty("Nothing is due.", html! { a href="/schedules/new" { "Add a schedule" } })) }
                ul.rows {
                    @for next in upcoming {
                        (row(
                            html! {},
                            schedule_link(Some(&next.schedule_id), next.schedule_name.as_deref()),
                            scene.moment(&next.at),
                            html! {},
                        ))
                    }
                }
            }
        }
    }
}

/// What a new user does first.
fn first_steps(scene: &Scene<'_>) -> Markup {
    let has_agent = scene.status.agents != 0;
    html! {
        section.card.first {
            h2 { "Your first schedule, in a minute" }
            ol.steps {
                li.done[has_agent] {
                    p { strong { "An agent" } " answers a prompt: a program, a Letta agent, a webhook. To try it out, take the built-in one, which only repeats." }
                    @if has_agent { p.muted { "You have one." } } @else {
                        (form(scene.viewer, Role::Operator, "/agents/add", html! {
                            input type="hidden" name="name" value="echo";
                            input type="hidden" name="backend" value="builtin";
                            button.primary type="submit" { "Add the agent echo" }
                        }))
                    }
                }
                li {
                    p { strong { "A schedule" } " prompts it, every ten seconds or every working day at nine." }
                    a.button.primary[has_agent] href="/schedules/new" { "Add a schedule" }
                }
                li { p { strong { "Watch" } " shows it fire, here, without a reload." } }
            }
        }
    }
}
