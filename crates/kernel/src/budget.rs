//! Budgets per UTC day: runs, tokens and money of one schedule, of one agent and of all; and how often an
//! agent may request approval.
//!
//! The commit that starts a run adds it to counters with a limit, so concurrent starts cannot pass the
//! limit. A run that is requeued before it did anything is subtracted again. Each day has its own counters,
//! so a clock that is set back finds what was counted before. Read-only runs are not counted.
//!
//! The usage of an attempt is known when it ends, and counts towards that day. Until then the attempt holds
//! a reservation: what the schedule's last run used, or a share of the day's budget if none has reported
//! usage yet. The reservation of an attempt that never reports stays. A run starts only if used, reserved and
//! its own reservation together fit the limit; a running attempt is not stopped, so the last one may exceed it.

mod counting;

use serde::{Deserialize, Serialize};

use crate::ScheduleId;
use crate::agent::{Agent, AgentName};
use crate::backend::Tier;
use crate::counter::Counter;
use crate::money::Money;
use crate::schedule::terms::Terms;
use crate::time::Timestamp;
pub(crate) use counting::{reservation_deltas, run_deltas, spent_deltas};
pub use counting::{run_counter_limits, start_counter_guards, test_counter_guards};

pub(crate) const DAY_US: i64 = 86_400_000_000;
/// A first attempt without known usage reserves this fraction of the day's budget: 1 / 20.
const FIRST_ATTEMPTS_PER_DAY: i64 = 20;

/// The limits. Zero means no limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// Runs that start in a day.
    pub runs: i64,
    pub runs_per_agent: i64,
    /// Approval requests in a day.
    pub asks_per_agent: i64,
    /// Pending approvals.
    pub pending_per_agent: i64,
    /// How long no approval is requested again for a denied action, in microseconds. Zero: no such time.
    pub denied_for_us: i64,
    /// Tokens in a day; no run starts beyond them.
    pub tokens: i64,
    pub tokens_per_agent: i64,
    /// Money in a day, by the prices of agents; no run with a price starts beyond it.
    pub money: Money,
    pub money_per_agent: Money,
    /// Entries that the requests of an agent add to the ledger in a day, and their bytes.
    pub changes_per_agent: i64,
    pub bytes_per_agent: i64,
}

/// Tokens that a model has read and written, as its backend reports them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Usage {
    pub input_tokens: u32,
    pub output_tokens: u32,
}

/// What an attempt has used, and the budgets that this counts in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Spent {
    pub agent: AgentName,
    /// Absent in events from before schedules had budgets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub schedule: Option<ScheduleId>,
    /// UTC days since 1970.
    pub day: i64,
    /// Absent if the backend did not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub cost: Money,
}

/// Tokens and money reserved for an attempt until its usage is known.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Reservation {
    pub agent: AgentName,
    pub schedule: ScheduleId,
    /// UTC days since 1970.
    pub day: i64,
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tokens: i64,
    #[serde(default, skip_serializing_if = "Money::is_zero")]
    pub money: Money,
}

/// The budget that a run or an approval request was counted in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Charge {
    /// `None` for a tool call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent: Option<AgentName>,
    /// UTC days since 1970.
    pub day: i64,
}

/// What remains of the day's budgets: the least over all limits that apply, `None` without a limit.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Remaining {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runs: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money: Option<Money>,
}

/// Returns the budget that a starting run is counted in; `None` for a read-only run.
pub(crate) fn charge_for(agent: Option<&AgentName>, tier: Tier, now: Timestamp) -> Option<Charge> {
    (Tier::ReadOnly < tier).then(|| Charge { agent: agent.cloned(), day: day(now) })
}

/// Returns the tokens and money that an attempt is expected to use: what the last one did. This is capped at
/// the day's budget, or one excessive attempt would prevent all later ones, but is never below the price per
/// run. If the backend reports usage and has not done so yet, it is a share of the day's budget.
pub(crate) fn expected_use(
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
    if last.is_none() && agent.backend.kind().reports_usage() {
        let share = |limit: i64| (limit / FIRST_ATTEMPTS_PER_DAY).max(1);
        // A flat price is known in advance.
        let money = money.filter(|_| !price.is_flat()).map(|it| share(it.as_micros()));
        let money = money.and_then(Money::from_micros).unwrap_or_default();
        return (tokens.map_or(0, share), money.max(price.run));
    }
    let last = last.unwrap_or_default();
    let (used, cost) = (last.tokens(), price.cost(last));
    let money = money.map_or(cost, |most| most.min(cost));
    (tokens.map_or(used, |most| most.min(used)), money.max(price.run))
}

