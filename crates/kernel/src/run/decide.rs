//! Rules about runs: which commands are allowed, and what each attempt leads to.

use calendar::Calendar;

use super::event::{Ended, Event, Requeued, Retried, Settled, Started};
use super::policy_request::{Work, decision_context, evaluate};
use super::{
    CANCELLED, CancelRequest, Cause, NOT_BEGUN, OUTPUT_BYTES_MAX, Outcome, Output, Run,
    StartBlocker, State,
};
use crate::actor::{Actor, Role};
use crate::agent::Agent;
use crate::approval::{
    self, APPROVE_WITHIN_US, Approval, Consumed, Decision, ExecutionFingerprint, Hashes,
    LapseReason, Lapsed, NotCovered, Plan, Preflight, Requested,
};
use crate::authority::{Authority, Lease, LeaseState};
use crate::backend::Tier;
use crate::budget::{Charge, Limits, Reservation, Spent, Usage, charge_for, day, expected_use};
use crate::counter::Counter;
use crate::policy_decision::{DecisionContext, Details, PolicyDecision, Request, Verdict};
use crate::posture::Trust;
use crate::principal::{Principal, SYSTEM_NAME};
use crate::progress::{Progress, Status};
use crate::schedule::terms::Retry;
use crate::schedule::trigger::Since;
use crate::schedule::{self, Action, Definition, Moved, MovedWhy, check_note, check_overlap};
use crate::tick::Tick;
use crate::time::Timestamp;
use crate::tool::ToolCall;
use crate::{ApprovalId, EventBody, RunId};

const REPLACED: &str = "a newer slot replaced it";
/// Longest wait before a retry that an agent can ask for.
pub const RETRY_WAIT_US_MAX: i64 = 60 * 60 * 1_000_000;
/// How long after its start a tool call may be repeated. The response to its idempotency key is stored for
/// a week; after that a repeated call could take effect twice.
const TOOL_CALL_REPEAT_US_MAX: i64 = 6 * 86_400 * 1_000_000;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    Cancel { note: Option<String> },
    Retry,
    Settle { outcome: Outcome, note: Option<String> },
}

/// How an attempt ended, as the backend reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    pub result: Result<(), Failure>,
    pub output: Option<Output>,
    pub usage: Option<Usage>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    pub cause: Cause,
    pub kind: FailureKind,
}

/// Whether a failed attempt may have taken effect, and whether a retry can help.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FailureKind {
    /// It had no effect, and a retry may help, after `wait_us` at the earliest.
    Transient { wait_us: i64 },
    /// A retry cannot help.
    Permanent,
    /// The provider demands payment: neither a retry nor the next run can help.
    PaymentRequired,
    /// It took effect and still failed: a retry would repeat the effect.
    Delivered,
    /// Whether it took effect is unknown.
    Indeterminate,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("run `{0}` does not exist")]
    Unknown(RunId),
    #[error("run `{id}` is {state}; only a run that {needed} can be {done}")]
    Wrong { id: RunId, state: &'static str, needed: &'static str, done: &'static str },
    #[error("run `{0}` has a newer attempt")]
    Stale(RunId),
    #[error(transparent)]
    Schedule(#[from] schedule::Refusal),
}

/// The rows that a decision about a run depends on.
#[derive(Clone, Copy, Debug)]
pub struct RunContext<'a> {
    pub id: &'a RunId,
    pub run: &'a Run,
    pub definition: Option<&'a Definition>,
    pub progress: Option<&'a Progress>,
    pub now: Timestamp,
}

/// What the decision to start a run depends on, besides the rows of [`RunContext`].
#[expect(missing_debug_implementations, reason = "it is mostly functions")]
pub struct StartContext<'a> {
    /// Id of the installation.
    pub instance: &'a str,
    /// Id of the data directory, if the ledger is stored in it.
    pub data_directory: Option<&'a str>,
    pub authority: &'a Authority,
    pub lease: Lease,
    /// The system clock; the ledger may be ahead of it.
    pub clock: Timestamp,
    pub evaluate: &'a dyn Fn(&Request) -> PolicyDecision,
    pub hash_plan: &'a dyn Fn(&Plan) -> Hashes,
    /// The approval that the run refers to.
    pub approval: Option<&'a Approval>,
    /// Whether a decision about the approval has a signature that is valid now.
    pub is_signed: &'a dyn Fn(&Decision) -> bool,
    pub new_approval: &'a dyn Fn() -> ApprovalId,
    /// Authors of the schedule.
    pub authors: &'a [Principal],
    pub limits: &'a Limits,
    /// The tool call of the schedule, or why it cannot be made; `None` for a prompt.
    pub tool_call: Option<&'a Result<ToolCall, Cause>>,
    /// Budget counters that the caller has read.
    pub counters: &'a [(Counter, i64)],
    /// What posture and flags allow.
    pub trust: Trust,
    /// The details of an agent that rules can match.
    pub agent_details: &'a dyn Fn(&Agent) -> Details,
    /// Result of the preflight check. Without one, no approval is requested or used.
    pub preflight: Option<&'a Preflight>,
    /// Other approvals for runs of the schedule.
    pub other_approvals: &'a [(&'a ApprovalId, &'a Approval)],
}

