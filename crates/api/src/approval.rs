//! Requests about approvals and the policy.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::words::words;
use crate::{ActorRole, Containment, LeaseState, Posture, RunState};

words! {
    pub enum ApprovalState "state" {
        /// Waits for a decision.
        Pending "pending",
        /// Approved; the run has not started.
        Approved "approved",
        Denied "denied",
        /// The run has started.
        Consumed "consumed",
        Expired "expired",
        Revoked "revoked",
        /// The plan, or what it depends on, changed before the start.
        Changed "changed",
        /// A signature was not valid any more before the start.
        Unsigned "unsigned",
        /// The run ended before it started.
        Cancelled "cancelled",
        /// The policy does not require it any more.
        NotNeeded "not_needed",
    }
}

impl ApprovalState {
    /// Whether the run of the approval may still start.
    pub const fn is_open(self) -> bool {
        match self {
            ApprovalState::Pending | ApprovalState::Approved => true,
            ApprovalState::Denied | ApprovalState::Consumed | ApprovalState::Expired => false,
            ApprovalState::Revoked | ApprovalState::Changed | ApprovalState::Unsigned => false,
            ApprovalState::Cancelled | ApprovalState::NotNeeded => false,
        }
    }
}

words! {
    /// What a human decides about an approval.
    pub enum Decision "decision" {
        Approve "approve",
        Deny "deny",
        /// Takes an approval back before its run starts.
        Revoke "revoke",
    }
}

words! {
    /// What the policy decides.
    pub enum Verdict "verdict" {
        Allow "allow",
        /// A human must approve.
        Ask "ask",
        Deny "deny",
    }
}

words! {
    /// The result of the check of a fingerprint before the start.
    pub enum FingerprintCheck "result" {
        Unchanged "as_it_was",
        Changed "changed",
    }
}

/// A request that a human approve one exact plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approval {
    pub id: String,
    pub state: ApprovalState,
    pub run_id: String,
    pub schedule_id: String,
    /// The name of the schedule; absent if it was removed, and in the answer of a decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule_name: Option<String>,
    /// The agent that the plan prompts; absent if the plan calls a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The tool that the plan calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub tier: u8,
    /// That an earlier attempt of the run ran and how it ended: `attempt 1 ran and failed: …`. Absent before the first.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub previous: Option<String>,
    /// What contains the agent of the plan; absent for a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
    /// When the approval was requested.
    #[serde(rename = "asked_at")]
    pub requested_at: String,
    /// When a pending approval expires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_by: Option<String>,
    /// When an approval expires whose run has not started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    /// The reason given with the decision.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub needs: ApprovalRequirements,
    /// Who has approved so far, if several people must.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assents: Vec<String>,
    /// The authors of the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    /// Everyone who registered or changed the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agent_authors: Vec<String>,
    /// The policy decision that requires the approval.
    pub ruling: PolicyDecision,
    /// The hash of the plan without its run and attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_hash: Option<String>,
    /// The hash of the plan. An approval covers only the plan with this hash.
    pub plan_hash: String,
    /// The parts of the machine that the effect depends on; they are checked again before the start.
    #[serde(rename = "stands_on", default, skip_serializing_if = "Vec::is_empty")]
    pub fingerprint: Vec<FingerprintPart>,
    /// Everything that determines the effect of the run.
    pub plan: Value,
    /// The prompt that is sealed in the plan; only for callers that may read it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsealed: Option<String>,
    /// The page where a human decides, for a browser on this machine. Absent unless the approval is pending and a daemon
    /// serves the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A part of the execution fingerprint: something on the machine that the effect of a plan depends on.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FingerprintPart {
    /// `program`, `directory` or the name of a variable
    pub part: String,
    /// The result of the check before the start, after it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<FingerprintCheck>,
}

/// Who must approve, and how.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalRequirements {
    /// How many different people.
    pub persons: u8,
    /// The lowest role of each: `operator` or `maintainer`
    pub role: ActorRole,
    /// Whether each needs a personal token and none may be an author of the schedule or of its agent.
    #[serde(rename = "others")]
    pub needs_personal_token: bool,
    /// Whether each must sign.
    pub signed: bool,
}

