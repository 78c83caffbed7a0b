//! An approval: a human's permission to execute one exact plan.
//!
//! `pending → approved → consumed`, or it ends earlier as `denied` or `lapsed`. While it is pending, its
//! run is parked. A run starts with an approval only if its plan is the one that was shown to the human, and
//! the commit that starts the run consumes the approval.

mod decide;
mod event;
mod execution_fingerprint;
mod token_file;

use serde::{Deserialize, Serialize};

use crate::actor::Role;
use crate::agent::AgentName;
use crate::backend::{Backend, SecretRef, Tier};
use crate::id::timed_id;
use crate::installation::CLOCK_ERROR_US_MAX;
use crate::noun::NounState;
use crate::policy_decision::{PolicyDecision, Request};
use crate::principal::Principal;
use crate::run::{Cause, LEASE_RULE};
use crate::sealable_text::SealableText;
use crate::time::Timestamp;
use crate::{EventBody, RunId, ScheduleId};
pub use decide::{ApprovalContext, Command, Refusal, Signed, decide, expire, release};
pub use event::{
    Assented, Consumed, Decided, Decision, DenialStreak, Event, Lapsed, Requested, Signature,
};
pub use execution_fingerprint::{Directory, Executable, ExecutionFingerprint, Preflight};
pub use token_file::{TokenFile, TokenFileRefusal};

timed_id!(ApprovalId "apr_" "approval");

/// How long an approval can be decided after it was requested.
pub const APPROVE_WITHIN_US: i64 = 86_400_000_000;
/// How long an approved run may take to start.
pub const EXECUTE_WITHIN_US: i64 = 900_000_000;
/// The index key of pending and approved approvals.
pub const OPEN: &str = "open";
/// The code of the cause when a plan differs from the approved one.
const PLAN_CHANGED: &str = "plan_changed";
/// The changed part of a plan when the approval was found in a copy of the data directory.
const DATA_DIRECTORY: &str = "data directory";

/// Everything that can change the effect of a run. A human approves its hash, in hexadecimal digits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Plan {
    pub instance: String,
    /// Identifies the data directory, if it contains the ledger, so that a copy cannot use the approval.
    #[serde(rename = "place", default, skip_serializing_if = "Option::is_none")]
    pub data_directory: Option<String>,
    pub run: RunId,
    pub schedule: ScheduleId,
    pub revision: u32,
    pub attempt: u32,
    /// The attempt before this one, if the run has run already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<PreviousAttempt>,
    /// The agent to prompt, unless the run calls a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backend: Option<Backend>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<SecretRef>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<PlannedTool>,
    /// The prompt of the agent, or the payload of the tool.
    pub prompt: SealableText,
    pub tier: Tier,
    /// The start of the hash of the rules that were active.
    pub policy: String,
    /// The program, directory and environment, if the run starts a program on this machine.
    #[serde(rename = "footing", default, skip_serializing_if = "Option::is_none")]
    pub fingerprint: Option<ExecutionFingerprint>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlannedTool {
    pub name: String,
    /// Of the tool's published definition.
    pub hash: String,
}

/// An attempt that the run has had before, and how it ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PreviousAttempt {
    /// Counted from 1.
    pub number: u32,
    /// Absent if a human settled how it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cause: Option<Cause>,
}

impl PreviousAttempt {
    /// That it ran and how it ended, as a clause.
    pub fn describe(&self) -> String {
        let message = self.cause.as_ref().map(|cause| format!(": {}", cause.message));
        format!("{}{}", self.describe_briefly(), message.unwrap_or_default())
    }

    /// The clause without the message, which is private.
    pub(crate) fn describe_briefly(&self) -> String {
        let ended = match &self.cause {
            None => "",
            Some(_) if self.was_cancelled() => " and was cancelled",
            Some(_) => " and failed",
        };
        format!("attempt {} ran{ended}", self.number)
    }

    pub(crate) fn was_cancelled(&self) -> bool {
        self.cause.as_ref().is_some_and(Cause::is_cancel)
    }
}

/// The hashes that identify a plan.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hashes {
    /// Empty if it could not be computed; no approval covers such a plan.
    pub plan: String,
    /// Of the plan without the run, its attempts and the data directory: equal for two runs that would do
    /// the same.
    pub action: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approval {
    /// Boxed, because every row has room for the largest state.
    pub plan: Box<Plan>,
    pub plan_hash: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_hash: Option<String>,
    pub request: Request,
    pub ruling: PolicyDecision,
    /// The authors of the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<Principal>,
    /// Everyone who registered or changed the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_authors: Vec<Principal>,
    #[serde(rename = "asked_at")]
    pub requested_at: Timestamp,
    pub state: State,
    /// The approvals of other people before the final decision.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assents: Vec<Decision>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decision: Option<Decision>,
    /// The parts of the plan that had changed when its run was about to start.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub enum State {
    Pending {
        /// It expires at this instant.
        approve_by: Timestamp,
    },
    Approved {
        /// It expires at this instant.
        execute_by: Timestamp,
    },
    Denied,
    Consumed,
    Lapsed(LapseReason),
}

