//! A schedule: an action, a trigger and terms.
//!
//! The definition changes rarely and has its own row; the state of its slots and runs is
//! [`crate::progress`]. [`decide`] holds the rules for commands about a schedule; [`crate::tick`] decides
//! its slots.

mod decide;
mod event;
mod id;
pub mod terms;
pub mod trigger;

use calendar::{Calendar, Hint, START_US, Zone};
use serde::{Deserialize, Serialize};

use crate::EventBody;
use crate::agent::AgentName;
use crate::backend::Tier;
use crate::noun::NounState;
use crate::principal::Principal;
use crate::progress::Pause;
use crate::sealable_text::SealableText;
use crate::time::Timestamp;
pub(crate) use decide::check_overlap;
pub use decide::{
    AgentCaller, Backfill, CHAIN_MAX, CallingRun, Command, Refusal, ScheduleContext,
    backfill_range, check_note, decide,
};
pub use event::{
    Added, AddingAgent, BackfillMoved, BackfillStarted, Buffered, Changed, Dropped, Event,
    TierRaise,
};
pub use event::{Moved, MovedWhy, Passed, Paused, Removed, Resumed};
pub(crate) use event::{RaiseCounts, highest_raise};
pub use id::{SCHEDULE_DIGITS, ScheduleId};
use terms::Terms;
use trigger::{EventTrigger, Trigger};

pub const NAME_CHARS_MAX: usize = 120;
pub const PROMPT_BYTES_MAX: usize = 65_536;
pub const PAYLOAD_BYTES_MAX: usize = 65_536;
pub const NOTE_BYTES_MAX: usize = 1_024;
/// Longest idempotency key of a manual start.
pub const KEY_BYTES_MAX: usize = 256;
/// From this many editors on, only the first run among them is recorded.
const CHANGED_BY_EACH_MAX: usize = 32;

