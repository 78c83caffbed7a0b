//! A run: one execution of a schedule's action, from the queue to its end.
//!
//! `queued → running → done / failed / cancelled / unknown`. A run is `running` from the commit that
//! precedes its effect: found so after a crash, its effect may have happened. It is repeated then only
//! if that does no harm, otherwise it ends `unknown` and a human says how it ended.
//!
//! Whoever works on a run carries its epoch, which grows with every claim; what an older epoch says is
//! refused.

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::agent::{Agent, AgentName};
use crate::backend::Tier;
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::progress::{Ahead, Progress, Status};
use crate::schedule::{self, Action, Schedule, check_note, check_room};
use crate::slot;
use crate::time::Timestamp;

/// What is kept of a run's output beside the file that has all of it.
pub const OUTPUT_BYTES_MAX: usize = 16_384;
pub const MESSAGE_BYTES_MAX: usize = 1_024;
/// The code of a run that somebody cancelled.
const CANCELLED: &str = "cancelled";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub schedule: ScheduleId,
    /// Of the schedule, when the run was queued.
    pub revision: u32,
    /// The nominal instant; a run that was started by hand has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Timestamp>,
    pub origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub priority: u8,
    pub queued_at: Timestamp,
    pub state: State,
    /// Tries that were begun; grows with every claim.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u32,
    /// Tries that count: those since it was last asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Of the last try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Why it ended as it did, or is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// Somebody wants it to stop.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<Cancel>,
    /// How it ended the first time; that is what its slot says for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_outcome: Option<Outcome>,
    /// Who said how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    Queued {
        /// Not before this.
        from: Timestamp,
    },
    Running {
        /// The process that works on it.
        holder: String,
        /// Whether it may be begun again after a crash.
        repeatable: bool,
    },
    Ended(Outcome),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    Done,
    Failed,
    Cancelled,
    Unknown,
}

/// How a run came to be; no part of what makes it the same run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    Slot,
    CatchUp,
    Buffer,
    Manual,
}

/// A short code and a sentence.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The beginning.
    pub text: String,
    /// Of the whole.
    pub bytes: u64,
    /// Where the whole is, if that is more.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cancel {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Queued(Queued),
    Started(Started),
    Retried(Retried),
    CancelAsked(Cancel),
    Ended(Ended),
    Requeued(Requeued),
    Settled(Settled),
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Queued {
    pub schedule: ScheduleId,
    pub revision: u32,
    pub occurrence: Occurrence,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub priority: u8,
    pub at: Timestamp,
}

/// What makes two runs of a schedule the same run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum Occurrence {
    Slot(Fired),
    Manual { key: String },
}

/// A slot that fires.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fired {
    pub nominal: Timestamp,
    pub wall: String,
    pub origin: Origin,
    pub late_us: i64,
    pub ahead: Ahead,
}

/// It is about to do what it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Started {
    pub epoch: u32,
    pub attempt: u32,
    pub holder: String,
    pub repeatable: bool,
    pub tier: Tier,
    pub at: Timestamp,
}

/// A try has failed, or was cut off and may be repeated; another follows.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Retried {
    pub epoch: u32,
    pub cause: Cause,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    pub from: Timestamp,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    pub schedule: ScheduleId,
    pub outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    pub at: Timestamp,
}

/// Somebody wants it to be tried again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requeued {
    pub schedule: ScheduleId,
    pub by: String,
    pub at: Timestamp,
}

/// Somebody says how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settled {
    pub outcome: Outcome,
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Cancel { note: Option<String> },
    Retry,
    Settle { outcome: Outcome, note: Option<String> },
}

