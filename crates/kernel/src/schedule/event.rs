//! Events of a schedule and its slots. The serde names are the stored format.

use calendar::Span;
use serde::{Deserialize, Serialize};

use super::{Action, Definition, Schedule};
use crate::agent::{Agent, AgentName};
use crate::backend::Tier;
use crate::counter::Counter;
use crate::event::kinds;
use crate::noun::{ChangedRow, NounEvent};
use crate::principal::Principal;
use crate::private_fields::{PrivateField, note};
use crate::progress::{NextFire, Progress};
use crate::run::Run;
use crate::slot::{self, Disposition, Reason, Source, Timing};
use crate::time::Timestamp;
use crate::tool::{ToolName, ToolStats};
use crate::{Noun, RunId, ScheduleId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Added(Added),
    Changed(Changed),
    Paused(Paused),
    Resumed(Resumed),
    Removed(Removed),
    Moved(Moved),
    BackfillStarted(BackfillStarted),
    BackfillMoved(BackfillMoved),
    Passed(Passed),
    Buffered(Buffered),
    Dropped(Dropped),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    pub definition: Box<Definition>,
    pub by: Principal,
    #[serde(rename = "made_by", default, skip_serializing_if = "Option::is_none")]
    pub added_by_agent: Option<AddingAgent>,
    /// The tier that a person gives it, which agents and assistants cannot avoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raises: Option<TierRaise>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// A person gave a schedule this tier. Agents and assistants then add no schedule with a lower one for the same
/// agent, or with calls of the same tool.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
pub enum TierRaise {
    Agent { agent: AgentName, tier: Tier },
    Tool { tool: ToolName, tier: Tier },
}

impl TierRaise {
    pub(crate) const fn tier(&self) -> Tier {
        match self {
            TierRaise::Agent { tier, .. } | TierRaise::Tool { tier, .. } => *tier,
        }
    }

    /// Whether it is about the agent of this name.
    pub(crate) fn is_of_agent(&self, name: &AgentName) -> bool {
        matches!(self, TierRaise::Agent { agent, .. } if agent == name)
    }

    /// Whether it is about the tool of this name.
    pub(crate) fn is_of_tool(&self, name: &str) -> bool {
        matches!(self, TierRaise::Tool { tool, .. } if tool.as_str() == name)
    }
}

/// How many schedules of an agent, or with calls of a tool, people gave each tier above 0.
#[derive(Debug)]
pub(crate) struct RaiseCounts<'a> {
    pub(crate) to_1: &'a mut u32,
    pub(crate) to_2: &'a mut u32,
}

impl RaiseCounts<'_> {
    /// Counts the raises of an event that are about the same agent or tool.
    pub(crate) fn count(mut self, event: &Event, is_ours: impl Fn(&TierRaise) -> bool) {
        let (raises, lowers) = event.tier_raises();
        if let Some(raise) = lowers.filter(|raise| is_ours(raise)) {
            self.change(raise.tier(), |count| count.saturating_sub(1));
        }
        if let Some(raise) = raises.filter(|raise| is_ours(raise)) {
            self.change(raise.tier(), |count| count.saturating_add(1));
        }
    }

    fn change(&mut self, tier: Tier, change: fn(u32) -> u32) {
        match tier {
            Tier::ReadOnly => {}
            Tier::LocalWrite => *self.to_1 = change(*self.to_1),
            Tier::External => *self.to_2 = change(*self.to_2),
        }
    }
}

/// The highest tier that is counted.
pub(crate) const fn highest_raise(to_1: u32, to_2: u32) -> Option<Tier> {
    match (to_1, to_2) {
        (0, 0) => None,
        (_, 0) => Some(Tier::LocalWrite),
        (_, _) => Some(Tier::External),
    }
}

/// The agent that added a schedule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AddingAgent {
    /// The run that added it; `None` for a caller with the agent's token.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<RunId>,
    pub agent: AgentName,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    pub by: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    /// The schedule that it depended on.
    #[serde(rename = "unfollows", default, skip_serializing_if = "Option::is_none")]
    pub former_upstream: Option<ScheduleId>,
    /// The agent that had added it, if any.
    #[serde(rename = "made_by", default, skip_serializing_if = "Option::is_none")]
    pub added_by_agent: Option<AddingAgent>,
    /// The tier that a person had given it and takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowers: Option<TierRaise>,
    /// Its name; absent from older entries.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub at: Timestamp,
}

/// The definition was replaced.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Changed {
    pub definition: Box<Definition>,
    /// The schedule that it no longer depends on.
    #[serde(rename = "unfollows", default, skip_serializing_if = "Option::is_none")]
    pub former_upstream: Option<ScheduleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Principal>,
    /// The tier that a person gives it, which agents and assistants cannot avoid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub raises: Option<TierRaise>,
    /// The tier that a person had given it and takes back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lowers: Option<TierRaise>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// The next slot changed without a slot having been decided.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Moved {
    pub why: MovedWhy,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum MovedWhy {
    /// The run that the next slot is counted from ended.
    Finished,
    /// The time zone's rules changed since the next slot was computed.
    TzRebased,
    /// Slots were decided by a clock that was ahead, and a maintainer accepted the corrected one.
    ClockCorrected,
}

/// A backfill of past slots was started.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillStarted {
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// Runs of the backfill at a time.
    pub at_once: u32,
    /// Shortest time between two starts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Span>,
    pub by: String,
    pub at: Timestamp,
}

/// A backfill skipped a slot that has a run, or was ended early.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BackfillMoved {
    /// The next slot of the backfill, if any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    pub at: Timestamp,
}

