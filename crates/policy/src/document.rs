//! Rules as they are written: from TOML to checked rules, with every fault on the way.
//!
//! A fault in one rule does not hide the faults of the next; only a text that is not TOML at all is
//! not looked at further.

use std::str::FromStr;

use kernel::Role;
use kernel::backend::Tier;
use kernel::ruling::{Approvers, Posture, Verdict};
use serde::Deserialize;
use toml::Spanned;
use toml::de::{DeTable, DeValue, ValueDeserializer};

use crate::conditions::Conditions;
use crate::example::{Example, Expected};
use crate::fault::Report;
use crate::path;
use crate::pattern::{Class, listed};
use crate::programs;
use crate::rule::Rule;

const ID_BYTES_MAX: usize = 64;
const PATTERN_BYTES_MAX: usize = 4_096;
/// More would never come together.
const PERSONS_MAX: u8 = 5;

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

/// A rule that was read, and the postures that it is for.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) rule: Rule,
    /// Empty: all of them.
    pub(crate) postures: Vec<Posture>,
    /// Where it begins in the text.
    pub(crate) at: usize,
}

/// What stands in one `[[rule]]`, key by key.
#[derive(Debug, Default)]
struct Draft {
    verdicts: Vec<(Verdict, Vec<Class>)>,
    conditions: Conditions,
    postures: Vec<Posture>,
    approvers: Option<Approvers>,
    examples: Vec<(Expected, usize, Example)>,
}

/// Reads one rule.
#[derive(Debug)]
struct Reader<'r, 'a> {
    report: &'r mut Report<'a>,
    id: Option<String>,
    at: usize,
}

type Value<'t> = Spanned<DeValue<'t>>;

/// The rules of a text, still with their ids alone for names. Whatever is wrong is in the report.
pub(crate) fn read(text: &str, report: &mut Report<'_>) -> Vec<Entry> {
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        let at = error.span().map_or(text.len(), |span| span.start);
        report.add_at(at, None, format!("this is not valid TOML: {}", error.message()));
    }
    if !errors.is_empty() {
        return Vec::new();
    }
    let mut entries = Vec::new();
    for (key, value) in table.into_inner() {
        let at = key.span().start;
        match (key.get_ref().as_ref(), value.into_inner()) {
            ("rule", DeValue::Array(rules)) => {
                entries.extend(rules.into_iter().filter_map(|rule| entry(rule, report)));
            }
            ("rule", _) => report.add_at(at, None, "write `[[rule]]`, with two brackets each side"),
            (other, _) => report.add_at(
                at,
                None,
                format!("unknown key `{other}`: a file of rules holds `[[rule]]` and nothing else"),
            ),
        }
    }
    entries
}

fn entry(value: Value<'_>, report: &mut Report<'_>) -> Option<Entry> {
    let (at, faults) = (value.span().start, report.count());
    let mut reader = Reader { report, id: None, at };
    let DeValue::Table(table) = value.into_inner() else {
        reader.fault(at, "a rule is a table: write `[[rule]]` and its keys below it");
        return None;
    };
    let draft = reader.draft(table);
    let rule = reader.rule(&draft)?;
    reader.check_examples(&rule, &draft);
    reader.check_programs(&rule);
    if reader.report.count() == faults {
        reader.try_examples(&rule, draft.examples);
    }
    (report.count() == faults).then_some(Entry { rule, postures: draft.postures, at })
}

impl Reader<'_, '_> {
    fn fault(&mut self, at: usize, message: impl std::fmt::Display) {
        self.report.add_at(at, self.id.as_deref(), message);
    }

    fn draft(&mut self, table: DeTable<'_>) -> Draft {
        match table.get("id") {
            None => {
                self.fault(self.at, "it has no `id`: name it, so that decisions can refer to it")
            }
            Some(id) => match id.get_ref().as_str().filter(|id| is_id(id)) {
                Some(text) => self.id = Some(text.to_owned()),
                None => self.fault(
                    id.span().start,
                    format!("an `id` is 1 to {ID_BYTES_MAX} of `a-z`, `0-9`, `-`, `_` and `.`"),
                ),
            },
        }
        let mut draft = Draft::default();
        for (key, value) in table {
            self.key(key.get_ref(), key.span().start, value, &mut draft);
        }
        draft
    }

