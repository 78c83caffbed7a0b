//! Who does something: a name and the role under which it acts.

use serde::{Deserialize, Serialize};

use crate::id::RunId;

/// What the name of a run begins with.
const OF_RUN: &str = "run:";
/// What the name of a user of the machine begins with.
const OF_USER: &str = "uid:";
/// What an agent is called that has written something.
const OF_AGENT: &str = "agent:";
/// What the name of somebody's assistant begins with.
const OF_ASSISTANT: &str = "mcp:";
/// What the name of a call begins with that a run makes by itself.
const OF_CALL: &str = "tool:";

/// What a principal may do, from least to most. The order is part of the rules: a command names
/// the least role that may give it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads.
    Observer,
    /// What agents get.
    Runner,
    /// A human who approves, cancels, pauses, registers agents.
    Operator,
    /// Also changes policy, posture and keys.
    Maintainer,
    /// The watch itself. No way in from outside yields it.
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

/// A named principal, as it is written into every event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    pub name: String,
    pub role: Role,
}

impl Actor {
    /// The watch acting on its own account: starting, stopping, keeping its log.
    pub fn system() -> Actor {
        Actor { name: "midwatch".to_owned(), role: Role::System }
    }

    /// What a run does by itself, from its own process.
    pub fn of_run(run: &RunId) -> Actor {
        Actor { name: format!("{OF_RUN}{run}"), role: Role::Runner }
    }

    /// A process that a run has started and that does not say which run.
    pub fn of_some_run() -> Actor {
        Actor { name: format!("{OF_RUN}unknown"), role: Role::Runner }
    }

    /// The run that acts, if it is one.
    pub fn run(&self) -> Option<RunId> {
        let name = self.name.strip_prefix(OF_RUN).filter(|_| self.role == Role::Runner);
        name.and_then(|id| id.parse().ok())
    }

    /// The call of a tool that is the whole work of a run. It speaks for those who have written its schedule.
    pub fn of_call(run: &RunId) -> Actor {
        Actor { name: format!("{OF_CALL}{run}"), role: Role::Runner }
    }

    /// The run whose work the call is, if it is one.
    pub fn call(&self) -> Option<RunId> {
        let name = self.name.strip_prefix(OF_CALL).filter(|_| self.role == Role::Runner);
        name.and_then(|id| id.parse().ok())
    }

    /// The user of this machine who holds the data directory, at the terminal or over the socket.
    pub fn local_user(uid: u32) -> Actor {
        Actor { name: format!("{OF_USER}{uid}"), role: Role::Maintainer }
    }

    /// A program that speaks for somebody, as an MCP server does for whoever has started it. It is never more
    /// than a runner, since an agent is behind it.
    #[must_use]
    pub fn assistant(self) -> Actor {
        match self.role {
            Role::Observer | Role::Runner => self,
            Role::Operator | Role::Maintainer | Role::System => {
                Actor { name: format!("{OF_ASSISTANT}{}", self.name), role: Role::Runner }
            }
        }
    }

    /// Whether it speaks for a person. It does what the standing orders allow, and nothing that is for people
    /// alone.
    pub fn is_assistant(&self) -> bool {
        let speaks_for = [OF_ASSISTANT, OF_CALL];
        self.role == Role::Runner && speaks_for.iter().any(|prefix| self.name.starts_with(prefix))
    }

    /// The person behind a name: an assistant's doing is that of whom it speaks for.
    pub fn person(name: &str) -> &str {
        name.strip_prefix(OF_ASSISTANT).unwrap_or(name)
    }

    /// Whether nothing is known of the person but the user of the machine.
    pub fn is_local_user(&self) -> bool {
        self.name.starts_with(OF_USER)
    }

    /// Whether a name is that of a call that a run makes by itself.
    pub fn is_call(name: &str) -> bool {
        name.starts_with(OF_CALL)
    }

    /// Whether a name is that of a user of the machine, of a run or of an agent, and tells of no person.
    pub fn tells_no_person(name: &str) -> bool {
        [OF_USER, OF_RUN, OF_AGENT, OF_CALL].iter().any(|prefix| name.starts_with(prefix))
    }

    /// Whether a name is that of a run.
    pub(crate) fn names_run(name: &str) -> bool {
        name.starts_with(OF_RUN)
    }

    /// What the author of a schedule is called that an agent has written with its own token.
    pub fn of_agent(agent: &str) -> String {
        format!("{OF_AGENT}{agent}")
    }
}
