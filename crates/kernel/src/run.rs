//! A run: one execution of a schedule's action, from the queue to its end.
//!
//! `queued → running → done / failed / cancelled / unknown`. A run that the standing orders let begin
//! only with a human's approval waits for it; it is parked, and nobody works on it. A run is `running` from the commit that
//! precedes its effect: found so after a crash, its effect may have happened. It is repeated then only
//! if that does no harm, otherwise it ends `unknown` and a human says how it ended.
//!
//! Whoever works on a run carries its epoch, which grows with every claim; what an older epoch says is
//! refused.

mod decide;
mod decision;
mod event;

use std::ops::Not;

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::approval;
use crate::budget::{Charge, Hold, Spent, Usage};
use crate::id::{ApprovalId, ScheduleId};
use crate::money::{Money, Price};
use crate::ruling::{Circumstances, Ruling};
use crate::schedule::{self, terms::Key};
use crate::time::Timestamp;
use crate::wording::Wording;
pub use decide::{
    Command, Failure, Ground, Kind, Orders, Refusal, Report, WAIT_US_MAX, decide, finish,
    give_back, hush, interrupt, recover, start, starve,
};
pub(crate) use decide::{WATCH, deny, refuse, replace, terminate};
pub use decision::{
    Foretold, LEASE, asked_of, facts, foretell, judged, principal, prompting, requested, ruled,
    tier,
};
pub use event::{
    Ended, Event, Fill, Fired, Occurrence, Queued, Requeued, Retried, Settled, Started,
};

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
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Key>,
    /// Runs in a row that led to it, each by its end.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    pub queued_at: Timestamp,
    /// When it last came back into the queue.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_again_at: Option<Timestamp>,
    pub state: State,
    /// Schedules that it has added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub schedules_made: u32,
    /// Tries that were begun; grows with every claim.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u32,
    /// Tries that count.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Those of them before it was last asked for.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts_before: u32,
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
    /// It was an agent that asked for it last, by hand as it were.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub by_runner: bool,
    /// Who said how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
    /// What they said with it; absent in what was stored before that was kept.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settlement>,
    /// The question about its next try that is open or answered with yes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// Whose open questions it is among.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub asking: Option<AgentName>,
    /// What the standing orders said of it last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    /// What else they were told then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub circumstances: Option<Box<Circumstances>>,
    /// It ended the first time because the standing orders or a human did not let it begin.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub refused: bool,
    /// What it lacked then, if it was that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lacking: Option<Lack>,
    /// What its try is counted for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    /// Of all its tries together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// What is held back for its try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hold: Option<Hold>,
    /// Of its last try.
    #[serde(default, skip_serializing_if = "Price::is_free")]
    pub price: Price,
    /// Of all its tries together; what was held back, where nobody told.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
}

/// What a run lacks that is not let begin, though no rule and no human said no.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lack {
    /// The lease has run out.
    Lease,
    /// As many were begun today as may.
    Budget,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    Queued {
        /// Not before this.
        from: Timestamp,
    },
    /// It waits for a human.
    Parked,
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
    After,
    Event,
    Backfill,
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
    pub text: Wording,
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

/// What somebody said of a run of which nobody knew how it had ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
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
            (run.approval, run.ruling) = (None, started.ruling.clone());
            run.circumstances = started.circumstances.clone();
            run.charge = started.charge.clone();
            (run.hold, run.price) = (started.hold.clone(), started.price);
        }
        Event::Retried(retried) => {
            run.add(retried.spent.as_ref(), retried.frees.as_ref());
            run.state = State::Queued { from: retried.from };
            run.charge = None;
            run.queued_again_at = Some(retried.at);
            run.attempt = run.attempt.saturating_sub(u32::from(retried.uncounted));
            (run.cause, run.output) = (Some(retried.cause.clone()), retried.output.clone());
        }
        Event::CancelAsked(cancel) => run.cancel = Some(cancel.clone()),
        Event::Ended(ended) => {
            run.add(ended.spent.as_ref(), ended.frees.as_ref());
            run.state = State::Ended(ended.outcome);
            if ended.refund.is_some() {
                run.charge = None;
            }
            (run.cause, run.output) = (ended.cause.clone(), ended.output.clone());
            run.finished_at = Some(ended.at);
            (run.approval, run.asking) = (None, None);
            if ended.ruling.is_some() {
                run.ruling = ended.ruling.clone();
                run.circumstances = ended.circumstances.clone();
            }
            if run.first_outcome.is_none() {
                (run.refused, run.lacking) = (ended.refused, ended.lacking);
            }
            run.first_outcome = run.first_outcome.or(Some(ended.outcome));
        }
        Event::Requeued(requeued) => {
            run.state = State::Queued { from: requeued.at };
            run.queued_again_at = Some(requeued.at);
            (run.attempt, run.attempts_before) = (requeued.attempts, requeued.attempts);
            (run.cancel, run.finished_at) = (None, None);
            (run.settled_by, run.settled) = (None, None);
            run.by_runner = requeued.by_runner;
        }
        Event::Settled(settled) => {
            run.state = State::Ended(settled.outcome);
            run.settled_by = Some(settled.by.clone());
            // What somebody knows takes the place of why nobody knew.
            if settled.doubt.is_some() {
                run.cause = None;
                run.settled = Some(Settlement { note: settled.note.clone(), at: settled.at });
            }
        }
    }
    Some(run)
}

