//! Requests in the short form that users write: as examples of a rule, which it must match or must
//! not match, and for `policy explain`.
//!
//! Loading checks each rule against its examples, so a rule that does not do what its author meant
//! is found before it decides anything.

use kernel::Role;
use kernel::agent::AgentName;
use kernel::backend::Tier;
use kernel::policy_decision::{Details, Request};
use serde::Deserialize;

use crate::capability;
use crate::conditions::NormalizedRequest;
use crate::pattern::CapabilityPattern;
use crate::rule::{Evaluation, Rule};

/// The principal of an example that names none.
const DEFAULT_PRINCIPAL: &str = "somebody";

/// A request with only its relevant fields. Duplicate and unknown fields are refused in every format.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields, expecting = "a table such as `{ capability = \"net.read\" }`")]
pub struct Example {
    capability: String,
    principal: Option<String>,
    /// Default: `runner`.
    role: Option<Role>,
    /// Default: the minimum tier of the capability.
    tier: Option<Tier>,
    agent: Option<AgentName>,
    resource: Option<String>,
    host: Option<String>,
    path: Option<String>,
    #[serde(default)]
    argv: Vec<String>,
}

/// Whether the rule must match an example.
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
    /// An error message if the rule does not treat the example as expected.
    pub(crate) fn check(self, rule: &Rule, expected: Expected) -> Option<String> {
        let key = expected.key();
        if capability::find(&self.capability).is_none() {
            let unknown = self.capability.parse::<CapabilityPattern>().err();
            let reason = unknown.map_or("it is a pattern".to_owned(), |it| it.to_string());
            return Some(format!("the capability of a `{key}` example is not valid: {reason}"));
        }
        let request = self.into_request();
        let normalized = NormalizedRequest::new(&request, None, &[]);
        if let Some(field) = normalized.malformed.first() {
            return Some(format!(
                "a `{key}` example has an invalid `{field}`, so every policy denies it: write it in full"
            ));
        }
        let evaluation = match rule.covers_capability(&request.capability) {
            true => rule.evaluate(&normalized),
            false => Evaluation::NoMatch,
        };
        let shown = describe_request(&request);
        match (evaluation, expected) {
            (Evaluation::Match(_), Expected::Match) | (Evaluation::NoMatch, Expected::NoMatch) => {
                None
            }
            (Evaluation::Match(_), Expected::NoMatch) => Some(format!(
                "the rule matches its `not_match` example {shown}: narrow the rule or change the example"
            )),
            (Evaluation::NoMatch, Expected::Match) => Some(format!(
                "the rule does not match its `match` example {shown}: widen the rule or change the example"
            )),
            (Evaluation::Unknown, _) => Some(format!(
                "the rule has a condition on a field that its `{key}` example {shown} does not have, so it \
                 would deny it: add the field to the example, or cover only capabilities that have it"
            )),
        }
    }

    /// The full request, with default values for the omitted fields.
    pub fn into_request(self) -> Request {
        Request {
            principal: self.principal.unwrap_or_else(|| DEFAULT_PRINCIPAL.to_owned()),
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

fn describe_request(request: &Request) -> String {
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
