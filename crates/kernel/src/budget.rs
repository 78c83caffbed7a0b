//! Budgets: how many runs may begin in a day, how many tokens they may use and what they may cost, of one
//! schedule, of one agent and of all; and how often an agent may ask a human.
//!
//! A run is counted in the commit that begins it, by adding to counters that may not pass a limit, and so
//! never too many begin, however many want to at once. What was given back before anything was done is
//! taken off again. A day is one of UTC; each has counters of its own, so a clock that goes back finds
//! what was counted before. What only reads is not counted.
//!
//! What a try has used is known when it is over, and counted for the day on which it was. Until then as
//! much is held back as its schedule's last run used, or a share of the day before the first that tells; what
//! is not known of a try that was cut off stays held back. Nothing begins once as much is used or held back as may be, or would be with it; what has begun goes
//! on, so that the last may use more.

use serde::{Deserialize, Serialize};

use crate::agent::{Agent, AgentName};
use crate::backend::Tier;
use crate::id::ScheduleId;
use crate::money::Money;
use crate::schedule::terms::Terms;
use crate::tables::Counter;
use crate::time::Timestamp;

const DAY_US: i64 = 86_400_000_000;
/// First tries of schedules that are held to use up a day together, so that no more are begun at once.
const FIRST_TRIES_A_DAY: i64 = 20;

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

/// What is left of a day, of each the least of all limits that bind; nothing where none does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Left {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
}

/// What a run that begins is counted for, if it is.
pub(crate) fn charge(agent: Option<&AgentName>, tier: Tier, now: Timestamp) -> Option<Charge> {
    (Tier::ReadOnly < tier).then(|| Charge { agent: agent.cloned(), day: day(now) })
}

/// What a try is expected to use, by what the last one did, and to cost, in tokens and money. Not more than
/// a whole day may, or what used too much once would never begin again; but what is sure to cost more than
/// that is not made less. Of an agent that will tell and has not yet, it is a share of the day.
pub(crate) fn expected(
    last: Option<Usage>,
    agent: &Agent,
    terms: &Terms,
    limits: &Limits,
) -> (i64, Money) {
    let own = terms.tokens_per_day.map_or(0, i64::from);
    let tokens = [limits.tokens, limits.tokens_per_agent, own];
    let tokens = tokens.into_iter().filter(|limit| *limit != 0).min();
    let own = terms.money_per_day.unwrap_or_default();
    let money = [limits.money, limits.money_per_agent, own];
    let money = money.into_iter().filter(|limit| !limit.is_zero()).min();
    let price = &agent.price;
    if last.is_none() && agent.backend.kind().tells_usage() {
        let share = |limit: i64| (limit / FIRST_TRIES_A_DAY).max(1);
        // What costs the same each time is known.
        let money = money.filter(|_| !price.is_flat()).map(|it| share(it.as_micros()));
        let money = money.and_then(Money::from_micros).unwrap_or_default();
        return (tokens.map_or(0, share), money.max(price.run));
    }
    let last = last.unwrap_or_default();
    let (used, cost) = (last.tokens(), price.cost(last));
    let money = money.map_or(cost, |most| most.min(cost));
    (tokens.map_or(used, |most| most.min(used)), money.max(price.run))
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

impl Left {
    /// By the limits that bind and what each counter shows, as far as somebody has looked.
    pub(crate) fn of(bounds: &[(Counter, i64)], used: &[(Counter, i64)]) -> Left {
        let mut left = Left::default();
        for (counter, most) in bounds {
            let Some((_, used)) = used.iter().find(|(it, _)| it == counter) else { continue };
            let rest = most.saturating_sub(*used).max(0);
            let least = |known: Option<i64>| Some(known.map_or(rest, |known| known.min(rest)));
            match counter {
                Counter::Runs(_) | Counter::AgentRuns(..) => left.runs = least(left.runs),
                Counter::Spent(_) | Counter::AgentSpent(..) | Counter::ScheduleSpent(..) => {
                    left.tokens = least(left.tokens);
                }
                Counter::Cost(_) | Counter::AgentCost(..) | Counter::ScheduleCost(..) => {
                    let known = left.money.map(Money::as_micros);
                    left.money = least(known).and_then(Money::from_micros);
                }
                Counter::Agents | Counter::Schedules | Counter::Tokens => {}
                Counter::Asks(..) | Counter::PendingAsks(_) => {}
            }
        }
        left
    }

    pub(crate) fn is_unbounded(&self) -> bool {
        *self == Left::default()
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::backend::{Backend, BackendKind, Settings};
    use crate::money::Price;

    fn money(micros: i64) -> Money {
        Money::from_micros(micros).unwrap()
    }

    fn agent(kind: BackendKind, price: Price) -> Agent {
        let remote_id = (kind == BackendKind::Letta).then(|| "agent-1".to_owned());
        let backend = Backend::parse(kind, Settings { remote_id, ..Settings::default() }).unwrap();
        let at = Timestamp::from_micros(0);
        Agent {
            name: "ada".parse().unwrap(),
            backend,
            repeatable: false,
            price,
            tier: Tier::LocalWrite,
            credential: None,
            schedules_made: 0,
            denials: 0,
            registered_at: at,
            changed_at: at,
        }
    }

    /// What is expected of a try when the last one of its schedule told this, in tokens and millionths.
    fn check(last: Option<u32>, agent: &Agent, limits: Limits, expected: (i64, i64)) {
        let last = last.map(|it| Usage { input_tokens: it, output_tokens: 0 });
        let (tokens, money) = super::expected(last, agent, &Terms::default(), &limits);
        assert_eq!((tokens, money.as_micros()), expected, "{last:?} {agent:?} {limits:?}");
    }

    #[test]
    fn a_first_try_is_expected_to_use_a_share_of_the_day_where_it_will_tell() {
        let flat = Price { run: money(5), ..Price::default() };
        let priced = Price { input: money(1_000_000), ..flat };
        let none = Limits::default();
        let both = Limits { tokens: 1_000, money: money(2_000), ..none };
        let narrow = Limits { tokens_per_agent: 400, money_per_agent: money(600), ..both };
        let letta = |price| agent(BackendKind::Letta, price);
        // Where there is no limit there is no share of it.
        check(None, &letta(priced), none, (0, 5));
        check(None, &letta(priced), both, (50, 100));
        check(None, &letta(priced), narrow, (20, 30));
        // What costs the same each time is known, and what is less than one is one.
        check(None, &letta(flat), both, (50, 5));
        check(None, &letta(flat), Limits { tokens: 3, ..none }, (1, 5));
        // Who never tells is not expected to use anything.
        check(None, &agent(BackendKind::Builtin, priced), both, (0, 5));
        // What was told is better than a guess, and no more than a whole day.
        check(Some(70), &letta(priced), both, (70, 75));
        check(Some(0), &letta(priced), both, (0, 5));
        check(Some(9_000), &letta(priced), narrow, (400, 600));
    }
}
