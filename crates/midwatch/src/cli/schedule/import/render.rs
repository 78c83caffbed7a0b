//! How the report of an import is rendered.

use calendar::{Zone, parse_instant};

use super::plan::{Skipped, SourcePosition};
use super::{Imported, Report};
use crate::cli::schedule::upcoming::when;
use crate::cli::support::render::{count_of, paragraphs};
use crate::cli::support::table::{Column, shortened, table, whole};
use crate::view::View;

/// The next times to show per schedule.
const NEXT_SHOWN_MAX: usize = 3;

pub(super) fn report(report: &Report, view: &View) -> String {
    let imported = match report.dry_run {
        true => paragraphs(report.imported.iter().map(dry_run_entry)),
        false => imported_table(&report.imported, view),
    };
    paragraphs([imported, skipped(&report.left_out), summary(report)])
}

/// The details of a schedule that would be added.
fn dry_run_entry(imported: &Imported) -> String {
    let Imported { position, name, describe, tz, warnings, prompt, .. } = imported;
    let mut text = format!("{position}: {name}\n  {}", when(describe, tz));
    text.push_str(&format!("\n  next {}", next_times(imported)));
    warnings.iter().for_each(|warning| text.push_str(&format!("\n  warning: {warning}")));
    prompt.lines().for_each(|line| text.push_str(&format!("\n  > {line}")));
    text
}

/// The next times in the schedule's zone.
fn next_times(imported: &Imported) -> String {
    let zone: Option<Zone> = imported.tz.parse().ok();
    let times = imported.next.iter().take(NEXT_SHOWN_MAX).map(|text| {
        let wall = |at_us| Some(zone.as_ref()?.wall_time(at_us).to_string());
        parse_instant(text, None).ok().and_then(wall).unwrap_or_else(|| text.clone())
    });
    times.collect::<Vec<_>>().join(", ")
}

fn imported_table(imported: &[Imported], view: &View) -> String {
    if imported.is_empty() {
        return String::new();
    }
    let rows = imported.iter().map(|it| {
        [
            match &it.position {
                SourcePosition::Line(line) => line.to_string(),
                SourcePosition::Entry(entry) => entry.clone(),
            },
            it.id.clone().unwrap_or_default(),
            it.name.clone(),
            if it.created == Some(true) { "added" } else { "already exists" }.to_owned(),
            it.next.first().map(|at| view.time(at)).unwrap_or_default(),
            when(&it.describe, &it.tz),
        ]
    });
    let warnings = imported.iter().flat_map(|it| {
        it.warnings.iter().map(|warning| format!("warning: {}: {warning}", it.position))
    });
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    let from = match imported.first().map(|it| &it.position) {
        Some(SourcePosition::Line(_)) | None => "LINE",
        Some(SourcePosition::Entry(_)) => "ENTRY",
    };
    paragraphs([table(view, columns(from), rows), warnings])
}

fn columns(from: &'static str) -> [Column; 6] {
    [
        whole(from),
        whole("ID"),
        shortened("NAME", 12),
        whole(""),
        whole("NEXT").or_left_out(1),
        shortened("WHEN", 10).or_left_out(2),
    ]
}

fn skipped(entries: &[Skipped]) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let entries = entries.iter().map(|Skipped { position, text, why }| {
        format!("{position}: {text}\n  {}\n  hint: {}", why.reason, why.hint)
    });
    format!("not imported:\n\n{}", paragraphs(entries))
}

/// Comes last, where it is seen.
fn summary(report: &Report) -> String {
    let schedules = |count: usize| count_of(count as u64, "schedule", "schedules");
    let created = report.imported.iter().filter(|it| it.created == Some(true)).count();
    let existing = report.imported.len() - created;
    let skipped = match report.left_out.len() {
        0 => String::new(),
        count => {
            let [one, many] = match report.left_out.first().map(|it| &it.position) {
                Some(SourcePosition::Line(_)) | None => ["line", "lines"],
                Some(SourcePosition::Entry(_)) => ["entry", "entries"],
            };
            format!("; {} not imported", count_of(count as u64, one, many))
        }
    };
    let result = match (report.dry_run, created, existing) {
        (_, 0, 0) => "nothing to import".to_owned(),
        (true, ..) => format!("{} would be added; nothing was changed", schedules(existing)),
        (false, created, 0) => format!("{} added", schedules(created)),
        (false, 0, existing) => format!("nothing new: {} existed already", schedules(existing)),
        (false, created, existing) => {
            format!("{} added, {existing} existed already", schedules(created))
        }
    };
    result + &skipped
}