    fn key(&mut self, key: &str, at: usize, value: Value<'_>, draft: &mut Draft) {
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
                match persons.filter(|persons| (1..=PERSONS_MAX).contains(persons)) {
                    Some(persons) => draft.approvers.get_or_insert_default().persons = persons,
                    None => {
                        self.fault(at, format!("`persons` is a number from 1 to {PERSONS_MAX}"))
                    }
                }
            }
            "approver" => match value.get_ref().as_str() {
                Some("operator") => draft.approvers.get_or_insert_default().role = Role::Operator,
                Some("maintainer") => {
                    draft.approvers.get_or_insert_default().role = Role::Maintainer;
                }
                _ => self.fault(at, "`approver` is \"operator\" or \"maintainer\""),
            },
            "match" => self.examples(Expected::Match, at, value, draft),
            "not_match" => self.examples(Expected::NoMatch, at, value, draft),
            other => {
                let keys = listed(KEYS.iter().copied());
                self.fault(at, format!("unknown key `{other}`: the keys of a rule are {keys}"));
            }
        }
    }

    fn examples(&mut self, expected: Expected, at: usize, value: Value<'_>, draft: &mut Draft) {
        let examples: Vec<Example> = self.list(expected.key(), value, example);
        draft.examples.extend(examples.into_iter().map(|example| (expected, at, example)));
    }

    /// Every element that can be read; each of the others is a fault of its own.
    fn list<T>(
        &mut self,
        key: &str,
        value: Value<'_>,
        read: impl Fn(Value<'_>) -> Result<T, String>,
    ) -> Vec<T> {
        let at = value.span().start;
        let DeValue::Array(elements) = value.into_inner() else {
            self.fault(at, format!("`{key}` is a list: put brackets around it"));
            return Vec::new();
        };
        if elements.is_empty() {
            self.fault(at, format!("`{key}` is an empty list: put something into it or remove it"));
        }
        let mut found = Vec::new();
        for element in elements {
            let at = element.span().start;
            match read(element) {
                Ok(element) => found.push(element),
                Err(message) => self.fault(at, format!("`{key}`: {message}")),
            }
        }
        found
    }

    fn rule(&mut self, draft: &Draft) -> Option<Rule> {
        let [(verdict, classes)] = draft.verdicts.as_slice() else {
            self.fault(self.at, "write exactly one of `deny`, `ask` and `allow`");
            return None;
        };
        if draft.approvers.is_some() && *verdict != Verdict::Ask {
            self.fault(self.at, "`persons` and `approver` say who is asked: they go with `ask`");
        }
        Some(Rule {
            name: self.id.clone()?,
            verdict: *verdict,
            classes: classes.clone(),
            conditions: draft.conditions.clone(),
            approvers: draft.approvers.unwrap_or_default(),
        })
    }

    /// A rule for everything has nothing that it could fail to match, and so needs no `not_match`.
    fn check_examples(&mut self, rule: &Rule, draft: &Draft) {
        for expected in [Expected::Match, Expected::NoMatch] {
            let excused = expected == Expected::NoMatch && rule.is_unconditional();
            if !excused && !draft.examples.iter().any(|(it, ..)| *it == expected) {
                let key = expected.key();
                self.fault(self.at, format!("it has no `{key}` example: give it at least one"));
            }
        }
    }

    fn try_examples(&mut self, rule: &Rule, examples: Vec<(Expected, usize, Example)>) {
        for (expected, at, example) in examples {
            if let Some(message) = example.fault(rule, expected) {
                self.fault(at, message);
            }
        }
    }

    /// What follows the named arguments is free, so an `allow` must name a program whose arguments
    /// are harmless, and exactly that program.
    fn check_programs(&mut self, rule: &Rule) {
        if rule.verdict != Verdict::Allow {
            return;
        }
        match rule.conditions.argv.first() {
            None if rule.covers("shell.run") => {
                self.fault(self.at, "an `allow` over `shell.run` needs `argv`: name the program")
            }
            Some(program) if programs::runs_others(program) => self.fault(
                self.at,
                format!(
                    "`{program}` can run any other program, whatever stands before its free \
                     arguments: use `ask`, or name the program itself"
                ),
            ),
            Some(program) if path::components(program).is_none() => self.fault(
                self.at,
                format!("`{program}` could be any program of that name: write its whole path"),
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
    let text = value.get_ref().as_str().ok_or("it holds texts: put quotes around each")?;
    if PATTERN_BYTES_MAX < text.len() {
        return Err(format!("a text of a rule has at most {PATTERN_BYTES_MAX} bytes: shorten it"));
    }
    text.parse().map_err(|error: T::Err| error.to_string())
}

fn tier(value: Value<'_>) -> Result<Tier, String> {
    Tier::deserialize(ValueDeserializer::from(value))
        .map_err(|_| "a tier is 0, 1 or 2, without quotes".to_owned())
}

/// The watch itself asks for nothing.
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
