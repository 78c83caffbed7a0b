//! Parses a rules file from TOML and reports every error in it.
//!
//! An error in one rule does not hide the errors of the next. Only invalid TOML ends the parsing.

use std::str::FromStr;

use kernel::Role;
use kernel::backend::Tier;
use kernel::policy_decision::{Approvers, Verdict};
use kernel::posture::Posture;
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::conditions::Conditions;
use crate::error::ErrorReport;
use crate::example::{Example, Expected};
use crate::path;
use crate::pattern::{CapabilityPattern, quote_names};
use crate::programs;
use crate::rule::Rule;

const ID_BYTES_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 4_096;
/// The most approvers that a rule can require.
const APPROVERS_MAX: u8 = 5;

const KEYS: &[&str] = &[
    "id",
    "deny",
    "ask",
    "allow",
    "principal",
    "role",
    "agent",
    "resource",
    "host",
    "path",
    "argv",
    "tier",
    "posture",
    "persons",
    "approver",
    "match",
    "not_match",
];

/// A parsed rule, and the postures that it applies to.
#[derive(Debug)]
pub(crate) struct LoadedRule {
    pub(crate) rule: Rule,
    /// Empty: all postures.
    pub(crate) postures: Vec<Posture>,
    /// The byte offset of the rule in the text.
    pub(crate) offset: usize,
}

/// The keys of one `[[rule]]`.
#[derive(Debug, Default)]
struct RuleDraft {
    verdicts: Vec<(Verdict, Vec<CapabilityPattern>)>,
    conditions: Conditions,
    postures: Vec<Posture>,
    approvers: Option<Approvers>,
    examples: Vec<(Expected, usize, Example)>,
}

/// Parses one rule.
#[derive(Debug)]
struct RuleReader<'r, 'a> {
    report: &'r mut ErrorReport<'a>,
    id: Option<String>,
    offset: usize,
}

type Value<'t> = Spanned<DeValue<'t>>;

/// Parses the rules of a text and adds every error to the report. The name of a rule is its id; the
/// caller adds the name of the source.
pub(crate) fn parse_rules(text: &str, report: &mut ErrorReport<'_>) -> Vec<LoadedRule> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let offset = error.span().map_or(text.len(), |span| span.start);
        report.add_at(offset, None, format!("invalid TOML: {}", error.message()));
    }
    if !errors.is_empty() {
        return Vec::new();
    }
    let mut entries = Vec::new();
    for (key, value) in table.into_inner() {
        let offset = key.span().start;
        match (key.get_ref().as_ref(), value.into_inner()) {
            ("rule", DeValue::Array(rules)) => {
                entries.extend(rules.into_iter().filter_map(|rule| parse_rule(rule, report)));
            }
            ("rule", _) => report.add_at(offset, None, "write `[[rule]]`, with double brackets"),
            (other, _) => report.add_at(
                offset,
                None,
                format!("unknown key `{other}`: a rules file contains only `[[rule]]` tables"),
            ),
        }
    }
    entries
}

fn parse_rule(value: Value<'_>, report: &mut ErrorReport<'_>) -> Option<LoadedRule> {
    let (offset, errors) = (value.span().start, report.count());
    let mut reader = RuleReader { report, id: None, offset };
    let DeValue::Table(table) = value.into_inner() else {
        reader.error(offset, "a rule is a table: write `[[rule]]` and its keys below it");
        return None;
    };
    let draft = reader.draft(table);
    let rule = reader.rule(&draft)?;
    reader.check_examples(&rule, &draft);
    reader.check_programs(&rule);
    if reader.report.count() == errors {
        reader.try_examples(&rule, draft.examples);
    }
    (report.count() == errors).then_some(LoadedRule { rule, postures: draft.postures, offset })
}

impl RuleReader<'_, '_> {
    fn error(&mut self, offset: usize, message: impl std::fmt::Display) {
        self.report.add_at(offset, self.id.as_deref(), message);
    }