/// Returns the end of a day.
pub fn end_of_day(day: i64) -> Timestamp {
    Timestamp::from_micros((day + 1).saturating_mul(DAY_US))
}

/// Returns the UTC day of an instant, counted from 1970.
pub fn day(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(DAY_US)
}

impl Usage {
    pub fn tokens(self) -> i64 {
        i64::from(self.input_tokens) + i64::from(self.output_tokens)
    }

    pub(crate) fn plus(self, other: Usage) -> Usage {
        Usage {
            input_tokens: self.input_tokens.saturating_add(other.input_tokens),
            output_tokens: self.output_tokens.saturating_add(other.output_tokens),
        }
    }
}

impl Remaining {
    /// Computes what remains from limits and counters; a limit whose counter was not read is ignored.
    pub(crate) fn from_counters(bounds: &[(Counter, i64)], used: &[(Counter, i64)]) -> Remaining {
        let mut left = Remaining::default();
        for (counter, most) in bounds {
            let Some((_, used)) = used.iter().find(|(it, _)| it == counter) else { continue };
            let rest = most.saturating_sub(*used).max(0);
            let least = |known: Option<i64>| Some(known.map_or(rest, |known| known.min(rest)));
            match counter {
                Counter::Runs(_) | Counter::AgentRuns(..) => left.runs = least(left.runs),
                Counter::TokensSpent(_)
                | Counter::AgentTokensSpent(..)
                | Counter::ScheduleTokensSpent(..) => {
                    left.tokens = least(left.tokens);
                }
                Counter::Cost(_) | Counter::AgentCost(..) | Counter::ScheduleCost(..) => {
                    let known = left.money.map(Money::as_micros);
                    left.money = least(known).and_then(Money::from_micros);
                }
                Counter::Objects(_) | Counter::AgentChanges(..) | Counter::AgentBytes(..) => {}
                Counter::ApprovalRequests(..) | Counter::PendingApprovals(_) => {}
            }
        }
        left
    }

    pub(crate) fn is_unlimited(&self) -> bool {
        *self == Remaining::default()
    }
}

impl Limits {
    /// Maps a limit of zero to no limit.
    pub(crate) const fn or_unlimited(limit: i64) -> i64 {
        if limit == 0 { i64::MAX } else { limit }
    }

    /// The highest counter value at which a run with this reservation may start. A run without one still
    /// needs at least 1 to remain.
    pub(crate) fn max_before_start(limit: i64, reserved: i64) -> i64 {
        limit - reserved.max(1)
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
            raised_to_1: 0,
            raised_to_2: 0,
            changed_by: Vec::new(),
            registered_at: at,
            changed_at: at,
        }
    }

    /// Checks the expected use of an attempt after the usage of the last one, in tokens and millionths.
    fn check(last: Option<u32>, agent: &Agent, limits: Limits, expected: (i64, i64)) {
        let last = last.map(|it| Usage { input_tokens: it, output_tokens: 0 });
        let (tokens, money) = super::expected_use(last, agent, &Terms::default(), &limits);
        assert_eq!((tokens, money.as_micros()), expected, "{last:?} {agent:?} {limits:?}");
    }

    #[test]
    fn first_attempt_reserves_a_share_of_the_day_if_the_backend_reports_usage() {
        let flat = Price { run: money(5), ..Price::default() };
        let priced = Price { input: money(1_000_000), ..flat };
        let none = Limits::default();
        let both = Limits { tokens: 1_000, money: money(2_000), ..none };
        let narrow = Limits { tokens_per_agent: 400, money_per_agent: money(600), ..both };
        let letta = |price| agent(BackendKind::Letta, price);
        // Without a limit there is no share.
        check(None, &letta(priced), none, (0, 5));
        check(None, &letta(priced), both, (50, 100));
        check(None, &letta(priced), narrow, (20, 30));
        // A flat price is known, and a share is at least 1.
        check(None, &letta(flat), both, (50, 5));
        check(None, &letta(flat), Limits { tokens: 3, ..none }, (1, 5));
        // A backend that never reports usage is not expected to use anything.
        check(None, &agent(BackendKind::Builtin, priced), both, (0, 5));
        // Reported usage replaces the share, capped at the day's budget.
        check(Some(70), &letta(priced), both, (70, 75));
        check(Some(0), &letta(priced), both, (0, 5));
        check(Some(9_000), &letta(priced), narrow, (400, 600));
    }
}
