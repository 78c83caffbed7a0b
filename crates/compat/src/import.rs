//! Entries of other schedulers, each as the schedule that it becomes here. Pure.
//!
//! A module per source turns its records into [`Entry`] values, in the order of the source. No entry is dropped: one that
//! cannot become a schedule has a [`LeftOut`]. What exists in the installation is compared elsewhere.

pub mod hermes;
pub mod letta_code;
pub mod openclaw;
mod record;
pub mod systemd;
mod users;

use std::collections::HashSet;
use std::fmt;

use api::{Action, Code, Error, ScheduleAdd, When};
use kernel::schedule::{NAME_CHARS_MAX, PROMPT_BYTES_MAX};
use serde::Serialize;
use serde_json::Value;

pub use users::Users;

/// One entry of an imported source.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub position: Position,
    /// What the report shows of an entry that is left out.
    pub text: String,
    pub outcome: Result<NewSchedule, LeftOut>,
}

/// What the entries of a source depend on, besides the source.
#[derive(Clone, Copy, Debug)]
pub struct Options<'a> {
    /// The agent to prompt, whatever the source says.
    pub agent: Option<&'a str>,
    /// The zone of entries that name none.
    pub zone: &'a str,
}

/// Where an entry is in its source.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Position {
    Line {
        /// Absent if the source is a single file.
        #[serde(skip_serializing_if = "Option::is_none")]
        file: Option<String>,
        line: usize,
    },
    /// The id of the entry in its source.
    Entry { entry: String },
}

/// A schedule to add.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    /// `action.agent` is the agent as the source names it.
    pub request: ScheduleAdd,
    /// What cannot be imported.
    pub warnings: Vec<String>,
    /// How to register the agent if it does not exist.
    pub agent_hint: String,
    /// Register the agent as a Letta agent if it does not exist; `action.agent` is its id on the Letta server.
    pub registers_letta_agent: bool,
}

/// Why an entry is left out, and what to do about it.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
pub struct LeftOut {
    pub reason: String,
    pub hint: String,
}

impl LeftOut {
    pub fn new(reason: impl Into<String>, hint: impl Into<String>) -> LeftOut {
        LeftOut { reason: reason.into(), hint: hint.into() }
    }
}

impl From<Error> for LeftOut {
    fn from(Error { message, hint, .. }: Error) -> LeftOut {
        LeftOut::new(message, hint.unwrap_or_default())
    }
}

impl Position {
    pub fn entry(id: impl Into<String>) -> Position {
        Position::Entry { entry: id.into() }
    }
}

impl fmt::Display for Position {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Position::Line { file: None, line } => write!(out, "line {line}"),
            Position::Line { file: Some(file), line } => write!(out, "{file} line {line}"),
            Position::Entry { entry } => write!(out, "entry {entry}"),
        }
    }
}

impl NewSchedule {
    pub fn new(request: ScheduleAdd, agent_hint: impl Into<String>) -> NewSchedule {
        let agent_hint = agent_hint.into();
        NewSchedule { request, warnings: Vec::new(), agent_hint, registers_letta_agent: false }
    }
}

/// Names of schedules in one import. Each is given out once, and the same source gives the same names.
#[derive(Debug, Default)]
pub struct UniqueNames(HashSet<String>);

impl UniqueNames {
    /// The title, followed by the id if another entry has the same title.
    pub fn name(&mut self, title: &str, id: &str) -> String {
        let title = one_line(title);
        let title = if title.is_empty() { id } else { title.as_str() };
        let plain: String = title.chars().take(NAME_CHARS_MAX).collect();
        if self.0.insert(plain.clone()) {
            return plain;
        }
        let suffix = format!(" ({id})");
        let room = NAME_CHARS_MAX.saturating_sub(suffix.chars().count());
        let name: String = title.chars().take(room).chain(suffix.chars()).collect();
        self.0.insert(name.clone());
        name
    }
}

/// Text on one line, with single spaces.
pub(crate) fn one_line(text: &str) -> String {
    let text: String = text.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// An action that prompts an agent.
pub(crate) fn prompt_action(agent: &str, prompt: &str) -> Result<Action, LeftOut> {
    if prompt.trim().is_empty() {
        return Err(LeftOut::new("it has no prompt", "nothing to do"));
    }
    if PROMPT_BYTES_MAX < prompt.len() {
        let hint = "shorten it, or put the text into a file that the agent reads";
        return Err(LeftOut::new("its prompt is longer than 64 KiB, the limit", hint));
    }
    Ok(Action {
        agent: Some(agent.to_owned()),
        prompt: Some(prompt.to_owned()),
        ..Action::default()
    })
}

/// The command that registers an agent of any kind.
pub fn agent_hint(agent: &str) -> String {
    format!(
        "register it with `midwatch agent add {agent} --backend KIND …`, or name a registered agent with \
         `--agent NAME`"
    )
}

/// The list in a JSON document that is a list, or has one under this name.
pub fn list_in(document: Value, name: &str) -> Option<Vec<Value>> {
    match document {
        Value::Array(items) => Some(items),
        Value::Object(mut members) => match members.remove(name)? {
            Value::Array(items) => Some(items),
            _ => None,
        },
        _ => None,
    }
}

/// Parses JSON that may start with a byte order mark. `what` names the source in errors.
pub fn parse_json(what: &str, text: &str) -> Result<Value, Error> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    serde_json::from_str(text).map_err(|error| {
        Error::new(Code::InvalidInput, format!("{what} is not valid JSON: {error}"))
            .hint("check that it is the right file")
    })
}

/// A word as a shell reads it back unchanged.
pub(crate) fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "-_./:=@+,%".contains(c);
    match !word.is_empty() && word.chars().all(is_plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

/// Words as one line of a shell.
pub(crate) fn shell_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    words.into_iter().map(shell_word).collect::<Vec<_>>().join(" ")
}

/// A trigger as flags of `schedule add`.
pub(crate) fn trigger_flags(when: &When) -> String {
    let flags = [
        ("--cron", &when.cron),
        ("--every", &when.every),
        ("--anchor", &when.anchor),
        ("--at", &when.at),
        ("--tz", &when.tz),
    ];
    let given = flags.iter().filter_map(|(flag, value)| Some([*flag, value.as_deref()?]));
    shell_line(given.flatten())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique_and_the_same_for_the_same_source() {
        let mut names = UniqueNames::default();
        assert_eq!(names.name("news", "a"), "news");
        assert_eq!(names.name(" news\n", "b"), "news (b)");
        assert_eq!(names.name("", "c"), "c");
        let long = "ä".repeat(NAME_CHARS_MAX + 1);
        assert_eq!(names.name(&long, "d").chars().count(), NAME_CHARS_MAX);
        let second = names.name(&long, "e");
        assert_eq!(second.chars().count(), NAME_CHARS_MAX);
        assert!(second.ends_with(" (e)"), "{second}");
    }

    #[test]
    fn shell_words_are_quoted_if_necessary() {
        assert_eq!(
            shell_line(["echo", "it's", "", "a=b", "$HOME"]),
            "echo 'it'\\''s' '' a=b '$HOME'"
        );
    }
}
