//! What narrows a rule, and how a request fits it.

use kernel::Role;
use kernel::backend::Tier;
use kernel::ruling::Request;

use crate::capability;
use crate::host::{self, Host};
use crate::path;
use crate::pattern::Name;
use crate::protected::is_protected;

/// The classes that change a file.
const WRITES: [&str; 2] = ["filesystem.write", "code.write"];

/// An empty list does not narrow; of a list with something in it, one has to fit.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) principal: Vec<Name>,
    pub(crate) role: Vec<Role>,
    pub(crate) agent: Vec<Name>,
    pub(crate) resource: Vec<Name>,
    pub(crate) host: Vec<host::Pattern>,
    pub(crate) path: Vec<path::Pattern>,
    /// The beginning of the argument vector, token by token. A program without a path is every one of that
    /// name.
    pub(crate) argv: Vec<String>,
    pub(crate) tier: Vec<Tier>,
}

/// A request, made ready to be compared.
#[derive(Debug)]
pub(crate) struct Facts<'a> {
    principal: &'a str,
    role: Role,
    agent: Option<&'a str>,
    resource: Option<&'a str>,
    host: Option<Host>,
    path: Option<Vec<&'a str>>,
    argv: Option<&'a [String]>,
    /// What the request says, and never less than its class and its path imply.
    pub(crate) tier: Tier,
    /// It writes to a protected path, or does not say where it writes.
    pub(crate) is_protected: bool,
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
    /// `own` is the directory of the watch itself, if it is known.
    pub(crate) fn of(request: &'a Request, own: Option<&[String]>) -> Facts<'a> {
        let details = &request.details;
        let host = details.host.as_deref().map(Host::parse);
        let path = details.path.as_deref().map(path::components);
        // The caller brings the program that will really run; without that nobody can say which it is.
        let is_program = |program: &String| path::components(program).is_some();
        let malformed = [
            ("host", host == Some(None)),
            ("path", path == Some(None)),
            ("argv", !details.argv.first().is_none_or(is_program)),
        ];
        let writes = WRITES.contains(&request.capability.as_str());
        let is_protected =
            writes && details.path.as_deref().is_none_or(|path| is_protected(path, own));
        let least = if is_protected { Tier::External } else { Tier::ReadOnly };
        Facts {
            principal: &request.principal,
            role: request.role,
            agent: request.agent.as_ref().map(|agent| agent.as_str()),
            resource: details.resource.as_deref(),
            host: host.flatten(),
            path: path.flatten(),
            argv: Some(details.argv.as_slice()).filter(|argv| !argv.is_empty()),
            tier: request.tier.max(capability::tier(&request.capability)).max(least),
            is_protected,
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
            one_of(&self.role, Some(facts.role), |role, it| *role == it),
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
            ("role", self.role.iter().map(|role| role.name().to_owned()).collect()),
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
    let Some((program, tokens)) = beginning.split_first() else { return Fit::Fits };
    let Some((run, rest)) = argv.and_then(<[String]>::split_first) else { return Fit::Unknown };
    let is_it = match program.contains('/') {
        true => path::components(program) == path::components(run),
        false => run.rsplit('/').next() == Some(program.as_str()),
    };
    match is_it && rest.starts_with(tokens) {
        true => Fit::Fits,
        false => Fit::Differs,
    }
}

fn texts<T: ToString>(patterns: &[T]) -> Vec<String> {
    patterns.iter().map(T::to_string).collect()
}
