//! An approval: a question to a human about one exact plan.
//!
//! `pending → approved → consumed`, or on the way `denied` or `lapsed`. While it is open its run is
//! parked: nobody works on it. The plan is what will be done and nothing else; a run is begun with an
//! approval only if its plan is the one that was shown, and the approval is consumed in the commit that
//! begins it.

mod decide;
mod event;
mod file;
mod footing;

use serde::{Deserialize, Serialize};

use crate::actor::{Actor, Role};
use crate::agent::AgentName;
use crate::backend::{Backend, SecretRef, Tier};
use crate::id::{RunId, ScheduleId};
use crate::ruling::{Request, Ruling};
use crate::run::Cause;
use crate::time::Timestamp;
use crate::wording::Wording;
pub use decide::{Command, Question, Refusal, Signed, decide, expire};
pub use event::{Asked, Assented, Consumed, Decided, Decision, Event, Lapsed, Signature, Streak};
pub use file::{TokenFile, Unfit};
pub use footing::{Directory, Executable, Footing, Looked};

/// How long a question waits for an answer.
pub const APPROVE_WITHIN_US: i64 = 86_400_000_000;
/// How long an approved plan waits to be begun.
pub const EXECUTE_WITHIN_US: i64 = 900_000_000;
/// What the open ones are listed under.
pub const OPEN: &str = "open";
/// The code of a run that would do something else than was approved.
const PLAN_CHANGED: &str = "plan_changed";
/// What is said to have changed where a copy of the data directory has an approval too.
const PLACE: &str = "data directory";

/// Everything that can change the effect. Its hash, in hexadecimal digits, is what a human approves.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub instance: String,
    /// Tells the data directory from its copies, where the log is in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<String>,
    pub run: RunId,
    pub schedule: ScheduleId,
    pub revision: u32,
    pub attempt: u32,
    /// That is prompted, unless a tool is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<PlannedTool>,
    /// What the agent or the tool is told.
    pub prompt: Wording,
    pub tier: Tier,
    /// Which rules were in force.
    pub policy: String,
    /// What the effect stands on, where it stands on something of this machine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub footing: Option<Footing>,
}

/// A tool that is called.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTool {
    pub name: String,
    /// Of all that callers are told of it.
    pub hash: String,
}

/// What a plan is recognised by.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// Empty if it has none, and then it is good for nothing.
    pub plan: String,
    /// Without the run, the try and the place.
    pub action: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    pub plan: Plan,
    pub plan_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_hash: Option<String>,
    pub request: Request,
    pub ruling: Ruling,
    /// Who wrote the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    pub asked_at: Timestamp,
    pub state: State,
    /// Those who have said yes before the one that decided it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assents: Vec<Decision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// What of its footing was not as it had been, when its run was to begin.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
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
    /// A signature under it does not hold any more.
    Unsigned,
    /// Its run has ended otherwise.
    RunEnded,
    /// The standing orders do not ask any more.
    NotNeeded,
}

/// Why an approval does not let a run begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Uncovered {
    pub(crate) why: Lapse,
    pub(crate) cause: Cause,
    /// What of the footing is not as it was, if that is why.
    pub(crate) changed: Vec<String>,
}

/// What it takes to say yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    pub persons: u8,
    /// Of each of them.
    pub role: Role,
    /// Each is known by a token of their own, and none has written the schedule.
    pub is_personal: bool,
    pub is_signed: bool,
}

/// The approval after an event.
pub fn apply(approval: Option<Approval>, event: &Event) -> Option<Approval> {
    if let Event::Asked(asked) = event {
        let asked = (**asked).clone();
        return Some(Approval {
            plan: asked.plan,
            plan_hash: asked.plan_hash,
            action_hash: asked.action_hash,
            request: asked.request,
            ruling: asked.ruling,
            authors: asked.authors,
            asked_at: asked.at,
            state: State::Pending { approve_by: asked.approve_by },
            assents: Vec::new(),
            decision: None,
            changed: Vec::new(),
        });
    }
    let mut approval = approval?;
    match event {
        Event::Asked(_) => {}
        Event::Assented(assented) => approval.assents.push(assented.decision.clone()),
        Event::Decided(decided) => {
            let approved = decided.execute_by.map(|execute_by| State::Approved { execute_by });
            approval.state = approved.unwrap_or(State::Denied);
            approval.decision = Some(decided.decision.clone());
        }
        Event::Consumed(_) => approval.state = State::Consumed,
        Event::Lapsed(lapsed) => {
            approval.state = State::Lapsed(lapsed.why);
            approval.changed = lapsed.changed.clone();
        }
    }
    Some(approval)
}

