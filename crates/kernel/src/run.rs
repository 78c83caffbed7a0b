//! A run: one execution of a schedule's action, from the queue to its end.
//!
//! `queued → running → done / failed / cancelled / unknown`. A run that needs approval by policy is
//! parked until a human decides. A run is `running` from the commit before its effect, so after a crash
//! the effect of a running run may have happened. Recovery repeats the run only if it is repeatable;
//! otherwise the run ends `unknown` and a human settles it.
//!
//! Every start of a run increments its epoch. A process reports with the epoch of its start; reports
//! with an older epoch are refused.

mod decide;
mod event;
mod policy_request;

use std::ops::Not;

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::approval::{self, LapseReason, PreviousAttempt};
use crate::backend::Tier;
use crate::budget::{Charge, Reservation, Spent, Usage};
use crate::id::timed_id;
use crate::money::{Money, Price};
use crate::noun::NounState;
use crate::policy_decision::{DecisionContext, PolicyDecision};
use crate::schedule::{self, Definition, terms::Key};
use crate::sealable_text::SealableText;
use crate::time::Timestamp;
use crate::{ApprovalId, EventBody, ScheduleId};
pub use decide::{
    Command, Failure, FailureKind, RETRY_WAIT_US_MAX, Refusal, Report, RunContext, StartContext,
    decide, end_over_ask_limit, end_over_budget, finish, interrupt, recover, requeue, start,
};
pub(crate) use decide::{deny, refuse, replace, terminate};
pub use event::{
    BackfillSlot, Ended, Event, FiredSlot, Occurrence, Queued, Requeued, Retried, Settled, Started,
};
pub use policy_request::{
    LEASE_RULE, PolicyPreview, effective_tier, evaluate, last_request, preview, prompt_request,
    recorded_decision, recorded_facts, recorded_request,
};

timed_id!(RunId "run_" "run");

/// Output bytes that are stored in the run's row; the output file has all of them.
pub const OUTPUT_BYTES_MAX: usize = 16_384;
pub const MESSAGE_BYTES_MAX: usize = 1_024;
/// The cause code of a run that a caller cancelled.
const CANCELLED: &str = "cancelled";
/// The cause code of an attempt that was requeued before it did anything.
const NOT_BEGUN: &str = "not_begun";

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Run {
    pub schedule: ScheduleId,
    /// Revision of the schedule when the run was queued.
    pub revision: u32,
    /// Nominal instant; `None` for a manual run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slot: Option<Timestamp>,
    pub origin: Origin,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    pub priority: u8,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keys: Vec<Key>,
    /// Length of the chain of runs that triggered this one.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub depth: u32,
    pub queued_at: Timestamp,
    /// When the run was last requeued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued_again_at: Option<Timestamp>,
    pub state: State,
    /// Number of schedules that the run has added.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub schedules_made: u32,
    /// Number of attempts started.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub epoch: u32,
    /// Number of attempts that count towards the retry limit.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempt: u32,
    /// Attempts before the last manual retry.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub attempts_before: u32,
    /// Start of the last attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started_at: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub finished_at: Option<Timestamp>,
    /// Why the run ended as it did, or why it is retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// The pending cancel request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cancel: Option<CancelRequest>,
    /// The first outcome. It decides the slot's disposition, which later retries do not change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_outcome: Option<Outcome>,
    /// The last manual start or retry came from a caller below operator: an agent or an assistant.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub by_runner: bool,
    /// Who settled the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled_by: Option<String>,
    /// Note and time of the settlement; absent in older rows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub settled: Option<Settlement>,
    /// The pending or granted approval for the next attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approval: Option<ApprovalId>,
    /// The agent whose limit of pending approvals this run's approval counts towards.
    #[serde(rename = "asking", default, skip_serializing_if = "Option::is_none")]
    pub pending_ask_agent: Option<AgentName>,
    /// The last policy decision about the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<PolicyDecision>,
    /// The inputs of that decision.
    #[serde(rename = "circumstances", default, skip_serializing_if = "Option::is_none")]
    pub decision_context: Option<Box<DecisionContext>>,
    /// The first outcome was a refusal: policy or a human did not allow the start.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub refused: bool,
    /// What blocked the start at the first outcome, if neither policy nor a human did.
    #[serde(rename = "lacking", default, skip_serializing_if = "Option::is_none")]
    pub blocked_by: Option<StartBlocker>,
    /// The budget that the current attempt is counted in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    /// Sum over all attempts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// Tokens and money reserved for the current attempt.
    #[serde(rename = "hold", default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<Reservation>,
    /// Price of the last attempt.
    #[serde(default, skip_serializing_if = "Price::is_free")]
    pub price: Price,
    /// Sum over all attempts; an attempt that reported no usage costs its reservation.
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
}

