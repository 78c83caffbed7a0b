//! Budgets: how many runs may begin in a day and how many tokens they may use, of one agent and of all; and
//! how often an agent may ask a human.
//!
//! A run is counted in the commit that begins it, by adding to counters that may not pass a limit, and so
//! never too many begin, however many want to at once. What was given back before anything was done is
//! taken off again. A day is one of UTC; each has counters of its own, so a clock that goes back finds
//! what was counted before. What only reads is not counted.
//!
//! What a try has used is known when it is over, and counted for the day on which it was. Nothing begins
//! once as much is used as may be; what has begun goes on, so that the last may use more.

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::backend::Tier;
use crate::time::Timestamp;

const DAY_US: i64 = 86_400_000_000;

/// The most of each. Zero: as many as there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Runs that begin in a day.
    pub runs: i64,
    pub runs_per_agent: i64,
    /// Questions to humans in a day.
    pub asks_per_agent: i64,
    /// Questions that nobody has answered yet.
    pub pending_per_agent: i64,
    /// For how long nobody is asked again what was denied, in microseconds. Zero: not at all.
    pub denied_for_us: i64,
    /// Tokens after which no run begins.
    pub tokens: i64,
    pub tokens_per_agent: i64,
}

/// What a model has read and written, by the account of whoever asked it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub input_tokens: u32,
    pub output_tokens: u32,
}

/// What a try has used, and what that is counted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    pub agent: AgentName,
    /// Since 1970.
    pub day: i64,
    pub usage: Usage,
}

/// What a run or a question was counted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    pub agent: AgentName,
    /// Since 1970.
    pub day: i64,
}

/// What a run that begins is counted for, if it is.
pub(crate) fn charge(agent: &AgentName, tier: Tier, now: Timestamp) -> Option<Charge> {
    (Tier::ReadOnly < tier).then(|| Charge { agent: agent.clone(), day: day(now) })
}

/// The day of an instant, counted from 1970.
pub fn day(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(DAY_US)
}

impl Usage {
    pub fn tokens(self) -> i64 {
        i64::from(self.input_tokens) + i64::from(self.output_tokens)
    }

    pub(crate) fn and(self, other: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

impl Limits {
    /// A limit of zero is none.
    pub(crate) const fn or_none(limit: i64) -> i64 {
        if limit == 0 { i64::MAX } else { limit }
    }

    /// What a counter may show when something begins that adds to it later.
    pub(crate) const fn below(limit: i64) -> i64 {
        Limits::or_none(limit) - 1
    }
}