/// Adjacent slots were passed over: they get no run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    pub revision: u32,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// Wall-clock time of the last slot in the schedule's zone.
    pub wall: String,
    pub disposition: Disposition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The slot whose run covers them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Timestamp>,
    /// What created the slot, if it was not the calendar.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    /// For several slots: the trigger that produced them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timing: Option<Box<Timing>>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// A slot waits until an earlier run ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffered {
    pub revision: u32,
    pub slot: Timestamp,
    pub wall: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

/// A waiting slot was dropped: it gets no run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dropped {
    pub slot: Timestamp,
    pub disposition: Disposition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Timestamp>,
    pub at: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
}

kinds! {
    Event:
    "schedule.added" 1 Added;
    "schedule.paused" 1 Paused;
    "schedule.resumed" 1 Resumed;
    "schedule.removed" 1 Removed;
    "slot.passed" 1 Passed;
    "slot.buffered" 1 Buffered;
    "slot.dropped" 1 Dropped;
    "schedule.changed" 1 Changed;
    "schedule.moved" 1 Moved;
    "schedule.backfill_begun" 1 BackfillStarted;
    "schedule.backfill_moved" 1 BackfillMoved;
}

impl NounEvent for Event {
    type State = Schedule;

    fn changed_rows(&self, id: &ScheduleId) -> Vec<ChangedRow> {
        let progress = ChangedRow::existing::<Progress>(id);
        let slot = |slot: Timestamp| slot::key(id, slot);
        let source = |source: &Source| slot::new_row(slot::source_key(id, source));
        match self {
            Event::Added(_) | Event::Changed(_) | Event::Removed(_) => {
                let mut rows = vec![ChangedRow::existing::<Schedule>(id), progress];
                rows.extend(self.changed_upstreams().map(ChangedRow::existing::<Progress>));
                rows.extend(self.counting_rows());
                rows
            }
            Event::Paused(_) | Event::Resumed(_) | Event::Moved(_) => vec![progress],
            Event::BackfillStarted(_) | Event::BackfillMoved(_) => vec![progress],
            Event::Passed(it) => {
                let rows = [progress, slot::new_row(slot(it.last))];
                rows.into_iter().chain(it.source.as_ref().map(source)).collect()
            }
            Event::Buffered(it) => {
                let rows = [progress, slot::new_row(slot(it.slot))];
                rows.into_iter().chain(it.source.as_ref().map(source)).collect()
            }
            Event::Dropped(it) => vec![progress, slot::existing_row(slot(it.slot))],
        }
    }

    fn counter_deltas(&self) -> Vec<(Counter, i64)> {
        match self {
            Event::Added(_) => vec![(Counter::Objects(Noun::Schedule), 1)],
            Event::Removed(_) => vec![(Counter::Objects(Noun::Schedule), -1)],
            _ => Vec::new(),
        }
    }

    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        match self {
            Event::Added(added) => added.definition.action.private_fields_mut(),
            Event::Changed(changed) => changed.definition.action.private_fields_mut(),
            Event::Paused(paused) => note(&mut paused.note),
            Event::Resumed(_) | Event::Removed(_) | Event::Moved(_) => Vec::new(),
            Event::BackfillStarted(_) | Event::BackfillMoved(_) => Vec::new(),
            Event::Passed(_) | Event::Buffered(_) | Event::Dropped(_) => Vec::new(),
        }
    }
}

impl Event {
    /// The schedules whose list of dependents the event changes.
    fn changed_upstreams(&self) -> impl Iterator<Item = &ScheduleId> {
        let (definition, former) = match self {
            Event::Added(added) => (Some(&added.definition), None),
            Event::Changed(it) => (Some(&it.definition), it.former_upstream.as_ref()),
            Event::Removed(removed) => (None, removed.former_upstream.as_ref()),
            _ => (None, None),
        };
        let upstream = definition.and_then(|it| it.trigger.upstream()).map(|(id, _)| id);
        upstream.into_iter().chain(former)
    }

    /// The rows of the run, the agents and the tools that count an added, changed or removed schedule.
    fn counting_rows(&self) -> impl Iterator<Item = ChangedRow> {
        let run = match self {
            Event::Added(added) => added.added_by_agent.as_ref().and_then(|by| by.run.as_ref()),
            _ => None,
        };
        let (raises, lowers) = self.tier_raises();
        let mut rows: Vec<ChangedRow> =
            self.adding_agent().into_iter().map(ChangedRow::existing::<Agent>).collect();
        for raise in [raises, lowers].into_iter().flatten() {
            let row = match raise {
                TierRaise::Agent { agent, .. } => ChangedRow::existing::<Agent>(agent),
                TierRaise::Tool { tool, .. } => ChangedRow::existing::<ToolStats>(tool),
            };
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        run.map(ChangedRow::existing::<Run>).into_iter().chain(rows)
    }

    /// The agent that adds the schedule, or had added the removed one.
    pub(crate) fn adding_agent(&self) -> Option<&AgentName> {
        let by = match self {
            Event::Added(added) => added.added_by_agent.as_ref(),
            Event::Removed(removed) => removed.added_by_agent.as_ref(),
            _ => None,
        };
        by.map(|by| &by.agent)
    }

    /// The tier that a person gives the schedule, and the one that a person takes back.
    const fn tier_raises(&self) -> (Option<&TierRaise>, Option<&TierRaise>) {
        match self {
            Event::Added(added) => (added.raises.as_ref(), None),
            Event::Changed(changed) => (changed.raises.as_ref(), changed.lowers.as_ref()),
            Event::Removed(removed) => (None, removed.lowers.as_ref()),
            _ => (None, None),
        }
    }
}

impl Action {
    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        match self {
            Action::Prompt { prompt, .. } => vec![("prompt", prompt.stored_mut())],
            Action::Tool { payload, .. } => vec![("payload", payload.stored_mut())],
        }
    }
}
