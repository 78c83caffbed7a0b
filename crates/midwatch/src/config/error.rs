//! Errors of a configuration, with position and hint.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use redact::redact;

use super::text::TextPosition;

/// Prints as one line, `FILE:LINE:COLUMN: message`, without the excerpt and the hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// `None` if the fault is in the environment.
    pub file: Option<PathBuf>,
    pub line: Option<u32>,
    /// In characters, not in bytes.
    pub column: Option<u32>,
    /// The line of the fault with carets below it, several lines long.
    pub excerpt: Option<String>,
}

/// Stands for a value that must not be quoted.
const HIDDEN: &str = "\"[redacted]\"";

/// A fault at a position in the file.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
    /// The text at the position may be a secret and must not be quoted.
    pub(super) is_secret: bool,
}

impl Error {
    pub(super) fn of_file(file: &Path, message: String) -> Error {
        Error { file: Some(file.to_owned()), ..Error::of_environment(message, None) }
    }

    pub(super) fn of_environment(message: String, hint: Option<String>) -> Error {
        // A message quotes what the user wrote, which may be a misplaced secret.
        let message = redact(&message).into_owned();
        Error { message, hint, file: None, line: None, column: None, excerpt: None }
    }

    pub(super) fn at(self, text: &str, span: Range<usize>) -> Error {
        let TextPosition { line, column, excerpt } = TextPosition::of(text, span);
        Error { line: Some(line), column: Some(column), excerpt: Some(excerpt), ..self }
    }
}

impl Fault {
    pub(super) fn in_file(self, file: &Path, text: &str) -> Error {
        let error = Error::of_file(file, self.message);
        let error = Error { hint: self.hint, ..error };
        match (text.get(..self.span.start), text.get(self.span.end..)) {
            (Some(before), Some(after)) if self.is_secret => {
                let end = self.span.start + HIDDEN.len();
                error.at(&format!("{before}{HIDDEN}{after}"), self.span.start..end)
            }
            _ => error.at(text, self.span),
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        if let Some(file) = &self.file {
            write!(out, "{}:", file.display())?;
            if let (Some(line), Some(column)) = (self.line, self.column) {
                write!(out, "{line}:{column}:")?;
            }
            out.write_str(" ")?;
        }
        out.write_str(&self.message)
    }
}
