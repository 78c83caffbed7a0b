//! What happens to runs, one line per start, end and question, for the person who looks at the terminal of a daemon.

use std::collections::HashMap;

use api::{Error, Event, LIST_ITEMS_MAX, LedgerTail, RunShow};
use calendar::{distance, parse_instant};

use crate::access::send;
use crate::context::Context;
use crate::run_text::schedule_of;
use crate::view::View;
use crate::wrap::fit;

const WAIT_MS: u32 = 20_000;
/// Between the time and what happened.
const GAP: &str = "  ";

/// The runs that were announced and have not ended.
#[derive(Debug, Default)]
struct Announced(HashMap<String, AnnouncedRun>);

#[derive(Clone, Debug)]
struct AnnouncedRun {
    schedule: String,
    started_at: Option<String>,
    /// Whether a line said that it started. None did if it started before the first line.
    is_start_shown: bool,
}

/// Prints what happens from now on, until stdout closes.
pub(in crate::cli) async fn narrate(context: &Context) -> Result<(), Error> {
    let last = LedgerTail { limit: Some(1), ..LedgerTail::default() };
    let mut after = send(context, last).await?.cursor;
    let mut announced = Announced::default();
    loop {
        let request = LedgerTail {
            after: Some(after),
            limit: Some(LIST_ITEMS_MAX),
            wait_ms: WAIT_MS,
            ..LedgerTail::default()
        };
        let page = send(context, request).await?;
        after = page.cursor;
        for event in page.events {
            let Some(run) = run_of(&event) else { continue };
            let run = announced.find(context, run, &event).await;
            if let Some(line) = render(&event, &run, &context.view)
                && context.output.show_line(&event, |_| line).is_err()
            {
                return Ok(());
            }
        }
    }
}

impl Announced {
    /// The run of an event. It is forgotten when it has ended.
    async fn find(&mut self, context: &Context, id: &str, event: &Event) -> AnnouncedRun {
        let known = match event.kind.as_str() {
            "run.ended" => self.0.remove(id),
            "run.started" => None,
            _ => self.0.get(id).cloned(),
        };
        if let Some(known) = known {
            return known;
        }
        let shown = send(context, RunShow { id: id.to_owned() }).await;
        let (schedule, started_at) = match shown {
            Ok(shown) => (schedule_of(&shown.run).to_owned(), shown.run.started_at),
            Err(_) => (id.to_owned(), None),
        };
        let is_start_shown = event.kind == "run.started";
        let started_at = if is_start_shown { Some(event.at.clone()) } else { started_at };
        let run = AnnouncedRun { schedule, started_at, is_start_shown };
        if event.kind == "run.started" {
            self.0.insert(id.to_owned(), run.clone());
        }
        run
    }
}

/// The run that an event is about, if it is one to announce.
fn run_of(event: &Event) -> Option<&str> {
    match event.kind.as_str() {
        "run.started" | "run.retried" | "run.ended" => Some(&event.id),
        "approval.asked" => text(event, "/plan/run"),
        _ => None,
    }
}

fn text<'a>(event: &'a Event, pointer: &str) -> Option<&'a str> {
    event.body.pointer(pointer).and_then(|value| value.as_str())
}

fn render(event: &Event, run: &AnnouncedRun, view: &View) -> Option<String> {
    let (at, schedule) = (view.time_of_day(&event.at), &run.schedule);
    let message = event.private_fields.get("message").filter(|message| !message.is_empty());
    let why = message.map(|message| format!(": {message}")).unwrap_or_default();
    let took = run.started_at.as_deref().and_then(|started| span(started, &event.at));
    let started = run.started_at.as_deref().filter(|_| !run.is_start_shown);
    let started = started.map(|at| format!(", started {}", view.time(at))).unwrap_or_default();
    let took = took.map(|took| format!(" ({took}{started})")).unwrap_or_default();
    let what = match event.kind.as_str() {
        "run.started" => match event.body.pointer("/attempt").and_then(serde_json::Value::as_u64) {
            Some(attempt) if 1 < attempt => format!("{schedule} started, attempt {attempt}"),
            Some(_) | None => format!("{schedule} started"),
        },
        "run.retried" => format!("{schedule} will be retried{why}{took}"),
        "run.ended" => match text(event, "/outcome")? {
            "failed" => format!("x failed {schedule}{why}{took}"),
            "unknown" => format!("? unknown {schedule}{why}{took}"),
            outcome => format!("{schedule} {outcome}{why}{took}"),
        },
        "approval.asked" => {
            format!("! {schedule} needs approval: `midwatch approval show {}`", event.id)
        }
        _ => return None,
    };
    let width = view.width.saturating_sub(at.len() + GAP.len());
    let indent = " ".repeat(at.len() + GAP.len());
    Some(format!("{at}{GAP}{}", fit(&what, width).replace('\n', &format!("\n{indent}"))))
}

fn span(from: &str, to: &str) -> Option<String> {
    let (from, to) = (parse_instant(from, None).ok()?, parse_instant(to, None).ok()?);
    Some(distance(to.saturating_sub(from)))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn event(kind: &str, body: Value, message: &str) -> Event {
        let document = json!({
            "seq": 1, "at": "2026-03-28T13:00:09.5Z", "kind": kind, "version": 1, "actor": "midwatch",
            "role": "system", "noun": "run", "id": "apr_1", "body": body, "words": {"message": message},
            "hash": "",
        });
        serde_json::from_value(document).unwrap()
    }

    #[test]
    fn every_start_end_and_question_is_one_line() {
        let view = View::fixed(80, "Europe/Berlin", "2026-03-28T13:00:00Z");
        let run = AnnouncedRun {
            schedule: "standup".to_owned(),
            started_at: Some("2026-03-28T13:00:03Z".to_owned()),
            is_start_shown: true,
        };
        let line = |kind: &str, body: Value, message: &str| {
            render(&event(kind, body, message), &run, &view).unwrap_or_default()
        };
        for (kind, body, message, expected) in [
            ("run.started", json!({"attempt": 1}), "", "standup started"),
            ("run.started", json!({"attempt": 2}), "", "standup started, attempt 2"),
            ("run.ended", json!({"outcome": "done"}), "", "standup done (6s)"),
            ("run.ended", json!({"outcome": "failed"}), "code 1", "x failed standup: code 1 (6s)"),
            ("run.ended", json!({"outcome": "unknown"}), "", "? unknown standup (6s)"),
            ("run.retried", json!({}), "503", "standup will be retried: 503 (6s)"),
            (
                "approval.asked",
                json!({}),
                "",
                "! standup needs approval: `midwatch approval show apr_1`",
            ),
        ] {
            assert_eq!(line(kind, body, message), format!("14:00:09  {expected}"));
        }
        assert_eq!(line("run.queued", json!({}), ""), "");
        let before = AnnouncedRun { is_start_shown: false, ..run.clone() };
        let ended = event("run.ended", json!({"outcome": "done"}), "");
        let expected = "14:00:09  standup done (6s, started 28 Mar 14:00:03)";
        assert_eq!(render(&ended, &before, &view).unwrap_or_default(), expected);
        let message = "the server refused the connection; is it running, and is its address right?";
        let long = line("run.ended", json!({"outcome": "failed"}), message);
        assert_eq!(long.lines().count(), 2, "{long}");
        assert!(long.lines().all(|line| line.len() <= 80), "{long}");
        assert!(long.lines().skip(1).all(|line| line.starts_with("          ")), "{long}");
    }
}
