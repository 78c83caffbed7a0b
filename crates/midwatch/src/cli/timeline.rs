//! `midwatch timeline`

use std::ops::ControlFlow;
use std::process::ExitCode;

use api::display::on_one_line;
use api::{Error, Timeline as Page, TimelineLine, TimelineShow, send};
use calendar::{Zone, format_instant, parse_instant};
use clap::Args;
use unicode_width::UnicodeWidthStr;

use super::support::follow::{Feed, follow};
use super::support::short_id::short_ids;
use super::support::table::cut;
use crate::access::{Access, IfMissing};
use crate::context::Context;
use crate::output::Output;
use crate::view::View;
use crate::wrap::wrap;

/// Events that one request reads.
const PAGE_EVENTS: u32 = 1_000;
/// `18 Nov 03:00:00`
const TIME_COLUMNS: usize = 15;
/// Longer names are cut off.
const ABOUT_COLUMNS_MAX: usize = 24;
/// With less room beside it, the text is below the name.
const TEXT_COLUMNS_MIN: usize = 24;

/// Show everything that happened, one line each, oldest first
///
/// It is made from the ledger. `midwatch ledger tail` shows the same events with their facts. With `--json` each line is one
/// document.
#[derive(Debug, Args)]
pub(super) struct Timeline {
    /// Keep printing what happens
    #[arg(long, short)]
    follow: bool,
    /// Start there: a span before now such as `2h`, or an instant [default: 24h]
    #[arg(long, value_name = "SPAN|INSTANT")]
    since: Option<String>,
    /// Also show bookkeeping such as heartbeats
    #[arg(long)]
    all: bool,
}

impl Timeline {
    /// Whether it stays until it is interrupted.
    pub(super) fn follows(&self) -> bool {
        self.follow
    }
}

pub(super) async fn run(context: &Context, args: Timeline) -> Result<ExitCode, Error> {
    let Timeline { follow: follows, since, all } = args;
    let since = since.map(|since| with_offset(since, &context.view));
    let limit = Some(PAGE_EVENTS);
    let request = TimelineShow { since, all, limit, ..TimelineShow::default() };
    let (output, view) = (context.output, &context.view);
    let mut feed = Lines { request, output, view, has_lines: false };
    if follows {
        follow(context, &mut feed).await?;
        return Ok(ExitCode::SUCCESS);
    }
    let access = Access::open(context, IfMissing::Refuse).await?;
    loop {
        let page = send(access.handle(), feed.next(0)).await?;
        let more = page.more;
        if feed.take(page).is_break() || !more {
            break;
        }
    }
    access.close().await;
    if !feed.has_lines {
        output.remark("nothing happened; `--since 7d` looks further back");
    }
    Ok(ExitCode::SUCCESS)
}

/// A time of the reader's clock as an instant. Other text is left to the engine.
fn with_offset(since: String, view: &View) -> String {
    let utc = Zone::utc();
    let zone = view.zone().unwrap_or(&utc);
    match since.contains(['-', ':']).then(|| parse_instant(&since, Some(zone))) {
        Some(Ok(at_us)) => format_instant(at_us),
        Some(Err(_)) | None => since,
    }
}

/// The lines of the timeline, from the first one shown.
struct Lines<'a> {
    request: TimelineShow,
    output: Output,
    view: &'a View,
    has_lines: bool,
}

impl Feed for Lines<'_> {
    type Request = TimelineShow;
    type End = ();

    fn next(&self, wait_ms: u32) -> TimelineShow {
        // What the first request is for has happened already.
        let wait_ms = if self.request.after.is_some() { wait_ms } else { 0 };
        TimelineShow { wait_ms, ..self.request.clone() }
    }

    fn take(&mut self, page: Page) -> ControlFlow<()> {
        self.has_lines |= !page.lines.is_empty();
        for line in &page.lines {
            if self.output.show_line(line, |line| render(line, self.view)).is_err() {
                // Stdout is closed.
                return ControlFlow::Break(());
            }
        }
        self.request.after = Some(page.cursor);
        ControlFlow::Continue(())
    }
}

fn render(line: &TimelineLine, view: &View) -> String {
    let TimelineLine { at, about, text, run_id, approval_id, .. } = line;
    // A decision is about the approval; anything else about a run names the run.
    let id = approval_id.as_ref().or(run_id.as_ref());
    let id = id.and_then(|id| short_ids(std::iter::once(id.as_str())).pop());
    let id = id.map(|id| format!(" ({id})")).unwrap_or_default();
    let time = format!("{:>TIME_COLUMNS$}  ", view.time(at));
    let indent = " ".repeat(time.len());
    let about = cut(&on_one_line(about), ABOUT_COLUMNS_MAX);
    let text = format!("{}{id}", view.localize(&on_one_line(text)));
    let head = format!("{time}{about}  ");
    let (head, room) = match view.width.saturating_sub(head.width()) {
        room if room < TEXT_COLUMNS_MIN => {
            (format!("{time}{about}\n{indent}"), view.width.saturating_sub(indent.len()))
        }
        room => (head, room),
    };
    format!("{head}{}", wrap(&text, room, "").replace('\n', &format!("\n{indent}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(width: usize, about: &str, text: &str) -> String {
        let line = TimelineLine {
            seq: 1,
            at: "2026-11-18T03:00:00.5Z".to_owned(),
            kind: "run.started".to_owned(),
            actor: "midwatch".to_owned(),
            about: about.to_owned(),
            schedule_id: None,
            run_id: Some("run_0006608d507c9ab7000057eaf176a2d0".to_owned()),
            approval_id: None,
            text: text.to_owned(),
        };
        render(&line, &View::fixed(width, "UTC", "2026-11-18T12:00:00Z"))
    }

    #[test]
    fn a_line_has_the_time_the_name_and_what_happened() {
        let expected = "18 Nov 03:00:00  standup  run started (run_0006608d507c9ab7)";
        assert_eq!(shown(60, "standup", "run started"), expected);
    }

    #[test]
    fn lines_fit_and_break_between_words() {
        let long = "no run for 11 slots up to 2025-11-15 10:46:40: missed, and not caught up";
        for (width, about) in [(60, "standup"), (80, "standup"), (60, &"name ".repeat(24))] {
            let text = shown(width, about, long);
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
            assert!(
                text.lines().skip(1).all(|line| line.starts_with("                 ")),
                "{text}"
            );
        }
    }

    #[test]
    fn slots_are_shown_by_the_clock_of_the_reader() {
        let text =
            "no run for the slot of 2026-11-18T03:30:00+01:00: an earlier run was still live";
        let shown = shown(120, "standup", text);
        assert!(shown.contains("the slot of 18 Nov 02:30:00: an earlier run"), "{shown}");
    }

    #[test]
    fn text_of_others_stays_on_its_line() {
        assert_eq!(shown(200, "two\nlines", "run done").lines().count(), 1);
    }
}
