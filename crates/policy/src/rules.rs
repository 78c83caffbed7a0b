//! The active rules: loaded and checked together, then evaluated for each request.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::backend::Tier;
use kernel::policy_decision::{Approvers, PolicyDecision, Request, Verdict};
use kernel::posture::Posture;
use sha2::{Digest, Sha256};

use crate::capability;
use crate::conditions::NormalizedRequest;
use crate::document;
use crate::error::{ErrorReport, RuleError};
use crate::protected::normalized_components;
use crate::rule::{Evaluation, Rule};

/// The most rules in all sources together, without the baseline.
pub const RULES_MAX: usize = 10_000;
/// The largest size of one source.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

const SOURCE_NAME_BYTES_MAX: usize = 64;
const VERSION_BYTES: usize = 6;
pub(crate) const BASELINE: &str = "baseline";

/// The reason if no rule matched: the posture decides.
pub(crate) const DEFAULT: &str = "@default";
/// The reason if the request is external: it always needs approval.
pub(crate) const TIER_2: &str = "@tier-2";
/// The reason if the request writes to a protected path: it always needs approval.
const PROTECTED: &str = "@protected";
/// The reason if no rule of the operator matched and the path is in a system directory or another user's home: the posture
/// decides.
const SYSTEM_PLACE: &str = "@system-place";
/// Begins the reason if a field of the request or a rule could not be evaluated.
const ERROR_PREFIX: &str = "@error:";
/// Reasons that a decision names; the rest are only counted.
const REASONS_MAX: usize = 16;

/// The text of a rules file, and the name by which decisions refer to it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// The rules of an installation, compiled for lookup by capability.
///
/// Invariant: `by_capability` maps each known capability to all rules that cover it;
/// `covering_unknown` has all rules that may cover an unknown one. Rules are sorted by name, so the
/// order of files and of the rules in them has no effect.
#[derive(Clone, Debug)]
pub struct Rules {
    posture: Posture,
    version: String,
    rules: Vec<Arc<Rule>>,
    by_capability: BTreeMap<&'static str, Vec<Arc<Rule>>>,
    covering_unknown: Vec<Arc<Rule>>,
    /// The normalized components of Midwatch's data directory, if it is known.
    protected_directory: Option<Vec<String>>,
    /// The normalized components of the user's home; empty if it is not known.
    home: Vec<String>,
}

/// What a reason means that is not a rule, in a few words.
///
/// ```
/// assert_eq!(policy::built_in_meaning("@default"), Some("no rule matches"));
/// assert_eq!(policy::built_in_meaning("baseline/agents"), None);
/// ```
pub fn built_in_meaning(reason: &str) -> Option<&'static str> {
    match reason {
        DEFAULT => Some("no rule matches"),
        SYSTEM_PLACE => Some("a system directory or another home"),
        PROTECTED => Some("a protected path"),
        TIER_2 => Some("it is external"),
        _ => None,
    }
}

