//! Requests about agents.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::RunUsage;

/// A registered agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agent {
    pub name: String,
    /// The kind of backend, such as `command` or `letta`.
    pub backend: String,
    /// The URL of its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's id on its server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub remote_id: Option<String>,
    /// The program and its arguments.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The working directory of the program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Names of the environment variables that the program gets, never their values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// How the program gets the prompt: `stdin` or `argument`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt_as: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Letta only: the API, `rest` or `openai`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Letta only: how a prompt is sent, `wait`, `stream` or `background`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending: Option<String>,
    /// Whether requests may go to this machine and to private networks.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub allow_private: bool,
    pub tier: u8,
    /// A reference to the secret, `env:NAME` or `file:/path`; never the secret itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Whether a prompt may be executed twice without harm.
    #[serde(default)]
    pub repeatable: bool,
    /// Price of a million input tokens, such as `3.00`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_input: Option<String>,
    /// Price of a million output tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_output: Option<String>,
    /// Price of each attempt.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_run: Option<String>,
    pub registered_at: String,
    pub changed_at: String,
}

/// Registers an agent. Registering the same agent again changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// Price of a million input tokens, such as `3.00`.
    #[serde(default)]
    pub price_input: Option<String>,
    /// Price of a million output tokens.
    #[serde(default)]
    pub price_output: Option<String>,
    /// Price of each attempt.
    #[serde(default)]
    pub price_run: Option<String>,
    /// Check the agent's server, if it has one, and report the result in `server`.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub look: bool,
}

/// Changes an agent. Omitted fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// The working directory; an empty text removes it.
    #[serde(default)]
    pub cwd: Option<String>,
    /// Replaces the list of variables; a single empty name clears it.
    #[serde(default)]
    pub env: Vec<String>,
    #[serde(default)]
    pub prompt_as: Option<String>,
    #[serde(default)]
    pub time_limit_seconds: Option<u32>,
    /// The script; an empty text removes it.
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
    /// A reference to the secret; an empty text removes it.
    #[serde(default)]
    pub credential: Option<String>,
    #[serde(default)]
    pub repeatable: Option<bool>,
    /// Price of a million input tokens; `0` removes it.
    #[serde(default)]
    pub price_input: Option<String>,
    /// Price of a million output tokens; `0` removes it.
    #[serde(default)]
    pub price_output: Option<String>,
    /// Price of each attempt; `0` removes it.
    #[serde(default)]
    pub price_run: Option<String>,
}

/// Lists agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentList {
    /// Only the agent with this name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Most items in the page, 1 to 1000. Default: 50.
    #[serde(default)]
    pub limit: Option<u32>,
    /// The `cursor` of the previous page.
    #[serde(default)]
    pub cursor: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentShow {
    /// The name of the agent.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentRemove {
    /// The name of the agent.
    pub name: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentAdded {
    pub agent: Agent,
    /// False if the same agent was already registered.
    pub created: bool,
    /// The result of the check of its server, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentEdited {
    pub agent: Agent,
    /// False if nothing differed.
    pub changed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentShown {
    pub agent: Agent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentRemoved {
    /// The agent before it was removed.
    pub agent: Agent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Agents {
    pub agents: Vec<Agent>,
    /// Where the next page starts; absent on the last page.
    pub cursor: Option<String>,
}

/// Prompts an agent once, without a schedule.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentTest {
    /// The name of the agent.
    pub name: String,
    #[serde(default)]
    pub prompt: Option<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTested {
    pub test: AgentTestResult,
}

/// The result of an agent test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentTestResult {
    pub agent: String,
    /// Whether the agent executed the prompt.
    pub passed: bool,
    /// Why the test failed, as a short code.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// `reason` as a sentence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
    pub took_ms: u64,
    /// The first part of the output.
    #[serde(rename = "said")]
    pub output: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<RunUsage>,
    /// What the agent's server reports about itself, if it has one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
}
