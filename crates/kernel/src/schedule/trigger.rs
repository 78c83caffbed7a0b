//! What makes a schedule fire: the time, or something that happens.

use std::fmt;
use std::str::FromStr;

use calendar::Span;
use serde::{Deserialize, Serialize};

use crate::id::ScheduleId;
use crate::run::Outcome;

const EVENT_NAME_BYTES_MAX: usize = 128;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Trigger {
    /// Instants that are known beforehand.
    Timed(calendar::Trigger),
    Happens(Happening),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Happening {
    /// A run of another schedule ends.
    After { schedule: ScheduleId, on: Ending },
    /// Somebody says that something of this name has happened.
    Event { name: EventName },
    /// So much time has passed since the schedule's own last run.
    Again { every: Span, since: Since },
}

/// How a run has to end.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
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
#[error("`{0}` is not the name of an event: it has 1 to 128 of a-z, 0-9, `.`, `_`, `-`, `/`")]
pub struct InvalidEventName(String);

impl Trigger {
    pub fn timed(&self) -> Option<&calendar::Trigger> {
        match self {
            Trigger::Timed(timed) => Some(timed),
            Trigger::Happens(_) => None,
        }
    }

    /// The schedule that it follows, and how a run of that one has to end.
    pub fn follows(&self) -> Option<(&ScheduleId, Ending)> {
        match self {
            Trigger::Happens(Happening::After { schedule, on }) => Some((schedule, *on)),
            Trigger::Happens(_) | Trigger::Timed(_) => None,
        }
    }

    pub fn event(&self) -> Option<&EventName> {
        match self {
            Trigger::Happens(Happening::Event { name }) => Some(name),
            Trigger::Happens(_) | Trigger::Timed(_) => None,
        }
    }
}

impl From<calendar::Trigger> for Trigger {
    fn from(timed: calendar::Trigger) -> Trigger {
        Trigger::Timed(timed)
    }
}

impl fmt::Display for Happening {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Happening::After { schedule, on } => {
                let ended = match on {
                    Ending::Success => "is done",
                    Ending::Failure => "has failed",
                    Ending::Any => "has ended",
                };
                write!(out, "after each run of {schedule} that {ended}")
            }
            Happening::Event { name } => write!(out, "at each event `{name}`"),
            Happening::Again { every, since } => {
                let since = match since {
                    Since::Start => "began",
                    Since::Finish => "ended",
                };
                write!(out, "{} after the last run {since}", every.describe())
            }
        }
    }
}

impl Ending {
    pub fn matches(self, outcome: Outcome) -> bool {
        match self {
            Ending::Success => outcome == Outcome::Done,
            Ending::Failure => outcome == Outcome::Failed,
            Ending::Any => true,
        }
    }
}

impl EventName {
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What schedules that wait for it are listed under.
    pub fn listed_under(&self) -> String {
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