impl Rules {
    /// Loads the baseline of the posture and the rules of all sources, or returns all errors in them.
    /// A source cannot remove a rule of another one.
    pub fn load(posture: Posture, sources: &[Source<'_>]) -> Result<Rules, Vec<RuleError>> {
        let (rules, errors) = load_all(posture, sources);
        if errors.is_empty() { Ok(rules) } else { Err(errors) }
    }

    /// The rules of a new installation.
    pub fn baseline(posture: Posture) -> Rules {
        // A test checks that the baselines have no errors.
        load_all(posture, &[]).0
    }

    /// Protects everything in a directory: the data directory of Midwatch.
    pub fn with_protected_directory(self, directory: &str) -> Rules {
        Rules { protected_directory: Some(normalized_components(directory)), ..self }
    }

    /// Lets the baseline allow work in this home, unlike in those of other users.
    pub fn with_home(self, home: &str) -> Rules {
        Rules { home: normalized_components(home), ..self }
    }

    /// Decides on a request. A request that cannot be evaluated is denied.
    pub fn decide(&self, request: &Request) -> PolicyDecision {
        let normalized =
            NormalizedRequest::new(request, self.protected_directory.as_deref(), &self.home);
        let malformed = normalized.malformed.iter().map(|field| (Verdict::Deny, error(field)));
        let mut verdicts: Vec<(Verdict, String)> = malformed.collect();
        let mut approvers = Approvers::default();
        for rule in self.candidates(&request.capability) {
            match rule.evaluate(&normalized) {
                Evaluation::NoMatch => {}
                Evaluation::Match(Verdict::Allow)
                    if normalized.is_system_place && rule.is_baseline() => {}
                Evaluation::Match(verdict) => {
                    verdicts.push((verdict, rule.name.clone()));
                    approvers = approvers.strictest(rule.approvers);
                }
                Evaluation::Unknown => verdicts.push((Verdict::Deny, error(&rule.name))),
            }
        }
        if verdicts.is_empty() {
            let reason = if normalized.is_system_place { SYSTEM_PLACE } else { DEFAULT };
            verdicts.push((self.posture.trust().default_verdict, reason.to_owned()));
        }
        if normalized.is_protected {
            verdicts.push((Verdict::Ask, PROTECTED.to_owned()));
        }
        if normalized.tier == Tier::External {
            verdicts.push((Verdict::Ask, TIER_2.to_owned()));
        }
        // A stable sort: equally strict verdicts stay in the order of the rules.
        verdicts.sort_by(|(one, _), (other, _)| other.cmp(one));
        PolicyDecision {
            verdict: verdicts.first().map_or(Verdict::Deny, |(verdict, _)| *verdict),
            rules: reasons(verdicts),
            posture: self.posture,
            policy: self.version.clone(),
            approvers,
        }
    }

    /// Identifies the rules: the start of a hash of the posture and all sources.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn posture(&self) -> Posture {
        self.posture
    }

    /// The active rules, sorted by name. Rules for other postures are checked at load but not active.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(Arc::as_ref)
    }

    /// What holds besides the rules: a reason that decisions name, its verdict, and when it applies.
    pub fn built_in(&self) -> [(&'static str, Verdict, &'static str); 4] {
        let default = self.posture.trust().default_verdict;
        [
            (DEFAULT, default, "no rule matches"),
            (
                SYSTEM_PLACE,
                default,
                "no rule of yours matches, and the path is in a system directory or another home",
            ),
            (PROTECTED, Verdict::Ask, "it writes to a protected path, such as Midwatch's own data"),
            (TIER_2, Verdict::Ask, "it is external (tier 2), even if a rule allows it"),
        ]
    }

    /// The largest number of approvers that a rule requires.
    pub fn approvers_max(&self) -> u8 {
        self.iter().map(|rule| rule.approvers.persons).max().unwrap_or(1)
    }

    /// The rules that cover a capability.
    fn candidates(&self, capability: &str) -> impl Iterator<Item = &Rule> {
        let known = self.by_capability.get(capability);
        let rules = known.unwrap_or(&self.covering_unknown).iter().map(Arc::as_ref);
        rules.filter(move |rule| known.is_some() || rule.covers_capability(capability))
    }
}

/// The names of the rules that matched, the deciding ones first.
fn reasons(verdicts: Vec<(Verdict, String)>) -> Vec<String> {
    let more = verdicts.len().saturating_sub(REASONS_MAX);
    let mut names: Vec<String> =
        verdicts.into_iter().map(|(_, name)| name).take(REASONS_MAX).collect();
    names.extend((0 < more).then(|| format!("@more:{more}")));
    names
}

/// The reason if a field or a rule could not be evaluated.
fn error(name: &str) -> String {
    format!("{ERROR_PREFIX}{name}")
}

/// What is wrong with a request, if this reason of a decision is that it could not be evaluated.
pub fn explain_error(reason: &str) -> Option<String> {
    Some(match reason.strip_prefix(ERROR_PREFIX)? {
        "argv" => {
            "`argv` must begin with the absolute path of a program, without `.` and `..`".to_owned()
        }
        "path" => "`path` must be absolute, without `.` and `..`".to_owned(),
        "host" => "`host` must be a plain name or address, without a port".to_owned(),
        rule => format!("the request lacks a field that rule `{rule}` needs"),
    })
}

