//! Budgets: how many runs may begin in a day, how many tokens they may use and what they may cost, of one
//! schedule, of one agent and of all; and how often an agent may ask a human.
//!
//! A run is counted in the commit that begins it, by adding to counters that may not pass a limit, and so
//! never too many begin, however many want to at once. What was given back before anything was done is
//! taken off again. A day is one of UTC; each has counters of its own, so a clock that goes back finds
//! what was counted before. What only reads is not counted.
//!
//! What a try has used is known when it is over, and counted for the day on which it was. Until then as
//! much is held back as its schedule's last run used; what is not known of a try that was cut off stays held
//! back. Nothing begins once as much is used or held back as may be, or would be with it; what has begun goes
//! on, so that the last may use more.

use serde::{Deserialize, Serialize};

use crate::agent::AgentName;
use crate::backend::Tier;
use crate::id::ScheduleId;
use crate::money::{Money, Price};
use crate::schedule::terms::Terms;
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
    /// What runs cost, by the prices of their agents, after which none begins that has a price.
    pub money: Money,
    pub money_per_agent: Money,
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
    /// Absent in what was stored before schedules had limits of their own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
    /// Since 1970.
    pub day: i64,
    /// As far as it was told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
}

/// What is held back for a try until it is known what it used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Hold {
    pub agent: AgentName,
    pub schedule: ScheduleId,
    /// Since 1970.
    pub day: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: i64,
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub money: Money,
}

/// What a run or a question was counted for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// A call of a tool has none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// Since 1970.
    pub day: i64,
}

/// What a run that begins is counted for, if it is.
pub(crate) fn charge(agent: Option<&AgentName>, tier: Tier, now: Timestamp) -> Option<Charge> {
    (Tier::ReadOnly < tier).then(|| Charge { agent: agent.cloned(), day: day(now) })
}

/// What a try is expected to use, by what the last one did, and to cost, in tokens and money. Not more than
/// a whole day may, or what used too much once would never begin again; but what is sure to cost more than
/// that is not made less.
pub(crate) fn expected(
    last: Option<Usage>,
    price: &Price,
    terms: &Terms,
    limits: &Limits,
) -> (i64, Money) {
    let last = last.unwrap_or_default();
    let own = terms.tokens_per_day.map_or(0, i64::from);
    let tokens = [limits.tokens, limits.tokens_per_agent, own].map(Limits::or_none);
    let tokens = tokens.into_iter().fold(last.tokens(), i64::min);
    let own = terms.money_per_day.unwrap_or_default();
    let money = [limits.money, limits.money_per_agent, own].into_iter();
    let money = money.filter(|limit| !limit.is_zero()).fold(price.cost(last), Money::min);
    (tokens, money.max(price.run))
}

/// When a day is over.
pub fn end_of(day: i64) -> Timestamp {
    Timestamp::from_micros((day + 1).saturating_mul(DAY_US))
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

    /// What a counter may show when something begins for which so much is held back; it may use something
    /// even if that is nothing.
    pub(crate) fn below(limit: i64, held: i64) -> i64 {
        limit - held.max(1)
    }
}

fn is_zero(number: &i64) -> bool {
    *number == 0
}
