//! The actor of a command or event: a name and a role.
//!
//! The prefix of a name says what kind of principal it is; a person's name has no prefix.

use serde::{Deserialize, Serialize};

use crate::id::RunId;

const RUN_PREFIX: &str = "run:";
/// A local user of the machine.
const USER_PREFIX: &str = "uid:";
/// The author of a schedule that an agent wrote with its own token.
const AGENT_PREFIX: &str = "agent:";
/// A program that acts for a person, such as an MCP server.
const ASSISTANT_PREFIX: &str = "mcp:";
/// The tool call that is the whole work of a run.
const TOOL_CALL_PREFIX: &str = "tool:";

/// What a principal may do, from least to most. The order is part of the rules: each command names
/// the lowest role that may issue it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Observer,
    /// The role of agents and runs.
    Runner,
    /// A human who approves, cancels, pauses, registers agents.
    Operator,
    /// Also changes policy, posture and keys.
    Maintainer,
    /// Midwatch itself. No caller is authenticated with this role.
    System,
}

impl Role {
    pub const fn name(self) -> &'static str {
        match self {
            Role::Observer => "observer",
            Role::Runner => "runner",
            Role::Operator => "operator",
            Role::Maintainer => "maintainer",
            Role::System => "system",
        }
    }
}

/// A named principal, as recorded in every event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub name: String,
    pub role: Role,
}

impl Actor {
    /// Midwatch acting by itself: starting, stopping, maintaining its ledger.
    pub fn system() -> Actor {
        Actor { name: "midwatch".to_owned(), role: Role::System }
    }

    /// A run that calls Midwatch from its own process.
    pub fn for_run(run: &RunId) -> Actor {
        Actor { name: format!("{RUN_PREFIX}{run}"), role: Role::Runner }
    }

    /// A process that some run started, where the run is not known.
    pub fn for_unknown_run() -> Actor {
        Actor { name: format!("{RUN_PREFIX}unknown"), role: Role::Runner }
    }

    /// The run, if the actor is one.
    pub fn run_id(&self) -> Option<RunId> {
        let name = self.name.strip_prefix(RUN_PREFIX).filter(|_| self.role == Role::Runner);
        name.and_then(|id| id.parse().ok())
    }

    /// The tool call that is the whole work of a run. It acts for the authors of the run's schedule.
    pub fn for_tool_call(run: &RunId) -> Actor {
        Actor { name: format!("{TOOL_CALL_PREFIX}{run}"), role: Role::Runner }
    }

    /// The run whose tool call the actor is, if it is one.
    pub fn tool_call_run(&self) -> Option<RunId> {
        let name = self.name.strip_prefix(TOOL_CALL_PREFIX).filter(|_| self.role == Role::Runner);
        name.and_then(|id| id.parse().ok())
    }

    /// The local user who owns the data directory, at the terminal or over the socket.
    pub fn local_user(uid: u32) -> Actor {
        Actor { name: format!("{USER_PREFIX}{uid}"), role: Role::Maintainer }
    }

    /// A program that acts for this principal, as an MCP server does for the user who started it. Its role is
    /// at most runner, because an agent controls it.
    #[must_use]
    pub fn into_assistant(self) -> Actor {
        match self.role {
            Role::Observer | Role::Runner => self,
            Role::Operator | Role::Maintainer | Role::System => {
                Actor { name: format!("{ASSISTANT_PREFIX}{}", self.name), role: Role::Runner }
            }
        }
    }

    /// Whether it is a program that acts for a person. The policy decides what it may do; requests that only
    /// humans may make are refused.
    pub fn is_assistant(&self) -> bool {
        let prefixes = [ASSISTANT_PREFIX, TOOL_CALL_PREFIX];
        self.role == Role::Runner && prefixes.iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// The person responsible for what `name` does: for an assistant, the person it acts for.
    pub fn person_behind(name: &str) -> &str {
        name.strip_prefix(ASSISTANT_PREFIX).unwrap_or(name)
    }

    /// Whether it is a local user without a token, so that the person is not known.
    pub fn is_local_user(&self) -> bool {
        self.name.starts_with(USER_PREFIX)
    }

    /// Whether the name belongs to the tool call of a run.
    pub fn is_tool_call_name(name: &str) -> bool {
        name.starts_with(TOOL_CALL_PREFIX)
    }

    /// Whether the name belongs to a local user, a run, an agent or a tool call, and identifies no person.
    pub fn is_impersonal_name(name: &str) -> bool {
        [USER_PREFIX, RUN_PREFIX, AGENT_PREFIX, TOOL_CALL_PREFIX]
            .iter()
            .any(|prefix| name.starts_with(prefix))
    }

    pub(crate) fn is_run_name(name: &str) -> bool {
        name.starts_with(RUN_PREFIX)
    }

    /// The name recorded as the author of a schedule that an agent wrote with its own token.
    pub fn agent_author_name(agent: &str) -> String {
        format!("{AGENT_PREFIX}{agent}")
    }
}
