//! The page of the documentation that lists every metric.

use std::fmt::Write;

use crate::definition::{Definition, Kind};
use crate::definitions::DEFINITIONS;

const INTRODUCTION: &str = "# Metrics

The daemon serves these at `/metrics` of its HTTP address, in the text format of Prometheus. [Scrape Midwatch with
Prometheus](howto/prometheus.md) sets that up, with alerts and a dashboard.

- Counters and histograms begin at zero when the daemon starts and count what its process did. Only
  `midwatch_log_entries_total` is the length of the whole ledger. If several processes share a database, add theirs.
- No label has an id, a name or text of yours: the values below are all that exist.
- Times are in seconds.
";

/// The page, as Markdown.
pub fn page() -> String {
    let mut text = INTRODUCTION.to_owned();
    for definition in DEFINITIONS {
        let Definition { name, kind, labels, help, .. } = definition;
        // Writing to a string does not fail.
        let _ = write!(text, "\n## {name}\n\n{}. {help}\n", capitalized(kind.name()));
        if let Kind::Histogram(bounds) = kind {
            let bounds: Vec<String> =
                bounds.iter().map(|bound| definition.scaled(*bound).to_string()).collect();
            let _ = write!(text, "\nBuckets up to {}.\n", bounds.join(", "));
        }
        if !labels.is_empty() {
            text += "\n| label | values |\n|---|---|\n";
        }
        for label in *labels {
            let values: Vec<String> = label.values.iter().map(|it| format!("`{it}`")).collect();
            let values = match values.is_empty() {
                true => "that of the daemon".to_owned(),
                false => values.join(", "),
            };
            let _ = writeln!(text, "| `{}` | {values} |", label.name);
        }
    }
    text
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map(|first| first.to_ascii_uppercase()).into_iter().chain(letters).collect()
}
