//! Everything that happened, in one order, one line each.

use api::{Error, TimelineLine, TimelineShow};
use maud::{Markup, html};

use super::Content;
use crate::parts::{empty, number};
use crate::region::Region;
use crate::scene::Scene;
use crate::view::encode;

/// Events that one page covers.
const PAGE_EVENTS: u64 = 200;

pub(super) async fn page(
    scene: &Scene<'_>,
    after: Option<u64>,
    all: bool,
) -> Result<Content, Error> {
    let entries = scene.status.ledger.entries;
    let newest = entries.saturating_sub(PAGE_EVENTS);
    let start = after.unwrap_or(newest).min(entries);
    let limit = Some(PAGE_EVENTS as u32);
    let request = TimelineShow { after: Some(start), all, limit, ..TimelineShow::default() };
    let page = scene.ask(request).await?;
    let all_query = if all { "&all=1" } else { "" };
    let content = html! {
        header.title {
            h1 { "Timeline" }
            span.spring {}
            a.button.quiet href=(if all { "/timeline" } else { "/timeline?all=1" }) {
                @if all { "Hide bookkeeping" } @else { "Show bookkeeping" }
            }
        }
        p.muted { "Newest first. Entries " (number(start + 1)) " to " (number(page.cursor)) " of " (number(entries)) ". The " a href={ "/ledger?after=" (start) } { "ledger" } " has them exactly." }
        section.card {
            @if page.lines.is_empty() { (empty("Nothing happened here but bookkeeping.", html! { a href="/timeline?all=1" { "Show bookkeeping" } })) }
            (lines(scene, &page.lines))
        }
        p.pages {
            @if 0 < start { a.button href={ "/timeline?after=" (start.saturating_sub(PAGE_EVENTS)) (all_query) } { "Older" } }
            @if page.cursor < entries { a.button href={ "/timeline?after=" (page.cursor) (all_query) } { "Newer" } a.button href="/timeline" { "Newest" } }
        }
    };
    Ok(Content::new("Timeline", vec![Region::new("timeline", &content)]))
}

/// Lines of the timeline, newest first.
pub(super) fn lines(scene: &Scene<'_>, lines: &[TimelineLine]) -> Markup {
    html! {
        ol.lines reversed {
            @for line in lines.iter().rev() {
                li {
                    span.when { (scene.time(&line.at)) }
                    a.about href=(address(line)) { (api::display::on_one_line(&line.about)) }
                    span.what { (scene.sentence(&line.text)) }
                }
            }
        }
    }
}

/// The page of what a line is about.
fn address(line: &TimelineLine) -> String {
    match (&line.run_id, &line.approval_id, &line.schedule_id) {
        (_, Some(approval), _) => format!("/approvals/{}", encode(approval)),
        (Some(run), None, _) => format!("/runs/{}", encode(run)),
        (None, None, Some(schedule)) => format!("/schedules/{}", encode(schedule)),
        (None, None, None) => format!("/ledger/{}", line.seq),
    }
}
