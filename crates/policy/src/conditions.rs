//! What narrows a rule, and how a request fits it.

use kernel::backend::Tier;
use kernel::ruling::Request;

use crate::capability;
use crate::host::{self, Host};
use crate::path;
use crate::pattern::Name;

/// An empty list does not narrow; of a list with something in it, one has to fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) principal: Vec<Name>,
    pub(crate) agent: Vec<Name>,
    pub(crate) resource: Vec<Name>,
    pub(crate) host: Vec<host::Pattern>,
    pub(crate) path: Vec<path::Pattern>,
    /// The beginning of the argument vector, token by token.
    pub(crate) argv: Vec<String>,
    pub(crate) tier: Vec<Tier>,
}

/// A request, made ready to be compared.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    principal: &'a str,
    agent: Option<&'a str>,
    resource: Option<&'a str>,
    host: Option<Host>,
    path: Option<Vec<&'a str>>,
    argv: Option<&'a [String]>,
    /// What the request says, and never less than its class implies.
    pub(crate) tier: Tier,
    /// What the request has, but in a form that no rule can judge.
    pub(crate) malformed: Vec<&'static str>,
}

/// How a request fits the conditions of a rule, from best to worst: of several, the worst holds. So
/// a condition that does not fit settles the matter, also where another one cannot be judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fit {
    Fits,
    /// The rule looks at something that the request does not have.
    Unknown,
    Differs,
}

impl<'a> Facts<'a> {
    pub(crate) fn of(request: &'a Request) -> Facts<'a> {
        let details = &request.details;
        let host = details.host.as_deref().map(Host::parse);
        let path = details.path.as_deref().map(path::components);
        let malformed = [("host", host == Some(None)), ("path", path == Some(None))];
        Facts {
            principal: &request.principal,
            agent: request.agent.as_ref().map(|agent| agent.as_str()),
            resource: details.resource.as_deref(),
            host: host.flatten(),
            path: path.flatten(),
            argv: Some(details.argv.as_slice()).filter(|argv| !argv.is_empty()),
            tier: request.tier.max(capability::tier(&request.capability)),
            malformed: malformed
                .iter()
                .filter(|(_, it_is)| *it_is)
                .map(|(name, _)| *name)
                .collect(),
        }
    }
}

impl Conditions {
    pub(crate) fn fit(&self, facts: &Facts<'_>) -> Fit {
        let fits = [
            one_of(&self.principal, Some(facts.principal), |name, it| name.covers(it)),
            one_of(&self.tier, Some(facts.tier), |tier, it| *tier == it),
            one_of(&self.agent, facts.agent, |name, it| name.covers(it)),
            one_of(&self.resource, facts.resource, |name, it| name.covers(it)),
            one_of(&self.host, facts.host.as_ref(), host::Pattern::covers),
            one_of(&self.path, facts.path.as_deref(), path::Pattern::covers),
            begins(&self.argv, facts.argv),
        ];
        fits.into_iter().max().unwrap_or(Fit::Differs)
    }

    /// The conditions as they are written: the key, and what it may be.
    pub(crate) fn shown(&self) -> Vec<(&'static str, Vec<String>)> {
        let all = [
            ("principal", texts(&self.principal)),
            ("agent", texts(&self.agent)),
            ("resource", texts(&self.resource)),
            ("host", texts(&self.host)),
            ("path", texts(&self.path)),
            ("argv", texts(&self.argv)),
            ("tier", texts(&self.tier)),
        ];
        all.into_iter().filter(|(_, texts)| !texts.is_empty()).collect()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.shown().is_empty()
    }
}

fn one_of<P, T: Copy>(patterns: &[P], value: Option<T>, covers: impl Fn(&P, T) -> bool) -> Fit {
    match value {
        _ if patterns.is_empty() => Fit::Fits,
        None => Fit::Unknown,
        Some(value) if patterns.iter().any(|pattern| covers(pattern, value)) => Fit::Fits,
        Some(_) => Fit::Differs,
    }
}

/// Tokens are compared exactly: what a shell would take apart is one token here.
fn begins(beginning: &[String], argv: Option<&[String]>) -> Fit {
    match argv {
        _ if beginning.is_empty() => Fit::Fits,
        None => Fit::Unknown,
        Some(argv) if argv.starts_with(beginning) => Fit::Fits,
        Some(_) => Fit::Differs,
    }
}

fn texts<T: ToString>(patterns: &[T]) -> Vec<String> {
    patterns.iter().map(T::to_string).collect()
}
