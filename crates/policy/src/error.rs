//! Errors in a rules file. One error is enough to refuse the file.

use std::fmt;

use crate::rules::Source;

/// Errors reported per source; the rest are only counted.
const ERRORS_MAX: usize = 1_000;

/// An error in a rules file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RuleError {
    /// The name of its source.
    pub source_name: String,
    /// The id of the rule, if known.
    pub rule: Option<String>,
    /// The line, from 1, if known.
    pub line: Option<usize>,
    /// What is wrong, and what to do.
    pub message: String,
}

/// Collects the errors of one source.
#[derive(Debug)]
pub(crate) struct ErrorReport<'a> {
    source: Source<'a>,
    /// The byte offset of the end of each line.
    line_ends: Vec<usize>,
    errors: Vec<RuleError>,
    count: usize,
}

impl<'a> ErrorReport<'a> {
    pub(crate) fn new(source: Source<'a>) -> ErrorReport<'a> {
        let line_ends = source.text.match_indices('\n').map(|(at, _)| at).collect();
        ErrorReport { source, line_ends, errors: Vec::new(), count: 0 }
    }

    /// The line of a byte offset, from 1.
    pub(crate) fn line_of(&self, offset: usize) -> usize {
        1 + self.line_ends.partition_point(|end| *end < offset)
    }

    /// Adds an error of the source as a whole.
    pub(crate) fn add(&mut self, message: impl fmt::Display) {
        self.push(None, None, message);
    }

    /// Adds an error at a byte offset of the text.
    pub(crate) fn add_at(&mut self, offset: usize, rule: Option<&str>, message: impl fmt::Display) {
        let line = self.line_of(offset);
        self.push(Some(line), rule, message);
    }

    /// The number of errors so far, reported or not.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// All reported errors, by line.
    pub(crate) fn into_errors(mut self) -> Vec<RuleError> {
        self.errors.sort_by_key(|error| error.line);
        let more = self.count - self.errors.len();
        if 0 < more {
            self.errors.push(self.error(
                None,
                None,
                format!("{more} more errors: fix these first"),
            ));
        }
        self.errors
    }

    fn push(&mut self, line: Option<usize>, rule: Option<&str>, message: impl fmt::Display) {
        self.count += 1;
        if self.count <= ERRORS_MAX {
            self.errors.push(self.error(line, rule, message));
        }
    }

    fn error(
        &self,
        line: Option<usize>,
        rule: Option<&str>,
        message: impl fmt::Display,
    ) -> RuleError {
        RuleError {
            source_name: self.source.name.to_owned(),
            rule: rule.map(str::to_owned),
            line,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for RuleError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.source_name)?;
        if let Some(line) = self.line {
            write!(out, ":{line}")?;
        }
        if let Some(rule) = &self.rule {
            write!(out, ": rule `{rule}`")?;
        }
        write!(out, ": {}", self.message)
    }
}

impl std::error::Error for RuleError {}
