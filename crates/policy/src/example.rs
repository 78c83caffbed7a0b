//! A request as people describe it, and the examples of a rule: requests that it has to match, and
//! requests that it must not.
//!
//! Examples are tried at load. A rule that does not do what its author thought is found before it
//! decides anything.

use kernel::Role;
use kernel::agent::AgentName;
use kernel::backend::Tier;
use kernel::ruling::{Details, Request};
use serde::Deserialize;

use crate::capability;
use crate::conditions::Facts;
use crate::pattern::Class;
use crate::rule::{Answer, Rule};

/// Who asks, where an example does not say.
const SOMEBODY: &str = "somebody";

/// A request with only what matters about it. A field that is there twice or that is not known is
/// refused, whatever it is read from.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ capability = \"net.read\" }`")]
pub struct Example {
    capability: String,
    principal: Option<String>,
    /// Of whoever asks; a runner's, unless given.
    role: Option<Role>,
    /// What the class implies, unless given.
    tier: Option<Tier>,
    agent: Option<AgentName>,
    resource: Option<String>,
    host: Option<String>,
    path: Option<String>,
    #[serde(default)]
    argv: Vec<String>,
}

/// What an example is there to show.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Expected {
    Match,
    NoMatch,
}

impl Expected {
    pub(crate) fn key(self) -> &'static str {
        match self {
            Expected::Match => "match",
            Expected::NoMatch => "not_match",
        }
    }
}

impl Example {
    /// What is wrong, if the rule does not do what the example says.
    pub(crate) fn fault(self, rule: &Rule, expected: Expected) -> Option<String> {
        let key = expected.key();
        if capability::find(&self.capability).is_none() {
            let unknown = self.capability.parse::<Class>().err();
            let reason = unknown.map_or("a pattern is no example".to_owned(), |it| it.to_string());
            return Some(format!("a `{key}` example is not a request: {reason}"));
        }
        let request = self.into_request();
        let facts = Facts::of(&request, None);
        if let Some(field) = facts.malformed.first() {
            return Some(format!(
                "a `{key}` example has a `{field}` that no rule can judge and that is always \
                 denied: write it in full and plainly"
            ));
        }
        let answer = match rule.covers(&request.capability) {
            true => rule.answer(&facts),
            false => Answer::Nothing,
        };
        let shown = request_in_words(&request);
        match (answer, expected) {
            (Answer::Verdict(_), Expected::Match) | (Answer::Nothing, Expected::NoMatch) => None,
            (Answer::Verdict(_), Expected::NoMatch) => Some(format!(
                "it matches its `not_match` example {shown}: narrow the rule or change the example"
            )),
            (Answer::Nothing, Expected::Match) => Some(format!(
                "it does not match its `match` example {shown}: widen the rule or change the example"
            )),
            (Answer::Unknown, _) => Some(format!(
                "it looks at something that its `{key}` example {shown} does not have, and so would \
                 deny it: add that to the example, or name only capabilities that have it"
            )),
        }
    }

    /// What it describes, with what goes without saying.
    pub fn into_request(self) -> Request {
        Request {
            principal: self.principal.unwrap_or_else(|| SOMEBODY.to_owned()),
            role: self.role.unwrap_or(Role::Runner),
            tier: self.tier.unwrap_or_else(|| capability::tier(&self.capability)),
            capability: self.capability,
            agent: self.agent,
            details: Details {
                resource: self.resource,
                host: self.host,
                path: self.path,
                argv: self.argv,
            },
        }
    }
}

fn request_in_words(request: &Request) -> String {
    let details = &request.details;
    let agent = request.agent.as_ref().map(|agent| agent.as_str());
    let argv = Some(details.argv.join(" ")).filter(|argv| !argv.is_empty());
    let parts = [
        agent,
        details.resource.as_deref(),
        details.host.as_deref(),
        details.path.as_deref(),
        argv.as_deref(),
    ];
    let parts = parts.into_iter().flatten().map(|part| format!(" {part}"));
    format!("`{}{}`", request.capability, parts.collect::<String>())
}
