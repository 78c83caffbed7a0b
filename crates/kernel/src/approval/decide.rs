//! Every rule about approving, denying, revoking and expiring approvals.

use super::event::{Assented, Decided, Decision, DenialStreak, Event, Lapsed, Signature};
use super::{Approval, EXECUTE_WITHIN_US, LapseReason, State};
use crate::actor::{Actor, Role};
use crate::agent::Agent;
use crate::authority::{Authority, Lease, LeaseState};
use crate::principal::Principal;
use crate::run::{self, Cause, RunContext};
use crate::schedule::check_note;
use crate::time::{Now, Timestamp};
use crate::{ApprovalId, EventBody};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `shown` is the hash of the plan that was shown to the human.
    Approve {
        shown: String,
        note: Option<String>,
        signed: Option<Signed>,
    },
    Deny {
        shown: String,
        note: Option<String>,
    },
    Revoke {
        note: Option<String>,
    },
}

/// A verified signature and its signer. The signer is the approver, whichever caller submits it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub by: Actor,
    pub signature: Signature,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("approval `{0}` does not exist")]
    Unknown(ApprovalId),
    #[error("approval `{id}` {state}, so it cannot be {action}")]
    Closed { id: ApprovalId, state: String, action: &'static str },
    #[error("approval `{0}` is for another plan than the one that was shown")]
    PlanMismatch(ApprovalId),
    #[error("approval `{0}` needs a person with a personal token")]
    NotPersonal(ApprovalId),
    #[error("approval `{0}` needs a signature made with the approver's own key")]
    NotSigned(ApprovalId),
    #[error("`{by}` wrote the schedule, but approval `{id}` needs another person")]
    Author { id: ApprovalId, by: String },
    #[error("`{by}` registered or changed the agent, but approval `{id}` needs another person")]
    AgentAuthor { id: ApprovalId, by: String },
    #[error(
        "approval `{0}` was requested under other rules than the active ones, so approving it would start nothing"
    )]
    PolicyChanged(ApprovalId),
    #[error("Midwatch is frozen, so an approved run would not start")]
    Frozen,
    #[error("this needs a human with the role `{}`, but `{}` has the role `{}`", needed.name(), actor.name(), actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
    #[error(transparent)]
    Schedule(#[from] crate::schedule::Refusal),
}

/// An approval and the state that its rules depend on.
#[derive(Clone, Copy, Debug)]
pub struct ApprovalContext<'a> {
    pub id: &'a ApprovalId,
    pub approval: &'a Approval,
    pub run_context: RunContext<'a>,
    /// The agent of the run, if it still exists.
    pub agent: Option<&'a Agent>,
    /// The start of the hash of the active rules.
    pub active_policy: &'a str,
}

/// Decides a human's command about an approval. Repeating a command changes nothing.
pub fn decide(
    context: ApprovalContext<'_>,
    authority: &Authority,
    actor: &Actor,
    command: Command,
) -> Result<Vec<EventBody>, Refusal> {
    let ApprovalContext { id, approval, run_context, .. } = context;
    // Runs and agents' tokens have a lower role, so no agent approves its own runs.
    check_role(actor, Role::Operator)?;
    let now = run_context.now;
    let closed =
        |action| Err(Refusal::Closed { id: id.clone(), state: approval.describe_state(), action });
    let (shown, note) = match &command {
        Command::Approve { shown, note, .. } | Command::Deny { shown, note } => (Some(shown), note),
        Command::Revoke { note } => (None, note),
    };
    check_note(note.as_deref())?;
    if shown.is_some_and(|shown| *shown != approval.plan_hash) {
        return Err(Refusal::PlanMismatch(id.clone()));
    }
    match (command, approval.state) {
        (Command::Approve { .. }, State::Approved { .. } | State::Consumed) => Ok(Vec::new()),
        (Command::Approve { .. } | Command::Deny { .. }, State::Pending { approve_by })
            if approve_by <= now =>
        {
            Ok(expire(context))
        }
        (Command::Approve { .. }, State::Pending { .. })
            if approval.plan.policy != context.active_policy =>
        {
            Err(Refusal::PolicyChanged(id.clone()))
        }
        // An approval expires soon, and no run starts during a freeze.
        (Command::Approve { .. }, State::Pending { .. }) if authority.frozen.is_some() => {
            Err(Refusal::Frozen)
        }
        (Command::Approve { note, signed, .. }, State::Pending { .. }) => {
            let (by, signature) = match signed {
                Some(Signed { by, signature }) => (by, Some(signature)),
                None => (actor.clone(), None),
            };
            context.approve(&by, note, signature)
        }
        (Command::Approve { .. }, _) => closed("approved"),
        (Command::Deny { .. }, State::Denied) => Ok(Vec::new()),
        (Command::Deny { note, .. }, State::Pending { .. } | State::Approved { .. }) => {
            let cause = denied_by(actor.name(), note.as_deref());
            let by = actor.name().to_owned();
            let decision = Decision { by, is_approved: false, note, signature: None, at: now };
            let ended = run::deny(run_context, cause, approval.action_hash.clone());
            Ok([context.decided(decision, None)].into_iter().chain(ended).collect())
        }
        (Command::Deny { .. }, _) => closed("denied"),
        (Command::Revoke { .. }, State::Lapsed(LapseReason::Revoked)) => Ok(Vec::new()),
        (Command::Revoke { note }, State::Pending { .. } | State::Approved { .. }) => {
            let note = note.map(|note| format!(": {note}")).unwrap_or_default();
            let cause =
                Cause::new("revoked", &format!("{} revoked the approval{note}", actor.name()));
            Ok(context.lapse(LapseReason::Revoked, Some(actor.name().to_owned()), cause))
        }
        (Command::Revoke { .. }, _) => closed("revoked"),
    }
}

