//! An entry of the ledger as people read it: a line with its number, time, kind, object and actor, and its facts below.
//!
//! Facts that are empty and those that the first line has already are left out; long texts and many facts are cut off.
//! `--json` prints every field as it is recorded.

use api::Event;
use api::display::on_one_line;
use calendar::format_instant;
use serde_json::Value;
use unicode_width::UnicodeWidthStr;

use crate::cli::support::short_id::short_ids;
use crate::cli::support::table::cut;
use crate::view::View;
use crate::wrap::wrap;

/// Columns of the number of an entry, and those before its facts.
const NUMBER_COLUMNS: usize = 7;
const INDENT_COLUMNS: usize = NUMBER_COLUMNS + 2;
/// Longer texts are cut off, and longer single words, such as keys.
const TEXT_COLUMNS_MAX: usize = 60;
const WORD_COLUMNS_MAX: usize = 46;
/// The noun of entries that are about the installation itself. Its id is the same in all of them.
const INSTALLATION: &str = "watch";
/// More lines of facts are cut off.
const FACT_LINES_MAX: usize = 2;
/// Hashes are cut to the digits that `midwatch policy list` and other commands print of them.
const HASH_DIGITS: usize = 64;
const HASH_DIGITS_SHOWN: usize = 12;
/// Integers from 2001 to 2200 in microseconds. Nothing else that the ledger counts is as large.
const TIMES_US: std::ops::Range<i64> = 978_307_200_000_000..7_258_118_400_000_000;

pub(in crate::cli) fn render_events(events: &[Event], view: &View) -> String {
    events.iter().map(|event| render_event(event, view)).collect::<Vec<_>>().join("\n")
}

pub(super) fn render_event(event: &Event, view: &View) -> String {
    let Event { seq, at, kind, actor, noun, id, private_fields, .. } = event;
    let id = (noun != INSTALLATION).then(|| short_ids(std::iter::once(id.as_str())).concat());
    let time = view.time(at);
    let width = view.width.saturating_sub(INDENT_COLUMNS);
    let (mut head, mut below) = (format!("{time}  {kind}"), Vec::new());
    for part in id.into_iter().chain([format!("by {actor}")]) {
        match below.is_empty() && head.width() + 2 + part.width() <= width {
            true => head = format!("{head}  {part}"),
            false => below.push(part),
        }
    }
    let texts = private_fields.iter().map(|(name, text)| format!("{name} {}", quoted(text)));
    let facts: Vec<String> =
        below.into_iter().chain(texts).chain(facts(event, &time, view)).collect();
    let lines: Vec<String> = std::iter::once(head).chain(fact_lines(&facts, width)).collect();
    let indent = format!("\n{:INDENT_COLUMNS$}", "");
    format!("{seq:>NUMBER_COLUMNS$}  {}", lines.join(&indent))
}

fn fact_lines(facts: &[String], width: usize) -> Vec<String> {
    let text = wrap(&facts.join(", "), width, "");
    let mut lines: Vec<String> =
        text.lines().filter(|line| !line.is_empty()).map(str::to_owned).collect();
    if FACT_LINES_MAX < lines.len() {
        lines.truncate(FACT_LINES_MAX);
        if let Some(last) = lines.last_mut() {
            *last = cut(&format!("{last} …"), width);
        }
    }
    lines
}

/// The facts that the first line does not have.
fn facts(event: &Event, time: &str, view: &View) -> Vec<String> {
    let Some(body) = event.body.as_object() else {
        return value_text(&event.body, view).into_iter().collect();
    };
    let in_head = |name: &str, value: &Value| match name {
        "by" => *value == event.actor.as_str(),
        "at" => value.as_i64().is_some_and(|at_us| view.time(&format_instant(at_us)) == time),
        _ => false,
    };
    body.iter()
        .filter(|(name, value)| !in_head(name, value))
        .filter_map(|(name, it)| Some(format!("{name} {}", value_text(it, view)?)))
        .collect()
}

/// A value on one line: the parts of an object or a list are in parentheses. `None` if it is empty.
fn value_text(value: &Value, view: &View) -> Option<String> {
    let parts: Vec<String> = match value {
        Value::Null => return None,
        Value::String(text) => return (!text.is_empty()).then(|| quoted(text)),
        Value::Number(number) => {
            let time = number.as_i64().filter(|it| TIMES_US.contains(it));
            let shown = time.map(|at_us| view.time(&format_instant(at_us)));
            return Some(shown.unwrap_or_else(|| number.to_string()));
        }
        Value::Bool(is_true) => return Some(is_true.to_string()),
        Value::Array(items) => items.iter().filter_map(|item| value_text(item, view)).collect(),
        Value::Object(fields) => {
            let field =
                |(name, it): (&String, &Value)| Some(format!("{name} {}", value_text(it, view)?));
            fields.iter().filter_map(field).collect()
        }
    };
    (!parts.is_empty()).then(|| format!("({})", parts.join(", ")))
}

/// A text on one line, in quotes if it has more than one word.
fn quoted(text: &str) -> String {
    if text.len() == HASH_DIGITS && text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return cut(text, HASH_DIGITS_SHOWN + 1);
    }
    let text = on_one_line(text);
    match text.contains([' ', ',', '(', ')']) {
        true => format!("\"{}\"", cut(&text, TEXT_COLUMNS_MAX)),
        false => cut(&text, WORD_COLUMNS_MAX),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn added() -> Event {
        serde_json::from_value(json!({
            "seq": 7,
            "at": "2026-03-28T12:00:00.5Z",
            "kind": "schedule.added",
            "version": 1,
            "actor": "uid:1000",
            "role": "maintainer",
            "noun": "schedule",
            "id": "sch_0123abcd",
            "body": {
                "ahead": {},
                "at": 1_774_699_200_000_000_i64,
                "by": "uid:1000",
                "definition": {
                    "action": { "agent": "ada", "kind": "prompt", "prompt": "" },
                    "hash": "0123456789abcdef".repeat(4),
                    "name": "the inbox",
                    "terms": { "keys": ["mail:3", "deploy"], "start_at": 1_774_785_600_000_000_i64 }
                }
            },
            "words": { "prompt": "Look at the inbox.\nBe brief." },
            "hash": "00"
        }))
        .unwrap()
    }

    #[test]
    fn facts_are_below_the_line_and_private_texts_are_shown() {
        let text =
            render_event(&added(), &View::fixed(80, "Europe/Berlin", "2026-03-28T13:00:00Z"));
        let expected = [
            "      7  28 Mar 13:00:00  schedule.added  sch_0123abcd  by uid:1000",
            "         prompt \"Look at the inbox.\\nBe brief.\", definition (action (agent ada,",
            "         kind prompt), hash 0123456789ab…, name \"the inbox\", terms (keys …",
        ];
        assert_eq!(text.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn lines_fit_narrow_terminals() {
        for width in [40, 60, 80] {
            let view = View::fixed(width, "UTC", "2026-03-28T13:00:00Z");
            let text = render_event(&added(), &view);
            assert!(text.lines().all(|line| line.width() <= width), "{text}");
        }
    }

    #[test]
    fn what_the_first_line_has_not_is_kept() {
        let mut event = added();
        event.body = json!({ "by": "ada", "at": 1, "exit": 0, "late": false });
        event.private_fields.clear();
        let text = render_event(&event, &View::fixed(80, "UTC", "2026-03-28T13:00:00Z"));
        assert_eq!(text.lines().nth(1), Some("         at 1, by ada, exit 0, late false"));
    }
}