/// How a try ended, as the one who worked on it says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub result: Result<(), Failure>,
    pub output: Option<Output>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    /// Another try cannot help.
    pub is_permanent: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no run `{0}`")]
    Unknown(RunId),
    #[error("run `{id}` is {state}, and only a run that {needed} can be {done}")]
    Wrong { id: RunId, state: &'static str, needed: &'static str, done: &'static str },
    #[error("run `{0}` is another's by now")]
    Stale(RunId),
    #[error(transparent)]
    Schedule(#[from] schedule::Refusal),
}

/// A run and what belongs to it, when something about it is decided.
#[derive(Clone, Copy, Debug)]
pub struct Ground<'a> {
    pub id: &'a RunId,
    pub run: &'a Run,
    pub schedule: Option<&'a Schedule>,
    pub progress: Option<&'a Progress>,
    pub now: Timestamp,
}

/// Every rule about what people ask of a run. Nothing happens when it is so already.
pub fn decide(ground: Ground<'_>, actor: &Actor, command: Command) -> Result<Vec<Body>, Refusal> {
    if actor.role < Role::Operator {
        let needed = Role::Operator;
        return Err(schedule::Refusal::RoleTooLow { actor: actor.clone(), needed }.into());
    }
    let Ground { id, run, now, .. } = ground;
    let wrong = |needed, done| {
        Err(Refusal::Wrong { id: id.clone(), state: run.state.name(), needed, done })
    };
    let by = actor.name.clone();
    match (command, &run.state) {
        (Command::Cancel { note }, State::Queued { .. }) => {
            check_note(note.as_deref())?;
            let cause = cancelled_by(&by, note.as_deref());
            Ok(vec![ground.ended(Outcome::Cancelled, Some(cause), None)])
        }
        (Command::Cancel { note }, State::Running { .. }) => {
            check_note(note.as_deref())?;
            let cancel = Cancel { by, note, at: now };
            let is_new = run.cancel.is_none();
            Ok(is_new.then(|| ground.body(Event::CancelAsked(cancel))).into_iter().collect())
        }
        (Command::Cancel { .. }, State::Ended(_)) => Ok(Vec::new()),
        (Command::Retry, State::Ended(Outcome::Failed | Outcome::Cancelled)) => {
            let Some(schedule) = ground.schedule else {
                return Err(schedule::Refusal::Unknown(run.schedule.clone()).into());
            };
            if let Some(progress) = ground.progress {
                check_room(&schedule.definition.terms, progress)?;
            }
            let requeued = Requeued { schedule: run.schedule.clone(), by, at: now };
            Ok(vec![ground.body(Event::Requeued(requeued))])
        }
        (Command::Retry, _) => wrong("has failed or was cancelled", "tried again"),
        (Command::Settle { outcome: Outcome::Unknown, .. }, _) => {
            let said = "a run is settled as done, failed or cancelled".to_owned();
            Err(schedule::Refusal::Invalid(said).into())
        }
        (Command::Settle { outcome, note }, State::Ended(Outcome::Unknown)) => {
            check_note(note.as_deref())?;
            Ok(vec![ground.body(Event::Settled(Settled { outcome, by, note, at: now }))])
        }
        (Command::Settle { outcome, .. }, State::Ended(ended))
            if run.settled_by.is_some() && outcome == *ended =>
        {
            Ok(Vec::new())
        }
        (Command::Settle { .. }, _) => wrong("ended unknown", "settled"),
    }
}

/// Begins a try: from here on its effect may happen. A run that has nothing to do any more ends.
/// Nothing, if it is not to be begun.
pub fn start(ground: Ground<'_>, agent: Option<&Agent>, holder: &str) -> Vec<Body> {
    let Ground { run, now, .. } = ground;
    match run.state {
        State::Queued { from } if from <= now => {}
        State::Queued { .. } | State::Running { .. } | State::Ended(_) => return Vec::new(),
    }
    let Some(schedule) = ground.schedule else {
        let cause = Cause::new("schedule_removed", "its schedule was removed before it began");
        return vec![ground.ended(Outcome::Cancelled, Some(cause), None)];
    };
    let (tier, repeatable) = match (&schedule.definition.action, agent) {
        (Action::Prompt { .. }, Some(agent)) => {
            (schedule.definition.tier.unwrap_or(agent.tier).max(agent.tier), agent.is_repeatable())
        }
        (Action::Prompt { agent, .. }, None) => {
            let cause = Cause::new("agent_missing", &format!("there is no agent `{agent}`"));
            return ground.failed(cause, None);
        }
        (Action::Tool { tool, .. }, _) => {
            let cause = Cause::new("tool_missing", &format!("there is no tool `{tool}` yet"));
            return ground.failed(cause, None);
        }
    };
    vec![ground.body(Event::Started(Started {
        epoch: run.epoch + 1,
        attempt: run.attempt + 1,
        holder: holder.to_owned(),
        repeatable: repeatable && tier < Tier::External,
        tier,
        at: now,
    }))]
}

