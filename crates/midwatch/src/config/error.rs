//! What is wrong with a configuration, where, and what to do about it.

use std::fmt;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::text::Place;
use crate::redact::redact;

/// Prints as one line, `FILE:LINE:COLUMN: message`, without the excerpt and the hint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub struct Error {
    pub message: String,
    /// What to do next.
    pub hint: Option<String>,
    /// `None` if the environment is at fault.
    pub file: Option<PathBuf>,
    pub line: Option<u32>,
    /// In letters, not in bytes.
    pub column: Option<u32>,
    /// The offending line with a caret below the place, several lines long.
    pub excerpt: Option<String>,
}

/// Something wrong at a place in the file.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) span: Range<usize>,
    pub(super) message: String,
    pub(super) hint: Option<String>,
}

impl Error {
    pub(super) fn of_file(file: &Path, message: String) -> Error {
        Error { file: Some(file.to_owned()), ..Error::of_environment(message, None) }
    }

    pub(super) fn of_environment(message: String, hint: Option<String>) -> Error {
        // A message quotes what the user wrote, and that may be a secret in the wrong place.
        let message = redact(&message).into_owned();
        Error { message, hint, file: None, line: None, column: None, excerpt: None }
    }

    pub(super) fn at(self, text: &str, span: Range<usize>) -> Error {
        let Place { line, column, excerpt } = Place::of(text, span);
        Error { line: Some(line), column: Some(column), excerpt: Some(excerpt), ..self }
    }
}

impl Fault {
    pub(super) fn in_file(self, file: &Path, text: &str) -> Error {
        let error = Error::of_file(file, self.message);
        Error { hint: self.hint, ..error }.at(text, self.span)
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