/// Why a run could not start although neither policy nor a human denied it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StartBlocker {
    /// The lease has expired.
    Lease,
    /// The budget of the day is used up.
    Budget,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    Queued {
        /// Earliest start.
        from: Timestamp,
    },
    /// Waits for approval.
    Parked,
    Running {
        /// The process that executes the attempt.
        holder: String,
        /// Whether the attempt may be repeated after a crash.
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

/// What created a run. It is not part of the run's identity.
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

/// Why something ended: a stable code and a message for people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cause {
    pub code: String,
    pub message: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Output {
    /// The beginning of the output.
    pub text: SealableText,
    /// Length of the whole output.
    pub bytes: u64,
    /// The file with the whole output, if it is longer than `text`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CancelRequest {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

/// A human's statement of how a run with outcome `unknown` ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settlement {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

/// Returns the run after an event.
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
            run.decision_context = started.decision_context.clone();
            run.charge = started.charge.clone();
            (run.reservation, run.price) = (started.reservation.clone(), started.price);
        }
        Event::Retried(retried) => {
            run.add_spending(retried.spent.as_ref(), retried.released.as_ref());
            run.state = State::Queued { from: retried.from };
            run.charge = None;
            run.queued_again_at = Some(retried.at);
            run.attempt = run.attempt.saturating_sub(u32::from(retried.uncounted));
            // An attempt that did nothing does not hide how an earlier one ended.
            if !retried.did_nothing() || run.cause.is_none() {
                (run.cause, run.output) = (Some(retried.cause.clone()), retried.output.clone());
            }
        }
        Event::CancelRequested(cancel) => run.cancel = Some(cancel.clone()),
        Event::Ended(ended) => {
            run.add_spending(ended.spent.as_ref(), ended.released.as_ref());
            run.state = State::Ended(ended.outcome);
            if ended.refund.is_some() {
                run.charge = None;
            }
            (run.cause, run.output) = (ended.cause.clone(), ended.output.clone());
            run.finished_at = Some(ended.at);
            (run.approval, run.pending_ask_agent) = (None, None);
            if ended.ruling.is_some() {
                run.ruling = ended.ruling.clone();
                run.decision_context = ended.decision_context.clone();
            }
            if run.first_outcome.is_none() {
                (run.refused, run.blocked_by) = (ended.refused, ended.blocked_by);
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
            // The settlement replaces the cause of the unknown outcome.
            if settled.doubt.is_some() {
                run.cause = None;
                run.settled = Some(Settlement { note: settled.note.clone(), at: settled.at });
            }
        }
    }
    Some(run)
}

/// Returns the run after an event of its approval.
fn apply_approval_event(run: Option<Run>, id: &ApprovalId, event: &approval::Event) -> Option<Run> {
    let mut run = run?;
    match event {
        approval::Event::Requested(requested) => {
            run.state = State::Parked;
            (run.approval, run.ruling) = (Some(id.clone()), Some(requested.ruling.clone()));
            let facts = requested.facts.clone();
            run.decision_context = facts
                .map(|facts| Box::new(policy_request::decision_context(&requested.request, facts)));
            run.pending_ask_agent =
                requested.charge.as_ref().and_then(|charge| charge.agent.clone());
        }
        approval::Event::Decided(decided) if decided.decision.is_approved => {
            run.state = State::Queued { from: decided.decision.at };
            run.queued_again_at = Some(decided.decision.at);
            run.pending_ask_agent = None;
        }
        approval::Event::Decided(_) => run.pending_ask_agent = None,
        approval::Event::Assented(_) => {}
        approval::Event::Lapsed(lapsed) if lapsed.why == LapseReason::LeaseRenewed => {
            run.state = State::Queued { from: lapsed.at };
            run.queued_again_at = Some(lapsed.at);
            (run.approval, run.pending_ask_agent) = (None, None);
        }
        approval::Event::Consumed(_) | approval::Event::Lapsed(_) => {}
    }
    Some(run)
}

/// Returns the run after an event of a schedule that it added.
fn apply_schedule_event(run: Option<Run>, event: &schedule::Event) -> Option<Run> {
    let is_added = matches!(event, schedule::Event::Added(_));
    run.map(|run| Run { schedules_made: run.schedules_made + u32::from(is_added), ..run })
}

impl NounState for Run {
    type Id = RunId;

    fn apply(_: &str, run: Option<Run>, body: &EventBody) -> Option<Run> {
        match body {
            EventBody::Run(_, event) => apply(run, event),
            EventBody::Approval(id, event) => apply_approval_event(run, id, event),
            EventBody::Schedule(_, event) => apply_schedule_event(run, event),
            _ => run,
        }
    }

