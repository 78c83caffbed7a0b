//! The parts that pages share: marks of states, tables, facts, buttons.

use api::display::{on_one_line, visible};
use api::{ApprovalState, Disposition, Role, RunState, ScheduleStatus};
use maud::{Markup, html};

use crate::view::encode;
use crate::viewer::Viewer;

/// Characters of an id in a list: its prefix and the digits that tell its creation time.
const SHORT_ID_CHARS: usize = 20;

/// The colour and the shape of a mark. A word stands beside each mark, so neither carries the meaning alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Tone {
    Ok,
    Late,
    Live,
    Wait,
    Fail,
    Unknown,
    Skip,
    Queued,
    Cancelled,
    Paused,
}

impl Tone {
    /// The class of the style sheet.
    pub(crate) const fn class(self) -> &'static str {
        match self {
            Tone::Ok | Tone::Late => "ok",
            Tone::Live => "live",
            Tone::Wait => "wait",
            Tone::Fail => "fail",
            Tone::Unknown => "unknown",
            Tone::Skip | Tone::Queued | Tone::Cancelled | Tone::Paused => "skip",
        }
    }

    const fn glyph(self) -> &'static str {
        match self {
            Tone::Ok => "ok",
            Tone::Late => "late",
            Tone::Live => "live",
            Tone::Wait => "wait",
            Tone::Fail => "fail",
            Tone::Unknown => "unknown",
            Tone::Skip => "skip",
            Tone::Queued => "queued",
            Tone::Cancelled => "cancelled",
            Tone::Paused => "paused",
        }
    }
}

/// A mark with its word.
pub(crate) fn chip(tone: Tone, word: &str) -> Markup {
    html! { span class={ "chip " (tone.class()) } { (glyph(tone.glyph())) (word) } }
}

/// A drawing of the sheet in the document.
pub(crate) fn glyph(name: &str) -> Markup {
    html! { svg.glyph aria-hidden="true" { use href={ "#g-" (name) } {} } }
}

pub(crate) fn run_state(state: RunState) -> Markup {
    let (tone, word) = match state {
        RunState::Queued => (Tone::Queued, "queued"),
        RunState::WaitingPermission => (Tone::Wait, "waits for you"),
        RunState::Running => (Tone::Live, "running"),
        RunState::Done => (Tone::Ok, "done"),
        RunState::Failed => (Tone::Fail, "failed"),
        RunState::Cancelled => (Tone::Cancelled, "cancelled"),
        RunState::Unknown => (Tone::Unknown, "unknown"),
    };
    chip(tone, word)
}

pub(crate) fn schedule_status(status: ScheduleStatus) -> Markup {
    let (tone, word) = match status {
        ScheduleStatus::Active => (Tone::Ok, "active"),
        ScheduleStatus::Paused => (Tone::Paused, "paused"),
        ScheduleStatus::Ended => (Tone::Skip, "ended"),
        ScheduleStatus::Removed => (Tone::Cancelled, "removed"),
    };
    chip(tone, word)
}

pub(crate) fn approval_state(state: ApprovalState) -> Markup {
    let (tone, word) = match state {
        ApprovalState::Pending => (Tone::Wait, "waits for a decision"),
        ApprovalState::Approved => (Tone::Ok, "approved, not started"),
        ApprovalState::Consumed => (Tone::Ok, "approved, started"),
        ApprovalState::Denied => (Tone::Fail, "denied"),
        ApprovalState::Expired => (Tone::Skip, "expired"),
        ApprovalState::Revoked => (Tone::Cancelled, "revoked"),
        ApprovalState::Changed => (Tone::Skip, "the plan changed"),
        ApprovalState::Unsigned => (Tone::Skip, "signature not valid any more"),
        ApprovalState::Cancelled => (Tone::Cancelled, "the run ended before"),
        ApprovalState::NotNeeded => (Tone::Skip, "not needed any more"),
    };
    chip(tone, word)
}

