//! Shared helpers: build requests and rules, and check decisions.

use kernel::Role;
use kernel::policy_decision::{Details, Request, Verdict};
use kernel::posture::Posture;
use policy::{RuleError, Rules, Source, capability};

/// A request for a capability, with nothing else.
pub(crate) fn request(capability: &str) -> Request {
    Request {
        principal: "somebody".to_owned(),
        role: Role::Runner,
        capability: capability.to_owned(),
        tier: capability::tier(capability),
        agent: None,
        details: Details::default(),
    }
}

pub(crate) fn prompt(agent: &str) -> Request {
    Request { agent: Some(agent.parse().unwrap()), ..request("agent.prompt") }
}

pub(crate) fn to_host(host: &str) -> Request {
    let details = Details { host: Some(host.to_owned()), ..Details::default() };
    Request { details, ..request("net.read") }
}

pub(crate) fn at_path(capability: &str, path: &str) -> Request {
    let details = Details { path: Some(path.to_owned()), ..Details::default() };
    Request { details, ..request(capability) }
}

pub(crate) fn program(argv: &[&str]) -> Request {
    let argv = argv.iter().map(|token| (*token).to_owned()).collect();
    Request { details: Details { argv, ..Details::default() }, ..request("shell.run") }
}

pub(crate) fn rule(lines: &str) -> String {
    format!("[[rule]]\n{lines}\n")
}

pub(crate) fn load(posture: Posture, text: &str) -> Result<Rules, Vec<RuleError>> {
    Rules::load(posture, &[Source { name: "policy.toml", text }])
}

/// The rules of a valid text, in `staging`.
pub(crate) fn rules(text: &str) -> Rules {
    load(Posture::Staging, text).unwrap_or_else(|errors| panic!("{}", to_lines(&errors)))
}

pub(crate) fn to_lines(errors: &[RuleError]) -> String {
    errors.iter().map(|error| format!("{error}\n")).collect()
}

/// Checks the verdict and the first reason of a decision.
pub(crate) fn check(rules: &Rules, request: &Request, expected: Verdict, reason: &str) {
    let decision = rules.decide(request);
    let first = decision.rules.first().map(String::as_str);
    assert_eq!((decision.verdict, first), (expected, Some(reason)), "{request:?} {decision:?}");
}
