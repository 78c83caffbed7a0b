//! What the standing orders are asked, and what they say, as it is recorded with every decision that
//! they led to. The rules themselves, and how they are weighed, are the crate `policy`.

use std::fmt;
use std::ops::Not;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::actor::Role;
use crate::agent::AgentName;
use crate::authority::Step;
use crate::backend::{Backend, Tier};
use crate::budget::Left;

/// From least to most strict: of several, the greatest holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    /// A human has to say yes first.
    Ask,
    Deny,
}

/// How strict the watch is as a whole: one knob that expands to the defaults of everything that is
/// about trust.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Posture {
    /// What no rule speaks of is denied.
    StrictProd,
    /// What no rule speaks of is asked.
    #[default]
    Staging,
    /// As staging, with more said about it.
    Debug,
}

/// What somebody wants to do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// Who wants it: `schedule:sch_…`, `run:run_…`, or the name of a human.
    pub principal: String,
    pub role: Role,
    /// The name of a class of the closed list.
    pub capability: String,
    /// How far it reaches; never less than its class implies.
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Details,
}

/// What rules can narrow their view to, as far as a request has it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Details {
    /// What it is done to: a schedule, a tool, a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
}

/// What was so when something was asked, whatever it was. No rule looks at it but the lease.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// What was left of the budgets of the day.
    #[serde(default, skip_serializing_if = "Left::is_unbounded")]
    pub left: Left,
    /// No human had asked for it by hand.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub unattended: bool,
    /// What was left of the authority of the watch.
    #[serde(default, skip_serializing_if = "Step::is_full")]
    pub lease: Step,
    /// What can be switched and was off, by the posture or by a flag.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
}

/// What is recorded of a decision besides what follows from its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Circumstances {
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Details,
    /// What was asked, where it does not follow from the run and the two above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<Request>>,
    pub facts: Facts,
}

/// What the standing orders say of a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ruling {
    pub verdict: Verdict,
    /// Every rule that had something to say, the deciding ones first; names beginning with `@` are not
    /// rules but what is always so.
    pub rules: Vec<String>,
    pub posture: Posture,
    /// Which rules were in force: the beginning of their hash.
    pub policy: String,
    /// Who has to say yes, where it is asked.
    #[serde(default, skip_serializing_if = "Approvers::is_one_operator")]
    pub approvers: Approvers,
}

/// The humans who have to say yes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvers {
    /// Different ones; at least one.
    pub persons: u8,
    /// The least of each.
    pub role: Role,
}

#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a posture: `strict-prod`, `staging` or `debug`")]
pub struct InvalidPosture(String);

impl Ruling {
    /// Another source has its say: it can only make the verdict stricter.
    pub fn join(&mut self, verdict: Verdict, source: &str) {
        match self.verdict < verdict {
            true => self.rules.insert(0, source.to_owned()),
            false => self.rules.push(source.to_owned()),
        }
        self.verdict = self.verdict.max(verdict);
    }
}

impl Approvers {
    /// What satisfies both.
    #[must_use]
    pub fn join(self, other: Approvers) -> Approvers {
        Approvers { persons: self.persons.max(other.persons), role: self.role.max(other.role) }
    }

    fn is_one_operator(&self) -> bool {
        *self == Approvers::default()
    }
}

impl Default for Approvers {
    fn default() -> Approvers {
        Approvers { persons: 1, role: Role::Operator }
    }
}

impl Details {
    /// What an agent tells of itself that is not a matter of the machine.
    pub fn of(backend: &Backend) -> Details {
        Details { host: backend.host().map(str::to_owned), ..Details::default() }
    }

    pub fn is_empty(&self) -> bool {
        *self == Details::default()
    }
}

impl Verdict {
    pub const fn name(self) -> &'static str {
        match self {
            Verdict::Allow => "allow",
            Verdict::Ask => "ask",
            Verdict::Deny => "deny",
        }
    }
}

impl Posture {
    pub const ALL: [Posture; 3] = [Posture::Staging, Posture::StrictProd, Posture::Debug];

    /// Names and aliases.
    pub const WORDS: [(&str, Posture); 5] = [
        ("staging", Posture::Staging),
        ("strict-prod", Posture::StrictProd),
        ("debug", Posture::Debug),
        ("supervised", Posture::Staging),
        ("unattended", Posture::StrictProd),
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Posture::StrictProd => "strict-prod",
            Posture::Staging => "staging",
            Posture::Debug => "debug",
        }
    }
}

impl fmt::Display for Posture {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.name())
    }
}

impl FromStr for Posture {
    type Err = InvalidPosture;

    /// The posture of that name or alias.
    fn from_str(word: &str) -> Result<Posture, InvalidPosture> {
        let found = Posture::WORDS.into_iter().find(|(name, _)| *name == word);
        found
            .map(|(_, posture)| posture)
            .ok_or_else(|| InvalidPosture(word.chars().take(80).collect()))
    }
}
