//! The program of a `command` agent: its arguments, directory, environment and prompt.
//!
//! No shell interprets the arguments, and only the names of variables are stored. Default values are not
//! stored, so a default must never change.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::backend::{Invalid, PATH_BYTES_MAX, WORD_BYTES_MAX};

/// Variables that an agent may list.
pub const ENV_ITEMS_MAX: usize = 64;
pub const TIME_LIMIT_SECONDS_MAX: u32 = 86_400;
/// The argument that the prompt replaces.
pub const PROMPT_ARGUMENT: &str = "{prompt}";

const TIME_LIMIT_SECONDS_DEFAULT: u32 = 600;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Program {
    /// The program and its arguments; never empty.
    pub argv: Vec<String>,
    /// Working directory; the home directory by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<AbsolutePath>,
    /// Variables that it inherits besides the usual ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<VariableName>,
    #[serde(default, skip_serializing_if = "is_default")]
    pub prompt_as: PromptAs,
    #[serde(rename = "time_limit_seconds", default, skip_serializing_if = "is_default")]
    pub time_limit: TimeLimit,
}

/// How a program gets its prompt.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PromptAs {
    #[default]
    Stdin,
    /// Replaces [`PROMPT_ARGUMENT`], or is the last argument.
    Argument,
}

/// How long one attempt may take.
///
/// Invariant: from one second to [`TIME_LIMIT_SECONDS_MAX`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(into = "u32", try_from = "u32")]
pub struct TimeLimit(u32);

/// Invariant: starts with `/`, has no control characters.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct AbsolutePath(String);

/// Invariant: letters, digits and `_`, no digit first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct VariableName(String);

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

impl Program {
    /// The program and arguments for a prompt. The prompt never replaces the program.
    pub fn argv_for(&self, prompt: &str) -> Vec<String> {
        let mut argv = self.argv.clone();
        if self.prompt_as == PromptAs::Argument {
            match argv.iter_mut().skip(1).find(|word| *word == PROMPT_ARGUMENT) {
                Some(word) => *word = prompt.to_owned(),
                None => argv.push(prompt.to_owned()),
            }
        }
        argv
    }
}

impl PromptAs {
    pub const fn name(self) -> &'static str {
        match self {
            PromptAs::Stdin => "stdin",
            PromptAs::Argument => "argument",
        }
    }
}

impl FromStr for PromptAs {
    type Err = Invalid;

    fn from_str(text: &str) -> Result<PromptAs, Invalid> {
        let found = [PromptAs::Stdin, PromptAs::Argument].into_iter().find(|it| it.name() == text);
        found.ok_or_else(|| Invalid::PromptAs(text.to_owned()))
    }
}

impl TimeLimit {
    pub const fn seconds(self) -> u32 {
        self.0
    }

    pub fn duration(self) -> Duration {
        Duration::from_secs(u64::from(self.0))
    }
}

impl Default for TimeLimit {
    fn default() -> TimeLimit {
        TimeLimit(TIME_LIMIT_SECONDS_DEFAULT)
    }
}

impl From<TimeLimit> for u32 {
    fn from(limit: TimeLimit) -> u32 {
        limit.0
    }
}

impl TryFrom<u32> for TimeLimit {
    type Error = Invalid;

    fn try_from(seconds: u32) -> Result<TimeLimit, Invalid> {
        match (1..=TIME_LIMIT_SECONDS_MAX).contains(&seconds) {
            true => Ok(TimeLimit(seconds)),
            false => Err(Invalid::TimeLimit(seconds)),
        }
    }
}

impl AbsolutePath {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for AbsolutePath {
    type Error = Invalid;

    fn try_from(text: String) -> Result<AbsolutePath, Invalid> {
        match is_absolute_path(&text) {
            true => Ok(AbsolutePath(text)),
            false => Err(Invalid::Path),
        }
    }
}

impl From<AbsolutePath> for String {
    fn from(path: AbsolutePath) -> String {
        path.0
    }
}

impl fmt::Display for AbsolutePath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl VariableName {
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl TryFrom<String> for VariableName {
    type Error = Invalid;

    /// The refusal does not repeat the text, which may contain the variable's value.
    fn try_from(text: String) -> Result<VariableName, Invalid> {
        match is_variable_name(&text) {
            true => Ok(VariableName(text)),
            false => Err(Invalid::Variable),
        }
    }
}

impl From<VariableName> for String {
    fn from(name: VariableName) -> String {
        name.0
    }
}

pub(crate) fn is_variable_name(name: &str) -> bool {
    let has_valid_start = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    has_valid_start
        && name.len() <= WORD_BYTES_MAX
        && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}

pub(crate) fn is_absolute_path(path: &str) -> bool {
    path.starts_with('/') && path.len() <= PATH_BYTES_MAX && !path.chars().any(char::is_control)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompt_replaces_its_argument_and_never_the_program() {
        let table: [(PromptAs, &[&str], &[&str]); 6] = [
            (PromptAs::Stdin, &["tool", "-x"], &["tool", "-x"]),
            (PromptAs::Argument, &["tool"], &["tool", "a b"]),
            (PromptAs::Argument, &["tool", "{prompt}", "-x"], &["tool", "a b", "-x"]),
            (PromptAs::Argument, &["tool", "x{prompt}"], &["tool", "x{prompt}", "a b"]),
            (PromptAs::Argument, &["t", "{prompt}", "{prompt}"], &["t", "a b", "{prompt}"]),
            (PromptAs::Argument, &["{prompt}"], &["{prompt}", "a b"]),
        ];
        for (prompt_as, words, expected) in table {
            let program = Program {
                argv: words.iter().map(ToString::to_string).collect(),
                cwd: None,
                env: Vec::new(),
                prompt_as,
                time_limit: TimeLimit::default(),
            };
            assert_eq!(program.argv_for("a b"), expected, "{words:?}");
        }
    }

    #[test]
    fn limits_hold_at_the_limit_and_one_past() {
        for (seconds, fits) in [
            (0, false),
            (1, true),
            (TIME_LIMIT_SECONDS_MAX, true),
            (TIME_LIMIT_SECONDS_MAX + 1, false),
        ] {
            assert_eq!(TimeLimit::try_from(seconds).is_ok(), fits, "{seconds}");
        }
        let path = |bytes: usize| AbsolutePath::try_from(format!("/{}", "x".repeat(bytes - 1)));
        assert!(path(PATH_BYTES_MAX).is_ok());
        assert!(path(PATH_BYTES_MAX + 1).is_err());
        let name = |bytes: usize| VariableName::try_from("X".repeat(bytes));
        assert!(name(WORD_BYTES_MAX).is_ok());
        assert!(name(WORD_BYTES_MAX + 1).is_err());
    }
}
