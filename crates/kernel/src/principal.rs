//! A principal: the human or program to which a command, an event or a policy request is attributed.
//!
//! The ledger stores principals as text, and rules, clients and logs show the same text:
//!
//! | principal | text |
//! |---|---|
//! | a local user of the machine | `uid:1000` |
//! | a person with a token, or an agent with its token | `ada` |
//! | an agent as the author of a schedule | `agent:ada` |
//! | a run | `run:run_…` |
//! | a process of a run that is not known | `run:unknown` |
//! | the tool call that is the work of a run | `tool:run_…` |
//! | an assistant of a person or user | `mcp:ada`, `mcp:uid:1000` |
//! | a schedule, in policy requests for its runs | `schedule:sch_…` |
//! | a network client without a valid token | `http:stranger` |
//! | Midwatch itself | `midwatch` |
//!
//! Invariant: a principal and its text determine each other. [`Principal::parse`] accepts every text: one that
//! is not in this table is [`Principal::Unrecognized`], which keeps the text and has no rights.

use std::fmt;

use serde::de::Visitor;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::AgentName;
use crate::token::PersonName;
use crate::{RunId, ScheduleId};

/// The text of [`Principal::System`]. No token has this name.
pub(crate) const SYSTEM_NAME: &str = "midwatch";

// The kinds of principals in front of the colon. The name of a person has no colon.
const USER: &str = "uid";
const AGENT: &str = "agent";
const RUN: &str = "run";
const TOOL_CALL: &str = "tool";
const ASSISTANT: &str = "mcp";
const SCHEDULE: &str = "schedule";
const CLIENT: &str = "http";

/// Follows `run:` if the run is not known.
const UNKNOWN_RUN: &str = "unknown";
/// Follows `http:` if the client is not known.
const UNKNOWN_CLIENT: &str = "stranger";

/// The principal of a command, an event or a policy request. It is stored and shown as its text.
///
/// ```
/// use kernel::Principal;
///
/// let assistant = Principal::parse("mcp:ada");
/// assert_eq!(assistant.responsible_person(), Principal::parse("ada"));
/// assert_eq!(assistant.to_string(), "mcp:ada");
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Principal {
    /// A local user of the machine without a token, by user id. Several people may share it.
    User(u32),
    /// The holder of a token. With the role of a runner, it is the agent of that name.
    Person(PersonName),
    /// An agent that wrote a schedule with its own token, as the author of that schedule.
    Agent(AgentName),
    /// A run that calls Midwatch from its own process.
    Run(RunId),
    /// A process that some run started, where the run is not known.
    UnknownRun,
    /// The tool call that is the whole work of this run.
    ToolCall(RunId),
    /// A program that acts for a human, such as an MCP server.
    Assistant(Human),
    /// A schedule. The policy decides about its runs in its name.
    Schedule(ScheduleId),
    /// A network client without a valid token.
    UnknownClient,
    /// Midwatch itself.
    System,
    /// A text that names no principal of this version. It identifies no person and has no rights.
    Unrecognized(UnrecognizedName),
}

/// A human for whom an assistant acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Human {
    User(u32),
    Person(PersonName),
}

/// Invariant: [`Principal::parse`] made it, so it is not the text of another principal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrecognizedName(String);

impl Principal {
    /// The principal with this text.
    pub fn parse(text: &str) -> Principal {
        let found = match text.split_once(':') {
            None if text == SYSTEM_NAME => Some(Principal::System),
            None | Some((USER, _)) => Human::parse(text).map(Principal::from),
            Some((AGENT, name)) => name.parse().ok().map(Principal::Agent),
            Some((RUN, UNKNOWN_RUN)) => Some(Principal::UnknownRun),
            Some((RUN, id)) => id.parse().ok().map(Principal::Run),
            Some((TOOL_CALL, id)) => id.parse().ok().map(Principal::ToolCall),
            Some((ASSISTANT, human)) => Human::parse(human).map(Principal::Assistant),
            Some((SCHEDULE, id)) => id.parse().ok().map(Principal::Schedule),
            Some((CLIENT, UNKNOWN_CLIENT)) => Some(Principal::UnknownClient),
            Some(_) => None,
        };
        found.unwrap_or_else(|| Principal::Unrecognized(UnrecognizedName(text.to_owned())))
    }

    /// The principal that is responsible for what this one does: for an assistant, the human it acts for.
    #[must_use]
    pub fn responsible_person(&self) -> Principal {
        match self {
            Principal::Assistant(human) => human.clone().into(),
            other => other.clone(),
        }
    }

    /// Whether it identifies no person, so that any person may be behind it.
    pub const fn is_impersonal(&self) -> bool {
        match self {
            Principal::Person(_) | Principal::Assistant(Human::Person(_)) => false,
            Principal::User(_)
            | Principal::Agent(_)
            | Principal::Run(_)
            | Principal::UnknownRun
            | Principal::ToolCall(_)
            | Principal::Assistant(Human::User(_))
            | Principal::Schedule(_)
            | Principal::UnknownClient
            | Principal::System
            | Principal::Unrecognized(_) => true,
        }
    }

