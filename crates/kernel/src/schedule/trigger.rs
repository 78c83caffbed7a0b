//! What makes a schedule fire: a calendar or an event.

use std::fmt;
use std::str::FromStr;

use calendar::Span;
use serde::{Deserialize, Serialize};

use crate::ScheduleId;
use crate::run::Outcome;

const EVENT_NAME_BYTES_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Trigger {
    /// Instants that are known in advance.
    Timed(calendar::Trigger),
    Event(EventTrigger),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum EventTrigger {
    /// A run of another schedule ends.
    #[serde(rename = "after")]
    AfterRun { schedule: ScheduleId, on: RequiredOutcome },
    /// An event of this name is published.
    Event { name: EventName },
    /// `every` has passed since the schedule's own last run.
    #[serde(rename = "again")]
    AfterOwnRun { every: Span, since: Since },
}

/// The outcome that a run must have to fire its dependents.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequiredOutcome {
    #[default]
    Success,
    Failure,
    Any,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Since {
    Start,
    Finish,
}

/// Invariant: 1 to 128 of `a-z`, `0-9`, `.`, `_`, `-`, `/`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub struct EventName(String);

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid event name `{0}`; use 1 to 128 of a-z, 0-9, `.`, `_`, `-`, `/`")]
pub struct InvalidEventName(String);

impl Trigger {
    pub fn timed(&self) -> Option<&calendar::Trigger> {
        match self {
            Trigger::Timed(timed) => Some(timed),
            Trigger::Event(_) => None,
        }
    }

    /// The schedule that it depends on, and the outcome that a run of it must have.
    pub fn upstream(&self) -> Option<(&ScheduleId, RequiredOutcome)> {
        match self {
            Trigger::Event(EventTrigger::AfterRun { schedule, on }) => Some((schedule, *on)),
            Trigger::Event(_) | Trigger::Timed(_) => None,
        }
    }

    pub fn event_name(&self) -> Option<&EventName> {
        match self {
            Trigger::Event(EventTrigger::Event { name }) => Some(name),
            Trigger::Event(_) | Trigger::Timed(_) => None,
        }
    }
}

impl From<calendar::Trigger> for Trigger {
    fn from(timed: calendar::Trigger) -> Trigger {
        Trigger::Timed(timed)
    }
}

impl fmt::Display for EventTrigger {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EventTrigger::AfterRun { schedule, on } => {
                let ended = match on {
                    RequiredOutcome::Success => "is done",
                    RequiredOutcome::Failure => "has failed",
                    RequiredOutcome::Any => "has ended",
                };
                write!(out, "after each run of {schedule} that {ended}")
            }
            EventTrigger::Event { name } => write!(out, "on each event `{name}`"),
            EventTrigger::AfterOwnRun { every, since } => {
                let since = match since {
                    Since::Start => "started",
                    Since::Finish => "ended",
                };
                write!(out, "{} after the last run {since}", every.describe())
            }
        }
    }
}

impl RequiredOutcome {
    pub fn matches(self, outcome: Outcome) -> bool {
        match self {
            RequiredOutcome::Success => outcome == Outcome::Done,
            RequiredOutcome::Failure => outcome == Outcome::Failed,
            RequiredOutcome::Any => true,
        }
    }
}

impl EventName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Key of the index that lists the schedules that this event fires.
    pub fn index_key(&self) -> String {
        format!("event/{}", self.0)
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

impl FromStr for EventName {
    type Err = InvalidEventName;

    fn from_str(text: &str) -> Result<EventName, InvalidEventName> {
        let is_plain = |c: char| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '.' | '_' | '-' | '/')
        };
        let is_name =
            (1..=EVENT_NAME_BYTES_MAX).contains(&text.len()) && text.chars().all(is_plain);
        match is_name {
            true => Ok(EventName(text.to_owned())),
            false => Err(InvalidEventName(text.chars().take(80).collect())),
        }
    }
}

impl From<EventName> for String {
    fn from(name: EventName) -> String {
        name.0
    }
}

impl TryFrom<String> for EventName {
    type Error = InvalidEventName;

    fn try_from(text: String) -> Result<EventName, InvalidEventName> {
        text.parse()
    }
}