    /// Sort key of runs that need attention: from the daemon until they end, from a human while their
    /// outcome is unknown.
    fn due(&self) -> Option<Timestamp> {
        match &self.state {
            State::Queued { from } => Some(*from),
            State::Parked | State::Running { .. } => Some(self.queued_at),
            State::Ended(Outcome::Unknown) => self.finished_at,
            State::Ended(Outcome::Done | Outcome::Failed | Outcome::Cancelled) => None,
        }
    }

    /// Its schedule.
    fn index_key(&self) -> Option<String> {
        Some(self.schedule.to_string())
    }
}

impl Run {
    /// Since when the run waits in the queue. A clock that shows an earlier time was set back.
    pub fn waiting_since(&self) -> Timestamp {
        self.queued_again_at.unwrap_or(self.queued_at)
    }

    /// Attempts since the last manual retry.
    fn attempts_since_retry(&self) -> u32 {
        self.attempt.saturating_sub(self.attempts_before)
    }

    /// The last attempt that did something, if the run waits for another one.
    fn previous_attempt(&self) -> Option<PreviousAttempt> {
        let did_nothing = self.cause.as_ref().is_some_and(|cause| cause.code == NOT_BEGUN);
        let number = self.attempt.max(1);
        (0 < self.epoch && !did_nothing)
            .then(|| PreviousAttempt { number, cause: self.cause.clone() })
    }

    /// The most attempts, with those before the last manual retry.
    pub fn attempts_max(&self, definition: &Definition) -> u32 {
        // Older rows do not have the tier.
        let decided = self.decision_context.as_ref().map(|context| context.tier);
        let tier = decided.or(definition.tier).unwrap_or(Tier::ReadOnly);
        self.attempts_before.saturating_add(definition.terms.retry.attempts_max(tier))
    }

    /// Whether a human started or retried the run.
    fn is_requested_by_human(&self) -> bool {
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
            pending_ask_agent: None,
            ruling: None,
            decision_context: None,
            refused: false,
            blocked_by: None,
            charge: None,
            usage: None,
            reservation: None,
            price: Price::default(),
            cost: Money::ZERO,
        }
    }

    /// Adds what an attempt used. A reservation that is not released counts as spent.
    fn add_spending(&mut self, spent: Option<&Spent>, released: Option<&Reservation>) {
        if let Some(used) = spent.and_then(|spent| spent.usage) {
            self.usage = Some(self.usage.unwrap_or_default().plus(used));
        }
        let unreleased = self.reservation.take().filter(|_| released.is_none()).map(|it| it.money);
        let cost = spent.map(|spent| spent.cost).into_iter().chain(unreleased);
        self.cost = cost.fold(self.cost, Money::saturating_add);
    }

    /// Time in the queue before the first attempt; 0 once the row describes a later attempt.
    pub(crate) fn first_wait_us(&self) -> i64 {
        let started = self.started_at.filter(|_| self.epoch == 1);
        started.map_or(0, |at| at.as_micros().saturating_sub(self.queued_at.as_micros()).max(0))
    }

    /// Describes the state in a clause.
    pub fn summary(&self) -> String {
        let cause = self.cause.as_ref();
        let because = cause.map(|cause| format!(": {}", cause.message)).unwrap_or_default();
        let state = match &self.state {
            State::Queued { .. } if cause.is_some() => {
                format!("it waits for another attempt{because}")
            }
            State::Queued { .. } => "it is queued".to_owned(),
            State::Parked => "it waits for approval".to_owned(),
            State::Running { .. } => "it is running".to_owned(),
            State::Ended(Outcome::Done) => "it is done".to_owned(),
            State::Ended(outcome) if self.settled_by.is_some() => {
                format!("it ended {}", outcome.name())
            }
            State::Ended(Outcome::Failed) => format!("it failed{because}"),
            State::Ended(Outcome::Cancelled) => match cause {
                // Its message has the canceller and the note.
                Some(cause) if cause.code == CANCELLED => cause.message.clone(),
                _ => format!("it was cancelled{because}"),
            },
            State::Ended(Outcome::Unknown) => format!("its outcome is unknown{because}"),
        };
        let note = self.settled.as_ref().and_then(|settled| settled.note.as_ref());
        match &self.settled_by {
            Some(by) => {
                let note = note.map(|note| format!(": {note}")).unwrap_or_default();
                format!("{state}, settled by {by}{note}")
            }
            None => state,
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

    /// Whether a caller cancelled the run.
    pub(crate) fn is_cancel(&self) -> bool {
        self.code == CANCELLED
    }
}

fn is_zero(number: &u32) -> bool {
    *number == 0
}