/// Closes an approval that was not decided in time, or whose run did not start in time. Returns no events
/// before that.
pub fn expire(context: ApprovalContext<'_>) -> Vec<EventBody> {
    match context.approval.expiry_cause(context.run_context.now) {
        Some(cause) => context.lapse(LapseReason::Expired, None, cause),
        None => Vec::new(),
    }
}

/// Withdraws an approval that only the lease required, once a human has renewed the lease. Its run is queued again, and its
/// start is decided afresh. Returns no events for any other approval.
pub fn release(
    context: ApprovalContext<'_>,
    authority: &Authority,
    lease: Lease,
    clock: Timestamp,
) -> Vec<EventBody> {
    let ApprovalContext { id, approval, run_context, .. } = context;
    let now = run_context.now;
    let is_full = authority.lease_state(lease, Now { clock, latest: now }) == LeaseState::Full;
    let is_open = approval.is_asked_only_by_lease() && approval.expiry_cause(now).is_none();
    if !is_full || !is_open || run_context.run.state != run::State::Parked {
        return Vec::new();
    }
    let lapsed = Lapsed {
        run: approval.plan.run.clone(),
        why: LapseReason::LeaseRenewed,
        by: authority.renewed.as_ref().map(|renewed| renewed.by.clone()),
        frees: run_context.run.pending_ask_agent.clone(),
        changed: Vec::new(),
        at: now,
    };
    vec![EventBody::Approval(id.clone(), Event::Lapsed(lapsed))]
}

impl ApprovalContext<'_> {
    /// Records the approval of one person, if they may approve.
    fn approve(
        self,
        by: &Actor,
        note: Option<String>,
        signature: Option<Signature>,
    ) -> Result<Vec<EventBody>, Refusal> {
        let ApprovalContext { id, approval, run_context, .. } = self;
        let required = approval.requirements();
        check_role(by, required.role)?;
        if required.needs_signature && signature.is_none() {
            return Err(Refusal::NotSigned(id.clone()));
        }
        if required.needs_personal_token && !matches!(by.principal(), Principal::Person(_)) {
            return Err(Refusal::NotPersonal(id.clone()));
        }
        let is_author = required.needs_personal_token && approval.authors.contains(by.principal());
        // An agent never approves its own schedule, even with an operator's token of the same name.
        let same_agent = by.name().parse().ok().map(Principal::Agent);
        if is_author || same_agent.is_some_and(|agent| approval.authors.contains(&agent)) {
            return Err(Refusal::Author { id: id.clone(), by: by.name().to_owned() });
        }
        let is_agent_author =
            required.needs_personal_token && approval.agent_authors.contains(by.principal());
        if is_agent_author {
            return Err(Refusal::AgentAuthor { id: id.clone(), by: by.name().to_owned() });
        }
        if approval.assents.iter().any(|assent| assent.by == by.name()) {
            return Ok(Vec::new());
        }
        let (by, now) = (by.name().to_owned(), run_context.now);
        let decision = Decision { by, is_approved: true, note, signature, at: now };
        Ok(vec![match approval.assents.len() + 1 < required.persons.into() {
            true => {
                let (run, plan_hash) = (approval.plan.run.clone(), approval.plan_hash.clone());
                let assented = Assented { run, plan_hash, decision };
                EventBody::Approval(id.clone(), Event::Assented(assented))
            }
            false => self.decided(decision, Some(now.after_us(EXECUTE_WITHIN_US))),
        }])
    }

    fn decided(self, decision: Decision, execute_by: Option<Timestamp>) -> EventBody {
        let ApprovalContext { id, approval, run_context, .. } = self;
        let (run, plan_hash) = (approval.plan.run.clone(), approval.plan_hash.clone());
        let (frees, streak) =
            (run_context.run.pending_ask_agent.clone(), self.streak(decision.is_approved));
        let decided = Decided { run, plan_hash, decision, execute_by, frees, streak };
        EventBody::Approval(id.clone(), Event::Decided(decided))
    }

    /// The agent's consecutive denials after this decision, if their number changes.
    fn streak(self, is_approved: bool) -> Option<DenialStreak> {
        let Agent { name, denials, .. } = self.agent?;
        let after = if is_approved { 0 } else { denials.saturating_add(1) };
        (after != *denials).then(|| DenialStreak { agent: name.clone(), denials: after })
    }

    fn lapse(self, why: LapseReason, by: Option<String>, cause: Cause) -> Vec<EventBody> {
        let ApprovalContext { id, approval, run_context, .. } = self;
        let (run, frees) = (approval.plan.run.clone(), run_context.run.pending_ask_agent.clone());
        let lapsed = Lapsed { run, why, by, frees, changed: Vec::new(), at: run_context.now };
        let lapsed = EventBody::Approval(id.clone(), Event::Lapsed(lapsed));
        [lapsed].into_iter().chain(run::refuse(run_context, cause)).collect()
    }
}

fn check_role(actor: &Actor, needed: Role) -> Result<(), Refusal> {
    match needed <= actor.role {
        true => Ok(()),
        false => Err(Refusal::RoleTooLow { actor: actor.clone(), needed }),
    }
}

fn denied_by(by: &str, note: Option<&str>) -> Cause {
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    Cause::new("denied", &format!("{by} denied it{note}"))
}