/// Why an approval is no longer open, although it was neither denied nor consumed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LapseReason {
    /// It was not decided in time, or its run did not start in time.
    Expired,
    /// A human revoked it.
    Revoked,
    /// The plan of the run is no longer the approved one.
    Changed,
    /// One of its signatures is no longer valid.
    Unsigned,
    /// Its run ended without it.
    RunEnded,
    /// The policy no longer requires approval.
    NotNeeded,
    /// Only the expired lease had required approval, and a human renewed it. Its run is queued again.
    LeaseRenewed,
}

/// Why an approval does not allow a run to start.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NotCovered {
    pub(crate) why: LapseReason,
    pub(crate) cause: Cause,
    /// The parts of the plan that changed, if that is why.
    pub(crate) changed: Vec<String>,
}

/// Who must approve, and how.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Requirements {
    /// How many different people.
    pub persons: u8,
    /// The lowest role of each.
    pub role: Role,
    /// Each approver has a personal token, and none is an author of the schedule or of its agent.
    pub needs_personal_token: bool,
    pub needs_signature: bool,
}

impl Requirements {
    /// What a policy decision requires for a plan with these authors of its schedule and of its agent.
    pub fn of(
        ruling: &PolicyDecision,
        authors: &[Principal],
        agent_authors: &[Principal],
    ) -> Requirements {
        let PolicyDecision { approvers, posture, .. } = ruling;
        let needs_signature = posture.trust().signed_approvals;
        let needs_personal_token = needs_signature || 1 < approvers.persons;
        // An unknown author could be one of the approvers, so one more is required.
        let has_unknown_author =
            authors.is_empty() || authors.iter().chain(agent_authors).any(Principal::is_impersonal);
        let extra = u8::from(needs_personal_token && has_unknown_author);
        let persons = approvers.persons.saturating_add(extra);
        Requirements { persons, role: approvers.role, needs_personal_token, needs_signature }
    }
}

