//! The rules in force: loaded and checked as a whole, then asked about one request at a time.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use kernel::backend::Tier;
use kernel::ruling::{Approvers, Posture, Request, Ruling, Verdict};
use sha2::{Digest, Sha256};

use crate::capability;
use crate::conditions::Facts;
use crate::document;
use crate::fault::{Fault, Report};
use crate::protected::folded;
use crate::rule::{Answer, Rule};

/// Rules of an operator, in all sources together.
pub const RULES_MAX: usize = 10_000;
/// Of one source.
pub const FILE_BYTES_MAX: usize = 1024 * 1024;

const SOURCE_NAME_BYTES_MAX: usize = 64;
const VERSION_BYTES: usize = 6;
pub(crate) const BASELINE: &str = "baseline";

/// No rule matched, and so the posture decides.
pub(crate) const DEFAULT: &str = "@default";
/// What is external is never just allowed.
pub(crate) const TIER_2: &str = "@tier-2";
/// What is written to a protected path reaches as far.
const PROTECTED: &str = "@protected";
/// Reasons that a ruling names; of the others, only how many they are.
const REASONS_MAX: usize = 16;

/// A text with rules, and the name under which decisions refer to it.
#[derive(Clone, Copy, Debug)]
pub struct Source<'a> {
    pub name: &'a str,
    pub text: &'a str,
}

/// Invariant: the table leads from each known class to all rules that cover it, and `wide` holds
/// all rules that may cover an unknown one. Rules are in the order of their names, so that the order
/// of files and of rules in them changes nothing.
#[derive(Clone, Debug)]
pub struct Rules {
    posture: Posture,
    version: String,
    rules: Vec<Arc<Rule>>,
    table: BTreeMap<&'static str, Vec<Arc<Rule>>>,
    wide: Vec<Arc<Rule>>,
    /// The directory of the watch itself, in parts, where it is known.
    own: Option<Vec<String>>,
}

impl Rules {
    /// The baseline of the posture and the rules of all sources, or everything that is wrong with
    /// them. No source can take away a rule of another one.
    pub fn load(posture: Posture, sources: &[Source<'_>]) -> Result<Rules, Vec<Fault>> {
        let (rules, faults) = gather(posture, sources);
        if faults.is_empty() { Ok(rules) } else { Err(faults) }
    }

    /// The rules of a fresh install.
    pub fn baseline(posture: Posture) -> Rules {
        // That the baselines have no faults is a test.
        gather(posture, &[]).0
    }

    /// The same, with all that is in a directory protected: the one of the watch itself.
    pub fn guarding(self, directory: &str) -> Rules {
        Rules { own: Some(folded(directory)), ..self }
    }

    /// What the rules say of a request. It always answers: what it cannot judge, it denies.
    pub fn decide(&self, request: &Request) -> Ruling {
        let facts = Facts::of(request, self.own.as_deref());
        let malformed = facts.malformed.iter().map(|field| (Verdict::Deny, error(field)));
        let mut said: Vec<(Verdict, String)> = malformed.collect();
        let mut approvers = Approvers::default();
        for rule in self.candidates(&request.capability) {
            match rule.answer(&facts) {
                Answer::Nothing => {}
                Answer::Verdict(verdict) => {
                    said.push((verdict, rule.name.clone()));
                    approvers = approvers.join(rule.approvers);
                }
                Answer::Unknown => said.push((Verdict::Deny, error(&rule.name))),
            }
        }
        if said.is_empty() {
            said.push((self.posture.trust().unmatched, DEFAULT.to_owned()));
        }
        if facts.is_protected {
            said.push((Verdict::Ask, PROTECTED.to_owned()));
        }
        if facts.tier == Tier::External {
            said.push((Verdict::Ask, TIER_2.to_owned()));
        }
        // Stable: of equally strict ones, the order is that of the rules.
        said.sort_by(|(one, _), (other, _)| other.cmp(one));
        Ruling {
            verdict: said.first().map_or(Verdict::Deny, |(verdict, _)| *verdict),
            rules: reasons(said),
            posture: self.posture,
            policy: self.version.clone(),
            approvers,
        }
    }

    /// Which rules these are: the beginning of the hash of the posture and of all sources.
    pub fn version(&self) -> &str {
        &self.version
    }

    pub fn posture(&self) -> Posture {
        self.posture
    }

    /// The rules in force, in the order of their names. Rules for other postures are checked at
    /// load, but not among them.
    pub fn iter(&self) -> impl Iterator<Item = &Rule> {
        self.rules.iter().map(Arc::as_ref)
    }

    /// The most people that a rule wants to be asked.
    pub fn persons_max(&self) -> u8 {
        self.iter().map(|rule| rule.approvers.persons).max().unwrap_or(1)
    }

    /// The rules that cover a class.
    fn candidates(&self, capability: &str) -> impl Iterator<Item = &Rule> {
        let known = self.table.get(capability);
        let rules = known.unwrap_or(&self.wide).iter().map(Arc::as_ref);
        rules.filter(move |rule| known.is_some() || rule.covers(capability))
    }
}

/// The names of those that spoke, the deciding ones first.
fn reasons(said: Vec<(Verdict, String)>) -> Vec<String> {
    let more = said.len().saturating_sub(REASONS_MAX);
    let mut names: Vec<String> = said.into_iter().map(|(_, name)| name).take(REASONS_MAX).collect();
    names.extend((0 < more).then(|| format!("@more:{more}")));
    names
}

fn error(of: &str) -> String {
    format!("@error:{of}")
}

fn baseline(posture: Posture) -> Source<'static> {
    let text = match posture {
        Posture::StrictProd => include_str!("../baseline/strict-prod.toml"),
        Posture::Staging | Posture::Debug => include_str!("../baseline/staging.toml"),
    };
    Source { name: BASELINE, text }
}

