//! A schedule: what is to be done, when, and on which terms.
//!
//! Its definition changes rarely and lives in a row of its own; how far it has got is
//! [`crate::progress`]. [`decide`] holds the rules of what people ask of a schedule; what becomes of
//! its slots is decided in [`crate::tick`].

mod decide;
mod event;
pub mod terms;
pub mod trigger;

use calendar::{Advice, Calendar, START_US, Zone};
use serde::{Deserialize, Serialize};

use crate::actor::Actor;
use crate::agent::AgentName;
use crate::backend::Tier;
use crate::progress::Pause;
use crate::time::Timestamp;
use crate::wording::Wording;
pub use decide::{
    AtWork, Backfill, CHAIN_MAX, Command, Ground, Maker, Refusal, backfill_range, decide,
};
pub(crate) use decide::{check_note, check_room};
pub use event::{Added, BackfillBegun, BackfillMoved, Buffered, Changed, Dropped, Event, MadeBy};
pub use event::{Moved, MovedWhy, Passed, Paused, Removed, Resumed};
use terms::Terms;
use trigger::{Happening, Trigger};

pub const NAME_CHARS_MAX: usize = 120;
pub const PROMPT_BYTES_MAX: usize = 65_536;
pub const PAYLOAD_BYTES_MAX: usize = 65_536;
pub const NOTE_BYTES_MAX: usize = 1_024;
/// Of what tells one start by hand from another.
pub const KEY_BYTES_MAX: usize = 256;
/// Of those who have changed a schedule, from when on one run stands for all runs.
const CHANGED_BY_EACH_MAX: usize = 32;
/// Schedules that one installation may hold.
pub const SCHEDULES_MAX: i64 = 10_000_000;

