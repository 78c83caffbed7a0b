//! A schedule: what is to be done, when, and on which terms.
//!
//! Its definition changes rarely and lives in a row of its own; how far it has got is
//! [`crate::progress`]. [`decide`] holds the rules of what people ask of a schedule; what becomes of
//! its slots is decided in [`crate::tick`].

pub mod terms;

use calendar::{Calendar, Trigger, Zone};
use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::agent::{Agent, AgentName};
use crate::backend::Tier;
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::progress::{Ahead, Pause, Progress, Status};
use crate::run::{self, Occurrence, Queued};
use crate::slot::{Disposition, Fate, Reason, Slot};
use crate::tick::Tick;
use crate::time::Timestamp;
use terms::{ATTEMPTS_MAX, PRIORITY_MAX, Resume, Terms};

pub const NAME_CHARS_MAX: usize = 120;
pub const PROMPT_BYTES_MAX: usize = 65_536;
pub const PAYLOAD_BYTES_MAX: usize = 65_536;
pub const NOTE_BYTES_MAX: usize = 1_024;
/// Of what tells one start by hand from another.
pub const KEY_BYTES_MAX: usize = 256;
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
        prompt: String,
    },
    /// The payload is JSON text.
    Tool {
        tool: String,
        payload: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    pub definition: Definition,
    /// Grows with every edit.
    pub revision: u32,
    pub created_by: String,
    pub created_at: Timestamp,
    pub changed_at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Add {
        definition: Box<Definition>,
    },
    Pause {
        note: Option<String>,
    },
    Resume,
    Remove,
    /// Run it now. The same key is the same run.
    Fire {
        run: RunId,
        key: String,
    },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Added(Added),
    Paused(Paused),
    Resumed(Resumed),
    Removed(Removed),
    Passed(Passed),
    Buffered(Buffered),
    Dropped(Dropped),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Added {
    pub definition: Box<Definition>,
    pub by: String,
    pub at: Timestamp,
    pub ahead: Ahead,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Paused {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resumed {
    pub at: Timestamp,
    pub ahead: Ahead,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Removed {
    pub at: Timestamp,
}

/// Adjacent slots that get no run, and why.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Passed {
    pub revision: u32,
    pub first: Timestamp,
    pub last: Timestamp,
    pub count: u64,
    /// What clocks in the zone showed at the last.
    pub wall: String,
    pub disposition: Disposition,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<Reason>,
    /// The slot that stands for them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub into: Option<Timestamp>,
    pub at: Timestamp,
    pub ahead: Ahead,
}

/// A slot waits for an earlier run to end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Buffered {
    pub revision: u32,
    pub slot: Timestamp,
    pub wall: String,
    pub at: Timestamp,
    pub ahead: Ahead,
}

/// A slot that waited gets no run after all.
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
    pub ahead: Ahead,
}

/// Why a command was not carried out. Nothing was recorded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no schedule `{0}`")]
    Unknown(ScheduleId),
    #[error("the id `{0}` is another schedule's")]
    Taken(ScheduleId),
    #[error("there is no agent `{0}`")]
    UnknownAgent(AgentName),
    #[error("the schedule never fires after {}", calendar::format_instant(*.0))]
    NeverFires(i64),
    #[error("agent `{agent}` has tier {min}, and a schedule may only raise it")]
    TierTooLow { agent: AgentName, min: Tier },
    #[error("{0}")]
    Invalid(String),
    #[error("run `{0}` was started with this key before")]
    Fired(RunId),
    #[error("run `{0}` is live, and the overlap policy lets no other run beside it")]
    Live(RunId),
    #[error("the schedule has run as often today as it may ({0})")]
    OutOfBudget(u32),
    #[error("this needs the role `{}`, and `{}` has the role `{}`", needed.name(), actor.name, actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
}

/// What is known when a command about a schedule is decided.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub id: &'a ScheduleId,
    pub schedule: Option<&'a Schedule>,
    pub progress: Option<&'a Progress>,
    /// The agent that the definition names.
    pub agent: Option<&'a Agent>,
    /// What was started by hand with the same key.
    pub fired: Option<&'a Slot>,
    pub now: Timestamp,
}