/// The tone and the words of what became of a slot.
pub(crate) const fn disposition(disposition: Disposition) -> (Tone, &'static str) {
    match disposition {
        Disposition::Ran => (Tone::Ok, "ran"),
        Disposition::RanLate => (Tone::Late, "ran late"),
        Disposition::Coalesced => (Tone::Ok, "merged into another slot"),
        Disposition::Failed => (Tone::Fail, "failed"),
        Disposition::Unknown => (Tone::Unknown, "unknown"),
        Disposition::Cancelled => (Tone::Cancelled, "cancelled"),
        Disposition::SkippedOverlap => (Tone::Skip, "skipped: the run before was live"),
        Disposition::SkippedMissed => (Tone::Skip, "skipped: missed"),
        Disposition::SkippedPaused => (Tone::Skip, "skipped: paused"),
        Disposition::SkippedBudget => (Tone::Wait, "skipped: budget used up"),
        Disposition::SkippedPolicy => (Tone::Wait, "skipped: not allowed"),
        Disposition::SkippedLease => (Tone::Wait, "skipped: lease expired"),
        Disposition::SkippedDependency => (Tone::Skip, "skipped: chain too long"),
        Disposition::SkippedFull => (Tone::Skip, "skipped: too many waiting"),
        Disposition::Superseded => (Tone::Skip, "replaced by an edit"),
        Disposition::Fired => (Tone::Live, "fired"),
        Disposition::Parked => (Tone::Wait, "waits for you"),
        Disposition::Buffered => (Tone::Queued, "waits for the run before"),
        Disposition::Upcoming => (Tone::Queued, "upcoming"),
        Disposition::NoSlot => (Tone::Skip, "no slot"),
    }
}

/// An id, short in lists.
pub(crate) fn short(id: &str) -> String {
    id.chars().take(SHORT_ID_CHARS).collect()
}

pub(crate) fn run_link(id: &str, text: &str) -> Markup {
    html! { a href={ "/runs/" (encode(id)) } { (on_one_line(text)) } }
}

/// The name of a schedule, or its id once it was removed.
pub(crate) fn schedule_link(id: Option<&str>, name: Option<&str>) -> Markup {
    html! {
        @match (id, name) {
            (Some(id), name) => a href={ "/schedules/" (encode(id)) } { (on_one_line(name.unwrap_or(id))) },
            (None, Some(name)) => (on_one_line(name)),
            (None, None) => "–",
        }
    }
}

pub(crate) fn agent_link(name: &str) -> Markup {
    html! { a href={ "/agents/" (encode(name)) } { (on_one_line(name)) } }
}

/// A list of names and values.
pub(crate) fn facts(facts: &[(&str, Markup)]) -> Markup {
    html! {
        dl.facts {
            @for (name, value) in facts {
                div { dt { (name) } dd { (value) } }
            }
        }
    }
}

/// Facts whose values are text by others.
pub(crate) fn text_facts(pairs: &[(&'static str, String)]) -> Markup {
    let pairs: Vec<_> = pairs.iter().map(|(name, value)| (*name, coded(&visible(value)))).collect();
    facts(&pairs)
}

/// A text whose parts in backticks are code, and whose ids of runs, approvals and schedules lead to their pages.
pub(crate) fn coded(text: &str) -> Markup {
    html! {
        @for (index, part) in text.split('`').enumerate() {
            @if index % 2 == 1 { code { (part) } } @else { (linked(part)) }
        }
    }
}

fn linked(text: &str) -> Markup {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    html! {
        @for piece in pieces(text, is_part) {
            @match address(piece) {
                Some(address) => a href=(address) { (short(piece)) },
                None => (piece),
            }
        }
    }
}

/// The text in pieces of characters that are all parts of words, or all between words.
fn pieces(text: &str, is_part: impl Fn(char) -> bool) -> Vec<&str> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let is_word = is_part(first);
        let end = rest.find(|c| is_part(c) != is_word).unwrap_or(rest.len());
        let (piece, after) = rest.split_at(end);
        pieces.push(piece);
        rest = after;
    }
    pieces
}

/// The page of an id.
fn address(id: &str) -> Option<String> {
    let (prefix, digits) = id.split_once('_')?;
    let place = match prefix {
        "run" => "runs",
        "apr" => "approvals",
        "sch" => "schedules",
        _ => return None,
    };
    let is_id = 8 <= digits.len() && digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    is_id.then(|| format!("/{place}/{id}"))
}

