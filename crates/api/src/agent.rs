//! Requests about agents.

use std::ops::Not;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::run::RunUsage;
use crate::words::words;

words! {
    /// What keeps an agent from getting around the rules of Midwatch.
    pub enum Containment "containment" {
        /// It is part of Midwatch and only answers.
        Builtin "builtin",
        /// Nothing but its own behaviour: its program runs as the daemon's user.
        Advisory "advisory",
        /// It acts elsewhere, where Midwatch neither starts nor limits it.
        External "external",
    }
}

/// The settings of an agent. A request that adds an agent sets them, one that edits it changes them, and the agent has
/// them.
///
/// They are flattened into these three. serde then refuses unknown fields by the outer struct alone, so this one must not
/// deny them; the tests below show that both work together.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct AgentSettings {
    /// The URL of its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub url: Option<String>,
    /// The model to use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The agent's id on its server.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remote_id: Option<String>,
    /// The program and its arguments.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
    /// The working directory of the program. An edit removes it by an empty text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwd: Option<String>,
    /// Names of the environment variables that the program gets, never their values. An edit replaces the list; a single
    /// empty name clears it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub env: Vec<String>,
    /// How the program gets the prompt: `stdin` or `argument`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prompt_as: Option<String>,
    /// How long one attempt may take.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time_limit_seconds: Option<u32>,
    /// A file with canned answers. An edit removes it by an empty text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub script: Option<String>,
    /// Letta only: the API, `rest` or `openai`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub api: Option<String>,
    /// Letta only: how a prompt is sent, `wait`, `stream` or `background`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sending: Option<String>,
    /// Whether requests may go to this machine and to private networks. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allow_private: Option<bool>,
    /// The tier of a prompt to it. Default: that of its backend.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// A reference to the secret, `env:NAME` or `file:/path`; never the secret itself. An edit removes it by an empty text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credential: Option<String>,
    /// Whether a prompt may be executed twice without harm. Default: false.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub repeatable: Option<bool>,
    /// Price of a million input tokens, such as `3.00`; `0` removes it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_input: Option<String>,
    /// Price of a million output tokens.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_output: Option<String>,
    /// Price of each attempt.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price_run: Option<String>,
}

/// A registered agent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Agent {
    pub name: String,
    /// The kind of backend, such as `command` or `letta`.
    pub backend: String,
    /// Absent in stored responses of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub containment: Option<Containment>,
    /// Its settings; `tier` and `repeatable` are always present.
    #[serde(flatten)]
    pub settings: AgentSettings,
    pub registered_at: String,
    pub changed_at: String,
    /// Increases with every change of the stored agent; absent in stored responses of earlier versions.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub version: u64,
}

fn is_zero(version: &u64) -> bool {
    *version == 0
}

/// Registers an agent. Registering the same agent again changes nothing.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentAdd {
    /// The name of the agent.
    pub name: String,
    /// The kind of backend, such as `command` or `letta`.
    pub backend: String,
    #[serde(flatten)]
    pub settings: AgentSettings,
    /// Check the agent's server, if it has one, and report the result in `server` and `warnings`.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub look: bool,
}

/// Changes an agent. Omitted fields keep their value.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct AgentEdit {
    /// The name of the agent.
    pub name: String,
    /// The new kind of backend.
    #[serde(default)]
    pub backend: Option<String>,
    #[serde(flatten)]
    pub settings: AgentSettings,
    /// Check the agent's server, if it has one, and report the result in `server` and `warnings`.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub look: bool,
}

/// Lists agents.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct AgentList {
    /// Only the agent with this name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// Most items in the page, 1 to 1000. Default: 50.
    pub limit: Option<u32>,
    /// The `cursor` of the previous page.
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentAdded {
    pub agent: Agent,
    /// False if the same agent was already registered.
    pub created: bool,
    /// What its server says about itself, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
    /// Why a prompt to it would fail now, as the process sees it that would send the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentEdited {
    pub agent: Agent,
    /// False if nothing differed.
    pub changed: bool,
    /// What its server says about itself, in sentences.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub server: Vec<String>,
    /// Why a prompt to it would fail now, as the process sees it that would send the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentShown {
    pub agent: Agent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentRemoved {
    /// The agent before it was removed.
    pub agent: Agent,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct AgentTested {
    pub test: AgentTestResult,
}

/// The result of an agent test.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
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
    /// What may keep other prompts from working, if the test passed; else what the failure may come from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, from_value, json, to_value};

    use super::*;

    #[test]
    fn settings_are_fields_of_the_request() {
        let settings = AgentSettings { tier: Some(2), ..AgentSettings::default() };
        let add = AgentAdd { name: "ada".to_owned(), settings, ..AgentAdd::default() };
        assert_eq!(to_value(&add).unwrap(), json!({"name": "ada", "backend": "", "tier": 2}));
        // As earlier versions send it.
        let sent = json!({"name": "ada", "backend": "", "url": null, "argv": [], "tier": 2});
        assert_eq!(from_value::<AgentAdd>(sent).unwrap(), add);
    }

    #[test]
    fn unknown_fields_are_refused_beside_flattened_settings() {
        let add = |field: &str, value: Value| {
            let mut request = json!({"name": "ada", "backend": "builtin", "time_limit_seconds": 1});
            request[field] = value;
            from_value::<AgentAdd>(request).map_err(|error| error.to_string())
        };
        assert!(add("look", json!(true)).is_ok());
        assert_eq!(add("teir", json!(2)), Err("unknown field `teir`".to_owned()));
        assert!(add("tier", json!("2")).is_err());
        let edit = from_value::<AgentEdit>(json!({"name": "ada", "loko": true}));
        assert_eq!(edit.unwrap_err().to_string(), "unknown field `loko`");
    }
}
