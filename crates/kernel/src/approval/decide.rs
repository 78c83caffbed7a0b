//! Every rule about what people say to a question, and about questions that nobody answers.

use super::event::{Assented, Decided, Decision, Event, Lapsed, Signature, Streak};
use super::{Approval, EXECUTE_WITHIN_US, Lapse, State};
use crate::actor::{Actor, Role};
use crate::agent::Agent;
use crate::authority::Authority;
use crate::event::Body;
use crate::id::ApprovalId;
use crate::run::{self, Cause, Ground};
use crate::schedule::check_note;
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `shown` is the hash of the plan that the human saw.
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

/// A signature that was found good, and whose it is. Whoever brings it, it is that person who approves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    pub by: Actor,
    pub signature: Signature,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no approval `{0}`")]
    Unknown(ApprovalId),
    #[error("approval `{id}` {happened}, so it cannot be {done}")]
    Over { id: ApprovalId, happened: String, done: &'static str },
    #[error("approval `{0}` is about another plan than the one that was shown")]
    OtherPlan(ApprovalId),
    #[error("approval `{0}` needs a person who is known by a token of their own")]
    NotPersonal(ApprovalId),
    #[error("approval `{0}` needs a signature made with the approver's own key")]
    NotSigned(ApprovalId),
    #[error("`{by}` has written the schedule, and approval `{id}` needs somebody else")]
    Author { id: ApprovalId, by: String },
    #[error(
        "approval `{0}` was asked under other rules than those in force, and a yes would begin nothing"
    )]
    OtherRules(ApprovalId),
    #[error("the watch is frozen, and what is approved now would not begin")]
    Frozen,
    #[error("this needs a human with the role `{}`, and `{}` has the role `{}`", needed.name(), actor.name, actor.role.name())]
    RoleTooLow { actor: Actor, needed: Role },
    #[error(transparent)]
    Schedule(#[from] crate::schedule::Refusal),
}

/// A question and what belongs to it, when something about it is decided.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub id: &'a ApprovalId,
    pub approval: &'a Approval,
    /// Of its run.
    pub ground: Ground<'a>,
    /// That it is about, if it is still there.
    pub agent: Option<&'a Agent>,
    /// Which rules are in force.
    pub rules: &'a str,
}

/// What people say to a question. Nothing happens when it was said before.
pub fn decide(
    question: Question<'_>,
    authority: &Authority,
    actor: &Actor,
    command: Command,
) -> Result<Vec<Body>, Refusal> {
    let Question { id, approval, ground, .. } = question;
    // A run, and whatever an agent holds, has a lower role: nobody approves what they ask for.
    check_role(actor, Role::Operator)?;
    let now = ground.now;
    let over = |done| Err(Refusal::Over { id: id.clone(), happened: approval.happened(), done });
    let (shown, note) = match &command {
        Command::Approve { shown, note, .. } | Command::Deny { shown, note } => (Some(shown), note),
        Command::Revoke { note } => (None, note),
    };
    check_note(note.as_deref())?;
    if shown.is_some_and(|shown| *shown != approval.plan_hash) {
        return Err(Refusal::OtherPlan(id.clone()));
    }
    match (command, approval.state) {
        (Command::Approve { .. }, State::Approved { .. } | State::Consumed) => Ok(Vec::new()),
        (Command::Approve { .. } | Command::Deny { .. }, State::Pending { approve_by })
            if approve_by <= now =>
        {
            Ok(expire(question))
        }
        (Command::Approve { .. }, State::Pending { .. })
            if approval.plan.policy != question.rules =>
        {
            Err(Refusal::OtherRules(id.clone()))
        }
        // What is approved begins soon or never, and nothing begins now.
        (Command::Approve { .. }, State::Pending { .. }) if authority.frozen.is_some() => {
            Err(Refusal::Frozen)
        }
        (Command::Approve { note, signed, .. }, State::Pending { .. }) => {
            let (by, signature) = match signed {
                Some(Signed { by, signature }) => (by, Some(signature)),
                None => (actor.clone(), None),
            };
            question.assent(&by, note, signature)
        }
        (Command::Approve { .. }, _) => over("approved"),
        (Command::Deny { .. }, State::Denied) => Ok(Vec::new()),
        (Command::Deny { note, .. }, State::Pending { .. } | State::Approved { .. }) => {
            let cause = denied_by(&actor.name, note.as_deref());
            let by = actor.name.clone();
            let decision = Decision { by, is_approved: false, note, signature: None, at: now };
            let ended = run::deny(ground, cause, approval.action_hash.clone());
            Ok([question.decided(decision, None)].into_iter().chain(ended).collect())
        }
        (Command::Deny { .. }, _) => over("denied"),
        (Command::Revoke { .. }, State::Lapsed(Lapse::Revoked)) => Ok(Vec::new()),
        (Command::Revoke { note }, State::Pending { .. } | State::Approved { .. }) => {
            let said = note.map(|note| format!(": {note}")).unwrap_or_default();
            let cause =
                Cause::new("revoked", &format!("{} took the approval back{said}", actor.name));
            Ok(question.lapse(Lapse::Revoked, Some(actor.name.clone()), cause))
        }
        (Command::Revoke { .. }, _) => over("revoked"),
    }
}

