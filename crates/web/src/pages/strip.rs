//! The strip: the last slots of a schedule as cells, newest right, and the next ones dashed.
//!
//! The form of a cell carries what became of its slot, the colour repeats it.

use api::{Disposition, Slot};
use maud::{Markup, html};

use crate::parts::disposition;
use crate::scene::Scene;
use crate::view::encode;

/// Width of a cell with its gap.
const STEP: usize = 12;
const CELL: usize = 9;
const HEIGHT: usize = 32;
/// The base line of all cells.
const BASE: usize = 30;

/// `slots` has the newest slot first.
pub(super) fn strip(scene: &Scene<'_>, schedule: &str, slots: &[Slot], next: &[String]) -> Markup {
    let width = (slots.len() + next.len()) * STEP;
    let past = slots.iter().rev().enumerate();
    let future = next.iter().enumerate().map(|(index, at)| (slots.len() + index, at));
    html! {
        @if width == 0 { p.muted { "No slot yet." } } @else {
            div.strip-scroll {
                svg.strip width=(width) height=(HEIGHT) viewBox={ "0 0 " (width) " " (HEIGHT) } role="group" aria-label=(summary(slots)) {
                    @for (index, slot) in past { (cell(scene, schedule, index, slot)) }
                    @for (index, at) in future {
                        rect.cell.edge x=(index * STEP) y=(BASE - 10) width=(CELL) height="10" { title { (scene.times.time(at)) ", upcoming" } }
                    }
                }
            }
        }
    }
}

/// What became of the slots, in words.
fn summary(slots: &[Slot]) -> String {
    let count = |is: fn(Disposition) -> bool| slots.iter().filter(|it| is(it.disposition)).count();
    let ran = count(|it| matches!(it, Disposition::Ran | Disposition::RanLate));
    let failed = count(|it| matches!(it, Disposition::Failed | Disposition::Unknown));
    format!(
        "{} slots: {ran} ran, {failed} failed or unknown, {} other",
        slots.len(),
        slots.len() - ran - failed
    )
}

fn cell(scene: &Scene<'_>, schedule: &str, index: usize, slot: &Slot) -> Markup {
    let (tone, word) = disposition(slot.disposition);
    let more = match slot.slots {
        0 | 1 => String::new(),
        slots => format!(", {slots} slots"),
    };
    let label = format!("{}, {word}{more}", scene.times.time(&slot.slot));
    let x = index * STEP;
    let href = format!("/schedules/{}/slots/{}", encode(schedule), encode(&slot.slot));
    html! {
        a href=(href) aria-label=(label) {
            rect.hit x=(x) y="0" width=(STEP) height=(HEIGHT) {}
            (shape(slot.disposition, x, tone.class()))
            title { (label) }
        }
    }
}

/// The form of a disposition.
fn shape(disposition: Disposition, x: usize, class: &str) -> Markup {
    let rect = |height: usize, style: &str| {
        html! { rect class={ "cell " (class) " " (style) } x=(x) y=(BASE - height) width=(CELL) height=(height) {} }
    };
    let dot =
        |y: usize| html! { circle class={ "cell " (class) } cx=(x + CELL / 2) cy=(y) r="2" {} };
    html! {
        @match disposition {
            Disposition::Ran => (rect(22, "")),
            Disposition::RanLate => { (rect(16, "")) (rect_at(x, BASE - 22, 3, class)) },
            Disposition::Coalesced => (rect(8, "")),
            Disposition::Failed => {
                (rect(26, ""))
                path.cross d={ "M" (x + 2) " 10l5 6m0-6l-5 6" } {}
            },
            Disposition::Unknown => { (rect(22, "")) path.cross d={ "M" (x) " 16l9-7m-9 14l9-7m-9 14l9-7" } {} },
            Disposition::Cancelled => (rect(12, "outline")),
            Disposition::Fired => { (rect(22, "outline")) (rect(10, "")) },
            Disposition::Parked => { (rect(22, "outline")) (dot(BASE - 11)) },
            Disposition::Buffered => (rect(12, "outline")),
            Disposition::SkippedBudget | Disposition::SkippedPolicy | Disposition::SkippedLease => { (rect(4, "")) (dot(BASE - 9)) },
            Disposition::SkippedOverlap | Disposition::SkippedMissed | Disposition::SkippedPaused
            | Disposition::SkippedDependency | Disposition::SkippedFull | Disposition::Superseded => (rect(4, "")),
            Disposition::Upcoming | Disposition::NoSlot => (rect(10, "edge")),
        }
    }
}

fn rect_at(x: usize, y: usize, height: usize, class: &str) -> Markup {
    html! { rect class={ "cell " (class) } x=(x) y=(y) width=(CELL) height=(height) {} }
}