/// The run after something was said about its approval.
pub(crate) fn answered(run: Option<Run>, id: &ApprovalId, event: &approval::Event) -> Option<Run> {
    let mut run = run?;
    match event {
        approval::Event::Asked(asked) => {
            run.state = State::Parked;
            (run.approval, run.ruling) = (Some(id.clone()), Some(asked.ruling.clone()));
            let facts = asked.facts.clone();
            run.circumstances =
                facts.map(|facts| Box::new(decision::circumstances(&asked.request, facts)));
            run.asking = asked.charge.as_ref().and_then(|charge| charge.agent.clone());
        }
        approval::Event::Decided(decided) if decided.decision.is_approved => {
            run.state = State::Queued { from: decided.decision.at };
            run.queued_again_at = Some(decided.decision.at);
            run.asking = None;
        }
        approval::Event::Decided(_) => run.asking = None,
        approval::Event::Assented(_) => {}
        approval::Event::Consumed(_) | approval::Event::Lapsed(_) => {}
    }
    Some(run)
}

/// The run after it has added a schedule.
pub(crate) fn made(run: Option<Run>, event: &schedule::Event) -> Option<Run> {
    let is_added = matches!(event, schedule::Event::Added(_));
    run.map(|run| Run { schedules_made: run.schedules_made + u32::from(is_added), ..run })
}

impl Run {
    /// When it began to wait for its turn. A clock that shows less was set back.
    pub fn waits_since(&self) -> Timestamp {
        self.queued_again_at.unwrap_or(self.queued_at)
    }

    /// Tries since it was last asked for: so many of them may fail.
    fn tries(&self) -> u32 {
        self.attempt.saturating_sub(self.attempts_before)
    }

    /// A human wants it to be done: they have started it, or want it again.
    fn is_by_hand(&self) -> bool {
        !self.by_runner && (self.origin == Origin::Manual || self.first_outcome.is_some())
    }

    fn new(queued: &Queued) -> Run {
        let (slot, origin) = match &queued.occurrence {
            Occurrence::Slot(fired) => (Some(fired.nominal), fired.origin),
            Occurrence::Manual { .. } => (None, Origin::Manual),
            Occurrence::Backfill(fill) => (Some(fill.nominal), Origin::Backfill),
        };
        Run {
            schedule: queued.schedule.clone(),
            revision: queued.revision,
            slot,
            origin,
            agent: queued.agent.clone(),
            priority: queued.priority,
            keys: queued.keys.clone(),
            depth: queued.depth,
            queued_at: queued.at,
            queued_again_at: None,
            state: State::Queued { from: queued.at },
            schedules_made: 0,
            epoch: 0,
            attempt: 0,
            attempts_before: 0,
            started_at: None,
            finished_at: None,
            cause: None,
            output: None,
            cancel: None,
            first_outcome: None,
            by_runner: queued.by_runner,
            settled_by: None,
            settled: None,
            approval: None,
            asking: None,
            ruling: None,
            circumstances: None,
            refused: false,
            lacking: None,
            charge: None,
            usage: None,
            hold: None,
            price: Price::default(),
            cost: Money::ZERO,
        }
    }

    fn add(&mut self, spent: Option<&Spent>, frees: Option<&Hold>) {
        if let Some(used) = spent.and_then(|spent| spent.usage) {
            self.usage = Some(self.usage.unwrap_or_default().and(used));
        }
        let kept = self.hold.take().filter(|_| frees.is_none()).map(|hold| hold.money);
        let cost = spent.map(|spent| spent.cost).into_iter().chain(kept);
        self.cost = cost.fold(self.cost, Money::and);
    }

    /// When it is to be looked at: by the watch while it has not ended, by a human while nobody knows
    /// how it ended.
    pub fn due(&self) -> Option<Timestamp> {
        match &self.state {
            State::Queued { from } => Some(*from),
            State::Parked | State::Running { .. } => Some(self.queued_at),
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
            State::Parked => "it waits for a human's approval".to_owned(),
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
        let note = self.settled.as_ref().and_then(|settled| settled.note.as_ref());
        match &self.settled_by {
            Some(by) => {
                let note = note.map(|note| format!(": {note}")).unwrap_or_default();
                format!("{said}, as {by} says{note}")
            }
            None => said,
        }
    }
}

impl State {
    pub const fn name(&self) -> &'static str {
        match self {
            State::Queued { .. } => "queued",
            State::Parked => "waiting_permission",
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
            Origin::After => "after",
            Origin::Event => "event",
            Origin::Backfill => "backfill",
        }
    }
}

impl Cause {
    pub fn new(code: &str, message: &str) -> Cause {
        let end = message.floor_char_boundary(MESSAGE_BYTES_MAX);
        let message = message.get(..end).unwrap_or_default();
        Cause { code: code.to_owned(), message: message.to_owned() }
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