/// What a report leads to. `epoch` is that of the try which it is about.
pub fn finish(
    ground: Ground<'_>,
    epoch: u32,
    report: Report,
    random: u64,
) -> Result<Vec<Body>, Refusal> {
    let Ground { run, now, .. } = ground;
    ground.check_held(epoch)?;
    let report = report.within_limits();
    // Cancel wins unless the end was committed first.
    if let Some(cancel) = &run.cancel {
        let cause = cancelled_by(&cancel.by, cancel.note.as_deref());
        return Ok(vec![ground.ended(Outcome::Cancelled, Some(cause), report.output)]);
    }
    let failure = match report.result {
        Ok(()) => return Ok(vec![ground.ended(Outcome::Done, None, report.output)]),
        Err(failure) => failure,
    };
    let retry = ground.schedule.map(|schedule| schedule.definition.terms.retry);
    match retry.filter(|retry| !failure.is_permanent && run.attempt < retry.attempts) {
        Some(retry) => Ok(vec![ground.body(Event::Retried(Retried {
            epoch,
            cause: failure.cause,
            output: report.output,
            from: Timestamp::from_micros(
                now.as_micros().saturating_add(retry.delay_us(run.attempt, random)),
            ),
            at: now,
        }))]),
        None => Ok(ground.failed(failure.cause, report.output)),
    }
}

