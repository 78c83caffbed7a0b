//! The events of an approval. These are stored formats.

use serde::{Deserialize, Serialize};

use super::{Approval, LapseReason, Plan};
use crate::agent::{Agent, AgentName};
use crate::budget::Charge;
use crate::counter::Counter;
use crate::event::kinds;
use crate::noun::{ChangedRow, NounEvent};
use crate::policy_decision::{Facts, PolicyDecision, Request};
use crate::principal::Principal;
use crate::private_fields::{PrivateField, note};
use crate::run::Run;
use crate::time::Timestamp;
use crate::{ApprovalId, RunId, TokenId};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    Requested(Box<Requested>),
    Assented(Assented),
    Decided(Decided),
    Consumed(Consumed),
    Lapsed(Lapsed),
}

/// A human must decide about a plan; its run is parked until then.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Requested {
    pub plan: Plan,
    pub plan_hash: String,
    /// Of the plan without its run and attempt: equal for two approvals of the same action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_hash: Option<String>,
    pub request: Request,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<Facts>,
    pub ruling: PolicyDecision,
    /// The authors of the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<Principal>,
    /// Everyone who registered or changed the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_authors: Vec<Principal>,
    /// The counters of approval requests that it adds to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub charge: Option<Charge>,
    pub approve_by: Timestamp,
    pub at: Timestamp,
}

/// One person approved, and more approvals are needed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Assented {
    pub run: RunId,
    /// The hash of the plan that was shown.
    pub plan_hash: String,
    pub decision: Decision,
}

/// The final decision: the last required person approved, or one denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decided {
    pub run: RunId,
    /// The hash of the plan that was shown.
    pub plan_hash: String,
    pub decision: Decision,
    /// When the run must have started, if it was approved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_by: Option<Timestamp>,
    /// The agent that has one pending approval fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frees: Option<AgentName>,
    /// The agent's consecutive denials, if their number changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub streak: Option<DenialStreak>,
}

/// Consecutive denied approvals of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DenialStreak {
    pub agent: AgentName,
    pub denials: u32,
}

/// One human's decision.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Decision {
    pub by: String,
    pub is_approved: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<Signature>,
    pub at: Timestamp,
}

/// A signature with a person's key over the approval, its plan, the installation and the expiry.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Signature {
    /// The token that the key belongs to.
    pub token: TokenId,
    pub text: String,
    /// When the signature could no longer be submitted.
    pub expires_at: Timestamp,
}

/// The run starts, in the same commit.
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
    pub why: LapseReason,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    /// The agent that has one pending approval fewer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frees: Option<AgentName>,
    /// The parts of the plan that changed, if that is why.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed: Vec<String>,
    pub at: Timestamp,
}

kinds! {
    Event:
    "approval.asked" 1 Requested;
    "approval.assented" 1 Assented;
    "approval.decided" 1 Decided;
    "approval.consumed" 1 Consumed;
    "approval.lapsed" 1 Lapsed;
}

impl NounEvent for Event {
    type State = Approval;

    fn changed_rows(&self, id: &ApprovalId) -> Vec<ChangedRow> {
        let approval = || ChangedRow::existing::<Approval>(id);
        match self {
            Event::Requested(requested) => {
                let run = ChangedRow::existing::<Run>(&requested.plan.run);
                vec![ChangedRow::new::<Approval>(id), run]
            }
            Event::Decided(decided) => {
                let run = ChangedRow::existing::<Run>(&decided.run);
                let streak = decided.streak.as_ref();
                let agent = streak.map(|it| ChangedRow::existing::<Agent>(&it.agent));
                [approval(), run].into_iter().chain(agent).collect()
            }
            Event::Lapsed(Lapsed { why: LapseReason::LeaseRenewed, run, .. }) => {
                vec![approval(), ChangedRow::existing::<Run>(run)]
            }
            Event::Assented(_) | Event::Consumed(_) | Event::Lapsed(_) => vec![approval()],
        }
    }

    fn counter_deltas(&self) -> Vec<(Counter, i64)> {
        let frees = match self {
            Event::Requested(requested) => {
                let Some(Charge { agent: Some(agent), day }) = &requested.charge else {
                    return Vec::new();
                };
                let requests = Counter::ApprovalRequests(agent.clone(), *day);
                return vec![(requests, 1), (Counter::PendingApprovals(agent.clone()), 1)];
            }
            Event::Decided(decided) => &decided.frees,
            Event::Lapsed(lapsed) => &lapsed.frees,
            Event::Assented(_) | Event::Consumed(_) => &None,
        };
        frees.iter().map(|agent| (Counter::PendingApprovals(agent.clone()), -1)).collect()
    }

    fn private_fields_mut(&mut self) -> Vec<PrivateField<'_>> {
        match self {
            Event::Requested(requested) => {
                let Plan { prompt, previous, .. } = &mut requested.plan;
                let cause = previous.as_mut().and_then(|previous| previous.cause.as_mut());
                let message = cause.map(|cause| ("message", &mut cause.message));
                [("prompt", prompt.stored_mut())].into_iter().chain(message).collect()
            }
            Event::Assented(assented) => note(&mut assented.decision.note),
            Event::Decided(decided) => note(&mut decided.decision.note),
            Event::Consumed(_) | Event::Lapsed(_) => Vec::new(),
        }
    }
}