/// A decision of the policy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyDecision {
    pub verdict: Verdict,
    /// The matching rules, the decisive ones first. Names that start with `@` are built in.
    pub rules: Vec<String>,
    pub posture: Posture,
    /// The version of the policy that decided.
    pub policy: String,
}

/// Lists approvals, newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ApprovalList {
    /// Only approvals for runs of this agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Also list approvals that are already decided or expired. Default: false.
    pub all: bool,
    /// Most items in the page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// The `cursor` of the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalShow {
    /// The id of the approval, `apr_…`.
    pub id: String,
}

/// Decides an approval.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDecide {
    /// The id of the approval, `apr_…`.
    pub id: String,
    /// What the human decided.
    pub decision: Decision,
    /// The hash of the plan that was shown; required except for `revoke`.
    #[serde(default)]
    pub plan_hash: Option<String>,
    /// The reason, for the people who read the history.
    #[serde(default)]
    pub note: Option<String>,
    /// The approver's signature. Another person may submit it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Also return how to allow the same action in the future.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
}

impl ApprovalDecide {
    /// A decision without plan, note and signature.
    pub fn new(id: impl Into<String>, decision: Decision) -> ApprovalDecide {
        let id = id.into();
        ApprovalDecide {
            id,
            decision,
            plan_hash: None,
            note: None,
            signature: None,
            remember: false,
        }
    }
}

/// Returns the policy decision about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyExplain {
    /// The id of the run, `run_…`.
    pub run: String,
}

/// Returns what the policy decides about an action that another program would execute.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecide {
    /// The capability that the action needs, such as `shell.run`
    pub capability: String,
    /// The object of the action.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
}

/// Evaluates past decisions again, with the active policy or another one, and returns those that would
/// differ. It changes nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyReplay {
    /// The first instant, or a span before now, such as `7d`.
    pub since: String,
    /// Rules as text, instead of the operator's own.
    #[serde(default)]
    pub rules: Option<String>,
    /// A posture, instead of the active one.
    #[serde(default)]
    pub posture: Option<Posture>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Approvals {
    pub approvals: Vec<Approval>,
    /// Where the next page starts; absent on the last page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalShown {
    pub approval: Approval,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ApprovalDecided {
    pub approval: Approval,
    /// Whether the decision changed the approval.
    pub changed: bool,
    /// How to allow the same action in the future, if requested. An approval itself never does that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyExplained {
    pub run_id: String,
    pub state: RunState,
    /// The request to the policy. Absent before the decision, and for old decisions that did not record it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PolicyRequest>,
    /// The facts that the decision used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<PolicyFacts>,
    /// The decision; absent if the policy has not decided yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<PolicyDecision>,
    pub sentence: String,
    /// What contains the agent of the run now; absent for a tool call, and if the agent was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
}

/// A request to the policy, in the form that `policy explain --request` reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRequest {
    pub principal: String,
    pub role: ActorRole,
    pub capability: String,
    pub tier: u8,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
}

/// The facts that a policy decision about a run uses.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyFacts {
    /// Runs left today, by the strictest limit; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_left: Option<i64>,
    /// Tokens left today, by the strictest limit; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_left: Option<i64>,
    /// Money left today, by the strictest limit; absent without a limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_left: Option<String>,
    /// Whether the run was started without a human.
    pub unattended: bool,
    pub lease: LeaseState,
    /// Features that the posture or the configuration disables.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyDecided {
    pub ruling: PolicyDecision,
    pub sentence: String,
}

/// A past decision that would differ.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ChangedDecision {
    pub run_id: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// The past verdict.
    pub was: Verdict,
    /// The new verdict.
    pub would_be: Verdict,
    /// The rule that decides the new verdict.
    pub rule: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyReplayed {
    pub since: String,
    pub posture: Posture,
    /// The version of the policy that was evaluated.
    pub policy: String,
    /// Number of decisions that were checked.
    pub decisions: u64,
    /// The first decisions that would differ.
    pub changed: Vec<ChangedDecision>,
    /// Number of decisions that would differ, by old and new verdict: `allow_to_ask`, …
    pub counts: BTreeMap<String, u64>,
    /// Number of decisions that cannot be checked, because the ledger does not have their request.
    #[serde(default)]
    pub untold: u64,
    /// The instant from which decisions are left to check; absent if none are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_from: Option<String>,
    pub sentence: String,
}
