//! A rule: a verdict on some capabilities, restricted by conditions.

use std::fmt;

use kernel::policy_decision::{Approvers, Verdict};

use crate::conditions::{ConditionMatch, Conditions, NormalizedRequest};
use crate::pattern::CapabilityPattern;
use crate::rules::BASELINE;

/// A parsed and checked rule.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) capabilities: Vec<CapabilityPattern>,
    pub(crate) conditions: Conditions,
    /// Who has to approve, if the verdict is `ask`.
    pub(crate) approvers: Approvers,
    /// The line of its source at which it starts, from 1.
    pub(crate) line: usize,
}

/// The result of evaluating a rule on a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Evaluation {
    NoMatch,
    Match(Verdict),
    /// The request lacks a field that the rule has a condition on.
    Unknown,
}

impl Rule {
    /// The name of its source, a slash and its id.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The line of its source at which it starts, from 1.
    pub fn line(&self) -> usize {
        self.line
    }

    /// Who has to approve, if the verdict is `ask`.
    pub fn approvers(&self) -> Approvers {
        self.approvers
    }

    /// Whether it is built in.
    pub fn is_baseline(&self) -> bool {
        self.name.split_once('/').is_some_and(|(source, _)| source == BASELINE)
    }

    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// Its capability patterns, as the rules file writes them.
    pub fn capabilities(&self) -> Vec<String> {
        self.capabilities.iter().map(CapabilityPattern::to_string).collect()
    }

    /// Its conditions: each key with its values, as the rules file writes them.
    pub fn conditions(&self) -> Vec<(&'static str, Vec<String>)> {
        self.conditions.to_texts()
    }

    pub(crate) fn covers_capability(&self, capability: &str) -> bool {
        self.capabilities.iter().any(|pattern| pattern.matches(capability))
    }

    pub(crate) fn covers_unknown(&self) -> bool {
        self.capabilities.iter().any(CapabilityPattern::covers_unknown)
    }

    /// Whether it matches every request.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.capabilities.contains(&CapabilityPattern::Any) && self.conditions.is_empty()
    }

    /// Evaluates the rule on a request whose capability it covers.
    ///
    /// The request may lack a field that the rule has a condition on, such as the host. Then an `allow`
    /// does not match. A `deny` or `ask` is an error, and an error denies; otherwise omitting the field
    /// would bypass the rule.
    pub(crate) fn evaluate(&self, request: &NormalizedRequest<'_>) -> Evaluation {
        match (self.conditions.evaluate(request), self.verdict) {
            (ConditionMatch::Match, verdict) => Evaluation::Match(verdict),
            (ConditionMatch::NoMatch, _) | (ConditionMatch::Unknown, Verdict::Allow) => {
                Evaluation::NoMatch
            }
            (ConditionMatch::Unknown, Verdict::Ask | Verdict::Deny) => Evaluation::Unknown,
        }
    }
}

/// Prints one line: `deny net.*, shell.run where agent is ada, team-*`.
impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.verdict.name(), self.capabilities().join(", "))?;
        for (position, (key, values)) in self.conditions().iter().enumerate() {
            let joint = if position == 0 { "where" } else { "and" };
            match *key {
                "argv" => write!(out, " {joint} argv starts with {}", values.join(" "))?,
                key => write!(out, " {joint} {key} is {}", values.join(", "))?,
            }
        }
        let Approvers { persons, role } = self.approvers;
        match self.approvers == Approvers::default() {
            true => Ok(()),
            false => write!(out, ", approved by {persons} with the role {}", role.name()),
        }
    }
}
