//! The conditions of a rule, and how they match a request.

use kernel::Role;
use kernel::backend::Tier;
use kernel::policy_decision::Request;

use crate::capability;
use crate::host::{self, Host};
use crate::path;
use crate::pattern::NamePattern;
use crate::protected::is_protected;
use crate::system_place::is_system_place;

/// The capabilities that change a file.
const WRITES: [&str; 2] = ["filesystem.write", "code.write"];
/// The capabilities that read a file.
const READS: [&str; 2] = ["filesystem.read", "code.read"];

/// An empty list matches every request; otherwise at least one of its patterns has to match.
#[derive(Clone, Debug, Default)]
pub(crate) struct Conditions {
    pub(crate) principal: Vec<NamePattern>,
    pub(crate) role: Vec<Role>,
    pub(crate) agent: Vec<NamePattern>,
    pub(crate) resource: Vec<NamePattern>,
    pub(crate) host: Vec<host::Pattern>,
    pub(crate) path: Vec<path::Pattern>,
    /// The first arguments, token by token. A program without a path matches every program with that
    /// name.
    pub(crate) argv: Vec<String>,
    pub(crate) tier: Vec<Tier>,
}

/// A request with its host and path parsed for matching.
#[derive(Debug)]
pub(crate) struct NormalizedRequest<'a> {
    principal: &'a str,
    role: Role,
    agent: Option<&'a str>,
    resource: Option<&'a str>,
    host: Option<Host>,
    path: Option<Vec<&'a str>>,
    argv: Option<&'a [String]>,
    /// The tier of the request, raised to the minimum of its capability and its path.
    pub(crate) tier: Tier,
    /// Whether it writes to a protected or an unknown path.
    pub(crate) is_protected: bool,
    /// Whether it reads or writes a path in a place that is no agent's business.
    pub(crate) is_system_place: bool,
    /// The fields that could not be parsed.
    pub(crate) malformed: Vec<&'static str>,
}

/// Whether a request matches a condition, from best to worst. The worst of several conditions counts:
/// one that does not match decides, even if another one is unknown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ConditionMatch {
    Match,
    /// The request lacks the field of the condition.
    Unknown,
    NoMatch,
}

impl<'a> NormalizedRequest<'a> {
    /// `data_directory`: the components of Midwatch's data directory, if it is known. `home`: those of the user's home.
    pub(crate) fn new(
        request: &'a Request,
        data_directory: Option<&[String]>,
        home: &[String],
    ) -> NormalizedRequest<'a> {
        let details = &request.details;
        let host = details.host.as_deref().map(Host::parse);
        let path = details.path.as_deref().map(path::components);
        // The caller resolves the program to an absolute path; otherwise it could be any program.
        let is_program = |program: &String| path::components(program).is_some();
        let malformed = [
            ("host", host == Some(None)),
            ("path", path == Some(None)),
            ("argv", !details.argv.first().is_none_or(is_program)),
        ];
        let writes = WRITES.contains(&request.capability.as_str());
        let is_protected =
            writes && details.path.as_deref().is_none_or(|path| is_protected(path, data_directory));
        let is_system_place = (writes || READS.contains(&request.capability.as_str()))
            && details.path.as_deref().is_some_and(|path| is_system_place(path, writes, home));
        let path_tier = if is_protected { Tier::External } else { Tier::ReadOnly };
        NormalizedRequest {
            principal: &request.principal,
            role: request.role,
            agent: request.agent.as_ref().map(|agent| agent.as_str()),
            resource: details.resource.as_deref(),
            host: host.flatten(),
            path: path.flatten(),
            argv: Some(details.argv.as_slice()).filter(|argv| !argv.is_empty()),
            tier: request.tier.max(capability::tier(&request.capability)).max(path_tier),
            is_protected,
            is_system_place,
            malformed: malformed
                .iter()
                .filter(|(_, is_malformed)| *is_malformed)
                .map(|(name, _)| *name)
                .collect(),
        }
    }
}

impl Conditions {
    pub(crate) fn evaluate(&self, facts: &NormalizedRequest<'_>) -> ConditionMatch {
        let matches = [
            match_any(&self.principal, Some(facts.principal), |name, it| name.matches(it)),
            match_any(&self.role, Some(facts.role), |role, it| *role == it),
            match_any(&self.tier, Some(facts.tier), |tier, it| *tier == it),
            match_any(&self.agent, facts.agent, |name, it| name.matches(it)),
            match_any(&self.resource, facts.resource, |name, it| name.matches(it)),
            match_any(&self.host, facts.host.as_ref(), host::Pattern::matches),
            match_any(&self.path, facts.path.as_deref(), path::Pattern::matches),
            match_argv(&self.argv, facts.argv),
        ];
        matches.into_iter().max().unwrap_or(ConditionMatch::NoMatch)
    }

    /// The conditions as the rules file writes them: each key with its values.
    pub(crate) fn to_texts(&self) -> Vec<(&'static str, Vec<String>)> {
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
        self.to_texts().is_empty()
    }
}

fn match_any<P, T: Copy>(
    patterns: &[P],
    value: Option<T>,
    covers: impl Fn(&P, T) -> bool,
) -> ConditionMatch {
    match value {
        _ if patterns.is_empty() => ConditionMatch::Match,
        None => ConditionMatch::Unknown,
        Some(value) if patterns.iter().any(|pattern| covers(pattern, value)) => {
            ConditionMatch::Match
        }
        Some(_) => ConditionMatch::NoMatch,
    }
}

/// Compares tokens exactly, without the splitting that a shell would do.
fn match_argv(prefix: &[String], argv: Option<&[String]>) -> ConditionMatch {
    let Some((program, tokens)) = prefix.split_first() else { return ConditionMatch::Match };
    let Some((run, rest)) = argv.and_then(<[String]>::split_first) else {
        return ConditionMatch::Unknown;
    };
    let is_program = match program.contains('/') {
        true => path::components(program) == path::components(run),
        false => run.rsplit('/').next() == Some(program.as_str()),
    };
    match is_program && rest.starts_with(tokens) {
        true => ConditionMatch::Match,
        false => ConditionMatch::NoMatch,
    }
}

fn texts<T: ToString>(patterns: &[T]) -> Vec<String> {
    patterns.iter().map(T::to_string).collect()
}