impl Approval {
    /// Who has to say yes, and how.
    pub fn needs(&self) -> Needs {
        let Ruling { approvers, posture, .. } = &self.ruling;
        let is_signed = posture.trust().signed_approvals;
        let is_personal = is_signed || 1 < approvers.persons;
        // Where nobody knows who the author is, it could be any one of those who say yes.
        let is_unknown = |author: &String| Actor::tells_no_person(author);
        let could_be_any = self.authors.is_empty() || self.authors.iter().any(is_unknown);
        let persons = approvers.persons.saturating_add(u8::from(is_personal && could_be_any));
        Needs { persons, role: approvers.role, is_personal, is_signed }
    }

    /// Everybody who has said yes.
    pub fn approvals(&self) -> impl Iterator<Item = &Decision> {
        self.assents.iter().chain(&self.decision).filter(|decision| decision.is_approved)
    }

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

    /// Whether it waits for an answer about this action.
    pub(crate) fn asks(&self, action: &str, now: Timestamp) -> bool {
        let is_pending = matches!(self.state, State::Pending { .. }) && self.ran_out(now).is_none();
        is_pending && self.action_hash.as_deref() == Some(action)
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

    /// Whether this plan, which has this hash, may be begun, or why not.
    pub(crate) fn covers(
        &self,
        (plan, plan_hash): (&Plan, &str),
        is_signed: impl Fn(&Decision) -> bool,
        now: Timestamp,
    ) -> Result<(), Uncovered> {
        if let Some(cause) = self.ran_out(now) {
            return Err(Uncovered { why: Lapse::Expired, cause, changed: Vec::new() });
        }
        let is_approved = matches!(self.state, State::Approved { .. });
        if !is_approved || plan_hash.is_empty() || self.plan_hash != plan_hash {
            let before = self.plan.footing.as_ref();
            let changed = plan.footing.as_ref().map(|it| it.changed(before)).unwrap_or_default();
            let place = (plan.place != self.plan.place).then(|| PLACE.to_owned());
            return Err(Uncovered::changed(place.into_iter().chain(changed).collect()));
        }
        if self.needs().is_signed && !self.approvals().all(is_signed) {
            let what = "a signature under its approval does not hold any more";
            let (why, cause) = (Lapse::Unsigned, Cause::new("signature_void", what));
            return Err(Uncovered { why, cause, changed: Vec::new() });
        }
        Ok(())
    }

    /// What has become of it, in a clause.
    pub fn happened(&self) -> String {
        let yes: Vec<&str> = self.approvals().map(|decision| decision.by.as_str()).collect();
        let by = format!(" by {}", yes.join(" and "));
        let denied = self.decision.as_ref().map(|it| format!(" by {}", it.by)).unwrap_or_default();
        match self.state {
            State::Pending { .. } if yes.is_empty() => "waits for an answer".to_owned(),
            State::Pending { .. } => format!("was approved{by}, and waits for others"),
            State::Approved { .. } => format!("was approved{by}"),
            State::Denied => format!("was denied{denied}"),
            State::Consumed => format!("was approved{by}, and its run has begun"),
            State::Lapsed(Lapse::Expired) => "has expired".to_owned(),
            State::Lapsed(Lapse::Revoked) => "was revoked".to_owned(),
            State::Lapsed(Lapse::Changed) => "was for something else than is due now".to_owned(),
            State::Lapsed(Lapse::Unsigned) => "has a signature that does not hold".to_owned(),
            State::Lapsed(Lapse::RunEnded) => "went with its run, which has ended".to_owned(),
            State::Lapsed(Lapse::NotNeeded) => "is not needed any more".to_owned(),
        }
    }
}

impl Uncovered {
    /// What would be done now is something else, by these parts of its footing if by any.
    fn changed(changed: Vec<String>) -> Uncovered {
        let what = "what would be done now is not what was approved";
        let parts = changed.join(", ");
        let what = match changed.is_empty() {
            true => what.to_owned(),
            false => format!("{what}: changed since it was asked: {parts}"),
        };
        Uncovered { why: Lapse::Changed, cause: Cause::new(PLAN_CHANGED, &what), changed }
    }

    /// It cannot be done any more.
    pub(crate) fn impossible(cause: &Cause) -> Uncovered {
        let what = format!("what was approved cannot be done any more: {}", cause.message);
        let cause = Cause::new(PLAN_CHANGED, &what);
        Uncovered { why: Lapse::Changed, cause, changed: Vec::new() }
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
            State::Lapsed(Lapse::Unsigned) => "unsigned",
            State::Lapsed(Lapse::RunEnded) => "cancelled",
            State::Lapsed(Lapse::NotNeeded) => "not_needed",
        }
    }
}