/// Puts back a run that its holder has begun and then done nothing about.
pub fn give_back(ground: Ground<'_>, holder: &str) -> Vec<Body> {
    let Ground { run, now, .. } = ground;
    match &run.state {
        State::Running { holder: held_by, .. } if held_by == holder => {
            let cause = Cause::new("not_begun", "it was given back before anything was done");
            let (epoch, output) = (run.epoch, None);
            vec![ground.body(Event::Retried(Retried { epoch, cause, output, from: now, at: now }))]
        }
        State::Queued { .. } | State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// What becomes of a try that its own process had to break off.
pub fn interrupt(ground: Ground<'_>, epoch: u32) -> Result<Vec<Body>, Refusal> {
    ground.check_held(epoch)?;
    Ok(recover(ground))
}

/// What becomes of a run that a process has left behind. Nothing, if it was not at work on it.
pub fn recover(ground: Ground<'_>) -> Vec<Body> {
    let Ground { run, now, .. } = ground;
    let State::Running { repeatable, .. } = run.state else { return Vec::new() };
    if !repeatable {
        let cause = Cause::new(
            "interrupted",
            "it was cut off after it had begun; whether it took effect is not known",
        );
        return vec![ground.ended(Outcome::Unknown, Some(cause), None)];
    }
    if let Some(cancel) = &run.cancel {
        let cause = cancelled_by(&cancel.by, cancel.note.as_deref());
        return vec![ground.ended(Outcome::Cancelled, Some(cause), None)];
    }
    // It may be what brings the watch down.
    let retry = ground.schedule.map(|schedule| schedule.definition.terms.retry);
    if retry.is_some_and(|retry| retry.attempts <= run.attempt) {
        let cause = Cause::new("interrupted", "it was cut off as often as it may be tried");
        return ground.failed(cause, None);
    }
    let cause = Cause::new("interrupted", "it was cut off, and may be done twice");
    let epoch = run.epoch;
    vec![ground.body(Event::Retried(Retried { epoch, cause, output: None, from: now, at: now }))]
}

/// The run after an event.
pub fn apply(run: Option<Run>, event: &Event) -> Option<Run> {
    if let Event::Queued(queued) = event {
        return Some(Run::new(queued));
    }
    let mut run = run?;
    match event {
        Event::Queued(_) => {}
        Event::Started(started) => {
            let Started { epoch, attempt, holder, repeatable, at, .. } = started;
            (run.epoch, run.attempt, run.started_at) = (*epoch, *attempt, Some(*at));
            run.state = State::Running { holder: holder.clone(), repeatable: *repeatable };
        }
        Event::Retried(retried) => {
            run.state = State::Queued { from: retried.from };
            (run.cause, run.output) = (Some(retried.cause.clone()), retried.output.clone());
        }
        Event::CancelAsked(cancel) => run.cancel = Some(cancel.clone()),
        Event::Ended(ended) => {
            run.state = State::Ended(ended.outcome);
            (run.cause, run.output) = (ended.cause.clone(), ended.output.clone());
            run.finished_at = Some(ended.at);
            run.first_outcome = run.first_outcome.or(Some(ended.outcome));
        }
        Event::Requeued(requeued) => {
            run.state = State::Queued { from: requeued.at };
            (run.attempt, run.cancel, run.finished_at) = (0, None, None);
            run.settled_by = None;
        }
        Event::Settled(settled) => {
            run.state = State::Ended(settled.outcome);
            run.settled_by = Some(settled.by.clone());
        }
    }
    Some(run)
}

impl Queued {
    /// Whether it is for a slot that was known before.
    pub fn has_waited(&self) -> bool {
        matches!(&self.occurrence, Occurrence::Slot(fired) if fired.origin == Origin::Buffer)
    }

    /// The row of what it stands for; there is at most one run for each.
    pub fn slot_key(&self) -> String {
        match &self.occurrence {
            Occurrence::Slot(fired) => slot::key(&self.schedule, fired.nominal),
            Occurrence::Manual { key } => slot::manual_key(&self.schedule, key),
        }
    }
}

impl Run {
    fn new(queued: &Queued) -> Run {
        let (slot, origin) = match &queued.occurrence {
            Occurrence::Slot(fired) => (Some(fired.nominal), fired.origin),
            Occurrence::Manual { .. } => (None, Origin::Manual),
        };
        Run {
            schedule: queued.schedule.clone(),
            revision: queued.revision,
            slot,
            origin,
            agent: queued.agent.clone(),
            priority: queued.priority,
            queued_at: queued.at,
            state: State::Queued { from: queued.at },
            epoch: 0,
            attempt: 0,
            started_at: None,
            finished_at: None,
            cause: None,
            output: None,
            cancel: None,
            first_outcome: None,
            settled_by: None,
        }
    }

    /// When it is to be looked at: by the watch while it has not ended, by a human while nobody knows
    /// how it ended.
    pub fn due(&self) -> Option<Timestamp> {
        match &self.state {
            State::Queued { from } => Some(*from),
            State::Running { .. } => Some(self.started_at.unwrap_or(self.queued_at)),
            State::Ended(Outcome::Unknown) => self.finished_at,
            State::Ended(Outcome::Done | Outcome::Failed | Outcome::Cancelled) => None,
        }
    }

    /// How long it waited for its first try, as far as the row still says.
    pub(crate) fn queued_us(&self) -> i64 {
        let started = self.started_at.filter(|_| self.epoch == 1);
        started.map_or(0, |at| at.as_micros().saturating_sub(self.queued_at.as_micros()).max(0))
    }

    /// How it stands, in a clause.
    pub fn summary(&self) -> String {
        let cause = self.cause.as_ref();
        let because = cause.map(|cause| format!(": {}", cause.message)).unwrap_or_default();
        let said = match &self.state {
            State::Queued { .. } if cause.is_some() => {
                format!("it waits for another try{because}")
            }
            State::Queued { .. } => "it is queued".to_owned(),
            State::Running { .. } => "it is running".to_owned(),
            State::Ended(Outcome::Done) => "it is done".to_owned(),
            State::Ended(outcome) if self.settled_by.is_some() => {
                format!("it ended {}", outcome.name())
            }
            State::Ended(Outcome::Failed) => format!("it failed{because}"),
            State::Ended(Outcome::Cancelled) => match cause {
                // Which says who did, and why.
                Some(cause) if cause.code == CANCELLED => cause.message.clone(),
                _ => format!("it was cancelled{because}"),
            },
            State::Ended(Outcome::Unknown) => format!("nobody knows how it ended{because}"),
        };
        match &self.settled_by {
            Some(by) => format!("{said}, as {by} says"),
            None => said,
        }
    }
}

impl State {
    pub const fn name(&self) -> &'static str {
        match self {
            State::Queued { .. } => "queued",
            State::Running { .. } => "running",
            State::Ended(outcome) => outcome.name(),
        }
    }
}

impl Outcome {
    pub const fn name(self) -> &'static str {
        match self {
            Outcome::Done => "done",
            Outcome::Failed => "failed",
            Outcome::Cancelled => "cancelled",
            Outcome::Unknown => "unknown",
        }
    }
}

