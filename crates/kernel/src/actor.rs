//! The actor of a command or event: a principal and a role.

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use crate::principal::{Human, Principal, SYSTEM_NAME};
use crate::token::PersonName;
use crate::{DeviceId, RunId, ScheduleId, TokenId};

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

/// A principal with its role, as recorded in every event.
///
/// Every entry of the ledger, idempotency key and refusal has the principal's text, so an actor keeps it
/// beside the principal: it is formatted once, when the actor is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Actor {
    // Invariant: `name` is the text of `principal`.
    principal: Principal,
    name: Cow<'static, str>,
    pub role: Role,
    /// The token that authenticated it. Its changes are refused once the token is revoked.
    pub token: Option<TokenId>,
    /// The device through which it acts. Its changes are refused once the device has ended.
    pub device: Option<Box<DeviceId>>,
}

impl Actor {
    pub fn new(principal: Principal, role: Role) -> Actor {
        Actor {
            name: Cow::Owned(principal.to_string()),
            principal,
            role,
            token: None,
            device: None,
        }
    }

    /// Midwatch acting by itself: starting, stopping, maintaining its ledger.
    pub const fn system() -> Actor {
        let (principal, name) = (Principal::System, Cow::Borrowed(SYSTEM_NAME));
        Actor { principal, name, role: Role::System, token: None, device: None }
    }

    /// A run that calls Midwatch from its own process.
    pub fn for_run(run: &RunId) -> Actor {
        Actor::new(Principal::Run(run.clone()), Role::Runner)
    }

    /// A process that some run started, where the run is not known.
    pub fn for_unknown_run() -> Actor {
        Actor::new(Principal::UnknownRun, Role::Runner)
    }

    /// The tool call that is the whole work of a run. It acts for the authors of the run's schedule.
    pub fn for_tool_call(run: &RunId) -> Actor {
        Actor::new(Principal::ToolCall(run.clone()), Role::Runner)
    }

    /// The runs of a schedule, in requests to the policy.
    pub fn for_schedule(schedule: &ScheduleId) -> Actor {
        Actor::new(Principal::Schedule(schedule.clone()), Role::Runner)
    }

    /// The local user who owns the data directory, at the terminal or over the socket.
    pub fn local_user(uid: u32) -> Actor {
        Actor::new(Principal::User(uid), Role::Maintainer)
    }

    /// The holder of a token: a person, or with the role of a runner the agent of that name.
    pub fn token_holder(name: PersonName, role: Role) -> Actor {
        Actor::new(Principal::Person(name), role)
    }

    #[must_use]
    pub fn authenticated_by(self, token: TokenId) -> Actor {
        Actor { token: Some(token), ..self }
    }

    /// A network client without a valid token.
    pub fn unknown_client() -> Actor {
        Actor::new(Principal::UnknownClient, Role::Observer)
    }

