//! An approval: a question to a human about one exact plan.
//!
//! `pending → approved → consumed`, or on the way `denied` or `lapsed`. While it is open its run is
//! parked: nobody works on it. The plan is what will be done and nothing else; a run is begun with an
//! approval only if its plan is the one that was shown, and the approval is consumed in the commit that
//! begins it.

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::agent::AgentName;
use crate::authority::Authority;
use crate::backend::{Backend, SecretRef, Tier};
use crate::event::Body;
use crate::id::{ApprovalId, RunId, ScheduleId};
use crate::ruling::{Posture, Request, Ruling};
use crate::run::{self, Cause, Ground};
use crate::schedule::check_note;
use crate::time::Timestamp;

/// How long a question waits for an answer.
pub const APPROVE_WITHIN_US: i64 = 86_400_000_000;
/// How long an approved plan waits to be begun.
pub const EXECUTE_WITHIN_US: i64 = 900_000_000;
/// What the open ones are listed under.
pub const OPEN: &str = "open";

/// Everything that can change the effect. Its hash, in hexadecimal digits, is what a human approves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub instance: String,
    pub run: RunId,
    pub schedule: ScheduleId,
    pub revision: u32,
    pub attempt: u32,
    pub agent: AgentName,
    pub backend: Backend,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretRef>,
    pub prompt: String,
    pub tier: Tier,
    /// Which rules were in force.
    pub policy: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    pub plan: Plan,
    pub plan_hash: String,
    pub request: Request,
    pub ruling: Ruling,
    pub asked_at: Timestamp,
    pub state: State,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    Pending {
        /// Too late from this instant on.
        approve_by: Timestamp,
    },
    Approved {
        /// Too late from this instant on.
        execute_by: Timestamp,
    },
    Denied,
    Consumed,
    Lapsed(Lapse),
}

/// Why a question is not open any more, though nobody denied it and nothing was begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Lapse {
    /// Nobody answered in time, or nothing was begun in time.
    Expired,
    /// A human took the approval back.
    Revoked,
    /// What would be done now is not what was approved.
    Changed,
    /// Its run has ended otherwise.
    RunEnded,
    /// The standing orders do not ask any more.
    NotNeeded,
}

/// What a human said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub by: String,
    pub is_approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Asked(Box<Asked>),
    Decided(Decided),
    Consumed(Consumed),
    Lapsed(Lapsed),
}

/// The run waits from here on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Asked {
    pub plan: Plan,
    pub plan_hash: String,
    pub request: Request,
    pub ruling: Ruling,
    pub approve_by: Timestamp,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    pub run: RunId,
    /// The hash of what was shown.
    pub plan_hash: String,
    pub decision: Decision,
    /// Until when its run must begin, if it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_by: Option<Timestamp>,
}

