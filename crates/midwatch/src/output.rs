//! The output of a command: one JSON document, or text. Answers go to stdout, the rest to stderr.
//!
//! Text may quote agents and other people, so everything is escaped before it reaches the terminal.

use std::io::{IsTerminal, Write};
use std::sync::OnceLock;

use anstyle::{AnsiColor, Style};
use api::{Code, Error, ProgressSink};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use serde::Serialize;

use crate::terminal_escape::escape;
use crate::wrap::fit;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Human,
    Json,
}

#[derive(Clone, Copy, Debug)]
pub struct Output {
    pub format: Format,
    /// Columns of a line.
    pub width: usize,
}

#[derive(Serialize)]
struct Failure<'a> {
    error: &'a Error,
}

impl Output {
    /// Prints an answer.
    pub fn show<T: Serialize>(&self, answer: &T, human: impl FnOnce(&T) -> String) {
        let text = match self.format {
            Format::Json => serde_json::to_string_pretty(answer).unwrap_or_default(),
            Format::Human => paint(&escape(human(answer).trim_end())),
        };
        note_failure(&writeln!(anstream::stdout(), "{text}"));
    }

    /// Prints an answer that consists of sentences; those too long for a line are broken between words.
    pub fn say<T: Serialize>(&self, answer: &T, human: impl FnOnce(&T) -> String) {
        self.show(answer, |answer| fit(&human(answer), self.width));
    }

    /// Prints text before the answer; nothing in JSON.
    pub fn show_text(&self, text: &str) {
        if self.format == Format::Human {
            let text = paint(&escape(text.trim_end()));
            note_failure(&writeln!(anstream::stdout(), "{text}"));
        }
    }

    /// Prints one item of a feed on its own line.
    pub fn show_line<T: Serialize>(
        &self,
        item: &T,
        human: impl FnOnce(&T) -> String,
    ) -> std::io::Result<()> {
        let text = match self.format {
            Format::Json => serde_json::to_string(item).unwrap_or_default(),
            Format::Human => paint(&escape(&human(item))),
        };
        let mut out = anstream::stdout();
        let written = writeln!(out, "{text}").and_then(|()| out.flush());
        note_failure(&written);
        written
    }

    /// Prints a part of a longer text, without a line end.
    pub fn show_part(&self, text: &str) -> std::io::Result<()> {
        let mut out = anstream::stdout();
        let written = write!(out, "{}", escape(text)).and_then(|()| out.flush());
        note_failure(&written);
        written
    }

    /// Prints a script or a manual page as it is.
    pub fn show_raw(&self, bytes: &[u8]) {
        let mut out = std::io::stdout();
        note_failure(&out.write_all(bytes).and_then(|()| out.flush()));
    }

    /// Prints an error: to stdout in JSON, to stderr otherwise and if stdout has failed.
    pub fn fail(&self, error: &Error) {
        match self.format {
            // Stdout that has failed cannot carry its own error.
            Format::Json if FAILED_WRITE.get().is_none() => {
                self.show(&Failure { error }, |_| String::new());
            }
            Format::Json => {
                let text = serde_json::to_string_pretty(&Failure { error }).unwrap_or_default();
                let _ = writeln!(anstream::stderr(), "{text}");
            }
            Format::Human => {
                let text = escape(&render_error(error, self.width));
                let _ = writeln!(anstream::stderr(), "{}", paint(&text));
            }
        }
    }

    /// Prints a remark to stderr; nothing in JSON.
    pub fn remark(&self, text: &str) {
        if self.format == Format::Human {
            let _ = writeln!(anstream::stderr(), "{}", paint(&escape(&fit(text, self.width))));
        }
    }

    /// Shows a progress bar if stderr is a terminal.
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

/// The first write to stdout that failed.
static FAILED_WRITE: OnceLock<String> = OnceLock::new();

/// A reader that has closed the pipe, such as `head`, has what it wanted.
fn note_failure(written: &std::io::Result<()>) {
    if let Err(error) = written
        && error.kind() != std::io::ErrorKind::BrokenPipe
    {
        let _ = FAILED_WRITE.set(error.to_string());
    }
}

/// The error of a command whose answer was not written completely.
pub fn failed_write() -> Option<Error> {
    let error = FAILED_WRITE.get()?;
    let what = format!("the answer could not be written to stdout: {error}");
    Some(Error::new(Code::Failed, what).hint("the command itself has done its work"))
}

/// Marks that a person should notice, in colour on a terminal. The mark says the same without colour.
fn paint(text: &str) -> String {
    const ATTENTION: Style = AnsiColor::Yellow.on_default().bold();
    const WRONG: Style = AnsiColor::Red.on_default().bold();
    const MARKS: [(&str, Style); 9] = [
        ("x failed", WRONG),
        ("! waiting", ATTENTION),
        ("? unknown", ATTENTION),
        ("ATTENTION", ATTENTION),
        ("WARNING", ATTENTION),
        ("WRONG", WRONG),
        ("USED UP", ATTENTION),
        ("error:", WRONG),
        ("warning:", ATTENTION),
    ];
    let mut painted = text.to_owned();
    for (mark, style) in MARKS {
        painted = painted.replace(mark, &format!("{style}{mark}{style:#}"));
    }
    painted
}

/// The code follows the first line of the message. A message may have an excerpt below it, or quote
/// a value with line ends, which are escaped.
fn render_error(error: &Error, width: usize) -> String {
    let closes_its_quotes = |line: &str| line.matches('`').count().is_multiple_of(2);
    let (first, below) = match error.message.split_once('\n') {
        Some((first, excerpt)) if closes_its_quotes(first) => {
            (first.to_owned(), format!("\n{}", fit_below(excerpt, width)))
        }
        Some(_) | None => (error.message.replace('\n', "\\n"), String::new()),
    };
    let sentence = fit(&format!("error: {first} [{}]", error.code.name()), width);
    let hint = error.hint.as_ref().map(|hint| fit(&format!("\n hint: {hint}"), width));
    format!("{sentence}{below}{}", hint.unwrap_or_default())
}

/// Fits what follows the first line of a message: more sentences, or an excerpt, whose columns mean something.
fn fit_below(text: &str, width: usize) -> String {
    let is_excerpt = |line: &str| {
        line.trim_start_matches(|c: char| c == ' ' || c.is_ascii_digit()).starts_with('|')
    };
    let fitted = text.lines().map(|line| match is_excerpt(line) {
        true => line.to_owned(),
        false => fit(line, width),
    });
    fitted.collect::<Vec<_>>().join("\n")
}

/// A progress bar, or none when stderr is not a terminal.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_code_follows_the_first_line_of_the_message() {
        let rendered = |message: &str| {
            render_error(&Error::new(api::Code::NotFound, message).hint("look"), 40)
        };
        for (message, expected) in [
            ("there is none", "error: there is none [not_found]\n hint: look"),
            ("there is no `a\nb`", "error: there is no `a\\nb` [not_found]\n hint: look"),
            ("not `a`\n  | a\n  | ^", "error: not `a` [not_found]\n  | a\n  | ^\n hint: look"),
            (
                "a.toml:1: write exactly one of these keys\na.toml:2: unknown key, the keys are `id` and `ask`\n\
                 2 | a line of a file that is longer than the terminal",
                "error: a.toml:1: write exactly one of\n       these keys [not_found]\n\
                 a.toml:2: unknown key, the keys are `id`\nand `ask`\n\
                 2 | a line of a file that is longer than the terminal\n hint: look",
            ),
        ] {
            assert_eq!(rendered(message), expected);
        }
    }
}