    /// Whether it is a process that a run started.
    pub(crate) const fn is_run(&self) -> bool {
        matches!(self, Principal::Run(_) | Principal::UnknownRun)
    }
}

impl Human {
    fn parse(text: &str) -> Option<Human> {
        match text.split_once(':') {
            Some((USER, uid)) => parse_uid(uid).map(Human::User),
            Some(_) => None,
            None => text.parse().ok().map(Human::Person),
        }
    }
}

/// A user id in its only accepted spelling: decimal digits without a sign or leading zeros.
fn parse_uid(digits: &str) -> Option<u32> {
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    let has_leading_zero = 1 < digits.len() && digits.starts_with('0');
    digits.parse().ok().filter(|_| is_plain && !has_leading_zero)
}

impl From<Human> for Principal {
    fn from(human: Human) -> Principal {
        match human {
            Human::User(uid) => Principal::User(uid),
            Human::Person(name) => Principal::Person(name),
        }
    }
}

impl fmt::Display for Principal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Principal::User(uid) => write!(out, "{USER}:{uid}"),
            Principal::Person(name) => out.write_str(name.as_str()),
            Principal::Agent(name) => write!(out, "{AGENT}:{name}"),
            Principal::Run(id) => write!(out, "{RUN}:{id}"),
            Principal::UnknownRun => write!(out, "{RUN}:{UNKNOWN_RUN}"),
            Principal::ToolCall(id) => write!(out, "{TOOL_CALL}:{id}"),
            Principal::Assistant(human) => write!(out, "{ASSISTANT}:{human}"),
            Principal::Schedule(id) => write!(out, "{SCHEDULE}:{id}"),
            Principal::UnknownClient => write!(out, "{CLIENT}:{UNKNOWN_CLIENT}"),
            Principal::System => out.write_str(SYSTEM_NAME),
            Principal::Unrecognized(UnrecognizedName(text)) => out.write_str(text),
        }
    }
}

impl fmt::Display for Human {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Human::User(uid) => write!(out, "{USER}:{uid}"),
            Human::Person(name) => out.write_str(name.as_str()),
        }
    }
}

impl Serialize for Principal {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        out.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Principal {
    fn deserialize<D: Deserializer<'de>>(input: D) -> Result<Principal, D::Error> {
        struct Text;

        impl Visitor<'_> for Text {
            type Value = Principal;

            fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str("the text of a principal")
            }