    fn draft(&mut self, table: DeTable<'_>) -> RuleDraft {
        match table.get("id") {
            None => self
                .error(self.offset, "the rule has no `id`: add one, because decisions refer to it"),
            Some(id) => match id.get_ref().as_str().filter(|id| is_id(id)) {
                Some(text) => self.id = Some(text.to_owned()),
                None => self.error(
                    id.span().start,
                    format!("an `id` has 1 to {ID_BYTES_MAX} of `a-z`, `0-9`, `-`, `_` and `.`"),
                ),
            },
        }
        let mut draft = RuleDraft::default();
        for (key, value) in table {
            self.key(key.get_ref(), key.span().start, value, &mut draft);
        }
        draft
    }

    fn key(&mut self, key: &str, offset: usize, value: Value<'_>, draft: &mut RuleDraft) {
        let conditions = &mut draft.conditions;
        match key {
            "id" => {}
            "deny" => draft.verdicts.push((Verdict::Deny, self.list(key, value, text))),
            "ask" => draft.verdicts.push((Verdict::Ask, self.list(key, value, text))),
            "allow" => draft.verdicts.push((Verdict::Allow, self.list(key, value, text))),
            "principal" => conditions.principal = self.list(key, value, text),
            "role" => conditions.role = self.list(key, value, role),
            "agent" => conditions.agent = self.list(key, value, text),
            "resource" => conditions.resource = self.list(key, value, text),
            "host" => conditions.host = self.list(key, value, text),
            "path" => conditions.path = self.list(key, value, text),
            "argv" => conditions.argv = self.list(key, value, text),
            "tier" => conditions.tier = self.list(key, value, tier),
            "posture" => draft.postures = self.list(key, value, posture),
            "persons" => {
                let persons = value.get_ref().as_integer().and_then(|it| it.as_str().parse().ok());
                match persons.filter(|persons| (1..=APPROVERS_MAX).contains(persons)) {
                    Some(persons) => draft.approvers.get_or_insert_default().persons = persons,
                    None => self
                        .error(offset, format!("`persons` is a number from 1 to {APPROVERS_MAX}")),
                }
            }
            "approver" => match value.get_ref().as_str() {
                Some("operator") => draft.approvers.get_or_insert_default().role = Role::Operator,
                Some("maintainer") => {
                    draft.approvers.get_or_insert_default().role = Role::Maintainer;
                }
                _ => self.error(offset, "`approver` is \"operator\" or \"maintainer\""),
            },
            "match" => self.examples(Expected::Match, offset, value, draft),
            "not_match" => self.examples(Expected::NoMatch, offset, value, draft),
            other => {
                let keys = quote_names(KEYS.iter().copied());
                self.error(offset, format!("unknown key `{other}`: the keys of a rule are {keys}"));
            }
        }
    }

    fn examples(
        &mut self,
        expected: Expected,
        offset: usize,
        value: Value<'_>,
        draft: &mut RuleDraft,
    ) {
        let examples: Vec<Example> = self.list(expected.key(), value, example);
        draft.examples.extend(examples.into_iter().map(|example| (expected, offset, example)));
    }