    /// The text of the principal, as it is stored and shown.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn into_name(self) -> String {
        self.name.into_owned()
    }

    pub const fn principal(&self) -> &Principal {
        &self.principal
    }

    /// A program that acts for this principal, as an MCP server does for the user who started it. Its role is
    /// at most runner, because an agent controls it.
    #[must_use]
    pub fn into_assistant(self) -> Actor {
        match self.role {
            Role::Observer | Role::Runner => return self,
            Role::Operator | Role::Maintainer | Role::System => {}
        }
        let principal = match self.principal {
            Principal::User(uid) => Principal::Assistant(Human::User(uid)),
            Principal::Person(name) => Principal::Assistant(Human::Person(name)),
            program @ (Principal::Agent(_)
            | Principal::Run(_)
            | Principal::UnknownRun
            | Principal::ToolCall(_)
            | Principal::Assistant(_)
            | Principal::Schedule(_)) => program,
            // Only humans have assistants.
            Principal::UnknownClient | Principal::System | Principal::Unrecognized(_) => {
                Principal::UnknownRun
            }
        };
        Actor { token: self.token, ..Actor::new(principal, Role::Runner) }
    }

    /// Whether it is a program that acts for a person. The policy decides what it may do; requests that only
    /// humans may make are refused.
    pub fn is_assistant(&self) -> bool {
        match &self.principal {
            Principal::Assistant(_) | Principal::ToolCall(_) => self.role == Role::Runner,
            Principal::User(_)
            | Principal::Person(_)
            | Principal::Agent(_)
            | Principal::Run(_)
            | Principal::UnknownRun
            | Principal::Schedule(_)
            | Principal::UnknownClient
            | Principal::System
            | Principal::Unrecognized(_) => false,
        }
    }

    /// The run whose tool call the actor is, if it is one.
    pub fn tool_call_run(&self) -> Option<&RunId> {
        match &self.principal {
            Principal::ToolCall(run) => Some(run).filter(|_| self.role == Role::Runner),
            Principal::User(_)
            | Principal::Person(_)
            | Principal::Agent(_)
            | Principal::Run(_)
            | Principal::UnknownRun
            | Principal::Assistant(_)
            | Principal::Schedule(_)
            | Principal::UnknownClient
            | Principal::System
            | Principal::Unrecognized(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROLES: [Role; 5] =
        [Role::Observer, Role::Runner, Role::Operator, Role::Maintainer, Role::System];
    const RUN: &str = "run_0000000000000000000000000000002a";

    /// Texts of every kind of principal, with that of its assistant if its role is above runner.
    fn every_kind() -> [(String, String); 11] {
        [
            ("uid:7", "mcp:uid:7"),
            ("ada", "mcp:ada"),
            ("agent:ada", "agent:ada"),
            (&format!("run:{RUN}"), &format!("run:{RUN}")),
            ("run:unknown", "run:unknown"),
            (&format!("tool:{RUN}"), &format!("tool:{RUN}")),
            ("mcp:ada", "mcp:ada"),
            ("schedule:sch_0a1b2c3d", "schedule:sch_0a1b2c3d"),
            ("http:stranger", "run:unknown"),
            ("midwatch", "run:unknown"),
            ("robot:ada", "run:unknown"),
        ]
        .map(|(text, assistant)| (text.to_owned(), assistant.to_owned()))
    }

    #[test]
    fn an_actor_has_the_text_of_its_principal() {
        let run: RunId = RUN.parse().unwrap();
        let actors = [
            (Actor::system(), "midwatch", Role::System),
            (Actor::for_run(&run), &*format!("run:{RUN}"), Role::Runner),
            (Actor::for_unknown_run(), "run:unknown", Role::Runner),
            (Actor::for_tool_call(&run), &*format!("tool:{RUN}"), Role::Runner),
            (
                Actor::for_schedule(&"sch_0a1b2c3d".parse().unwrap()),
                "schedule:sch_0a1b2c3d",
                Role::Runner,
            ),
            (Actor::local_user(1000), "uid:1000", Role::Maintainer),
            (Actor::local_user(1000).into_assistant(), "mcp:uid:1000", Role::Runner),
            (Actor::token_holder("ada".parse().unwrap(), Role::Operator), "ada", Role::Operator),
            (Actor::unknown_client(), "http:stranger", Role::Observer),
        ];
        for (actor, name, role) in actors {
            assert_eq!((actor.name(), actor.role), (name, role));
            assert_eq!(*actor.principal(), Principal::parse(name));
            assert_eq!(actor.into_name(), name);
        }
    }

    #[test]
    fn an_assistant_is_at_most_a_runner() {
        for (text, expected) in every_kind() {
            for role in ROLES {
                let actor = Actor::new(Principal::parse(&text), role);
                let assistant = actor.clone().into_assistant();
                match role <= Role::Runner {
                    true => assert_eq!(assistant, actor),
                    false => {
                        assert_eq!((assistant.name(), assistant.role), (&*expected, Role::Runner));
                    }
                }
            }
        }
    }

    #[test]
    fn only_runners_are_assistants_and_tool_calls() {
        for (text, _) in every_kind() {
            for role in ROLES {
                let actor = Actor::new(Principal::parse(&text), role);
                let (is_runner, is_call) = (role == Role::Runner, text.starts_with("tool:"));
                let is_assistant = is_runner && (is_call || text.starts_with("mcp:"));
                assert_eq!(actor.is_assistant(), is_assistant, "{text} {role:?}");
                let run = actor.tool_call_run().map(RunId::as_str);
                assert_eq!(run, (is_runner && is_call).then_some(RUN), "{text} {role:?}");
            }
        }
    }
}