/// All rules without a fault, and all faults.
fn gather(posture: Posture, sources: &[Source<'_>]) -> (Rules, Vec<Fault>) {
    let baseline = baseline(posture);
    let mut gathered = Gathered::default();
    gathered.add(posture, baseline, Report::new(baseline));
    gathered.count = 0;
    for source in sources {
        let mut report = Report::new(*source);
        check_name(source.name, &mut report);
        gathered.add(posture, *source, report);
    }
    let version = version(posture, std::iter::once(&baseline).chain(sources));
    (compile(posture, version, gathered.rules), gathered.faults)
}

#[derive(Debug, Default)]
struct Gathered {
    rules: Vec<Arc<Rule>>,
    names: BTreeSet<String>,
    faults: Vec<Fault>,
    count: usize,
}

impl Gathered {
    fn add(&mut self, posture: Posture, source: Source<'_>, mut report: Report<'_>) {
        let size = source.text.len();
        if FILE_BYTES_MAX < size {
            report.add(format!(
                "it has {size} bytes, and {FILE_BYTES_MAX} is the most: divide it into several"
            ));
        } else {
            for entry in document::read(source.text, &mut report) {
                self.add_entry(posture, source.name, entry, &mut report);
            }
        }
        self.faults.extend(report.into_faults());
    }

    fn add_entry(
        &mut self,
        posture: Posture,
        source_name: &str,
        entry: document::Entry,
        report: &mut Report<'_>,
    ) {
        let document::Entry { mut rule, postures, at } = entry;
        self.count += 1;
        if self.count == RULES_MAX + 1 {
            report.add_at(
                at,
                Some(&rule.name),
                format!("there are more than {RULES_MAX} rules: remove some"),
            );
        }
        let name = format!("{source_name}/{}", rule.name);
        if !self.names.insert(name.clone()) {
            let id = &rule.name;
            report.add_at(at, Some(id), format!("there is another rule `{id}`: rename one"));
        }
        rule.name = name;
        if self.count <= RULES_MAX && (postures.is_empty() || postures.contains(&posture)) {
            self.rules.push(Arc::new(rule));
        }
    }
}

/// A name may not pass for the baseline, nor for what is no rule.
fn check_name(name: &str, report: &mut Report<'_>) {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = !name.is_empty() && name.len() <= SOURCE_NAME_BYTES_MAX && name.chars().all(plain);
    if !fits || name == BASELINE {
        report.add(format!(
            "the name of a source is 1 to {SOURCE_NAME_BYTES_MAX} letters, digits, `-`, `_` and \
             `.`, and not `{BASELINE}`: rename it"
        ));
    }
}

fn compile(posture: Posture, version: String, mut rules: Vec<Arc<Rule>>) -> Rules {
    rules.sort_by(|one, other| one.name.cmp(&other.name));
    let covering = |name: &str| rules.iter().filter(|rule| rule.covers(name)).cloned().collect();
    let classes = capability::ALL.iter();
    let table = classes.map(|class| (class.name, covering(class.name))).collect();
    let wide = rules.iter().filter(|rule| rule.is_wide()).cloned().collect();
    Rules { posture, version, table, wide, rules, own: None }
}

/// Each part is preceded by its length, so that no two sets of sources look the same.
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