    /// The valid elements of a list; each invalid one is an error.
    fn list<T>(
        &mut self,
        key: &str,
        value: Value<'_>,
        read: impl Fn(Value<'_>) -> Result<T, String>,
    ) -> Vec<T> {
        let offset = value.span().start;
        let DeValue::Array(elements) = value.into_inner() else {
            self.error(offset, format!("`{key}` is a list: put brackets around it"));
            return Vec::new();
        };
        if elements.is_empty() {
            self.error(offset, format!("`{key}` is an empty list: fill or remove it"));
        }
        let mut found = Vec::new();
        for element in elements {
            let offset = element.span().start;
            match read(element) {
                Ok(element) => found.push(element),
                Err(message) => self.error(offset, format!("`{key}`: {message}")),
            }
        }
        found
    }

    fn rule(&mut self, draft: &RuleDraft) -> Option<Rule> {
        let [(verdict, capabilities)] = draft.verdicts.as_slice() else {
            self.error(self.offset, "write exactly one of `deny`, `ask` and `allow`");
            return None;
        };
        if draft.approvers.is_some() && *verdict != Verdict::Ask {
            self.error(self.offset, "`persons` and `approver` are only for `ask` rules");
        }
        Some(Rule {
            name: self.id.clone()?,
            verdict: *verdict,
            capabilities: capabilities.clone(),
            conditions: draft.conditions.clone(),
            approvers: draft.approvers.unwrap_or_default(),
            line: self.report.line_of(self.offset),
        })
    }

    /// A rule that matches every request needs no `not_match` example.
    fn check_examples(&mut self, rule: &Rule, draft: &RuleDraft) {
        for expected in [Expected::Match, Expected::NoMatch] {
            let is_optional = expected == Expected::NoMatch && rule.is_unconditional();
            if !is_optional && !draft.examples.iter().any(|(it, ..)| *it == expected) {
                let key = expected.key();
                self.error(
                    self.offset,
                    format!("the rule has no `{key}` example: add at least one"),
                );
            }
        }
    }

    fn try_examples(&mut self, rule: &Rule, examples: Vec<(Expected, usize, Example)>) {
        for (expected, offset, example) in examples {
            if let Some(message) = example.check(rule, expected) {
                self.error(offset, message);
            }
        }
    }

    /// Arguments after the named ones are arbitrary, so an `allow` must name exactly one program, and
    /// one that cannot run others.
    fn check_programs(&mut self, rule: &Rule) {
        if rule.verdict != Verdict::Allow {
            return;
        }
        match rule.conditions.argv.first() {
            None if rule.covers_capability("shell.run") => {
                self.error(self.offset, "an `allow` over `shell.run` needs `argv`: name the program")
            }
            Some(program) if programs::can_run_programs(program) => self.error(
                self.offset,
                format!(
                    "`{program}` can run any other program through its arguments: use `ask`, or name \
                     the program that it runs"
                ),
            ),
            Some(program) if path::components(program).is_none() => self.error(
                self.offset,
                format!("`{program}` matches any program with that name: write its absolute path"),
            ),
            None | Some(_) => {}
        }
    }
}

fn is_id(id: &str) -> bool {
    let plain =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    !id.is_empty() && id.len() <= ID_BYTES_MAX && id.chars().all(plain)
}

fn text<T: FromStr<Err: ToString>>(value: Value<'_>) -> Result<T, String> {
    let text =
        value.get_ref().as_str().ok_or("its elements are strings: put quotes around each")?;
    if PATTERN_BYTES_MAX < text.len() {
        return Err(format!("a string has at most {PATTERN_BYTES_MAX} bytes: shorten it"));
    }
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn tier(value: Value<'_>) -> Result<Tier, String> {
    Tier::deserialize(ValueDeserializer::from(value))
        .map_err(|_| "a tier is 0, 1 or 2, without quotes".to_owned())
}

/// `system` is not a valid role, because Midwatch itself makes no requests.
fn role(value: Value<'_>) -> Result<Role, String> {
    let known = Role::deserialize(ValueDeserializer::from(value)).ok();
    known.filter(|role| *role != Role::System).ok_or_else(|| {
        "a role is `observer`, `runner`, `operator` or `maintainer`, in quotes".to_owned()
    })
}

fn posture(value: Value<'_>) -> Result<Posture, String> {
    Posture::deserialize(ValueDeserializer::from(value))
        .map_err(|_| "a posture is `strict-prod`, `staging` or `debug`, in quotes".to_owned())
}

fn example(value: Value<'_>) -> Result<Example, String> {
    Example::deserialize(ValueDeserializer::from(value)).map_err(|error| error.message().to_owned())
}
