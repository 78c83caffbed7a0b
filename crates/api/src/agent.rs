//! Requests about agents.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use crate::run::RunUsage;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub name: String,
    pub backend: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_id: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Names of variables, never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// `stdin` or `argument`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Of Letta: `rest` or `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// To Letta: `wait`, `stream` or `background`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<String>,
    /// Requests may go to this machine and to private networks.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub allow_private: bool,
    pub tier: u8,
    /// A reference, `env:NAME` or `file:/path`; never the secret.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Its work may be done twice without harm.
    #[serde(default)]
    pub repeatable: bool,
    /// For a million tokens that are read, such as `3.00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_input: Option<String>,
    /// For a million that are written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_output: Option<String>,
    /// For each try.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_run: Option<String>,
    pub registered_at: String,
    pub changed_at: String,
}

/// Registers an agent; the same one again is not a change.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentAdd {
    pub name: String,
    pub backend: String,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub remote_id: Option<String>,
    #[serde(default)]
    pub argv: Vec<String>,
    #[serde(default)]
    pub cwd: Option<String>,
    #[serde(default)]
    pub env: Vec<String>,
    #[serde(default)]
    pub prompt_as: Option<String>,
    #[serde(default)]
    pub time_limit_seconds: Option<u32>,
    #[serde(default)]
    pub script: Option<String>,
    #[serde(default)]
    pub api: Option<String>,
    #[serde(default)]
    pub sending: Option<String>,
    #[serde(default)]
    pub allow_private: bool,
    #[serde(default)]
    pub tier: Option<u8>,
    #[serde(default)]
    pub credential: Option<String>,
    #[serde(default)]
    pub repeatable: bool,
    /// Amounts such as `3.00`: for a million tokens that are read, for a million that are written, and for
    /// each try.
    #[serde(default)]
    pub price_input: Option<String>,
    #[serde(default)]
    pub price_output: Option<String>,
    #[serde(default)]
    pub price_run: Option<String>,
    /// Look at its server afterwards, if it has one, and tell what was seen.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub look: bool,
}

/// Changes what is given and leaves the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentEdit {
    pub name: String,
    #[serde(default)]
    pub backend: Option<String>,
    #[serde(default)]
    pub url: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub remote_id: Option<String>,
    #[serde(default)]
    pub argv: Vec<String>,
    /// An empty text takes it away, as with `script`.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Replaces the list; an empty name is none.
    #[serde(default)]
    pub env: Vec<String>,
    #[serde(default)]
    pub prompt_as: Option<String>,
    #[serde(default)]
    pub time_limit_seconds: Option<u32>,
    #[serde(default)]
    pub script: Option<String>,
    #[serde(default)]
    pub api: Option<String>,
    #[serde(default)]
    pub sending: Option<String>,
    #[serde(default)]
    pub allow_private: Option<bool>,
    #[serde(default)]
    pub tier: Option<u8>,
    /// An empty text takes the credential away.
    #[serde(default)]
    pub credential: Option<String>,
    #[serde(default)]
    pub repeatable: Option<bool>,
    /// As in [`AgentAdd`]; `0` takes one away.
    #[serde(default)]
    pub price_input: Option<String>,
    #[serde(default)]
    pub price_output: Option<String>,
    #[serde(default)]
    pub price_run: Option<String>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentList {
    /// Only the one of this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    #[serde(default)]
    pub limit: Option<u32>,
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentShow {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentRemove {
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAdded {
    pub agent: Agent,
    /// False when it was there already.
    pub created: bool,
    /// What was seen of its server, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEdited {
    pub agent: Agent,
    /// False when it was so already.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentShown {
    pub agent: Agent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRemoved {
    /// As it was before.
    pub agent: Agent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agents {
    pub agents: Vec<Agent>,
    /// Where the next page begins; absent on the last.
    pub cursor: Option<String>,
}

/// Prompts an agent once, outside of any schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AgentTest {
    pub name: String,
    #[serde(default)]
    pub prompt: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTested {
    pub test: Test,
}

/// What was seen of an agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Test {
    pub agent: String,
    /// Whether it did what it was asked.
    pub passed: bool,
    /// Why not: a short code, and the same in a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub took_ms: u64,
    /// The beginning of what it said.
    pub said: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// What its server tells about itself, where there is one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
}
