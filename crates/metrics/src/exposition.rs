//! The text format of Prometheus, version 0.0.4.
//!
//! It is not OpenMetrics, which allows no counter `runs_total` beside a gauge `runs`.

use std::fmt::Write;

use crate::definition::Definition;

/// The media type of the text.
pub const CONTENT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// The text of one scrape.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

impl Exposition {
    /// Writes a metric that is computed at the scrape: the label values and the value of each series.
    pub fn write<'l, const LABELS: usize>(
        &mut self,
        definition: &Definition,
        samples: impl IntoIterator<Item = ([&'l str; LABELS], f64)>,
    ) {
        self.family(definition);
        for (labels, value) in samples {
            self.sample(definition, "", &labels, value);
        }
    }

    pub fn into_text(self) -> String {
        self.text
    }

    pub(crate) fn family(&mut self, definition: &Definition) {
        let Definition { name, kind, help, .. } = definition;
        let help = help.replace('\\', "\\\\").replace('\n', "\\n");
        self.line(format_args!("# HELP {name} {help}"));
        self.line(format_args!("# TYPE {name} {}", kind.name()));
    }

    pub(crate) fn sample(
        &mut self,
        definition: &Definition,
        suffix: &str,
        labels: &[&str],
        value: f64,
    ) {
        let labels = braces(&pairs(definition, labels));
        self.line(format_args!("{}{suffix}{labels} {value}", definition.name));
    }

    pub(crate) fn bucket(
        &mut self,
        definition: &Definition,
        labels: &[&str],
        bound: &str,
        count: u64,
    ) {
        let mut pairs = pairs(definition, labels);
        pairs.push(format!("le=\"{bound}\""));
        self.line(format_args!("{}_bucket{} {count}", definition.name, braces(&pairs)));
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = writeln!(self.text, "{line}");
    }
}

fn pairs(definition: &Definition, values: &[&str]) -> Vec<String> {
    let pair = |(label, value): (&crate::Label, &&str)| {
        let value = value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
        format!("{}=\"{value}\"", label.name)
    };
    definition.labels.iter().zip(values).map(pair).collect()
}

fn braces(pairs: &[String]) -> String {
    if pairs.is_empty() { String::new() } else { format!("{{{}}}", pairs.join(",")) }
}
