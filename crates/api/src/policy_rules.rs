//! The active rules of the policy.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Lists the active rules.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct PolicyList {}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRules {
    /// The posture, which selects the baseline.
    pub posture: String,
    /// The version of the policy, as decisions name it.
    pub policy: String,
    pub rules: Vec<PolicyRule>,
}

/// A rule, or something built in that decides like one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyRule {
    /// As decisions name it: `policy.toml/no-network`, `baseline/reading`, `@default`.
    pub name: String,
    /// `policy.toml`, `baseline` or `posture`.
    pub origin: String,
    /// The line in `policy.toml`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
    /// `allow`, `ask` or `deny`.
    pub effect: String,
    /// The classes of actions that it is about; empty: all.
    pub classes: Vec<String>,
    /// All of these must hold.
    pub conditions: Vec<PolicyCondition>,
    /// Who must approve: the number of people and their role. Absent: one operator.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub approvers: Option<String>,
    /// When something built in applies.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct PolicyCondition {
    /// Such as `agent` or `host`.
    pub key: String,
    /// One of these must match.
    pub values: Vec<String>,
}
