//! How the report of an import is rendered.

use calendar::{Zone, parse_instant};
use compat::import::{LeftOut, Position};

use super::report::{Imported, Outcome, Report, ReportedEntry};
use crate::cli::schedule::upcoming::when;
use crate::cli::support::render::{count_of, paragraphs};
use crate::view::View;
use crate::wrap::wrap;

/// What is put before a line of a prompt.
const PROMPT_MARK: &str = "  > ";
/// The next times to show per schedule.
const NEXT_SHOWN_MAX: usize = 2;
/// The lines of a prompt to show; `--json` has all of it.
const PROMPT_LINES_MAX: usize = 6;

/// `lease` is what the lease asks of the person who imports.
pub(super) fn report(report: &Report, lease: Option<&str>, view: &View) -> String {
    let (mut added, mut unchanged, mut left_out) = (Vec::new(), Vec::new(), Vec::new());
    for ReportedEntry { position, outcome } in &report.entries {
        match outcome {
            Outcome::Added(imported) => added.push(render_added(position, imported, view)),
            Outcome::Unchanged(imported) => {
                unchanged.push(render_unchanged(position, imported, view))
            }
            Outcome::LeftOut { text, why } => add_left_out(&mut left_out, position, text, why),
        }
    }
    let left_out: Vec<String> = left_out.iter().map(|it| render_left_out(it, view)).collect();
    let heading = if report.dry_run { "would be added" } else { "added" };
    paragraphs([
        section(heading, &added),
        section("unchanged", &unchanged),
        section("left out", &left_out),
        notes(report, view),
        lease.map(|lease| wrap(lease, view.width, "")).unwrap_or_default(),
        summary(report),
    ])
}

fn section(heading: &str, entries: &[String]) -> String {
    match entries.is_empty() {
        true => String::new(),
        false => format!("{heading}:\n\n{}", paragraphs(entries.iter().cloned())),
    }
}

fn render_added(position: &Position, imported: &Imported, view: &View) -> String {
    let wrap = |indent: &str, text: &str| indented(view, indent, text);
    let Imported { name, describe, tz, paused, prompt, warnings, .. } = imported;
    let paused = if *paused { ", paused" } else { "" };
    let mut lines = vec![
        wrap("", &format!("{position}: {name}")),
        wrap("  ", &format!("{}{paused}", when(describe, tz))),
        wrap("  ", &format!("next {}", next_times(imported, view))),
    ];
    lines.extend(warnings.iter().map(|warning| wrap("  ", &format!("warning: {warning}"))));
    if prompt != name {
        lines.extend(prompt_lines(prompt, view.width));
    }
    lines.join("\n")
}

fn render_unchanged(position: &Position, imported: &Imported, view: &View) -> String {
    let Imported { id, name, warnings, .. } = imported;
    let wrap = |indent: &str, text: &str| indented(view, indent, text);
    let id = id.as_deref().unwrap_or_default();
    let mut lines = vec![wrap("", &format!("{position}: {name} ({id})"))];
    lines.extend(warnings.iter().map(|warning| wrap("  ", &format!("warning: {warning}"))));
    lines.join("\n")
}

/// Entries that are left out for the same reason.
struct LeftOutGroup<'a> {
    why: &'a LeftOut,
    entries: Vec<String>,
}

fn add_left_out<'a>(
    groups: &mut Vec<LeftOutGroup<'a>>,
    position: &Position,
    text: &str,
    why: &'a LeftOut,
) {
    let entry = match text.is_empty() {
        true => position.to_string(),
        false => format!("{position}: {text}"),
    };
    match groups.iter_mut().find(|group| group.why == why) {
        Some(group) => group.entries.push(entry),
        None => groups.push(LeftOutGroup { why, entries: vec![entry] }),
    }
}

fn render_left_out(LeftOutGroup { why, entries }: &LeftOutGroup<'_>, view: &View) -> String {
    let wrap = |indent: &str, text: &str| indented(view, indent, text);
    let entries = entries.iter().map(|entry| wrap("", entry));
    let reason = [wrap("  ", &why.reason), wrap("  ", &format!("hint: {}", why.hint))];
    entries.chain(reason).collect::<Vec<_>>().join("\n")
}

/// The next times in the schedule's zone.
fn next_times(imported: &Imported, view: &View) -> String {
    let zone: Option<Zone> = imported.tz.parse().ok();
    let times = imported.next.iter().take(NEXT_SHOWN_MAX).map(|text| {
        let wall = |at_us| Some(view.time_in(zone.as_ref()?, at_us));
        parse_instant(text, None).ok().and_then(wall).unwrap_or_else(|| text.clone())
    });
    times.collect::<Vec<_>>().join(", ")
}

/// The first lines of a prompt. A line that is too long is cut, so that no wrap looks like a line of the prompt.
fn prompt_lines(prompt: &str, width: usize) -> Vec<String> {
    let room = width - PROMPT_MARK.len();
    let cut = |line: &str| match line.chars().count() <= room {
        true => format!("{PROMPT_MARK}{line}"),
        false => format!("{PROMPT_MARK}{}…", line.chars().take(room - 1).collect::<String>()),
    };
    let mut lines: Vec<String> = prompt.lines().take(PROMPT_LINES_MAX).map(cut).collect();
    let more = prompt.lines().count().saturating_sub(PROMPT_LINES_MAX);
    if 0 < more {
        lines.push(format!("  … {}", count_of(more as u64, "more line", "more lines")));
    }
    lines
}

fn notes(report: &Report, view: &View) -> String {
    let wrap = |indent: &str, text: &str| indented(view, indent, text);
    let verb = if report.dry_run { "would be registered" } else { "registered" };
    let agents = report.agents.iter().map(|agent| {
        wrap("", &format!("agent {} {verb} at {}, id {}", agent.name, agent.url, agent.remote_id))
    });
    let reserved = report.reserved_numbers.map(|number| {
        wrap("", &format!("numbers up to {number} are not given out to new prompts"))
    });
    agents.chain(reserved).collect::<Vec<_>>().join("\n")
}

/// Comes last, where it is seen.
fn summary(report: &Report) -> String {
    let Report { added, unchanged, left_out, dry_run, .. } = report;
    match (added + unchanged + left_out, dry_run) {
        (0, _) => "nothing to import".to_owned(),
        (_, false) => format!("{added} added, {unchanged} unchanged, {left_out} left out"),
        (_, true) => format!(
            "{added} would be added, {unchanged} unchanged, {left_out} left out (dry run: nothing was changed)"
        ),
    }
}

/// Text that is wrapped between words. All lines are indented, and continued ones by four more columns.
fn indented(view: &View, indent: &str, text: &str) -> String {
    let text = wrap(text, view.width - indent.len(), "    ");
    format!("{indent}{}", text.replace('\n', &format!("\n{indent}")))
}