impl Origin {
    pub const fn name(self) -> &'static str {
        match self {
            Origin::Slot => "slot",
            Origin::CatchUp => "catch_up",
            Origin::Buffer => "buffer",
            Origin::Manual => "manual",
        }
    }
}

impl Report {
    /// Whoever works on a run may say too much.
    fn within_limits(self) -> Report {
        let shorten = |cause: Cause| Cause::new(&cause.code, &cause.message);
        let result =
            self.result.map_err(|failure| Failure { cause: shorten(failure.cause), ..failure });
        let output = self.output.map(|mut output| {
            output.text.truncate(output.text.floor_char_boundary(OUTPUT_BYTES_MAX));
            output
        });
        Report { result, output }
    }
}

impl Cause {
    pub fn new(code: &str, message: &str) -> Cause {
        let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
        let message = message.get(..end).unwrap_or_default();
        Cause { code: code.to_owned(), message: message.to_owned() }
    }
}

impl Ground<'_> {
    /// Refuses what is said of another try than the one at work.
    fn check_held(&self, epoch: u32) -> Result<(), Refusal> {
        let is_at_work = matches!(self.run.state, State::Running { .. });
        match is_at_work && self.run.epoch == epoch {
            true => Ok(()),
            false => Err(Refusal::Stale(self.id.clone())),
        }
    }

    fn body(&self, event: Event) -> Body {
        Body::Run(self.id.clone(), event)
    }

    fn ended(&self, outcome: Outcome, cause: Option<Cause>, output: Option<Output>) -> Body {
        let schedule = self.run.schedule.clone();
        self.body(Event::Ended(Ended { schedule, outcome, cause, output, at: self.now }))
    }

    /// It has failed for good, and with it perhaps the schedule.
    fn failed(&self, cause: Cause, output: Option<Output>) -> Vec<Body> {
        let ended = self.ended(Outcome::Failed, Some(cause), output);
        [ended].into_iter().chain(self.pause_after_failures()).collect()
    }

    /// Stops a schedule that only burns money.
    fn pause_after_failures(&self) -> Option<Body> {
        let limit = self.schedule?.definition.terms.pause_after;
        let progress = self.progress.filter(|progress| progress.status == Status::Active)?;
        let failures = progress.failures + 1;
        (0 < limit && limit <= failures).then(|| {
            let note = match failures {
                1 => "the last run failed".to_owned(),
                _ => format!("the last {failures} runs failed"),
            };
            let paused =
                schedule::Paused { by: "midwatch".to_owned(), note: Some(note), at: self.now };
            Body::Schedule(self.run.schedule.clone(), schedule::Event::Paused(paused))
        })
    }
}

fn cancelled_by(by: &str, note: Option<&str>) -> Cause {
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    Cause::new(CANCELLED, &format!("{by} cancelled it{note}"))
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