/// Decides a command about a run. Returns no events if the run is already in the requested state.
pub fn decide(
    context: RunContext<'_>,
    actor: &Actor,
    command: Command,
) -> Result<Vec<EventBody>, Refusal> {
    let is_for_people = matches!(command, Command::Settle { .. });
    if actor.role < Role::Operator && (is_for_people || !actor.is_assistant()) {
        let needed = Role::Operator;
        return Err(schedule::Refusal::RoleTooLow { actor: actor.clone(), needed }.into());
    }
    let RunContext { id, run, now, .. } = context;
    let wrong = |needed, done| {
        Err(Refusal::Wrong { id: id.clone(), state: run.state.name(), needed, done })
    };
    let by = actor.name().to_owned();
    match (command, &run.state) {
        (Command::Cancel { note }, State::Queued { .. } | State::Parked) => {
            check_note(note.as_deref())?;
            Ok(context.cancel_unstarted(cancelled_by(&by, note.as_deref())))
        }
        (Command::Cancel { note }, State::Running { .. }) => {
            check_note(note.as_deref())?;
            let cancel = CancelRequest { by, note, at: now };
            let is_new = run.cancel.is_none();
            Ok(is_new.then(|| context.event(Event::CancelRequested(cancel))).into_iter().collect())
        }
        (Command::Cancel { .. }, State::Ended(Outcome::Cancelled)) => Ok(Vec::new()),
        (Command::Cancel { .. }, State::Ended(_)) => wrong("has not ended", "cancelled"),
        (Command::Retry, State::Ended(Outcome::Failed | Outcome::Cancelled)) => {
            let Some(definition) = context.definition else {
                return Err(schedule::Refusal::Unknown(run.schedule.clone()).into());
            };
            if let Some(progress) = context.progress {
                check_overlap(&definition.terms, progress)?;
            }
            let (schedule, by_runner) = (run.schedule.clone(), actor.role < Role::Operator);
            let requeued = Requeued { schedule, by, by_runner, attempts: run.attempt, at: now };
            Ok(vec![context.event(Event::Requeued(requeued))])
        }
        (Command::Retry, _) => wrong("failed or was cancelled", "retried"),
        (Command::Settle { outcome: Outcome::Unknown, .. }, _) => {
            let what = "a run is settled as done, failed or cancelled";
            let hint = "check what the run did, then settle it with the outcome that you see";
            Err(schedule::Refusal::invalid(what, hint).into())
        }
        (Command::Settle { outcome, note }, State::Ended(Outcome::Unknown)) => {
            check_note(note.as_deref())?;
            let doubt = run.cause.as_ref().map_or(run.state.name(), |cause| &cause.code);
            let doubt = Some(doubt.to_owned());
            Ok(vec![context.event(Event::Settled(Settled { outcome, by, note, doubt, at: now }))])
        }
        (Command::Settle { outcome, .. }, State::Ended(ended))
            if run.settled_by.is_some() && outcome == *ended =>
        {
            Ok(Vec::new())
        }
        (Command::Settle { .. }, _) => wrong("ended unknown", "settled"),
    }
}

