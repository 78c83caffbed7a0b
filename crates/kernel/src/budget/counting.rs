//! How budgets are counted: what charges, reservations and usage add to counters, and which counters must be below
//! their limit when a run or a test starts.

use super::{Charge, Limits, Reservation, Spent, day};
use crate::agent::{Agent, AgentName, Tested};
use crate::backend::Tier;
use crate::counter::Counter;
use crate::run::{self, Run};
use crate::schedule::terms::Terms;
use crate::{EventBody, ScheduleId};

/// Returns what a charge adds to the counters of runs. `add` is 1 to charge, -1 to refund.
pub(crate) fn run_deltas(charge: Option<&Charge>, add: i64) -> Vec<(Counter, i64)> {
    let Some(Charge { agent, day }) = charge else { return Vec::new() };
    let of_agent = agent.iter().map(|agent| (Counter::AgentRuns(agent.clone(), *day), add));
    [(Counter::Runs(*day), add)].into_iter().chain(of_agent).collect()
}

/// Returns what usage adds to the counters of tokens and money. It is already spent, so no limit applies to it.
pub(crate) fn spent_deltas(spent: Option<&Spent>) -> Vec<(Counter, i64)> {
    let Some(Spent { agent, schedule, day, usage, cost }) = spent else { return Vec::new() };
    let (tokens, cost) = (usage.unwrap_or_default().tokens(), cost.as_micros());
    let own = |counter: fn(ScheduleId, i64) -> Counter, add: i64| {
        let schedule = schedule.iter().filter(move |_| add != 0);
        schedule.map(move |schedule| (counter(schedule.clone(), *day), add))
    };
    let tokens_of = [Counter::TokensSpent(*day), Counter::AgentTokensSpent(agent.clone(), *day)];
    let tokens_of = tokens_of.into_iter().filter(|_| usage.is_some()).map(|it| (it, tokens));
    let cost_of = [Counter::Cost(*day), Counter::AgentCost(agent.clone(), *day)];
    let cost_of = cost_of.into_iter().filter(|_| cost != 0).map(|it| (it, cost));
    let own = own(Counter::ScheduleTokensSpent, tokens).chain(own(Counter::ScheduleCost, cost));
    tokens_of.chain(cost_of).chain(own).collect()
}

/// Returns what a reservation adds to the counters of tokens and money. `sign` is 1 to reserve, -1 to release.
pub(crate) fn reservation_deltas(
    reservation: Option<&Reservation>,
    sign: i64,
) -> Vec<(Counter, i64)> {
    let Some(Reservation { agent, schedule, day, tokens, money }) = reservation else {
        return Vec::new();
    };
    let tokens = token_counters(agent, schedule, *day).map(|counter| (counter, sign * tokens));
    let money = cost_counters(agent, schedule, *day).map(|it| (it, sign * money.as_micros()));
    tokens.into_iter().chain(money).filter(|(_, add)| *add != 0).collect()
}

/// The counters that must be below their limit when a run starts, each with the highest value it may have
/// before. Token limits apply to every prompt, money limits only to agents with a price.
pub fn start_counter_guards(
    body: &EventBody,
    run: &Run,
    terms: &Terms,
    limits: &Limits,
) -> Vec<(Counter, i64)> {
    let EventBody::Run(_, run::Event::Started(started)) = body else { return Vec::new() };
    let Some(agent) = &run.agent else { return Vec::new() };
    let (day, schedule) = (day(started.at), &run.schedule);
    let (tokens, money) = started
        .reservation
        .as_ref()
        .map_or((0, 0), |reservation| (reservation.tokens, reservation.money.as_micros()));
    let tokens = token_counters(agent, schedule, day).map(|counter| (counter, tokens));
    let money = cost_counters(agent, schedule, day).map(|counter| (counter, money));
    let money = money.into_iter().filter(|_| !started.price.is_free());
    let limited = tokens.into_iter().chain(money).filter_map(|(counter, reserved)| {
        let limit = counter.budget_limit(terms, limits);
        (limit != 0).then(|| (counter, Limits::max_before_start(limit, reserved)))
    });
    limited.collect()
}

/// The counters that limit a run of a schedule, each with its limit; counters without a limit are omitted.
/// Only prompts to an agent use tokens and money.
pub fn run_counter_limits(
    agent: Option<&Agent>,
    schedule: &ScheduleId,
    tier: Tier,
    (terms, limits): (&Terms, &Limits),
    day: i64,
) -> Vec<(Counter, i64)> {
    let name = agent.map(|agent| &agent.name);
    let of_agent = name.map(|name| Counter::AgentRuns(name.clone(), day));
    let runs = [Some(Counter::Runs(day)), of_agent].into_iter().flatten();
    let runs = runs.filter(|_| Tier::ReadOnly < tier);
    let tokens = name.into_iter().flat_map(|name| token_counters(name, schedule, day));
    let priced = agent.filter(|agent| !agent.price.is_free());
    let money = priced.into_iter().flat_map(|agent| cost_counters(&agent.name, schedule, day));
    let all = runs.chain(tokens).chain(money);
    let limited = all.map(|counter| {
        let limit = counter.budget_limit(terms, limits);
        (counter, limit)
    });
    limited.filter(|(_, limit)| *limit != 0).collect()
}

/// The counters that must be below their limit when an agent is tested, each with the highest value it may
/// have before.
pub fn test_counter_guards(agent: &Agent, tested: &Tested, limits: &Limits) -> Vec<(Counter, i64)> {
    let (name, day) = (&agent.name, day(tested.at));
    let tokens = [Counter::TokensSpent(day), Counter::AgentTokensSpent(name.clone(), day)];
    let money = [Counter::Cost(day), Counter::AgentCost(name.clone(), day)];
    let money = money.into_iter().filter(|_| !agent.price.is_free());
    let limited = tokens.into_iter().chain(money).filter_map(|counter| {
        let limit = counter.budget_limit(&Terms::default(), limits);
        (limit != 0).then(|| (counter, Limits::max_before_start(limit, 0)))
    });
    limited.collect()
}

fn token_counters(agent: &AgentName, schedule: &ScheduleId, day: i64) -> [Counter; 3] {
    let of_agent = Counter::AgentTokensSpent(agent.clone(), day);
    [Counter::TokensSpent(day), of_agent, Counter::ScheduleTokensSpent(schedule.clone(), day)]
}

fn cost_counters(agent: &AgentName, schedule: &ScheduleId, day: i64) -> [Counter; 3] {
    let of_agent = Counter::AgentCost(agent.clone(), day);
    [Counter::Cost(day), of_agent, Counter::ScheduleCost(schedule.clone(), day)]
}