/// The content of a schedule; its id is derived from the hash of its first definition.
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
        prompt: SealableText,
    },
    /// The payload is JSON text.
    Tool {
        tool: String,
        payload: SealableText,
        /// Hash of the tool's description when this action was last written.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        hash: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub definition: Definition,
    /// Incremented by every edit.
    pub revision: u32,
    pub created_by: Principal,
    #[serde(rename = "made_by", default, skip_serializing_if = "Option::is_none")]
    pub added_by_agent: Option<AddingAgent>,
    /// Everyone who has edited the schedule, once each. It includes all who could approve its runs.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_by: Vec<Principal>,
    /// The tier that a person gave it, as its agent counts it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raises: Option<TierRaise>,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

/// Returns the schedule after an event.
pub fn apply(schedule: Option<Schedule>, event: &Event) -> Option<Schedule> {
    match event {
        Event::Added(added) => Some(Schedule {
            definition: (*added.definition).clone(),
            revision: 1,
            created_by: added.by.clone(),
            added_by_agent: added.added_by_agent.clone(),
            changed_by: Vec::new(),
            raises: added.raises.clone(),
            created_at: added.at,
            changed_at: added.at,
        }),
        Event::Changed(changed) => schedule.map(|before| Schedule {
            definition: (*changed.definition).clone(),
            revision: before.revision + 1,
            changed_at: changed.at,
            changed_by: add_editor(before.changed_by, changed.by.as_ref()),
            raises: match changed.lowers.is_some() || changed.raises.is_some() {
                true => changed.raises.clone(),
                false => before.raises,
            },
            ..before
        }),
        Event::Removed(_) => None,
        Event::Paused(_) | Event::Resumed(_) | Event::Moved(_) => schedule,
        Event::Passed(_) | Event::Buffered(_) | Event::Dropped(_) => schedule,
        Event::BackfillStarted(_) | Event::BackfillMoved(_) => schedule,
    }
}

/// Adds an editor. People are limited by their tokens, but runs are not; since no run can approve anything, a
/// long list records only that some run was among the editors.
fn add_editor(mut editors: Vec<Principal>, editor: Option<&Principal>) -> Vec<Principal> {
    let is_redundant_run = |editor: &Principal| {
        let is_many = CHANGED_BY_EACH_MAX <= editors.len();
        is_many && editor.is_run() && editors.iter().any(Principal::is_run)
    };
    if let Some(editor) = editor.filter(|it| !editors.contains(it) && !is_redundant_run(it)) {
        editors.push(editor.clone());
    }
    editors
}

impl NounState for Schedule {
    type Id = ScheduleId;
    const OBJECTS_MAX: i64 = 10_000_000;

    fn apply(_: &str, schedule: Option<Schedule>, body: &EventBody) -> Option<Schedule> {
        match body {
            EventBody::Schedule(_, event) => apply(schedule, event),
            _ => schedule,
        }
    }

    /// Key of the index that lists schedules with the same event trigger.
    fn index_key(&self) -> Option<String> {
        self.definition.trigger.event_name().map(trigger::EventName::index_key)
    }
}

impl Schedule {
    /// Everyone who has written or edited the schedule. An agent counts as itself: the person behind it is
    /// unknown.
    pub fn authors(&self) -> Vec<Principal> {
        let mut authors = vec![match &self.added_by_agent {
            Some(AddingAgent { run: None, agent }) => Principal::Agent(agent.clone()),
            Some(AddingAgent { run: Some(_), .. }) | None => self.created_by.responsible_person(),
        }];
        for author in self.changed_by.iter().map(Principal::responsible_person) {
            if !authors.contains(&author) {
                authors.push(author);
            }
        }
        authors
    }
}

impl Schedule {
    /// Whether only people have written it. The name of another may say anything, so it does not leave the machine.
    pub fn is_written_by_people(&self) -> bool {
        let is_person = |by: &Principal| matches!(by, Principal::User(_) | Principal::Person(_));
        self.added_by_agent.is_none()
            && is_person(&self.created_by)
            && self.changed_by.iter().all(is_person)
    }
}

impl Definition {
    /// The calendar of the schedule's slots. The slots of an event trigger are not known in advance, so its
    /// calendar has only the next slot, `next`.
    pub fn calendar(&self, next: Option<Timestamp>) -> Result<Calendar, Refusal> {
        let trigger = match &self.trigger {
            Trigger::Timed(timed) => timed.clone(),
            Trigger::Event(_) => {
                calendar::Trigger::Once { at_us: next.map_or(START_US, Timestamp::as_micros) }
            }
        };
        Calendar::new(trigger, self.zone.clone())
            .map_err(|invalid| Refusal::invalid(&invalid.reason(), &invalid.hint()))
    }

    /// A copy without the tool's hash: two definitions are the same if these are equal.
    #[must_use]
    pub fn without_tool_hash(&self) -> Definition {
        let mut same = self.clone();
        if let Action::Tool { hash, .. } = &mut same.action {
            *hash = None;
        }
        same
    }

    /// Describes the trigger for people.
    pub fn describe(&self) -> Result<String, Refusal> {
        match &self.trigger {
            Trigger::Timed(_) => Ok(self.calendar(None)?.describe()),
            Trigger::Event(event) => Ok(event.to_string()),
        }
    }

    /// For a trigger that follows the schedule's own last run: the interval, and where it is counted from.
    pub(crate) fn own_run_interval(&self) -> Option<(calendar::Span, trigger::Since)> {
        match &self.trigger {
            Trigger::Event(EventTrigger::AfterOwnRun { every, since }) => Some((*every, *since)),
            Trigger::Event(_) | Trigger::Timed(_) => None,
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

    /// The prompt, or the payload of the tool call.
    pub fn text(&self) -> &SealableText {
        match self {
            Action::Prompt { prompt, .. } => prompt,
            Action::Tool { payload, .. } => payload,
        }
    }

    pub fn text_mut(&mut self) -> &mut SealableText {
        match self {
            Action::Prompt { prompt, .. } => prompt,
            Action::Tool { payload, .. } => payload,
        }
    }

    /// Refuses an empty or too long text. Sealed text was checked for emptiness before it was sealed.
    pub fn check_text(&self) -> Result<(), Refusal> {
        let is_empty =
            |text: &SealableText| text.plain().is_some_and(|text| text.trim().is_empty());
        let (what, hint) = match self {
            Action::Prompt { prompt, .. } if !prompt.fits(PROMPT_BYTES_MAX) => (
                "a prompt has at most 64 KiB",
                "put the rest into a file and name the file in the prompt",
            ),
            Action::Prompt { prompt, .. } if is_empty(prompt) => {
                ("the prompt is empty", "describe the task with `--prompt TEXT`")
            }
            Action::Tool { payload, .. } if !payload.fits(PAYLOAD_BYTES_MAX) => {
                ("a payload has at most 64 KiB", "leave out fields that the tool does not need")
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