/// A table whose rows become cards on a phone: each cell has the name of its column.
pub(crate) fn table(label: &str, columns: &[&str], rows: &[Vec<Markup>]) -> Markup {
    html! {
        table.list aria-label=(label) {
            thead { tr { @for column in columns { th scope="col" { (column) } } } }
            tbody {
                @for row in rows {
                    tr {
                        @for (cell, column) in row.iter().zip(columns) {
                            td data-label=(column) { div { (cell) } }
                        }
                    }
                }
            }
        }
    }
}

/// A link to the next page of a list.
pub(crate) fn next_page(path: &str, query: &str, cursor: Option<&str>) -> Markup {
    html! {
        @if let Some(cursor) = cursor {
            p.pages { a.button href={ (path) "?" (query) "cursor=" (encode(cursor)) } { "Next page" } }
        }
    }
}

/// What belongs here, and how the first one is made.
pub(crate) fn empty(what: &str, help: Markup) -> Markup {
    html! { div.empty { p { (what) } p.muted { (help) } } }
}

/// A form of one button that changes something. A viewer without the role sees it with the reason.
pub(crate) fn button(
    viewer: &Viewer,
    needed: Role,
    action: &str,
    label: &str,
    class: &str,
) -> Markup {
    form(viewer, needed, action, html! { button.(class) type="submit" { (label) } })
}

/// A form that changes something: the script signs it; without script it asks for a token.
pub(crate) fn form(viewer: &Viewer, needed: Role, action: &str, content: Markup) -> Markup {
    html! {
        @match viewer.lacks(needed) {
            Some(reason) => {
                fieldset.act disabled { (content) p.muted { (reason) } }
            },
            None => form.act method="post" action=(action) autocomplete="off" data-sign[viewer.can_sign] {
                (content)
                (token_field(viewer))
            },
        }
    }
}

/// Where a browser without script, or without a key, proves who is there.
fn token_field(viewer: &Viewer) -> Markup {
    let field = html! {
        label.token { "Your token" input type="password" name="token" autocomplete="off" required; }
    };
    html! { @if viewer.can_sign { noscript { (field) } } @else { (field) } }
}

/// A text area for the reason of a decision. Enter does not send the form.
pub(crate) fn reason_field() -> Markup {
    html! { label { "Reason, for the record" textarea name="reason" rows="2" maxlength="1000" {} } }
}

/// Text by an agent or a stranger, line by line. A number before each line tells a wrapped line from a new one.
pub(crate) fn foreign_text(text: &str) -> Markup {
    html! { ol.foreign { @for line in visible(text).split('\n') { li { bdi { (line) } } } } }
}

/// A number with thousands separated.
pub(crate) fn number(count: u64) -> String {
    let digits = count.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index != 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// `1 run`, `2 runs`
pub(crate) fn count(number_of: usize, one: &str, many: &str) -> String {
    match number_of {
        1 => format!("1 {one}"),
        more => format!("{} {many}", number(more as u64)),
    }
}

/// Bytes for people: `1.5 MB`.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..1_000 => format!("{bytes} B"),
        1_000..1_000_000 => format!("{:.1} kB", bytes as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", bytes as f64 / 1e6),
        _ => format!("{:.1} GB", bytes as f64 / 1e9),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_in_sentences_are_links() {
        let link = "fired run <a href=\"/runs/run_000660936e76c523000ba541\">run_000660936e76c523</a>; done";
        assert_eq!(coded("fired run run_000660936e76c523000ba541; done").0, link);
        assert_eq!(
            coded("run_x run_1 `run_000660936e76c523`").0,
            "run_x run_1 <code>run_000660936e76c523</code>"
        );
    }

    #[test]
    fn numbers_are_readable() {
        for (count, expected) in [(0, "0"), (999, "999"), (1000, "1,000"), (1234567, "1,234,567")] {
            assert_eq!(number(count), expected);
        }
        assert_eq!(
            (count(1, "run", "runs"), count(2, "run", "runs")),
            ("1 run".into(), "2 runs".into())
        );
    }
}