/// Starts an attempt: from its commit on, the effect may happen. A run that has nothing left to do ends.
/// Returns no events if the run must not start now. `clock` may be behind `now`, which follows the ledger.
pub fn start(
    context: RunContext<'_>,
    agent: Option<&Agent>,
    holder: &str,
    start_context: &StartContext<'_>,
    clock: Timestamp,
) -> Vec<EventBody> {
    let RunContext { run, now, .. } = context;
    match run.state {
        // A clock that was set back does not make the run wait a second time.
        State::Queued { from } if from <= now || clock < run.waiting_since() => {}
        State::Queued { .. } | State::Parked | State::Running { .. } | State::Ended(_) => {
            return Vec::new();
        }
    }
    if start_context.authority.frozen.is_some() {
        return Vec::new();
    }
    let Some(definition) = context.definition else {
        let what = "its schedule was removed before it started";
        return context.cancel_unstarted(Cause::new("schedule_removed", what));
    };
    // A run starts only with the agent that it was queued for.
    let agent = agent.filter(|agent| run.agent.as_ref() == Some(&agent.name));
    let work = match Work::of(&run.schedule, definition, agent, start_context) {
        Ok(work) => work,
        Err(cause) => return context.fail(cause, AttemptRecord::default()),
    };
    let (agent, tier) = (work.agent(), work.tier);
    let name = agent.map(|agent| &agent.name);
    let facts = start_context.facts(run, definition, &work, now);
    let ruling = evaluate(&work.request, facts.lease, start_context.evaluate);
    let decision_context = Some(Box::new(decision_context(&work.request, facts.clone())));
    let evaluated =
        |ruling| Some(EvaluatedPolicy { ruling, tier, decision_context: decision_context.clone() });
    if facts.lease == LeaseState::Paused {
        return context.end_without_lease(evaluated(ruling));
    }
    let plan = |ruling: &PolicyDecision, fingerprint: &Option<ExecutionFingerprint>| Plan {
        instance: start_context.instance.to_owned(),
        data_directory: start_context.data_directory.map(str::to_owned),
        run: context.id.clone(),
        schedule: run.schedule.clone(),
        revision: context.progress.map_or(run.revision, |progress| progress.revision),
        attempt: run.attempt + 1,
        previous: run.previous_attempt(),
        agent: name.cloned(),
        backend: agent.map(|agent| agent.backend.clone()),
        credential: agent.and_then(|agent| agent.credential.clone()),
        tool: work.planned_tool(),
        prompt: work.text.clone(),
        tier,
        policy: ruling.policy.clone(),
        fingerprint: fingerprint.clone(),
    };
    let started = |ruling: PolicyDecision| {
        context.event(Event::Started(Started {
            epoch: run.epoch + 1,
            attempt: run.attempt + 1,
            holder: holder.to_owned(),
            repeatable: work.is_repeatable(),
            tier,
            ruling: Some(ruling),
            decision_context: decision_context.clone(),
            charge: charge_for(name, tier, now),
            reservation: agent
                .and_then(|agent| context.reserve(definition, agent, start_context.limits)),
            price: agent.map(|agent| agent.price).unwrap_or_default(),
            at: now,
        }))
    };
    let preflight = match (ruling.verdict, start_context.preflight) {
        (Verdict::Ask, None) => return Vec::new(),
        (_, preflight) => preflight.unwrap_or(&Ok(None)),
    };
    match (ruling.verdict, &run.approval) {
        (Verdict::Deny, _) => {
            let by = ruling.rules.first().map(|rule| format!(": `{rule}`")).unwrap_or_default();
            let cause = Cause::new("refused", &format!("denied by policy{by}"));
            context.refuse(cause, evaluated(ruling), Some(LapseReason::RunEnded))
        }
        (Verdict::Allow, None) => vec![started(ruling)],
        (Verdict::Allow, Some(_)) => context
            .lapse_approval(LapseReason::NotNeeded)
            .into_iter()
            .chain([started(ruling)])
            .collect(),
        (Verdict::Ask, None) => {
            // No approval is requested for a run that cannot execute.
            let fingerprint = match preflight {
                Ok(fingerprint) => fingerprint,
                Err(cause) => return context.fail(cause.clone(), AttemptRecord::default()),
            };
            let plan = plan(&ruling, fingerprint);
            let hashes = (start_context.hash_plan)(&plan);
            if let Some(agent) = agent.filter(|it| it.is_silenced() && !run.is_requested_by_human())
            {
                let what = format!(
                    "the last {} approval requests for agent `{}` were denied",
                    agent.denials, agent.name
                );
                let cause = Cause::new("denied_often", &what);
                return context.refuse(cause, evaluated(ruling), None);
            }
            if context.was_denied_recently(&hashes.action, start_context.limits.denied_for_us) {
                let cause = Cause::new("denied_before", "a human denied the same action before");
                return context.refuse(cause, evaluated(ruling), None);
            }
            if let Some(cause) = start_context.same_pending_approval(&hashes.action, now) {
                return context.refuse(cause, evaluated(ruling), None);
            }
            let requested = Requested {
                plan,
                plan_hash: hashes.plan,
                action_hash: Some(hashes.action),
                request: work.request.clone(),
                facts: Some(facts),
                ruling,
                authors: start_context.authors.to_vec(),
                agent_authors: agent.map(Agent::authors).unwrap_or_default(),
                charge: name.map(|name| Charge { agent: Some(name.clone()), day: day(now) }),
                approve_by: now.after_us(APPROVE_WITHIN_US),
                at: now,
            };
            vec![EventBody::Approval(
                (start_context.new_approval)(),
                approval::Event::Requested(Box::new(requested)),
            )]
        }
        (Verdict::Ask, Some(id)) => {
            let covered = match (start_context.approval, preflight) {
                (Some(approval), Ok(fingerprint)) => {
                    let plan = plan(&ruling, fingerprint);
                    let hash = (start_context.hash_plan)(&plan).plan;
                    approval.check_covers((&plan, &hash), start_context.is_signed, now)
                }
                (Some(_), Err(cause)) => Err(NotCovered::impossible(cause)),
                (None, _) => Err(NotCovered {
                    why: LapseReason::RunEnded,
                    cause: Cause::new("refused", "its approval does not exist"),
                    changed: Vec::new(),
                }),
            };
            match covered {
                Ok(()) => {
                    let (run, epoch) = (context.id.clone(), run.epoch + 1);
                    let consumed = approval::Event::Consumed(Consumed { run, epoch, at: now });
                    vec![EventBody::Approval(id.clone(), consumed), started(ruling)]
                }
                Err(NotCovered { why, cause, changed }) => {
                    let lapsed = context.lapse_approval_changed(why, changed);
                    let ended = context.refuse(cause, evaluated(ruling), None);
                    lapsed.into_iter().chain(ended).collect()
                }
            }
        }
    }
}