            fn visit_str<E>(self, text: &str) -> Result<Principal, E> {
                Ok(Principal::parse(text))
            }
        }

        input.deserialize_str(Text)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn run() -> RunId {
        RunId::of(42)
    }

    /// One principal of every kind, with its text and whether it identifies no person.
    fn every_kind() -> Vec<(Principal, &'static str, bool)> {
        let ada: PersonName = "ada".parse().unwrap();
        let schedule = "sch_0a1b2c3d".parse().unwrap();
        let every = vec![
            (Principal::User(0), "uid:0", true),
            (Principal::User(1000), "uid:1000", true),
            (Principal::User(u32::MAX), "uid:4294967295", true),
            (Principal::Person(ada.clone()), "ada", false),
            (Principal::Person("a@b.example".parse().unwrap()), "a@b.example", false),
            (Principal::Agent("ada".parse().unwrap()), "agent:ada", true),
            (Principal::Run(run()), "run:run_0000000000000000000000000000002a", true),
            (Principal::UnknownRun, "run:unknown", true),
            (Principal::ToolCall(run()), "tool:run_0000000000000000000000000000002a", true),
            (Principal::Assistant(Human::Person(ada)), "mcp:ada", false),
            (Principal::Assistant(Human::User(1000)), "mcp:uid:1000", true),
            (Principal::Schedule(schedule), "schedule:sch_0a1b2c3d", true),
            (Principal::UnknownClient, "http:stranger", true),
            (Principal::System, "midwatch", true),
            (Principal::parse("robot:ada"), "robot:ada", true),
        ];
        for (principal, ..) in &every {
            match principal {
                Principal::User(_)
                | Principal::Person(_)
                | Principal::Agent(_)
                | Principal::Run(_)
                | Principal::UnknownRun
                | Principal::ToolCall(_)
                | Principal::Assistant(_)
                | Principal::Schedule(_)
                | Principal::UnknownClient
                | Principal::System
                | Principal::Unrecognized(_) => {} // A new kind needs a line in the table above.
            }
        }
        every
    }

    #[test]
    fn every_kind_has_its_text_in_memory_and_in_the_ledger() {
        for (principal, text, is_impersonal) in every_kind() {
            assert_eq!(principal.to_string(), text);
            assert_eq!(Principal::parse(text), principal);
            assert_eq!(principal.is_impersonal(), is_impersonal, "{text}");
            let json = serde_json::to_string(&principal).unwrap();
            assert_eq!(json, format!("\"{text}\""));
            assert_eq!(serde_json::from_str::<Principal>(&json).unwrap(), principal);
            let value = serde_json::Value::from(text);
            assert_eq!(serde_json::from_value::<Principal>(value).unwrap(), principal);
        }
    }

    #[test]
    fn only_an_assistant_has_another_principal_behind_it() {
        for (principal, text, _) in every_kind() {
            let expected = text.strip_prefix("mcp:").unwrap_or(text);
            assert_eq!(principal.responsible_person().to_string(), expected);
        }
    }

    #[test]
    fn any_other_text_is_unrecognized_and_impersonal() {
        let texts = [
            "",
            " ada",
            "ada ",
            "ada\n",
            ":",
            ":ada",
            "ada:",
            "uid:",
            "uid:-1",
            "uid:+1",
            "uid:01",
            "uid:00",
            "uid: 1",
            "uid:1 ",
            "uid:4294967296",
            "uid:1:2",
            "UID:1",
            "agent:",
            "agent:Ada",
            "agent:uid:1",
            "run:",
            "run:1",
            "run:Unknown",
            "run:run_1",
            "tool:",
            "tool:unknown",
            "tool:ada",
            "mcp:",
            "mcp:midwatch",
            "mcp:mcp:ada",
            "mcp:run:unknown",
            "mcp:agent:ada",
            "mcp:uid:01",
            "schedule:",
            "schedule:sch_1",
            "http:",
            "http:ada",
            "midwatch:",
            "Midwatch ",
            "person:ada",
        ];
        for text in texts {
            let principal = Principal::parse(text);
            assert_eq!(principal, Principal::Unrecognized(UnrecognizedName(text.to_owned())));
            assert!(principal.is_impersonal() && !principal.is_run(), "{text}");
            assert_eq!(principal.responsible_person(), principal);
        }
    }

    /// Any principal, from parts that are as free as their types allow.
    fn any_principal() -> impl Strategy<Value = Principal> {
        let person = || "[A-Za-z0-9_.@-]{1,64}".prop_filter_map("midwatch", |it| it.parse().ok());
        let agent = "[a-z0-9][a-z0-9_.-]{0,30}".prop_filter_map("agent", |it| it.parse().ok());
        let run = || any::<u128>().prop_map(RunId::of);
        let schedule = (any::<[u8; 32]>(), 8..64_usize);
        prop_oneof![
            any::<u32>().prop_map(Principal::User),
            person().prop_map(Principal::Person),
            agent.prop_map(Principal::Agent),
            run().prop_map(Principal::Run),
            Just(Principal::UnknownRun),
            run().prop_map(Principal::ToolCall),
            any::<u32>().prop_map(|uid| Principal::Assistant(Human::User(uid))),
            person().prop_map(|name| Principal::Assistant(Human::Person(name))),
            schedule.prop_map(|(hash, digits)| Principal::Schedule(ScheduleId::of(&hash, digits))),
            Just(Principal::UnknownClient),
            Just(Principal::System),
            ".*".prop_map(|text| Principal::parse(&text)),
        ]
    }

    /// Texts that look like principals more often than random ones do.
    fn any_text() -> impl Strategy<Value = String> {
        let kind = "(uid|agent|run|tool|mcp|schedule|http|midwatch|[a-z]{0,4})";
        prop_oneof![
            ".*",
            (kind, "[:]{0,2}", "(uid:)?[a-z0-9_@.+ -]{0,12}")
                .prop_map(|(kind, colon, rest)| [kind, colon, rest].concat()),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

        #[test]
        fn the_text_of_a_principal_names_it(principal in any_principal()) {
            prop_assert_eq!(Principal::parse(&principal.to_string()), principal);
        }

        #[test]
        fn a_principal_keeps_the_text_that_it_was_parsed_from(text in any_text()) {
            prop_assert_eq!(Principal::parse(&text).to_string(), text);
        }

        /// A token's name is a [`PersonName`], so no token makes its holder anything but a person.
        #[test]
        fn the_name_of_a_token_is_always_that_of_a_person(text in any_text()) {
            if let Ok(name) = text.parse::<PersonName>() {
                prop_assert_eq!(Principal::parse(&text), Principal::Person(name));
            }
        }
    }

    #[test]
    fn no_text_of_another_kind_is_the_name_of_a_token() {
        for (principal, text, _) in every_kind() {
            let is_person = matches!(principal, Principal::Person(_));
            assert_eq!(text.parse::<PersonName>().is_ok(), is_person, "{text}");
        }
    }
}