/// The approval after an event.
pub fn apply(approval: Option<Approval>, event: &Event) -> Option<Approval> {
    if let Event::Requested(requested) = event {
        let requested = (**requested).clone();
        return Some(Approval {
            plan: Box::new(requested.plan),
            plan_hash: requested.plan_hash,
            action_hash: requested.action_hash,
            request: requested.request,
            ruling: requested.ruling,
            authors: requested.authors,
            agent_authors: requested.agent_authors,
            requested_at: requested.at,
            state: State::Pending { approve_by: requested.approve_by },
            assents: Vec::new(),
            decision: None,
            changed: Vec::new(),
        });
    }
    let mut approval = approval?;
    match event {
        Event::Requested(_) => {}
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

impl NounState for Approval {
    type Id = ApprovalId;

    fn apply(_: &str, approval: Option<Approval>, body: &EventBody) -> Option<Approval> {
        match body {
            EventBody::Approval(_, event) => apply(approval, event),
            _ => approval,
        }
    }

    /// When it expires, while it is open.
    fn due(&self) -> Option<Timestamp> {
        match self.state {
            State::Pending { approve_by } => Some(approve_by),
            State::Approved { execute_by } => Some(execute_by),
            State::Denied | State::Consumed | State::Lapsed(_) => None,
        }
    }

    fn index_key(&self) -> Option<String> {
        self.due().map(|_| OPEN.to_owned())
    }
}

impl Approval {
    /// Who must approve, and how.
    pub fn requirements(&self) -> Requirements {
        Requirements::of(&self.ruling, &self.authors, &self.agent_authors)
    }

    /// Whether it is pending, and nothing but the expired lease required it: then the lease comes first in its ruling.
    pub fn is_asked_only_by_lease(&self) -> bool {
        let is_external = self.plan.tier == Tier::External;
        matches!(self.state, State::Pending { .. })
            && !is_external
            && self.ruling.rules.first().is_some_and(|rule| rule == LEASE_RULE)
    }

    /// The decisions of everyone who approved, in order.
    pub fn approving_decisions(&self) -> impl Iterator<Item = &Decision> {
        self.assents.iter().chain(&self.decision).filter(|decision| decision.is_approved)
    }

    /// Whether it is pending and has this action hash.
    pub(crate) fn is_pending_for_action(&self, action: &str, now: Timestamp) -> bool {
        let is_pending =
            matches!(self.state, State::Pending { .. }) && self.expiry_cause(now).is_none();
        is_pending && self.action_hash.as_deref() == Some(action)
    }

    /// The cause of its expiry, if it has expired.
    fn expiry_cause(&self, now: Timestamp) -> Option<Cause> {
        let (deadline, within_us, what) = match self.state {
            State::Pending { approve_by } => {
                (approve_by, APPROVE_WITHIN_US, "the approval was not decided in time")
            }
            State::Approved { execute_by } => {
                (execute_by, EXECUTE_WITHIN_US, "it was approved but did not start in time")
            }
            State::Denied | State::Consumed | State::Lapsed(_) => return None,
        };
        if deadline <= now {
            return Some(Cause::new("expired", what));
        }
        // Time goes back only when a maintainer accepts a corrected clock.
        let latest = now.after_us(within_us.saturating_add(CLOCK_ERROR_US_MAX));
        (latest < deadline)
            .then(|| Cause::new("expired", "its deadline was set by a clock that was ahead"))
    }

    /// Checks that it allows starting this plan, which has this hash.
    pub(crate) fn check_covers(
        &self,
        (plan, plan_hash): (&Plan, &str),
        is_signed: impl Fn(&Decision) -> bool,
        now: Timestamp,
    ) -> Result<(), NotCovered> {
        if let Some(cause) = self.expiry_cause(now) {
            return Err(NotCovered { why: LapseReason::Expired, cause, changed: Vec::new() });
        }
        let is_approved = matches!(self.state, State::Approved { .. });
        if !is_approved || plan_hash.is_empty() || self.plan_hash != plan_hash {
            let before = self.plan.fingerprint.as_ref();
            let changed =
                plan.fingerprint.as_ref().map(|it| it.changed_parts(before)).unwrap_or_default();
            let directory = (plan.data_directory != self.plan.data_directory)
                .then(|| DATA_DIRECTORY.to_owned());
            return Err(NotCovered::changed(directory.into_iter().chain(changed).collect()));
        }
        if self.requirements().needs_signature && !self.approving_decisions().all(is_signed) {
            let what = "a signature of its approval is no longer valid";
            let (why, cause) = (LapseReason::Unsigned, Cause::new("signature_void", what));
            return Err(NotCovered { why, cause, changed: Vec::new() });
        }
        Ok(())
    }

    /// Its state as a clause: "was denied by ada".
    pub fn describe_state(&self) -> String {
        let approvers: Vec<&str> =
            self.approving_decisions().map(|decision| decision.by.as_str()).collect();
        let by = format!(" by {}", approvers.join(" and "));
        let denied = self.decision.as_ref().map(|it| format!(" by {}", it.by)).unwrap_or_default();
        match self.state {
            State::Pending { .. } if approvers.is_empty() => "is pending".to_owned(),
            State::Pending { .. } => format!("was approved{by} and needs more approvals"),
            State::Approved { .. } => format!("was approved{by}"),
            State::Denied => format!("was denied{denied}"),
            State::Consumed => format!("was approved{by} and its run has started"),
            State::Lapsed(LapseReason::Expired) => "has expired".to_owned(),
            State::Lapsed(LapseReason::Revoked) => "was revoked".to_owned(),
            State::Lapsed(LapseReason::Changed) => "was for a plan that has changed".to_owned(),
            State::Lapsed(LapseReason::Unsigned) => "has an invalid signature".to_owned(),
            State::Lapsed(LapseReason::RunEnded) => "was closed because its run ended".to_owned(),
            State::Lapsed(LapseReason::NotNeeded | LapseReason::LeaseRenewed) => {
                "is no longer needed".to_owned()
            }
        }
    }
}

impl NotCovered {
    /// The plan is not the approved one; `changed` names the parts that differ, where known.
    fn changed(changed: Vec<String>) -> NotCovered {
        let what = "the plan is not the approved one";
        let parts = changed.join(", ");
        let what = match changed.is_empty() {
            true => what.to_owned(),
            false => format!("{what}: changed since the request: {parts}"),
        };
        NotCovered { why: LapseReason::Changed, cause: Cause::new(PLAN_CHANGED, &what), changed }
    }

    /// The approved plan cannot be executed any more.
    pub(crate) fn impossible(cause: &Cause) -> NotCovered {
        let what = format!("the approved plan cannot be executed any more: {}", cause.message);
        let cause = Cause::new(PLAN_CHANGED, &what);
        NotCovered { why: LapseReason::Changed, cause, changed: Vec::new() }
    }
}

impl State {
    pub const fn name(self) -> &'static str {
        match self {
            State::Pending { .. } => "pending",
            State::Approved { .. } => "approved",
            State::Denied => "denied",
            State::Consumed => "consumed",
            State::Lapsed(LapseReason::Expired) => "expired",
            State::Lapsed(LapseReason::Revoked) => "revoked",
            State::Lapsed(LapseReason::Changed) => "changed",
            State::Lapsed(LapseReason::Unsigned) => "unsigned",
            State::Lapsed(LapseReason::RunEnded) => "cancelled",
            State::Lapsed(LapseReason::NotNeeded | LapseReason::LeaseRenewed) => "not_needed",
        }
    }
}
