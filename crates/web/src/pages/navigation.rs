//! The navigation: a sidebar, which is a bar at the bottom of a phone.

use maud::{Markup, html};

use super::Content;
use crate::parts::glyph;
use crate::region::Region;
use crate::scene::Scene;
use crate::view::Target;

/// A page of the navigation: its name, address, drawing, and whether a phone's bar has room for it.
struct Place {
    name: &'static str,
    path: &'static str,
    glyph: &'static str,
    on_phone: bool,
}

const PLACES: [Place; 10] = [
    Place { name: "Watch", path: "/", glyph: "watch", on_phone: true },
    Place { name: "Approvals", path: "/approvals", glyph: "wait", on_phone: true },
    Place { name: "Runs", path: "/runs", glyph: "live", on_phone: true },
    Place { name: "Schedules", path: "/schedules", glyph: "late", on_phone: true },
    Place { name: "Timeline", path: "/timeline", glyph: "list", on_phone: false },
    Place { name: "Agents", path: "/agents", glyph: "agent", on_phone: false },
    Place { name: "Budgets", path: "/budgets", glyph: "budget", on_phone: false },
    Place { name: "Policy", path: "/policy", glyph: "policy", on_phone: false },
    Place { name: "Ledger", path: "/ledger", glyph: "ledger", on_phone: false },
    Place { name: "Settings", path: "/settings", glyph: "settings", on_phone: false },
];

pub(super) fn region(scene: &Scene<'_>, target: &Target) -> Region {
    let here = place_of(target);
    let waiting = scene.status.approvals.len();
    let content = html! {
        nav.places aria-label="Pages" {
            a.brand href="/" { (glyph("watch")) "Midwatch" }
            ul {
                @for place in &PLACES {
                    li.more[!place.on_phone] {
                        a href=(place.path) aria-current=[(place.path == here).then_some("page")] {
                            (glyph(place.glyph)) span { (place.name) }
                            @if place.path == "/approvals" && waiting != 0 {
                                span.count aria-label={ (waiting) " waiting" } { (waiting) }
                            }
                        }
                    }
                }
                li.phone { a href="/more" aria-current=[(here == "/more").then_some("page")] { (glyph("more")) span { "More" } } }
            }
            p.who { (scene.viewer.name) br; span.muted { (scene.viewer.role) } }
        }
    };
    Region::new("nav", &content)
}

/// The page on phones that lists what the bar leaves out.
pub(super) fn more(_: &Scene<'_>) -> Content {
    let content: Markup = html! {
        h1 { "More" }
        ul.cards {
            @for place in PLACES.iter().filter(|place| !place.on_phone) {
                li { a href=(place.path) { (glyph(place.glyph)) (place.name) } }
            }
            li { a href="/find" { (glyph("search")) "Find" } }
            li { a href="/freeze" { (glyph("frozen")) "Freeze" } }
        }
    };
    Content::new("More", vec![Region::new("more", &content)])
}

/// The address of the place to which a page belongs.
const fn place_of(target: &Target) -> &'static str {
    match target {
        Target::Watch | Target::Find { .. } | Target::Freeze | Target::Lease => "/",
        Target::Timeline { .. } => "/timeline",
        Target::Approvals { .. } | Target::Approval { .. } => "/approvals",
        Target::Schedules { .. }
        | Target::ScheduleNew(_)
        | Target::SchedulePreview(_)
        | Target::Schedule { .. }
        | Target::ScheduleEdit { .. }
        | Target::ScheduleRemove { .. }
        | Target::Slot { .. } => "/schedules",
        Target::Runs(_)
        | Target::Run { .. }
        | Target::RunSettle { .. }
        | Target::RunCancel { .. } => "/runs",
        Target::Agents { .. } | Target::Agent { .. } => "/agents",
        Target::Ledger { .. } | Target::Entry { .. } => "/ledger",
        Target::Policy | Target::Explain { .. } => "/policy",
        Target::Budgets => "/budgets",
        Target::Settings(_) => "/settings",
        Target::More => "/more",
    }
}
