//! Requests about approvals and the standing orders.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question to a human about one exact plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approval {
    pub id: String,
    /// `pending`, `approved`, `denied`, `consumed`, `expired`, `revoked`, `changed`, `cancelled` or
    /// `not_needed`
    pub state: String,
    pub run_id: String,
    pub schedule_id: String,
    /// That is prompted, unless a tool is called.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    pub tier: u8,
    pub asked_at: String,
    /// Too late from this instant on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approve_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub execute_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub needs: Needs,
    /// Who has said yes so far, where more than one has to.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub assents: Vec<String>,
    /// Who wrote the schedule.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub authors: Vec<String>,
    pub ruling: Ruling,
    /// Of the plan without its run and try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action_hash: Option<String>,
    /// Of the plan: what is approved, and nothing else.
    pub plan_hash: String,
    /// What of the machine the effect stands on.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stands_on: Vec<StandsOn>,
    /// Everything that can change the effect.
    pub plan: Value,
    /// What is sealed in the plan, for whoever may approve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unsealed: Option<String>,
    /// Where a human looks at it and decides, in a browser on this machine. Absent when nobody is waited for any more,
    /// and where no daemon serves the page.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// A part of what a plan stands on: `program`, `directory`, or a variable by its name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StandsOn {
    pub part: String,
    /// `as_it_was` or `changed`, once somebody has looked again to begin the run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found: Option<String>,
}

/// What it takes to say yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Different ones.
    pub persons: u8,
    /// The least of each: `operator` or `maintainer`
    pub role: String,
    /// Each has a token of their own, and none has written the schedule.
    pub others: bool,
    /// With a signature of each.
    pub signed: bool,
}

/// What the standing orders said.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ruling {
    /// `allow`, `ask` or `deny`
    pub verdict: String,
    /// The rules that decided come first; names that begin with `@` are not rules but what is always
    /// so.
    pub rules: Vec<String>,
    pub posture: String,
    /// Which rules were in force.
    pub policy: String,
}

/// The newest first.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalList {
    /// Those about this agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// Also those that nobody needs to answer any more.
    #[serde(default)]
    pub all: bool,
    #[serde(default)]
    pub limit: Option<u32>,
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalShow {
    pub id: String,
}

/// What a human says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApprovalDecide {
    pub id: String,
    /// `approve`, `deny` or `revoke`
    pub decision: String,
    /// The hash of the plan that was shown; only a revocation needs none.
    #[serde(default)]
    pub plan_hash: Option<String>,
    #[serde(default)]
    pub note: Option<String>,
    /// Of whoever approves, whoever brings it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signature: Option<String>,
    /// Also say how the same could be allowed from now on.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub remember: bool,
}

/// Asks what the standing orders said of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyExplain {
    pub run: String,
}

/// Asks what the standing orders say of something that is not done yet, and is not done by the watch.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecide {
    /// The class of what is to be done, such as `shell.run`
    pub capability: String,
    /// What it is done to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
}

/// Asks which decisions of the past the rules in force would make otherwise, or other rules. It changes
/// nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyReplay {
    /// A span before now, such as `7d`, or an instant.
    pub since: String,
    /// The text of rules in the place of the operator's own.
    #[serde(default)]
    pub rules: Option<String>,
    /// A posture in the place of the one in force.
    #[serde(default)]
    pub posture: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Approvals {
    pub approvals: Vec<Approval>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalShown {
    pub approval: Approval,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ApprovalDecided {
    pub approval: Approval,
    /// Whether this answer made a difference.
    pub changed: bool,
    /// How the same could be allowed from now on, if that was asked. No answer does that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remember: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyExplained {
    pub run_id: String,
    pub state: String,
    /// What the orders were asked. Absent before, and of what was decided before it was recorded.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<PolicyRequest>,
    /// What was so then.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub facts: Option<PolicyFacts>,
    /// Absent before the orders were asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
    pub sentence: String,
}

/// What the standing orders are asked, in the form in which `policy explain --request` takes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyRequest {
    pub principal: String,
    pub role: String,
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

/// What is so when the standing orders are asked about a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyFacts {
    /// Of the day, the least of all limits that bind; absent where none does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs_left: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens_left: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_left: Option<String>,
    /// No human has asked for it by hand.
    pub unattended: bool,
    /// `full`, `ask` or `paused`
    pub lease: String,
    /// What can be switched and is off, by the posture or by a flag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyDecided {
    pub ruling: Ruling,
    pub sentence: String,
}

/// A decision of the past that would be another one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ChangedDecision {
    pub run_id: String,
    pub at: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<String>,
    /// `allow`, `ask` or `deny`
    pub was: String,
    pub would_be: String,
    /// By which rule it would be.
    pub rule: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PolicyReplayed {
    pub since: String,
    pub posture: String,
    /// Which rules were tried.
    pub policy: String,
    /// All that were looked at.
    pub decisions: u64,
    /// The first of those that would be others.
    pub changed: Vec<ChangedDecision>,
    /// All that would be others, by what they would change from and to: `allow_to_ask`, …
    pub counts: BTreeMap<String, u64>,
    /// Those of which the log does not tell what was asked.
    #[serde(default)]
    pub untold: u64,
    /// There are more decisions, from this instant on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub more_from: Option<String>,
    pub sentence: String,
}
