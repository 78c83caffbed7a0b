//! What is wrong with a file of rules. One fault is enough to refuse the file.

use std::fmt;

use crate::rules::Source;

/// Faults of one source that are told; of the others, only how many they are.
const FAULTS_MAX: usize = 1_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The name of the source that it is in.
    pub source_name: String,
    /// The id of the rule, where it is known.
    pub rule: Option<String>,
    /// From 1, where it is known.
    pub line: Option<usize>,
    /// What is wrong and what to do about it.
    pub message: String,
}

/// The faults of one source, as they are found.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    source: Source<'a>,
    /// Where each line ends.
    line_ends: Vec<usize>,
    faults: Vec<Fault>,
    count: usize,
}

impl<'a> Report<'a> {
    pub(crate) fn new(source: Source<'a>) -> Report<'a> {
        let line_ends = source.text.match_indices('\n').map(|(at, _)| at).collect();
        Report { source, line_ends, faults: Vec::new(), count: 0 }
    }

    /// A fault of the source as a whole.
    pub(crate) fn add(&mut self, message: impl fmt::Display) {
        self.push(None, None, message);
    }

    /// A fault that begins at a byte of the text.
    pub(crate) fn add_at(&mut self, at: usize, rule: Option<&str>, message: impl fmt::Display) {
        let line = 1 + self.line_ends.partition_point(|end| *end < at);
        self.push(Some(line), rule, message);
    }

    /// Faults so far, told or not.
    pub(crate) fn count(&self) -> usize {
        self.count
    }

    /// All faults, from the top of the file to its end.
    pub(crate) fn into_faults(mut self) -> Vec<Fault> {
        self.faults.sort_by_key(|fault| fault.line);
        let more = self.count - self.faults.len();
        if 0 < more {
            self.faults.push(self.fault(
                None,
                None,
                format!("there are {more} more faults: mend these first"),
            ));
        }
        self.faults
    }

    fn push(&mut self, line: Option<usize>, rule: Option<&str>, message: impl fmt::Display) {
        self.count += 1;
        if self.count <= FAULTS_MAX {
            self.faults.push(self.fault(line, rule, message));
        }
    }

    fn fault(&self, line: Option<usize>, rule: Option<&str>, message: impl fmt::Display) -> Fault {
        Fault {
            source_name: self.source.name.to_owned(),
            rule: rule.map(str::to_owned),
            line,
            message: message.to_string(),
        }
    }
}

impl fmt::Display for Fault {
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

impl std::error::Error for Fault {}