/// Ends a queued run that cannot start because a budget of the day is used up. The slots of the next minutes
/// are skipped with it, as one range.
pub fn end_over_budget(context: RunContext<'_>, what: &str) -> Vec<EventBody> {
    match context.run.state {
        State::Queued { .. } => {
            let ended = context.not_started(Cause::new("budget_used_up", what), None);
            let ended = context.blocked_by(StartBlocker::Budget, ended);
            let ended = context.end_unstarted(Some(LapseReason::RunEnded), ended).into_iter();
            ended.chain(context.skip_over_budget()).collect()
        }
        State::Parked | State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Ends a queued run whose agent has reached its limit of approval requests.
pub fn end_over_ask_limit(context: RunContext<'_>, what: &str) -> Vec<EventBody> {
    match context.run.state {
        State::Queued { .. } => {
            context.refuse(Cause::new("asked_too_much", what), None, Some(LapseReason::RunEnded))
        }
        State::Parked | State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Ends a run that a human denied, and records the denied action.
pub(crate) fn deny(
    context: RunContext<'_>,
    cause: Cause,
    action: Option<String>,
) -> Vec<EventBody> {
    match context.run.state {
        State::Parked | State::Queued { .. } => {
            let ended = context.not_started(cause, None);
            context.end_unstarted(None, Ended { denied: action, ..ended })
        }
        State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Ends a run whose approval was not granted.
pub(crate) fn refuse(context: RunContext<'_>, cause: Cause) -> Vec<EventBody> {
    match context.run.state {
        State::Parked | State::Queued { .. } => context.refuse(cause, None, None),
        State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Decides what the report of an attempt leads to. `epoch` is the epoch of that attempt.
pub fn finish(
    context: RunContext<'_>,
    epoch: u32,
    report: Report,
    random: u64,
) -> Result<Vec<EventBody>, Refusal> {
    let RunContext { run, now, .. } = context;
    context.check_epoch(epoch)?;
    let Report { result, output, usage } = report.within_limits();
    let is_known = match &result {
        Ok(()) => true,
        Err(Failure {
            kind:
                FailureKind::Transient { .. } | FailureKind::Permanent | FailureKind::PaymentRequired,
            ..
        }) => run.cancel.is_none(),
        Err(Failure { kind: FailureKind::Delivered | FailureKind::Indeterminate, .. }) => false,
    };
    let record = match is_known || usage.is_some() {
        true => AttemptRecord {
            output,
            spent: context.spending(usage),
            released: run.reservation.clone(),
            refund: None,
        },
        false => AttemptRecord { output, ..AttemptRecord::default() },
    };
    // A cancel wins unless the end was committed first.
    if let Some(cancel) = &run.cancel {
        let cause = cancel.cause();
        return Ok(context.end(Outcome::Cancelled, Some(cause), record));
    }
    let Failure { cause, kind } = match result {
        Ok(()) => return Ok(context.end(Outcome::Done, None, record)),
        Err(failure) => failure,
    };
    let may_repeat = matches!(run.state, State::Running { repeatable: true, .. });
    let wait_us = match kind {
        FailureKind::Transient { wait_us } => Some(wait_us.clamp(0, RETRY_WAIT_US_MAX)),
        FailureKind::Delivered | FailureKind::Indeterminate if may_repeat => Some(0),
        FailureKind::Indeterminate => {
            return Ok(context.end(Outcome::Unknown, Some(cause), record));
        }
        FailureKind::Delivered | FailureKind::Permanent => None,
        FailureKind::PaymentRequired => return Ok(context.fail_unpaid(cause, record)),
    };
    match context.retry_left().zip(wait_us) {
        Some((retry, wait_us)) => Ok(vec![context.event(Event::Retried(Retried {
            epoch,
            cause,
            output: record.output,
            uncounted: false,
            refund: None,
            spent: record.spent,
            released: record.released,
            from: now.after_us(retry.delay_us(run.attempts_since_retry(), random).max(wait_us)),
            at: now,
        }))]),
        None => Ok(context.fail(cause, record)),
    }
}

/// Requeues a run that its holder has started but not executed. The attempt does not count.
pub fn requeue(context: RunContext<'_>, holder: &str) -> Vec<EventBody> {
    let run = context.run;
    match &run.state {
        State::Running { holder: held_by, .. } if held_by == holder && run.cancel.is_some() => {
            let (refund, released) = (run.charge.clone(), run.reservation.clone());
            let record = AttemptRecord { refund, released, ..AttemptRecord::default() };
            context.end(Outcome::Cancelled, run.cancel.as_ref().map(CancelRequest::cause), record)
        }
        State::Running { holder: held_by, .. } if held_by == holder => {
            let cause = Cause::new(NOT_BEGUN, "requeued before the attempt did anything");
            vec![context.retry_uncounted(cause, run.charge.clone(), run.reservation.clone())]
        }
        State::Queued { .. } | State::Parked | State::Running { .. } | State::Ended(_) => {
            Vec::new()
        }
    }
}

/// Decides what becomes of an attempt that its own process interrupts, as when the daemon stops.
pub fn interrupt(context: RunContext<'_>, epoch: u32) -> Result<Vec<EventBody>, Refusal> {
    context.check_epoch(epoch)?;
    Ok(match context.run.state {
        State::Running { repeatable: true, .. } if context.run.cancel.is_none() => {
            let cause = Cause::new("stopped", "the daemon stopped, and the run is repeatable");
            vec![context.retry_uncounted(cause, None, None)]
        }
        State::Queued { .. } | State::Parked | State::Running { .. } | State::Ended(_) => {
            recover(context)
        }
    })
}

/// Decides what becomes of a run whose process died. Returns no events if the run is not running.
pub fn recover(context: RunContext<'_>) -> Vec<EventBody> {
    let RunContext { run, now, .. } = context;
    let State::Running { repeatable, .. } = run.state else { return Vec::new() };
    if !repeatable || context.is_tool_call_result_expired() {
        let cause = Cause::new(
            "interrupted",
            "interrupted after it started; whether it took effect is unknown",
        );
        return context.end(Outcome::Unknown, Some(cause), AttemptRecord::default());
    }
    if let Some(cancel) = &run.cancel {
        let cause = cancel.cause();
        return context.end(Outcome::Cancelled, Some(cause), AttemptRecord::default());
    }
    // The run itself may be what crashes the daemon.
    if context.definition.is_some() && context.retry_left().is_none() {
        let cause = Cause::new("interrupted", "interrupted in its last allowed attempt");
        return context.fail(cause, AttemptRecord::default());
    }
    let cause = Cause::new("interrupted", "interrupted, and the run is repeatable");
    let retried = Retried {
        epoch: run.epoch,
        cause,
        output: None,
        uncounted: false,
        refund: None,
        spent: None,
        released: None,
        from: now,
        at: now,
    };
    vec![context.event(Event::Retried(retried))]
}

/// Cancels a live run in favour of a newer slot; a running one is only asked to stop.
pub(crate) fn replace(context: RunContext<'_>) -> Vec<EventBody> {
    match context.run.state {
        State::Queued { .. } | State::Parked => context.cancel_unstarted(replaced()),
        State::Running { .. } if context.run.cancel.is_none() => {
            let (by, note) = (SYSTEM_NAME.to_owned(), Some(REPLACED.to_owned()));
            vec![context.event(Event::CancelRequested(CancelRequest { by, note, at: context.now }))]
        }
        State::Running { .. } | State::Ended(_) => Vec::new(),
    }
}

/// Ends a live run at once in favour of a newer slot. A later report of its process is refused.
pub(crate) fn terminate(context: RunContext<'_>) -> Vec<EventBody> {
    match context.run.state {
        State::Running { repeatable: false, .. } => {
            let cause = Cause::new(
                "terminated",
                "a newer slot replaced it after it started; whether it took effect is unknown",
            );
            context.end(Outcome::Unknown, Some(cause), AttemptRecord::default())
        }
        State::Queued { .. } | State::Parked => context.cancel_unstarted(replaced()),
        State::Running { .. } => {
            context.end(Outcome::Cancelled, Some(replaced()), AttemptRecord::default())
        }
        State::Ended(_) => Vec::new(),
    }
}

impl Report {
    /// Truncates message and output to their limits.
    fn within_limits(self) -> Report {
        let shorten = |cause: Cause| Cause::new(&cause.code, &cause.message);
        let result =
            self.result.map_err(|failure| Failure { cause: shorten(failure.cause), ..failure });
        let output = self.output.map(|mut output| {
            output.text.truncate(OUTPUT_BYTES_MAX);
            output
        });
        Report { result, output, usage: self.usage }
    }
}

/// What is recorded of an attempt that is over. A reservation that is not released counts as spent.
#[derive(Debug, Default)]
struct AttemptRecord {
    output: Option<Output>,
    spent: Option<Spent>,
    released: Option<Reservation>,
    /// The charge to undo, because the attempt did nothing.
    refund: Option<Charge>,
}

/// A policy decision about a run, and its inputs.
#[derive(Debug)]
struct EvaluatedPolicy {
    ruling: PolicyDecision,
    tier: Tier,
    decision_context: Option<Box<DecisionContext>>,
}

impl StartContext<'_> {
    /// Returns why no approval is requested, if one for the same action is pending.
    fn same_pending_approval(&self, action: &str, now: Timestamp) -> Option<Cause> {
        let mut approvals = self.other_approvals.iter();
        let (id, _) =
            approvals.find(|(_, approval)| approval.is_pending_for_action(action, now))?;
        let what = format!("approval `{id}` for the same action is still pending");
        Some(Cause::new("asked_already", &what))
    }
}

impl RunContext<'_> {
    /// Refuses a report about any attempt but the running one.
    fn check_epoch(&self, epoch: u32) -> Result<(), Refusal> {
        let is_running = matches!(self.run.state, State::Running { .. });
        match is_running && self.run.epoch == epoch {
            true => Ok(()),
            false => Err(Refusal::Stale(self.id.clone())),
        }
    }

    /// Whether the run is a tool call whose stored response may have been deleted by now.
    fn is_tool_call_result_expired(&self) -> bool {
        let is_call = self.definition.is_some_and(|it| matches!(it.action, Action::Tool { .. }));
        let since =
            self.run.started_at.map(|at| self.now.as_micros().saturating_sub(at.as_micros()));
        is_call && since.is_some_and(|since| TOOL_CALL_REPEAT_US_MAX < since)
    }

    fn event(&self, event: Event) -> EventBody {
        EventBody::Run(self.id.clone(), event)
    }

    /// Retries at once without counting this attempt.
    fn retry_uncounted(
        &self,
        cause: Cause,
        refund: Option<Charge>,
        released: Option<Reservation>,
    ) -> EventBody {
        self.event(Event::Retried(Retried {
            epoch: self.run.epoch,
            cause,
            output: None,
            uncounted: true,
            refund,
            spent: None,
            released,
            from: self.now,
            at: self.now,
        }))
    }

    fn end(&self, outcome: Outcome, cause: Option<Cause>, record: AttemptRecord) -> Vec<EventBody> {
        let ended = Ended {
            schedule: self.run.schedule.clone(),
            outcome,
            cause,
            output: record.output,
            no_room: self.leaves_no_room(),
            ruling: None,
            tier: None,
            decision_context: None,
            refused: false,
            blocked_by: None,
            denied: None,
            refund: record.refund,
            spent: record.spent,
            released: record.released,
            at: self.now,
        };
        self.end_with(Some(LapseReason::RunEnded), ended)
    }

    /// The reservation for an attempt that starts now, if it is expected to use anything.
    fn reserve(
        &self,
        definition: &Definition,
        agent: &Agent,
        limits: &Limits,
    ) -> Option<Reservation> {
        let last = self.progress.and_then(|progress| progress.usage);
        let (tokens, money) = expected_use(last, agent, &definition.terms, limits);
        let (agent, schedule) = (agent.name.clone(), self.run.schedule.clone());
        let reservation = Reservation { agent, schedule, day: day(self.now), tokens, money };
        (0 < tokens || !money.is_zero()).then_some(reservation)
    }

    /// What the attempt used and costs, if anything, and the budgets that this counts in.
    fn spending(&self, usage: Option<Usage>) -> Option<Spent> {
        let agent = self.run.agent.clone()?;
        let cost = self.run.price.cost(usage.unwrap_or_default());
        let schedule = Some(self.run.schedule.clone());
        let spent = Spent { agent, schedule, day: day(self.now), usage, cost };
        (usage.is_some() || !cost.is_zero()).then_some(spent)
    }

    /// Ends the run because its start was refused. `lapse` is why its approval lapses, unless that is
    /// recorded already.
    fn refuse(
        &self,
        cause: Cause,
        evaluated: Option<EvaluatedPolicy>,
        lapse: Option<LapseReason>,
    ) -> Vec<EventBody> {
        self.end_unstarted(lapse, self.not_started(cause, evaluated))
    }

    fn end_without_lease(&self, evaluated: Option<EvaluatedPolicy>) -> Vec<EventBody> {
        let what = "the lease has expired: no human renewed it in time";
        let ended = self.not_started(Cause::new("lease_ended", what), evaluated);
        self.end_unstarted(Some(LapseReason::RunEnded), self.blocked_by(StartBlocker::Lease, ended))
    }

    /// Names what blocked the start, unless the run fails because of an earlier attempt.
    fn blocked_by(&self, blocker: StartBlocker, ended: Ended) -> Ended {
        Ended { blocked_by: ended.refused.then_some(blocker), ..ended }
    }

    /// Ends a run that is not running as cancelled. If it had run before, its last output stays and the
    /// message says how that attempt ended.
    fn cancel_unstarted(&self, cause: Cause) -> Vec<EventBody> {
        let previous = self.run.previous_attempt();
        let message = match &previous {
            Some(previous) => format!("{}; {}", cause.message, previous.describe()),
            None => cause.message,
        };
        let output = previous.and(self.run.output.clone());
        let record = AttemptRecord { output, ..AttemptRecord::default() };
        self.end(Outcome::Cancelled, Some(Cause::new(&cause.code, &message)), record)
    }

    /// The end of a run that may not start, because of `cause`: cancelled, or failed as its last attempt did.
    fn not_started(&self, cause: Cause, evaluated: Option<EvaluatedPolicy>) -> Ended {
        let (ruling, tier, decision_context) = match evaluated {
            Some(EvaluatedPolicy { ruling, tier, decision_context }) => {
                (Some(ruling), Some(tier), decision_context)
            }
            None => (None, None, None),
        };
        let previous = self.run.previous_attempt();
        let has_run = previous.is_some();
        let (outcome, cause, output) = match &previous {
            Some(previous) => {
                let (code, ended) = match &previous.cause {
                    Some(last) => (&last.code, last.message.clone()),
                    None => (&cause.code, previous.describe()),
                };
                let what = format!("{ended}; no other attempt: {}", cause.message);
                let outcome = match previous.was_cancelled() {
                    true => Outcome::Cancelled,
                    false => Outcome::Failed,
                };
                (outcome, Cause::new(code, &what), self.run.output.clone())
            }
            None => (Outcome::Cancelled, cause, None),
        };
        Ended {
            schedule: self.run.schedule.clone(),
            outcome,
            cause: Some(cause),
            output,
            no_room: self.leaves_no_room(),
            ruling,
            tier,
            decision_context,
            refused: !has_run,
            blocked_by: None,
            denied: None,
            refund: None,
            spent: None,
            released: None,
            at: self.now,
        }
    }

    /// Whether a human recently denied the same action. A manual start or retry requests approval again.
    fn was_denied_recently(&self, action: &str, within_us: i64) -> bool {
        let denied = self.progress.and_then(|progress| progress.denied.as_ref());
        let is_recent = |at: Timestamp| self.now < at.after_us(within_us);
        !self.run.is_requested_by_human()
            && denied.is_some_and(|it| it.action == action && is_recent(it.at))
    }

    fn end_with(&self, lapse: Option<LapseReason>, ended: Ended) -> Vec<EventBody> {
        let lapsed = lapse.and_then(|why| self.lapse_approval(why));
        let ended = [self.event(Event::Ended(ended))].into_iter().chain(self.schedule_next_slot());
        lapsed.into_iter().chain(ended).collect()
    }

    /// Ends a run that may not start; one that fails by that counts as a failure of its schedule.
    fn end_unstarted(&self, lapse: Option<LapseReason>, ended: Ended) -> Vec<EventBody> {
        let has_failed = ended.outcome == Outcome::Failed;
        let paused = has_failed.then(|| self.pause_after_failures()).flatten();
        self.end_with(lapse, ended).into_iter().chain(paused).collect()
    }

    /// The retry terms, if the run may have another attempt.
    fn retry_left(&self) -> Option<Retry> {
        let definition = self.definition?;
        let is_left = self.run.attempt < self.run.attempts_max(definition);
        is_left.then_some(definition.terms.retry)
    }

    fn leaves_no_room(&self) -> bool {
        self.definition.zip(self.progress).is_some_and(|(definition, progress)| {
            let others = progress.live.iter().filter(|live| *live != self.id).count();
            definition.terms.overlap.live_max() <= others
        })
    }

    /// Marks the approval of the run as lapsed, if it has one.
    fn lapse_approval(&self, why: LapseReason) -> Option<EventBody> {
        self.lapse_approval_changed(why, Vec::new())
    }

    /// Marks the approval as lapsed, naming the parts of the execution fingerprint that changed.
    fn lapse_approval_changed(&self, why: LapseReason, changed: Vec<String>) -> Option<EventBody> {
        let (run, frees) = (self.id.clone(), self.run.pending_ask_agent.clone());
        let lapsed = Lapsed { run, why, by: None, frees, changed, at: self.now };
        let id = self.run.approval.clone()?;
        Some(EventBody::Approval(id, approval::Event::Lapsed(lapsed)))
    }

    /// Sets the next slot of a schedule that counts from the end of its own last run.
    fn schedule_next_slot(&self) -> Option<EventBody> {
        let (definition, progress) = self.definition.zip(self.progress)?;
        definition.own_run_interval().filter(|(_, since)| *since == Since::Finish)?;
        let is_last = progress.live.iter().all(|live| live == self.id);
        let is_idle = progress.next_fire.slot.is_none() && progress.waiting.is_empty();
        let calendar = definition.calendar(None).ok()?;
        let (tick, now) = (self.tick(definition, progress, &calendar), self.now);
        let next_fire =
            tick.next_fire(now.max(progress.decided_until).as_micros(), progress.slots_used(), 0);
        let moved = Moved { why: MovedWhy::Finished, at: now, next_fire };
        (is_last && is_idle && next_fire.slot.is_some())
            .then(|| EventBody::Schedule(tick.id.clone(), schedule::Event::Moved(moved)))
    }

    /// Skips the slots of the next minutes, which would find the same budget used up.
    fn skip_over_budget(&self) -> Option<EventBody> {
        let (definition, progress) = self.definition.zip(self.progress)?;
        let calendar = definition.calendar(progress.next_fire.slot).ok()?;
        self.tick(definition, progress, &calendar).over_budget(progress)
    }

    fn tick<'b>(
        &'b self,
        definition: &'b Definition,
        progress: &Progress,
        calendar: &'b Calendar,
    ) -> Tick<'b> {
        Tick {
            id: &self.run.schedule,
            definition,
            revision: progress.revision,
            calendar,
            live: &[],
            decided_wall: None,
            backfill_slot: None,
            now: self.now,
        }
    }

    /// Ends the run as failed, and pauses the schedule if it has failed too often.
    fn fail(&self, cause: Cause, record: AttemptRecord) -> Vec<EventBody> {
        let ended = self.end(Outcome::Failed, Some(cause), record);
        ended.into_iter().chain(self.pause_after_failures()).collect()
    }

    /// Ends the run as failed and pauses the schedule: later runs would fail until the provider is paid.
    fn fail_unpaid(&self, cause: Cause, record: AttemptRecord) -> Vec<EventBody> {
        let ended = self.end(Outcome::Failed, Some(cause), record);
        let note = "its agent needs payment: resume the schedule when the provider is paid";
        let paused = self.failure_limit().map(|_| self.pause_schedule(note.to_owned()));
        ended.into_iter().chain(paused).collect()
    }

    /// Pauses a schedule whose runs keep failing.
    fn pause_after_failures(&self) -> Option<EventBody> {
        let (limit, progress) = self.failure_limit()?;
        let failures = progress.failures + 1;
        (limit <= failures).then(|| {
            self.pause_schedule(match failures {
                1 => "the last run failed".to_owned(),
                _ => format!("the last {failures} runs failed"),
            })
        })
    }

    /// The number of failures after which the schedule pauses, if it has one and is active.
    fn failure_limit(&self) -> Option<(u32, &Progress)> {
        let limit = self.definition?.terms.pause_after;
        let progress = self.progress.filter(|progress| progress.status == Status::Active)?;
        (0 < limit).then_some((limit, progress))
    }

    fn pause_schedule(&self, note: String) -> EventBody {
        let paused = schedule::Paused { by: Principal::System, note: Some(note), at: self.now };
        EventBody::Schedule(self.run.schedule.clone(), schedule::Event::Paused(paused))
    }
}

impl CancelRequest {
    fn cause(&self) -> Cause {
        cancelled_by(&self.by, self.note.as_deref())
    }
}

fn replaced() -> Cause {
    cancelled_by(SYSTEM_NAME, Some(REPLACED))
}

fn cancelled_by(by: &str, note: Option<&str>) -> Cause {
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    Cause::new(CANCELLED, &format!("{by} cancelled it{note}"))
}
