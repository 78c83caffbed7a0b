//! Freeze and lease: the bar on every page while nothing starts, and the pages that change it.

use api::{Attribution, LeaseState, Role};
use maud::{Markup, html};

use super::Content;
use crate::parts::{Tone, chip, facts, form, glyph, reason_field};
use crate::region::Region;
use crate::scene::Scene;

/// The bar on top of every page. It is empty while runs may start.
pub(super) fn banner(scene: &Scene<'_>) -> Region {
    let authority = &scene.status.authority;
    let content = html! {
        @if let Some(frozen) = &authority.frozen {
            div.banner.ice role="status" {
                (glyph("frozen"))
                p { strong { "Frozen" } " by " (attribution(scene, frozen)) " Nothing starts." }
                a.button href="/freeze" { "Thaw…" }
            }
        } @else if authority.lease.state != LeaseState::Full {
            div.banner.wait role="status" {
                (glyph("wait"))
                p {
                    strong { "The lease has expired. " }
                    @if authority.lease.state == LeaseState::Ask { "Every run needs your approval." } @else { "No run starts." }
                }
                a.button href="/lease" { "Renew…" }
            }
        }
        @if let Some(stopped) = scene.status.ledger.stopped.as_ref().or(scene.status.ledger.failing.as_ref()) {
            div.banner.fail role="status" {
                (glyph("fail"))
                p { strong { "Nothing can be recorded, so no run starts: " } (stopped) }
                a.button href="/settings/doctor" { "Look" }
            }
        }
    };
    Region::new("banner", &content)
}

fn attribution(scene: &Scene<'_>, Attribution { by, at, note }: &Attribution) -> Markup {
    html! {
        (by) ", " (scene.moment(at))
        @if let Some(note) = note { ": " (api::display::on_one_line(note)) }
        "."
    }
}

/// The page that freezes and thaws.
pub(super) fn freeze(scene: &Scene<'_>) -> Content {
    let status = &scene.status;
    let running = status.running.len();
    let content = match &status.authority.frozen {
        Some(frozen) => html! {
            h1 { (glyph("frozen")) "Frozen" }
            p.lead { "By " (attribution(scene, frozen)) }
            p { "Nothing starts until you thaw it. Runs that waited for approval still wait; runs that were cancelled stay cancelled." }
            (form(scene.viewer, Role::Maintainer, "/thaw", html! {
                label { "Reason, for the record" textarea name="reason" rows="2" maxlength="1000" required {} }
                button.primary type="submit" { "Thaw" }
            }))
        },
        None => html! {
            h1 { "Freeze" }
            p.lead {
                @match running {
                    0 => "No run is running now.",
                    1 => "1 run is cancelled.",
                    _ => { (running) " runs are cancelled." },
                }
                " Nothing starts until somebody thaws it, also after a restart."
                @if status.runs.waiting != 0 { " " (status.runs.waiting) " that wait for approval keep waiting." }
            }
            (form(scene.viewer, Role::Operator, "/freeze", html! {
                (reason_field())
                button.danger type="submit" { "Freeze everything" }
            }))
        },
    };
    Content::new("Freeze", vec![Region::new("freeze", &content)])
}

/// The page of the lease.
pub(super) fn lease(scene: &Scene<'_>) -> Content {
    let lease = &scene.status.authority.lease;
    let state = match lease.state {
        LeaseState::Full => chip(Tone::Ok, "in force"),
        LeaseState::Ask => chip(Tone::Wait, "expired: every run asks"),
        LeaseState::Paused => chip(Tone::Fail, "expired: nothing starts"),
    };
    let instant = |instant: &Option<String>| match instant {
        Some(instant) => scene.moment(instant),
        None => html! { "never" },
    };
    let rows = [
        ("state", state),
        (
            "someone looked last",
            lease.renewed.as_ref().map_or(html! { "never" }, |it| scene.moment(&it.at)),
        ),
        ("every run asks from", instant(&lease.asks_from)),
        ("nothing starts from", instant(&lease.pauses_from)),
    ];
    let content = html! {
        h1 { "The lease" }
        p.lead { "Agents may work alone as long as somebody looks after them. Opening a page here counts, and so does any command in a terminal." }
        (facts(&rows))
        (form(scene.viewer, Role::Operator, "/lease", html! { button.primary type="submit" { "Renew the lease" } }))
    };
    Content::new("Lease", vec![Region::new("lease", &content)])
}
