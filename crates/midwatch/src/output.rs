//! What the user sees: one JSON document, or text for people. Only answers go to stdout.
//!
//! Much of a text was written by agents and by other people, so none of it may steer the terminal.

use std::io::{IsTerminal, Write};

use api::{Error, ProgressSink};
use comfy_table::{Table, presets};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use api::words::is_deceptive;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Human,
    Json,
}

#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub format: Format,
}

#[derive(Serialize)]
struct Failure<'a> {
    error: &'a Error,
}

impl Output {
    /// Shows an answer. A reader that has gone away is not an error.
    pub fn show<T: Serialize>(&self, answer: &T, human: impl FnOnce(&T) -> String) {
        let text = match self.format {
            Format::Json => serde_json::to_string_pretty(answer).unwrap_or_default(),
            Format::Human => harmless(human(answer).trim_end()),
        };
        let _ = writeln!(anstream::stdout(), "{text}");
    }

    /// A text for people, before the answer.
    pub fn text(&self, text: &str) {
        if self.format == Format::Human {
            let _ = writeln!(anstream::stdout(), "{}", harmless(text.trim_end()));
        }
    }

    /// Shows one item of a feed, on a line of its own.
    pub fn show_line<T: Serialize>(
        &self,
        item: &T,
        human: impl FnOnce(&T) -> String,
    ) -> std::io::Result<()> {
        let text = match self.format {
            Format::Json => serde_json::to_string(item).unwrap_or_default(),
            Format::Human => harmless(&human(item)),
        };
        let mut out = anstream::stdout();
        writeln!(out, "{text}")?;
        out.flush()
    }

    /// A part of a text that goes on.
    pub fn show_part(&self, text: &str) -> std::io::Result<()> {
        let mut out = anstream::stdout();
        write!(out, "{}", harmless(text))?;
        out.flush()
    }

    /// Text that is a document of its own kind, as a script or a page.
    pub fn raw(&self, bytes: &[u8]) {
        let _ = anstream::stdout().write_all(bytes);
    }

    pub fn fail(&self, error: &Error) {
        match self.format {
            Format::Json => self.show(&Failure { error }, |_| String::new()),
            Format::Human => {
                let _ = writeln!(anstream::stderr(), "{}", harmless(&told(error)));
            }
        }
    }

    /// A word to the person at the terminal, beside the answer.
    pub fn remark(&self, text: &str) {
        if self.format == Format::Human {
            let _ = writeln!(anstream::stderr(), "{}", harmless(text));
        }
    }

    /// A bar on a terminal, nothing elsewhere.
    pub fn progress(&self, what: &'static str) -> Progress {
        if self.format == Format::Json || !std::io::stderr().is_terminal() {
            return Progress(None);
        }
        let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
        let style = ProgressStyle::with_template("{msg} {wide_bar} {human_pos}/{human_len} {eta}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        bar.set_message(what);
        Progress(Some(bar))
    }
}

/// A message may have a drawing below it, and may quote a value that has lines of its own.
fn told(error: &Error) -> String {
    let is_whole = |line: &str| line.matches('`').count().is_multiple_of(2);
    let (what, below) = match error.message.split_once('\n') {
        Some((what, drawing)) if is_whole(what) => (what.to_owned(), format!("\n{drawing}")),
        Some(_) | None => (error.message.replace('\n', "\\n"), String::new()),
    };
    let hint = error.hint.as_ref().map(|hint| format!("\n hint: {hint}"));
    format!("error: {what} [{}]{below}{}", error.code.name(), hint.unwrap_or_default())
}

/// A progress bar that may not be shown.
#[derive(Debug)]
pub struct Progress(Option<ProgressBar>);

impl Progress {
    pub fn sink(&self) -> ProgressSink {
        let Some(bar) = self.0.clone() else { return ProgressSink::default() };
        ProgressSink::new(move |progress| {
            bar.set_length(progress.total);
            bar.set_position(progress.done);
        })
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.0 {
            bar.finish_and_clear();
        }
    }
}

/// Columns without lines between them.
pub fn table<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
) -> String {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(head);
    for row in rows {
        table.add_row(row);
    }
    // The table pads both sides of a column.
    let trimmed = table.lines().map(|line| line.trim_end().get(1..).unwrap_or_default().to_owned());
    trimmed.collect::<Vec<_>>().join("\n")
}

/// A table of a list, and how to go on with the list.
pub fn table_with_more<const N: usize>(
    head: [&str; N],
    rows: impl IntoIterator<Item = [String; N]>,
    cursor: Option<&str>,
) -> String {
    let mut text = table(head, rows);
    if let Some(cursor) = cursor {
        text.push_str(&format!("\nmore: --cursor {cursor}"));
    }
    text
}

/// With an empty line between them; what is empty is left out.
pub fn paragraphs(parts: impl IntoIterator<Item = String>) -> String {
    parts.into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join("\n\n")
}

/// A number of things, in words that fit it.
pub fn counted(count: u64, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

pub fn entries(count: u64) -> String {
    counted(count, "entry", "entries")
}

/// Names and values, one pair a line.
pub fn pairs<'a>(pairs: impl IntoIterator<Item = (&'a str, String)>) -> String {
    let lines = pairs.into_iter().map(|(name, value)| format!("{name:<14} {value}"));
    lines.collect::<Vec<_>>().join("\n")
}

/// With escapes in the place of control characters, and of those that hide or reorder others.
fn harmless(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    for c in text.replace("\r\n", "\n").chars() {
        match (c.is_control() && !matches!(c, '\n' | '\t')) || is_deceptive(c) {
            true => shown.extend(c.escape_default()),
            false => shown.push(c),
        }
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_stands_behind_the_message_whatever_it_quotes() {
        let told = |message: &str| told(&Error::new(api::Code::NotFound, message).hint("look"));
        for (message, expected) in [
            ("there is none", "error: there is none [not_found]\n hint: look"),
            ("there is no `a\nb`", "error: there is no `a\\nb` [not_found]\n hint: look"),
            ("not `a`\n  | a\n  | ^", "error: not `a` [not_found]\n  | a\n  | ^\n hint: look"),
        ] {
            assert_eq!(told(message), expected);
        }
    }

    #[test]
    fn control_characters_are_shown_and_not_obeyed() {
        for (text, expected) in [
            ("größe\n\tin lines\r\n✓", "größe\n\tin lines\n✓"),
            ("\x1b[2Jgone", "\\u{1b}[2Jgone"),
            ("done\rfailed", "done\\rfailed"),
            ("\u{9b}31m \x7f \0", "\\u{9b}31m \\u{7f} \\u{0}"),
            ("txt.\u{202e}exe \u{2066}\u{200b}", "txt.\\u{202e}exe \\u{2066}\\u{200b}"),
            ("\u{e0041}", "\\u{e0041}"),
        ] {
            assert_eq!(harmless(text), expected);
        }
    }
}