/// What becomes of a question that nobody has answered, or whose run did not begin, in time. Nothing, if
/// there is time left.
pub fn expire(question: Question<'_>) -> Vec<Body> {
    match question.approval.ran_out(question.ground.now) {
        Some(cause) => question.lapse(Lapse::Expired, None, cause),
        None => Vec::new(),
    }
}

impl Question<'_> {
    /// One more has said yes, if they may.
    fn assent(
        self,
        by: &Actor,
        note: Option<String>,
        signature: Option<Signature>,
    ) -> Result<Vec<Body>, Refusal> {
        let Question { id, approval, ground, .. } = self;
        let needs = approval.needs();
        check_role(by, needs.role)?;
        if needs.is_signed && signature.is_none() {
            return Err(Refusal::NotSigned(id.clone()));
        }
        if needs.is_personal && by.is_local_user() {
            return Err(Refusal::NotPersonal(id.clone()));
        }
        let is_author = needs.is_personal && approval.authors.contains(&by.name);
        // However few are asked: no agent approves what it wrote, whatever else it has got hold of.
        if is_author || approval.authors.contains(&Actor::of_agent(&by.name)) {
            return Err(Refusal::Author { id: id.clone(), by: by.name.clone() });
        }
        if approval.assents.iter().any(|assent| assent.by == by.name) {
            return Ok(Vec::new());
        }
        let (by, now) = (by.name.clone(), ground.now);
        let decision = Decision { by, is_approved: true, note, signature, at: now };
        Ok(vec![match approval.assents.len() + 1 < needs.persons.into() {
            true => {
                let (run, plan_hash) = (approval.plan.run.clone(), approval.plan_hash.clone());
                let assented = Assented { run, plan_hash, decision };
                Body::Approval(id.clone(), Event::Assented(assented))
            }
            false => self.decided(decision, Some(now.after_us(EXECUTE_WITHIN_US))),
        }])
    }

    fn decided(self, decision: Decision, execute_by: Option<Timestamp>) -> Body {
        let Question { id, approval, ground, .. } = self;
        let (run, plan_hash) = (approval.plan.run.clone(), approval.plan_hash.clone());
        let (frees, streak) = (ground.run.asking.clone(), self.streak(decision.is_approved));
        let decided = Decided { run, plan_hash, decision, execute_by, frees, streak };
        Body::Approval(id.clone(), Event::Decided(decided))
    }

    /// How often in a row it was no with this answer, if that is news.
    fn streak(self, is_approved: bool) -> Option<Streak> {
        let Agent { name, denials, .. } = self.agent?;
        let after = if is_approved { 0 } else { denials.saturating_add(1) };
        (after != *denials).then(|| Streak { agent: name.clone(), denials: after })
    }

    fn lapse(self, why: Lapse, by: Option<String>, cause: Cause) -> Vec<Body> {
        let Question { id, approval, ground, .. } = self;
        let (run, frees) = (approval.plan.run.clone(), ground.run.asking.clone());
        let lapsed = Lapsed { run, why, by, frees, changed: Vec::new(), at: ground.now };
        let lapsed = Body::Approval(id.clone(), Event::Lapsed(lapsed));
        [lapsed].into_iter().chain(run::refuse(ground, cause)).collect()
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