/// Every rule about what people ask of a schedule. Nothing happens when it is so already.
pub fn decide(ground: Ground<'_>, actor: &Actor, command: Command) -> Result<Vec<Body>, Refusal> {
    if actor.role < Role::Operator {
        return Err(Refusal::RoleTooLow { actor: actor.clone(), needed: Role::Operator });
    }
    match (command, ground.schedule.zip(ground.progress)) {
        (Command::Add { definition }, None) => add(ground, actor, *definition),
        (Command::Add { definition }, Some((schedule, _))) => {
            match *definition == schedule.definition {
                true => Ok(Vec::new()),
                false => Err(Refusal::Taken(ground.id.clone())),
            }
        }
        (_, None) => Err(Refusal::Unknown(ground.id.clone())),
        (Command::Pause { note }, Some((_, progress))) => {
            check_note(note.as_deref())?;
            Ok(match progress.status {
                Status::Paused(_) => Vec::new(),
                Status::Active | Status::Removed => vec![ground.body(Event::Paused(Paused {
                    by: actor.name.clone(),
                    note,
                    at: ground.now,
                }))],
            })
        }
        (Command::Resume, Some((schedule, progress))) => resume(ground, schedule, progress),
        (Command::Remove, Some((schedule, progress))) => remove(ground, schedule, progress),
        (Command::Fire { run, key }, Some((schedule, progress))) => {
            fire(ground, schedule, progress, run, key)
        }
    }
}

/// The schedule after an event.
pub fn apply(schedule: Option<Schedule>, event: &Event) -> Option<Schedule> {
    match event {
        Event::Added(added) => Some(Schedule {
            definition: (*added.definition).clone(),
            revision: 1,
            created_by: added.by.clone(),
            created_at: added.at,
            changed_at: added.at,
        }),
        Event::Removed(_) => None,
        Event::Paused(_) | Event::Resumed(_) => schedule,
        Event::Passed(_) | Event::Buffered(_) | Event::Dropped(_) => schedule,
    }
}

fn add(ground: Ground<'_>, actor: &Actor, definition: Definition) -> Result<Vec<Body>, Refusal> {
    let calendar = definition.check(ground.agent)?;
    // A schedule that was removed goes on after the last slot that it decided.
    let decided = ground.progress.map_or(i64::MIN, |progress| progress.decided_until.as_micros());
    let after = decided.max(ground.now.as_micros());
    let tick = Tick {
        id: ground.id,
        definition: &definition,
        revision: 1,
        calendar: &calendar,
        now: ground.now,
    };
    let ahead = tick.ahead(after, 0);
    if ahead.next.is_none() {
        return Err(Refusal::NeverFires(after));
    }
    let definition = Box::new(definition);
    let added = Added { definition, by: actor.name.clone(), at: ground.now, ahead };
    Ok(vec![ground.body(Event::Added(added))])
}

fn resume(
    ground: Ground<'_>,
    schedule: &Schedule,
    progress: &Progress,
) -> Result<Vec<Body>, Refusal> {
    if !matches!(progress.status, Status::Paused(_)) {
        return Ok(Vec::new());
    }
    let calendar = schedule.definition.calendar()?;
    let tick = Tick::new(ground.id, schedule, &calendar, ground.now);
    let backlog = progress.ahead.next.and_then(|first| tick.backlog(first));
    let resumed = |ahead| ground.body(Event::Resumed(Resumed { at: ground.now, ahead }));
    match (backlog, schedule.definition.terms.resume) {
        (Some((first, last)), Resume::Skip) => {
            let ahead = tick.ahead(last, progress.taken());
            let passed = tick.passed(first, last, Disposition::SkippedPaused, ahead);
            Ok(vec![ground.body(Event::Passed(passed)), resumed(ahead)])
        }
        (_, Resume::AsMissed) | (None, Resume::Skip) => Ok(vec![resumed(progress.ahead)]),
    }
}

/// Slots that were due and not decided, or wait, are overtaken by the removal.
fn remove(
    ground: Ground<'_>,
    schedule: &Schedule,
    progress: &Progress,
) -> Result<Vec<Body>, Refusal> {
    let calendar = schedule.definition.calendar()?;
    let tick = Tick::new(ground.id, schedule, &calendar, ground.now);
    let mut bodies = Vec::new();
    for slot in &progress.waiting {
        let (slot, at) = (*slot, ground.now);
        let (disposition, reason) = (Disposition::Superseded, Some(Reason::Removed));
        let ahead = progress.ahead;
        let dropped = Dropped { slot, disposition, reason, into: None, at, ahead };
        bodies.push(ground.body(Event::Dropped(dropped)));
    }
    if let Some((first, last)) = progress.ahead.next.and_then(|first| tick.past(first)) {
        let mut passed = tick.passed(first, last, Disposition::Superseded, Ahead::default());
        passed.reason = Some(Reason::Removed);
        bodies.push(ground.body(Event::Passed(passed)));
    }
    bodies.push(ground.body(Event::Removed(Removed { at: ground.now })));
    Ok(bodies)
}