fn baseline(posture: Posture) -> Source<'static> {
    let text = match posture {
        Posture::StrictProd => include_str!("../baseline/strict-prod.toml"),
        Posture::Staging | Posture::Debug => include_str!("../baseline/staging.toml"),
    };
    Source { name: BASELINE, text }
}

/// All valid rules, and all errors.
fn load_all(posture: Posture, sources: &[Source<'_>]) -> (Rules, Vec<RuleError>) {
    let baseline = baseline(posture);
    let mut loader = RuleLoader::default();
    loader.add(posture, baseline, ErrorReport::new(baseline));
    // The baseline does not count towards the limit.
    loader.count = 0;
    for source in sources {
        let mut report = ErrorReport::new(*source);
        check_source_name(source.name, &mut report);
        loader.add(posture, *source, report);
    }
    let version = version(posture, std::iter::once(&baseline).chain(sources));
    (compile(posture, version, loader.rules), loader.errors)
}

#[derive(Debug, Default)]
struct RuleLoader {
    rules: Vec<Arc<Rule>>,
    names: BTreeSet<String>,
    errors: Vec<RuleError>,
    count: usize,
}

impl RuleLoader {
    fn add(&mut self, posture: Posture, source: Source<'_>, mut report: ErrorReport<'_>) {
        let size = source.text.len();
        if FILE_BYTES_MAX < size {
            report.add(format!(
                "the file has {size} bytes, more than the {FILE_BYTES_MAX} allowed: split it"
            ));
        } else {
            for rule in document::parse_rules(source.text, &mut report) {
                self.add_rule(posture, source.name, rule, &mut report);
            }
        }
        self.errors.extend(report.into_errors());
    }

    fn add_rule(
        &mut self,
        posture: Posture,
        source_name: &str,
        loaded: document::LoadedRule,
        report: &mut ErrorReport<'_>,
    ) {
        let document::LoadedRule { mut rule, postures, offset } = loaded;
        self.count += 1;
        if self.count == RULES_MAX + 1 {
            report.add_at(
                offset,
                Some(&rule.name),
                format!("more than {RULES_MAX} rules: remove some"),
            );
        }
        let name = format!("{source_name}/{}", rule.name);
        if !self.names.insert(name.clone()) {
            let id = &rule.name;
            report.add_at(offset, Some(id), format!("another rule has the id `{id}`: rename one"));
        }
        rule.name = name;
        if self.count <= RULES_MAX && (postures.is_empty() || postures.contains(&posture)) {
            self.rules.push(Arc::new(rule));
        }
    }
}

/// A source must not have the name of the baseline, nor look like a built-in reason such as `@default`.
fn check_source_name(name: &str, report: &mut ErrorReport<'_>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let is_valid =
        !name.is_empty() && name.len() <= SOURCE_NAME_BYTES_MAX && name.chars().all(plain);
    if !is_valid || name == BASELINE {
        report.add(format!(
            "the name of a rules file has 1 to {SOURCE_NAME_BYTES_MAX} letters, digits, `-`, `_` and \
             `.`, and is not `{BASELINE}`: rename it"
        ));
    }
}

fn compile(posture: Posture, version: String, mut rules: Vec<Arc<Rule>>) -> Rules {
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    let covering =
        |name: &str| rules.iter().filter(|rule| rule.covers_capability(name)).cloned().collect();
    let capabilities = capability::ALL.iter();
    let by_capability = capabilities.map(|it| (it.name, covering(it.name))).collect();
    let covering_unknown = rules.iter().filter(|rule| rule.covers_unknown()).cloned().collect();
    let (protected_directory, home) = (None, Vec::new());
    Rules { posture, version, by_capability, covering_unknown, rules, protected_directory, home }
}

/// Each part is preceded by its length, so that different sources never hash the same text.
fn version<'a>(posture: Posture, sources: impl Iterator<Item = &'a Source<'a>>) -> String {
    let mut hash = Sha256::new();
    let mut part = |text: &str| {
        hash.update((text.len() as u64).to_be_bytes());
        hash.update(text);
    };
    part(posture.name());
    for source in sources {
        part(source.name);
        part(source.text);
    }
    let digest = hash.finalize();
    digest.iter().take(VERSION_BYTES).map(|byte| format!("{byte:02x}")).collect()
}
