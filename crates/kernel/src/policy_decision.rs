//! Policy requests and decisions, as recorded in events. The rules and their evaluation are in the crate
//! `policy`.

use std::ops::Not;

use serde::{Deserialize, Serialize};

use crate::actor::Role;
use crate::agent::AgentName;
use crate::authority::LeaseState;
use crate::backend::{Backend, Tier};
use crate::budget::Remaining;
use crate::posture::Posture;

/// From least to most strict; of several verdicts, the strictest wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    Allow,
    /// A human must approve first.
    Ask,
    Deny,
}

/// Who wants to do what, as the rules see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// `schedule:sch_…`, `run:run_…`, or the name of a human.
    pub principal: String,
    pub role: Role,
    /// The name of a capability class from the closed list.
    pub capability: String,
    /// Never below the minimum of its capability class.
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Details,
}

/// Attributes of a request that rules can match, where present.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Details {
    /// The object of the request: a schedule, a tool, a file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub argv: Vec<String>,
}

/// The circumstances of a decision, whatever the request. Only the lease depends on them; no rule does.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Facts {
    /// What was left of the day's budgets.
    #[serde(default, skip_serializing_if = "Remaining::is_unlimited")]
    pub left: Remaining,
    /// No human had started it by hand.
    #[serde(default, skip_serializing_if = "Not::not")]
    pub unattended: bool,
    /// What the lease allowed.
    #[serde(default, skip_serializing_if = "LeaseState::is_full")]
    pub lease: LeaseState,
    /// The switches that the posture or a flag had turned off.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub off: Vec<String>,
}

/// The inputs of a decision that cannot be derived from its run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DecisionContext {
    pub tier: Tier,
    #[serde(default, skip_serializing_if = "Details::is_empty")]
    pub details: Details,
    /// The whole request, if it cannot be derived from the run and the two fields above.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub request: Option<Box<Request>>,
    pub facts: Facts,
}

/// What the policy decided about a request.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PolicyDecision {
    pub verdict: Verdict,
    /// Every rule that matched, the deciding ones first; a name that starts with `@` is a built-in check, not
    /// a rule.
    pub rules: Vec<String>,
    pub posture: Posture,
    /// The start of the hash of the active rules.
    pub policy: String,
    /// Who must approve, if the verdict is `ask`.
    #[serde(default, skip_serializing_if = "Approvers::is_one_operator")]
    pub approvers: Approvers,
}

/// The humans who must approve.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Approvers {
    /// How many different people; at least one.
    pub persons: u8,
    /// The lowest role of each.
    pub role: Role,
}

impl PolicyDecision {
    /// Adds the verdict of a built-in check. It can only make the decision stricter.
    pub fn add_verdict(&mut self, verdict: Verdict, source: &str) {
        match self.verdict < verdict {
            true => self.rules.insert(0, source.to_owned()),
            false => self.rules.push(source.to_owned()),
        }
        self.verdict = self.verdict.max(verdict);
    }
}

impl Approvers {
    /// The requirement that satisfies both.
    #[must_use]
    pub fn strictest(self, other: Approvers) -> Approvers {
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
    /// The details that follow from an agent's backend alone.
    pub fn from_backend(backend: &Backend) -> Details {
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