fn fire(
    ground: Ground<'_>,
    schedule: &Schedule,
    progress: &Progress,
    run: RunId,
    key: String,
) -> Result<Vec<Body>, Refusal> {
    if !(1..=KEY_BYTES_MAX).contains(&key.len()) || key.chars().any(char::is_control) {
        return Err(Refusal::Invalid("a key has 1 to 256 bytes of printable text".to_owned()));
    }
    if let Some(Fate::Run { run, .. }) = ground.fired.map(|slot| &slot.fate) {
        return Err(Refusal::Fired(run.clone()));
    }
    let terms = &schedule.definition.terms;
    check_room(terms, progress)?;
    let calendar = schedule.definition.calendar()?;
    let tick = Tick::new(ground.id, schedule, &calendar, ground.now);
    if tick.is_out_of_budget(progress) {
        return Err(Refusal::OutOfBudget(tick.per_day(progress.day(ground.now))));
    }
    let queued = Queued {
        schedule: ground.id.clone(),
        revision: schedule.revision,
        occurrence: Occurrence::Manual { key },
        agent: schedule.definition.action.agent().cloned(),
        priority: terms.priority,
        at: ground.now,
    };
    Ok(vec![Body::Run(run, run::Event::Queued(queued))])
}

impl Ground<'_> {
    fn body(&self, event: Event) -> Body {
        Body::Schedule(self.id.clone(), event)
    }
}

impl Definition {
    pub fn calendar(&self) -> Result<Calendar, Refusal> {
        Calendar::new(self.trigger.clone(), self.zone.clone())
            .map_err(|invalid| Refusal::Invalid(invalid.to_string()))
    }

    fn check(&self, agent: Option<&Agent>) -> Result<Calendar, Refusal> {
        let invalid = |what: &str| Err(Refusal::Invalid(what.to_owned()));
        let terms = &self.terms;
        if self.name.is_empty() || NAME_CHARS_MAX < self.name.chars().count() {
            return invalid("the name of a schedule has 1 to 120 characters");
        }
        if self.name.chars().any(char::is_control) {
            return invalid("the name of a schedule is one line of printable text");
        }
        if PRIORITY_MAX < terms.priority {
            return invalid("a priority is from 0 to 9");
        }
        if !(1..=ATTEMPTS_MAX).contains(&terms.retry.attempts) {
            return invalid("a run is tried 1 to 100 times");
        }
        if terms.per_day == Some(0) {
            return invalid("a schedule runs at least once a day");
        }
        if terms.max_fires == Some(0) {
            return invalid("a schedule fires at least once");
        }
        if let (Some(start), Some(end)) = (terms.start_at, terms.end_at)
            && end < start
        {
            return invalid("a schedule ends after it starts");
        }
        match &self.action {
            Action::Prompt { prompt, .. } if PROMPT_BYTES_MAX < prompt.len() => {
                return invalid("a prompt has at most 64 KiB");
            }
            Action::Prompt { prompt, .. } if prompt.trim().is_empty() => {
                return invalid("a prompt is not empty");
            }
            Action::Prompt { agent: name, .. } => {
                let agent = agent.ok_or_else(|| Refusal::UnknownAgent(name.clone()))?;
                if self.tier.is_some_and(|tier| tier < agent.tier) {
                    return Err(Refusal::TierTooLow { agent: name.clone(), min: agent.tier });
                }
            }
            Action::Tool { payload, .. } if PAYLOAD_BYTES_MAX < payload.len() => {
                return invalid("a payload has at most 64 KiB");
            }
            Action::Tool { tool, .. } => {
                let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
                if !(1..=128).contains(&tool.len()) || !tool.chars().all(is_plain) {
                    return invalid(
                        "the name of a tool has 1 to 128 of a-z, A-Z, 0-9, `.`, `_`, `-`",
                    );
                }
            }
        }
        self.calendar()
    }
}

impl Action {
    pub fn agent(&self) -> Option<&AgentName> {
        match self {
            Action::Prompt { agent, .. } => Some(agent),
            Action::Tool { .. } => None,
        }
    }
}

impl From<&Paused> for Pause {
    fn from(paused: &Paused) -> Pause {
        Pause { by: paused.by.clone(), note: paused.note.clone(), at: paused.at }
    }
}

/// Whether another run may be live.
pub(crate) fn check_room(terms: &Terms, progress: &Progress) -> Result<(), Refusal> {
    match progress.live.first() {
        Some(live) if terms.overlap.live_max() <= progress.live.len() => {
            Err(Refusal::Live(live.clone()))
        }
        _ => Ok(()),
    }
}

pub(crate) fn check_note(note: Option<&str>) -> Result<(), Refusal> {
    match note {
        Some(note) if NOTE_BYTES_MAX < note.len() => {
            Err(Refusal::Invalid("a note has at most 1024 bytes".to_owned()))
        }
        _ => Ok(()),
    }
}