/// Its run begins, in the same commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Consumed {
    pub run: RunId,
    pub epoch: u32,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Lapsed {
    pub run: RunId,
    pub why: Lapse,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// `shown` is the hash of the plan that the human saw.
    Approve {
        shown: String,
        note: Option<String>,
    },
    Deny {
        shown: String,
        note: Option<String>,
    },
    Revoke {
        note: Option<String>,
    },
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    #[error("there is no approval `{0}`")]
    Unknown(ApprovalId),
    #[error("approval `{id}` {happened}, so it cannot be {done}")]
    Over { id: ApprovalId, happened: String, done: &'static str },
    #[error("approval `{0}` is about another plan than the one that was shown")]
    OtherPlan(ApprovalId),
    #[error("in strict-prod a person approves with a token of their own")]
    NotPersonal,
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
}

/// Every rule about what people say to a question. Nothing happens when it was said before.
pub fn decide(
    question: Question<'_>,
    authority: &Authority,
    actor: &Actor,
    command: Command,
) -> Result<Vec<Body>, Refusal> {
    let Question { id, approval, ground } = question;
    // A run, and whatever an agent holds, has a lower role: nobody approves what they ask for.
    if actor.role < Role::Operator {
        return Err(Refusal::RoleTooLow { actor: actor.clone(), needed: Role::Operator });
    }
    let now = ground.now;
    let over = |done| Err(Refusal::Over { id: id.clone(), happened: approval.happened(), done });
    let (shown, note) = match &command {
        Command::Approve { shown, note } | Command::Deny { shown, note } => (Some(shown), note),
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
            if approval.ruling.posture == Posture::StrictProd && actor.is_local_user() =>
        {
            Err(Refusal::NotPersonal)
        }
        // What is approved begins soon or never, and nothing begins now.
        (Command::Approve { .. }, State::Pending { .. }) if authority.frozen.is_some() => {
            Err(Refusal::Frozen)
        }
        (Command::Approve { note, .. }, State::Pending { .. }) => {
            let decision = Decision { by: actor.name.clone(), is_approved: true, note, at: now };
            Ok(vec![approval.decided(id, decision, Some(now.after_us(EXECUTE_WITHIN_US)))])
        }
        (Command::Approve { .. }, _) => over("approved"),
        (Command::Deny { .. }, State::Denied) => Ok(Vec::new()),
        (Command::Deny { note, .. }, State::Pending { .. } | State::Approved { .. }) => {
            let cause = denied_by(&actor.name, note.as_deref());
            let decision = Decision { by: actor.name.clone(), is_approved: false, note, at: now };
            let ended = run::refuse(ground, cause);
            Ok([approval.decided(id, decision, None)].into_iter().chain(ended).collect())
        }
        (Command::Deny { .. }, _) => over("denied"),
        (Command::Revoke { .. }, State::Lapsed(Lapse::Revoked)) => Ok(Vec::new()),
        (Command::Revoke { note }, State::Pending { .. } | State::Approved { .. }) => {
            let said = note.map(|note| format!(": {note}")).unwrap_or_default();
            let cause =
                Cause::new("revoked", &format!("{} took the approval back{said}", actor.name));
            let by = Some(actor.name.clone());
            Ok(approval.lapse(id, Lapse::Revoked, by, ground, cause))
        }
        (Command::Revoke { .. }, _) => over("revoked"),
    }
}

/// What becomes of a question that nobody has answered, or whose run did not begin, in time. Nothing, if
/// there is time left.
pub fn expire(Question { id, approval, ground }: Question<'_>) -> Vec<Body> {
    match approval.ran_out(ground.now) {
        Some(cause) => approval.lapse(id, Lapse::Expired, None, ground, cause),
        None => Vec::new(),
    }
}

/// The approval after an event.
pub fn apply(approval: Option<Approval>, event: &Event) -> Option<Approval> {
    if let Event::Asked(asked) = event {
        let Asked { plan, plan_hash, request, ruling, approve_by, at } = (**asked).clone();
        let state = State::Pending { approve_by };
        let asked_at = at;
        return Some(Approval {
            plan,
            plan_hash,
            request,
            ruling,
            asked_at,
            state,
            decision: None,
        });
    }
    let mut approval = approval?;
    match event {
        Event::Asked(_) => {}
        Event::Decided(decided) => {
            let approved = decided.execute_by.map(|execute_by| State::Approved { execute_by });
            approval.state = approved.unwrap_or(State::Denied);
            approval.decision = Some(decided.decision.clone());
        }
        Event::Consumed(_) => approval.state = State::Consumed,
        Event::Lapsed(lapsed) => approval.state = State::Lapsed(lapsed.why),
    }
    Some(approval)
}

impl Approval {
    /// When it is to be looked at.
    pub fn due(&self) -> Option<Timestamp> {
        match self.state {
            State::Pending { approve_by } => Some(approve_by),
            State::Approved { execute_by } => Some(execute_by),
            State::Denied | State::Consumed | State::Lapsed(_) => None,
        }
    }

    pub(crate) fn listed_under(&self) -> Option<String> {
        self.due().map(|_| OPEN.to_owned())
    }

    /// Why it is too late, if it is.
    fn ran_out(&self, now: Timestamp) -> Option<Cause> {
        let what = match self.state {
            State::Pending { approve_by } if approve_by <= now => "nobody answered in time",
            State::Approved { execute_by } if execute_by <= now => {
                "it was approved, and did not begin in time"
            }
            _ => return None,
        };
        Some(Cause::new("expired", what))
    }

    /// Whether the plan with this hash may be begun, or why not.
    pub(crate) fn covers(&self, plan_hash: &str, now: Timestamp) -> Result<(), (Lapse, Cause)> {
        if let Some(cause) = self.ran_out(now) {
            return Err((Lapse::Expired, cause));
        }
        let is_approved = matches!(self.state, State::Approved { .. });
        match is_approved && !plan_hash.is_empty() && self.plan_hash == plan_hash {
            true => Ok(()),
            false => {
                let what = "what would be done now is not what was approved";
                Err((Lapse::Changed, Cause::new("plan_changed", what)))
            }
        }
    }

    /// What has become of it, in a clause.
    pub fn happened(&self) -> String {
        let by = self.decision.as_ref().map(|it| format!(" by {}", it.by)).unwrap_or_default();
        match self.state {
            State::Pending { .. } => "waits for an answer".to_owned(),
            State::Approved { .. } => format!("was approved{by}"),
            State::Denied => format!("was denied{by}"),
            State::Consumed => format!("was approved{by}, and its run has begun"),
            State::Lapsed(Lapse::Expired) => "has expired".to_owned(),
            State::Lapsed(Lapse::Revoked) => "was revoked".to_owned(),
            State::Lapsed(Lapse::Changed) => "was for something else than is due now".to_owned(),
            State::Lapsed(Lapse::RunEnded) => "went with its run, which has ended".to_owned(),
            State::Lapsed(Lapse::NotNeeded) => "is not needed any more".to_owned(),
        }
    }

    fn decided(&self, id: &ApprovalId, decision: Decision, execute_by: Option<Timestamp>) -> Body {
        let (run, plan_hash) = (self.plan.run.clone(), self.plan_hash.clone());
        let decided = Decided { run, plan_hash, decision, execute_by };
        Body::Approval(id.clone(), Event::Decided(decided))
    }

    fn lapse(
        &self,
        id: &ApprovalId,
        why: Lapse,
        by: Option<String>,
        ground: Ground<'_>,
        cause: Cause,
    ) -> Vec<Body> {
        let lapsed = Lapsed { run: self.plan.run.clone(), why, by, at: ground.now };
        let lapsed = Body::Approval(id.clone(), Event::Lapsed(lapsed));
        [lapsed].into_iter().chain(run::refuse(ground, cause)).collect()
    }
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            State::Pending { .. } => "pending",
            State::Approved { .. } => "approved",
            State::Denied => "denied",
            State::Consumed => "consumed",
            State::Lapsed(Lapse::Expired) => "expired",
            State::Lapsed(Lapse::Revoked) => "revoked",
            State::Lapsed(Lapse::Changed) => "changed",
            State::Lapsed(Lapse::RunEnded) => "cancelled",
            State::Lapsed(Lapse::NotNeeded) => "not_needed",
        }
    }
}

fn denied_by(by: &str, note: Option<&str>) -> Cause {
    let note = note.map(|note| format!(": {note}")).unwrap_or_default();
    Cause::new("denied", &format!("{by} denied it{note}"))
}
