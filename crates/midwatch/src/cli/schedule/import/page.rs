//! What people see of an import.

use calendar::{Zone, parse_instant};

use super::plan::{LeftOut, Place};
use super::{Imported, Report};
use crate::cli::schedule::times::when;
use crate::output::{counted, paragraphs, table};

/// Of the next times, enough to see whether it is what was meant.
const NEXT_SHOWN: usize = 3;

pub(super) fn report(report: &Report) -> String {
    let imported = match report.dry_run {
        true => paragraphs(report.imported.iter().map(shown)),
        false => added(&report.imported),
    };
    paragraphs([imported, left_out(&report.left_out), summary(report)])
}

/// All there is to know about one that would be added.
fn shown(imported: &Imported) -> String {
    let Imported { place, name, describe, tz, warnings, prompt, .. } = imported;
    let mut text = format!("{place}: {name}\n  {}", when(describe, tz));
    text.push_str(&format!("\n  next {}", next(imported)));
    warnings.iter().for_each(|warning| text.push_str(&format!("\n  warning: {warning}")));
    prompt.lines().for_each(|line| text.push_str(&format!("\n  > {line}")));
    text
}

/// On the clocks of its zone, as cron has them.
fn next(imported: &Imported) -> String {
    let zone: Option<Zone> = imported.tz.parse().ok();
    let times = imported.next.iter().take(NEXT_SHOWN).map(|text| {
        let wall = |at_us| Some(zone.as_ref()?.wall_time(at_us).to_string());
        parse_instant(text, None).ok().and_then(wall).unwrap_or_else(|| text.clone())
    });
    times.collect::<Vec<_>>().join(", ")
}

fn added(imported: &[Imported]) -> String {
    if imported.is_empty() {
        return String::new();
    }
    let rows = imported.iter().map(|it| {
        [
            match &it.place {
                Place::Line(line) => line.to_string(),
                Place::Entry(entry) => entry.clone(),
            },
            it.id.clone().unwrap_or_default(),
            it.name.clone(),
            if it.created == Some(true) { "added" } else { "was there already" }.to_owned(),
            it.next.first().cloned().unwrap_or_default(),
            when(&it.describe, &it.tz),
        ]
    });
    let warnings = imported.iter().flat_map(|it| {
        it.warnings.iter().map(|warning| format!("warning: {}: {warning}", it.place))
    });
    let warnings = warnings.collect::<Vec<_>>().join("\n");
    let from = match imported.first().map(|it| &it.place) {
        Some(Place::Line(_)) | None => "LINE",
        Some(Place::Entry(_)) => "ENTRY",
    };
    paragraphs([table([from, "ID", "NAME", "", "NEXT", "WHEN"], rows), warnings])
}

fn left_out(lines: &[LeftOut]) -> String {
    if lines.is_empty() {
        return String::new();
    }
    let lines = lines.iter().map(|LeftOut { place, text, why }| {
        format!("{place}: {text}\n  {}\n  hint: {}", why.reason, why.hint)
    });
    format!("not carried over:\n\n{}", paragraphs(lines))
}

/// Last, where it is seen.
fn summary(report: &Report) -> String {
    let schedules = |count: usize| counted(count as u64, "schedule", "schedules");
    let created = report.imported.iter().filter(|it| it.created == Some(true)).count();
    let known = report.imported.len() - created;
    let left = match report.left_out.len() {
        0 => String::new(),
        count => {
            let [one, many] = match report.left_out.first().map(|it| &it.place) {
                Some(Place::Line(_)) | None => ["line", "lines"],
                Some(Place::Entry(_)) => ["entry", "entries"],
            };
            format!("; {} not carried over", counted(count as u64, one, many))
        }
    };
    let said = match (report.dry_run, created, known) {
        (_, 0, 0) => "nothing to import".to_owned(),
        (true, ..) => format!("{} would be added, nothing was changed", schedules(known)),
        (false, created, 0) => format!("{} added", schedules(created)),
        (false, 0, known) => format!("nothing new: {} there already", schedules(known)),
        (false, created, known) => format!("{} added, {known} there already", schedules(created)),
    };
    said + &left
}
