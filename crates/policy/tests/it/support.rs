//! What the tests share: short ways to write a rule and to ask about a request.

use kernel::Role;
use kernel::ruling::{Details, Posture, Request, Verdict};
use policy::{Fault, Rules, Source, capability};

/// A request for a class, by somebody, with nothing else to it.
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

pub(crate) fn load(posture: Posture, text: &str) -> Result<Rules, Vec<Fault>> {
    Rules::load(posture, &[Source { name: "policy.toml", text }])
}

/// The rules of a text in `staging`, which has to be without faults.
pub(crate) fn rules(text: &str) -> Rules {
    load(Posture::Staging, text).unwrap_or_else(|faults| panic!("{}", shown(&faults)))
}

pub(crate) fn shown(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}

/// One text and a request, with the verdict and the first of the reasons.
pub(crate) fn check(rules: &Rules, request: &Request, expected: Verdict, reason: &str) {
    let ruling = rules.decide(request);
    let first = ruling.rules.first().map(String::as_str);
    assert_eq!((ruling.verdict, first), (expected, Some(reason)), "{request:?} {ruling:?}");
}
