//! One rule: a verdict over some classes, narrowed by conditions.

use std::fmt;

use kernel::ruling::{Approvers, Verdict};

use crate::conditions::{Conditions, Facts, Fit};
use crate::pattern::Class;

/// A rule in force, as it was read and checked.
#[derive(Clone, Debug)]
pub struct Rule {
    pub(crate) name: String,
    pub(crate) verdict: Verdict,
    pub(crate) classes: Vec<Class>,
    pub(crate) conditions: Conditions,
    /// Who has to say yes to what it asks.
    pub(crate) approvers: Approvers,
}

/// What a rule has to say of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Nothing,
    Verdict(Verdict),
    /// It cannot be told whether it matches.
    Unknown,
}

impl Rule {
    /// The name of its source, a slash, and its id.
    pub fn name(&self) -> &str {
        &self.name
    }

    pub fn verdict(&self) -> Verdict {
        self.verdict
    }

    /// The patterns of its classes, as they are written.
    pub fn capabilities(&self) -> Vec<String> {
        self.classes.iter().map(Class::to_string).collect()
    }

    /// What narrows it: each key with its values, as they are written.
    pub fn conditions(&self) -> Vec<(&'static str, Vec<String>)> {
        self.conditions.shown()
    }

    pub(crate) fn covers(&self, capability: &str) -> bool {
        self.classes.iter().any(|class| class.covers(capability))
    }

    pub(crate) fn is_wide(&self) -> bool {
        self.classes.iter().any(Class::is_wide)
    }

    /// It matches whatever is asked.
    pub(crate) fn is_unconditional(&self) -> bool {
        self.classes.contains(&Class::Every) && self.conditions.is_empty()
    }

    /// What it says of a request whose class it covers.
    ///
    /// A rule may look at something that the request does not have, such as the host of a request
    /// without one. An `allow` then says nothing: what is not known to be allowed is not. A `deny`
    /// or `ask` must not fall silent, or leaving a field out would be the way around it: that it
    /// cannot be judged is an error, and an error denies.
    pub(crate) fn answer(&self, facts: &Facts<'_>) -> Answer {
        match (self.conditions.fit(facts), self.verdict) {
            (Fit::Fits, verdict) => Answer::Verdict(verdict),
            (Fit::Differs, _) | (Fit::Unknown, Verdict::Allow) => Answer::Nothing,
            (Fit::Unknown, Verdict::Ask | Verdict::Deny) => Answer::Unknown,
        }
    }
}

/// In one line: `deny net.*, shell.run where agent is ada, team-*`.
impl fmt::Display for Rule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{} {}", self.verdict.name(), self.capabilities().join(", "))?;
        for (position, (key, values)) in self.conditions().iter().enumerate() {
            let joint = if position == 0 { "where" } else { "and" };
            match *key {
                "argv" => write!(out, " {joint} argv begins with {}", values.join(" "))?,
                key => write!(out, " {joint} {key} is {}", values.join(", "))?,
            }
        }
        let Approvers { persons, role } = self.approvers;
        match self.approvers == Approvers::default() {
            true => Ok(()),
            false => write!(out, ", of {persons} with the role {}", role.name()),
        }
    }
}