/// What the id of a schedule is the hash of.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Definition {
    pub name: String,
    pub trigger: Trigger,
    pub zone: Zone,
    pub action: Action,
    /// Raises the tier above the agent's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<Tier>,
    pub terms: Terms,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Action {
    Prompt {
        agent: AgentName,
        prompt: Wording,
    },
    /// The payload is JSON text.
    Tool {
        tool: String,
        payload: Wording,
        /// Of what the tool was when somebody last said that this schedule shall call it.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub definition: Definition,
    /// Grows with every edit.
    pub revision: u32,
    pub created_by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_by: Option<MadeBy>,
    /// Who has changed it since, each once. Nobody is forgotten who could approve its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_by: Vec<String>,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

/// The schedule after an event.
pub fn apply(schedule: Option<Schedule>, event: &Event) -> Option<Schedule> {
    match event {
        Event::Added(added) => Some(Schedule {
            definition: (*added.definition).clone(),
            revision: 1,
            created_by: added.by.clone(),
            made_by: added.made_by.clone(),
            changed_by: Vec::new(),
            created_at: added.at,
            changed_at: added.at,
        }),
        Event::Changed(changed) => schedule.map(|before| Schedule {
            definition: (*changed.definition).clone(),
            revision: before.revision + 1,
            changed_at: changed.at,
            changed_by: joined(before.changed_by, changed.by.as_ref()),
            ..before
        }),
        Event::Removed(_) => None,
        Event::Paused(_) | Event::Resumed(_) | Event::Moved(_) => schedule,
        Event::Passed(_) | Event::Buffered(_) | Event::Dropped(_) => schedule,
        Event::BackfillBegun(_) | Event::BackfillMoved(_) => schedule,
    }
}

/// People are as many as have a token. Of runs there is no end, and no run approves anything: that there was
/// one is enough.
fn joined(mut names: Vec<String>, name: Option<&String>) -> Vec<String> {
    let is_told = |name: &String| {
        let is_many = CHANGED_BY_EACH_MAX <= names.len();
        is_many && Actor::names_run(name) && names.iter().any(|it| Actor::names_run(it))
    };
    if let Some(name) = name.filter(|name| !names.contains(name) && !is_told(name)) {
        names.push(name.clone());
    }
    names
}

impl Schedule {
    /// Everybody who has had a hand in what it says. Who is behind an agent that wrote it, nobody knows.
    pub fn authors(&self) -> Vec<String> {
        let person = |name: &String| Actor::person(name).to_owned();
        let mut authors = vec![match &self.made_by {
            Some(MadeBy { run: None, agent }) => Actor::of_agent(agent.as_str()),
            Some(MadeBy { run: Some(_), .. }) | None => person(&self.created_by),
        }];
        for author in self.changed_by.iter().map(person) {
            if !authors.contains(&author) {
                authors.push(author);
            }
        }
        authors
    }
}

impl Definition {
    /// When it fires. `next` is its next slot: what makes a schedule fire that is not the time is not
    /// known beforehand, so that one slot is then all there is.
    pub fn calendar(&self, next: Option<Timestamp>) -> Result<Calendar, Refusal> {
        let trigger = match &self.trigger {
            Trigger::Timed(timed) => timed.clone(),
            Trigger::Happens(_) => {
                calendar::Trigger::Once { at_us: next.map_or(START_US, Timestamp::as_micros) }
            }
        };
        Calendar::new(trigger, self.zone.clone())
            .map_err(|invalid| Refusal::invalid(&invalid.reason(), &invalid.advice()))
    }

    /// Without what its tool was when it was written: what makes two definitions the same.
    #[must_use]
    pub fn without_tool_hash(&self) -> Definition {
        let mut same = self.clone();
        if let Action::Tool { hash, .. } = &mut same.action {
            *hash = None;
        }
        same
    }

    /// When it fires, in words.
    pub fn describe(&self) -> Result<String, Refusal> {
        match &self.trigger {
            Trigger::Timed(_) => Ok(self.calendar(None)?.describe()),
            Trigger::Happens(happening) => Ok(happening.to_string()),
        }
    }

    /// What schedules like it can be listed under.
    pub fn listed_under(&self) -> Option<String> {
        self.trigger.event().map(trigger::EventName::listed_under)
    }

    /// How long after its own last run it fires, and since when that is counted.
    pub(crate) fn again(&self) -> Option<(calendar::Span, trigger::Since)> {
        match &self.trigger {
            Trigger::Happens(Happening::Again { every, since }) => Some((*every, *since)),
            Trigger::Happens(_) | Trigger::Timed(_) => None,
        }
    }
}

impl Action {
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Action::Prompt { agent, .. } => Some(agent),
            Action::Tool { .. } => None,
        }
    }

    /// What the agent or the tool is told.
    pub fn words(&self) -> &Wording {
        match self {
            Action::Prompt { prompt, .. } => prompt,
            Action::Tool { payload, .. } => payload,
        }
    }

    pub fn words_mut(&mut self) -> &mut Wording {
        match self {
            Action::Prompt { prompt, .. } => prompt,
            Action::Tool { payload, .. } => payload,
        }
    }

    /// Refuses words that are too long or none. Those that are sealed were looked at before.
    pub fn check_words(&self) -> Result<(), Refusal> {
        let is_empty = |words: &Wording| words.plain().is_some_and(|text| text.trim().is_empty());
        let (what, hint) = match self {
            Action::Prompt { prompt, .. } if !prompt.fits(PROMPT_BYTES_MAX) => (
                "a prompt has at most 64 KiB",
                "put the rest into a file, and say in the prompt where it is",
            ),
            Action::Prompt { prompt, .. } if is_empty(prompt) => {
                ("a prompt is not empty", "say what the agent is to do, with `--prompt TEXT`")
            }
            Action::Tool { payload, .. } if !payload.fits(PAYLOAD_BYTES_MAX) => {
                ("a payload has at most 64 KiB", "leave out what the tool does not need")
            }
            Action::Prompt { .. } | Action::Tool { .. } => return Ok(()),
        };
        Err(Refusal::invalid(what, hint))
    }
}

impl From<&Paused> for Pause {
    fn from(paused: &Paused) -> Pause {
        Pause { by: paused.by.clone(), note: paused.note.clone(), at: paused.at }
    }
}
