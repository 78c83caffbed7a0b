//! Daily budgets: how much is used, and what a run needs to start. The rules are in `kernel::budget`.

use std::sync::Arc;

use api::{Amount, Budget, BudgetLimit, Error};
use kernel::agent::{Agent, AgentName};
use kernel::backend::Tier;
use kernel::budget::{self, Limits, run_counter_limits};
use kernel::installation::{BudgetUsedUp, Event as InstallationEvent};
use kernel::money::Money;
use kernel::progress::Progress;
use kernel::schedule::terms::Terms;
use kernel::schedule::{Definition, Schedule};
use kernel::tick::Tick;
use kernel::{Counter, EventBody, Noun, NounState, ScheduleId, run};
use store::Store;
use tracing::warn;

use crate::clock::Time;
use crate::commit::codec;
use crate::commit::counters::{CounterChange, counter_changes};
use crate::commit::rows::Rows;
use crate::commit::run_context::definition_rows;
use crate::commit::transaction::Transactions;
use crate::config::Config;
use crate::errors;
use crate::timestamps::rfc3339;

/// Limits listed at most.
const LIMITS_MAX: usize = 1_000;
/// With more schedules than this, `status` does not check the limits of each.
const SCHEDULES_CHECKED_MAX: i64 = 1_000;
/// Agents or schedules read at a time.
const PAGE_ITEMS: usize = 1_000;

/// Why a run cannot start, as a sentence.
pub(crate) enum Shortage {
    Budget(String),
    Approvals(String),
}

/// The counter changes that the start of a run needs.
#[derive(Default)]
pub(crate) struct CounterNeeds {
    changes: Vec<CounterChange>,
    terms: Terms,
    limits: Limits,
}

impl CounterNeeds {
    pub(crate) fn of(
        events: &[EventBody],
        rows: &Rows,
        definition: Option<&Definition>,
        limits: &Limits,
    ) -> CounterNeeds {
        let changes =
            events.iter().flat_map(|event| counter_changes(event, rows, limits)).collect();
        let terms = definition.map(|it| it.terms.clone()).unwrap_or_default();
        CounterNeeds { changes, terms, limits: *limits }
    }
}

#[derive(Debug)]
pub(crate) struct Budgets {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) config: Arc<Config>,
    pub(crate) transactions: Arc<Transactions>,
}

impl Budgets {
    /// Warnings about budgets that the schedule exceeds alone, so that it skips slots every day.
    pub(crate) fn exceeded_by(&self, id: &ScheduleId, rows: &Rows) -> Result<Vec<String>, Error> {
        let (Some(schedule), Some(progress)) = (rows.get::<Schedule>(id), rows.get::<Progress>(id))
        else {
            return Ok(Vec::new());
        };
        let Schedule { definition, .. } = schedule;
        let Some(agent) = definition.action.agent().and_then(|name| rows.get::<Agent>(name)) else {
            return Ok(Vec::new());
        };
        let calendar = definition.calendar(progress.next_fire.slot).map_err(errors::refused)?;
        let scheduled =
            Tick::new(id, schedule, &calendar, self.time.now()).scheduled_runs_per_day(progress);
        let config = self.config.active();
        let (tier, rules) =
            (run::effective_tier(definition, agent), (&definition.terms, &config.limits));
        let exceeded = run_counter_limits(Some(agent), id, tier, rules, self.today()).into_iter();
        let exceeded =
            exceeded.filter(|(_, max)| u64::try_from(*max).is_ok_and(|it| it < scheduled));
        let warnings = exceeded.filter_map(|(counter, max)| {
            let (who, key) = match counter {
                Counter::Runs(_) => ("all agents together".to_owned(), "budget.runs"),
                Counter::AgentRuns(name, _) => (format!("agent `{name}`"), "budget.runs_per_agent"),
                _ => return None,
            };
            Some(format!(
                "the schedule has {scheduled} runs a day, and the limit of {who} is {max}: the rest is skipped until `{key}` is raised"
            ))
        });
        Ok(warnings.collect())
    }

    /// The first counter that is over its limit. If that is a budget, the ledger records it once a day.
    pub(crate) async fn find_shortage(&self, needs: CounterNeeds) -> Option<Shortage> {
        for CounterChange { counter, add, max } in needs.changes {
            let used = self.store.counter(&counter.name()).await.unwrap_or_default();
            if max < used + add {
                let limit = counter.budget_limit(&needs.terms, &needs.limits);
                if let Some(budget) = wire_limit(&counter, used, limit) {
                    self.record_used_up(budget).await;
                }
                return Some(shortage(&counter, used, limit, limit - max));
            }
        }
        None
    }

    async fn record_used_up(&self, BudgetLimit { scope, name, what, used, most, .. }: BudgetLimit) {
        let (day, at) = (self.today(), self.time.now());
        let key = format!("budget/{scope}/{}/{what}/{day}", name.as_deref().unwrap_or_default());
        let used_up = BudgetUsedUp {
            scope,
            name,
            what,
            used: used.to_string(),
            most: most.to_string(),
            until: budget::end_of_day(day),
            at,
        };
        let event = InstallationEvent::BudgetUsedUp(used_up);
        if let Err(failed) = self.transactions.record_once(&key, event).await {
            warn!(%failed, "failed to record a used-up budget");
        }
    }

    /// The counters that limit the start of a run. Which ones is decided on cached rows.
    pub(crate) async fn read_counters(
        &self,
        schedule: &ScheduleId,
        agent: Option<&AgentName>,
    ) -> Result<Vec<(Counter, i64)>, Error> {
        let rows = self.transactions.load_cached(&definition_rows(schedule, agent)).await?;
        let agent = agent.and_then(|name| rows.get::<Agent>(name));
        let Some(found) = rows.get::<Schedule>(schedule) else { return Ok(Vec::new()) };
        let config = self.config.active();
        let rules = (&found.definition.terms, &config.limits);
        // The tier of a tool call is known later; the highest one has the most counters.
        let tier =
            agent.map_or(Tier::External, |agent| run::effective_tier(&found.definition, agent));
        let mut used = Vec::new();
        for (counter, _) in run_counter_limits(agent, schedule, tier, rules, self.today()) {
            used.push((counter.clone(), self.count(&counter).await?));
        }
        Ok(used)
    }

    /// How much of the day is used, and which limits are used up.
    pub(crate) async fn status(&self) -> Result<Budget, Error> {
        let (day, limits) = (self.today(), self.config.active().limits);
        let runs = self.count(&Counter::Runs(day)).await?;
        let tokens = self.count(&Counter::TokensSpent(day)).await?;
        let cost = self.count(&Counter::Cost(day)).await?;
        let mut used_up = self.installation_limits(day).await?;
        // The sum over all agents is at least what one of them has used.
        let has_reached = |used: i64, max: i64| 0 < max && max <= used;
        let may_be_reached = has_reached(runs, limits.runs_per_agent)
            || has_reached(tokens, limits.tokens_per_agent)
            || has_reached(cost, limits.money_per_agent.as_micros());
        if may_be_reached {
            used_up.extend(self.agent_limits(day).await?);
        }
        let is_few = self.count(&Counter::Objects(Noun::Schedule)).await? <= SCHEDULES_CHECKED_MAX;
        if is_few && (0 < tokens || 0 < cost) {
            used_up.extend(self.schedule_limits(day).await?);
        }
        used_up.retain(|limit| limit.used_up);
        used_up.truncate(LIMITS_MAX);
        let some = |limit| Some(limit).filter(|limit| 0 < *limit);
        Ok(Budget {
            runs,
            runs_max: some(limits.runs),
            tokens,
            tokens_max: some(limits.tokens),
            money: money(cost),
            money_max: some(limits.money.as_micros()).map(money),
            used_up,
            until: rfc3339(budget::end_of_day(day)),
        })
    }

    /// Every limit of which some is used today, exhausted ones first.
    pub(crate) async fn list(&self) -> Result<api::Budgets, Error> {
        let day = self.today();
        let mut budgets = self.installation_limits(day).await?;
        budgets.extend(self.agent_limits(day).await?);
        budgets.extend(self.schedule_limits(day).await?);
        budgets.sort_by_key(|limit| !limit.used_up);
        let left_out = budgets.len().saturating_sub(LIMITS_MAX);
        budgets.truncate(LIMITS_MAX);
        Ok(api::Budgets { budgets, left_out, until: rfc3339(budget::end_of_day(day)) })
    }

    async fn installation_limits(&self, day: i64) -> Result<Vec<BudgetLimit>, Error> {
        let counters = vec![Counter::Runs(day), Counter::TokensSpent(day), Counter::Cost(day)];
        self.limits_of(counters, &Terms::default()).await
    }

    async fn agent_limits(&self, day: i64) -> Result<Vec<BudgetLimit>, Error> {
        let mut found = Vec::new();
        for (_, agent) in self.load_all::<Agent>().await? {
            let name = agent.name;
            let runs = Counter::AgentRuns(name.clone(), day);
            let tokens = Counter::AgentTokensSpent(name.clone(), day);
            let changes = Counter::AgentChanges(name.to_string(), day);
            let bytes = Counter::AgentBytes(name.to_string(), day);
            let counters = vec![runs, tokens, Counter::AgentCost(name, day), changes, bytes];
            found.extend(self.limits_of(counters, &Terms::default()).await?);
        }
        Ok(found)
    }

    async fn schedule_limits(&self, day: i64) -> Result<Vec<BudgetLimit>, Error> {
        let mut found = Vec::new();
        for (id, schedule) in self.load_all::<Schedule>().await? {
            let id: ScheduleId = id.parse().map_err(errors::internal)?;
            let tokens = Counter::ScheduleTokensSpent(id.clone(), day);
            let counters = vec![tokens, Counter::ScheduleCost(id, day)];
            found.extend(self.limits_of(counters, &schedule.definition.terms).await?);
        }
        Ok(found)
    }

    /// The counters that have a limit and are not zero.
    async fn limits_of(
        &self,
        counters: Vec<Counter>,
        terms: &Terms,
    ) -> Result<Vec<BudgetLimit>, Error> {
        let limits = self.config.active().limits;
        let mut found = Vec::new();
        for counter in counters {
            let max = counter.budget_limit(terms, &limits);
            let used = if max == 0 { 0 } else { self.count(&counter).await? };
            found.extend(
                Some(used)
                    .filter(|used| 0 < *used)
                    .and_then(|used| wire_limit(&counter, used, max)),
            );
        }
        Ok(found)
    }

    async fn load_all<T: NounState>(&self) -> Result<Vec<(String, T)>, Error> {
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.store.list(T::NOUN.name(), &after, PAGE_ITEMS).await;
            let page = page.map_err(errors::store)?;
            let Some(last) = page.last().map(|item| item.id.clone()) else { return Ok(found) };
            for item in page {
                found.extend(codec::decode_item(&item)?.map(|state| (item.id, state)));
            }
            after = last;
        }
    }

    /// The stored value of a counter.
    pub(crate) async fn count(&self, counter: &Counter) -> Result<i64, Error> {
        self.store.counter(&counter.name()).await.map_err(errors::store)
    }

    fn today(&self) -> i64 {
        budget::day(self.time.monotonic_now().latest)
    }
}

fn wire_limit(counter: &Counter, used: i64, max: i64) -> Option<BudgetLimit> {
    let (scope, name) = match counter {
        Counter::Runs(_) | Counter::TokensSpent(_) | Counter::Cost(_) => ("installation", None),
        Counter::AgentRuns(agent, _) | Counter::AgentTokensSpent(agent, _) => {
            ("agent", Some(agent.to_string()))
        }
        Counter::AgentCost(agent, _) => ("agent", Some(agent.to_string())),
        Counter::AgentChanges(agent, _) | Counter::AgentBytes(agent, _) => {
            ("agent", Some(agent.clone()))
        }
        Counter::ScheduleTokensSpent(schedule, _) | Counter::ScheduleCost(schedule, _) => {
            ("schedule", Some(schedule.to_string()))
        }
        Counter::Objects(_) => return None,
        Counter::ApprovalRequests(..) | Counter::PendingApprovals(_) => return None,
    };
    let what = unit_of(counter);
    let amount = |number: i64| match what {
        "money" => Amount::Money(money(number)),
        _ => Amount::Count(number),
    };
    Some(BudgetLimit {
        scope: scope.to_owned(),
        name,
        schedule_name: None,
        what: what.to_owned(),
        used: amount(used),
        most: amount(max),
        used_up: max <= used,
    })
}

fn unit_of(counter: &Counter) -> &'static str {
    match counter {
        Counter::TokensSpent(_)
        | Counter::AgentTokensSpent(..)
        | Counter::ScheduleTokensSpent(..) => "tokens",
        Counter::Cost(_) | Counter::AgentCost(..) | Counter::ScheduleCost(..) => "money",
        Counter::Runs(_) | Counter::AgentRuns(..) => "runs",
        Counter::ApprovalRequests(..) | Counter::PendingApprovals(_) => "approvals",
        Counter::AgentChanges(..) => "changes",
        Counter::AgentBytes(..) => "bytes",
        Counter::Objects(_) => "objects",
    }
}

/// Why a run cannot start: `used` of `max` is used, and the run is expected to need `expected`.
fn shortage(counter: &Counter, used: i64, max: i64, expected: i64) -> Shortage {
    let is_used_up = max <= used;
    let tokens = |who: String| {
        let then = match is_used_up {
            true => "and may use no more before midnight UTC".to_owned(),
            false => format!("and another run is expected to use {expected}"),
        };
        Shortage::Budget(format!("{who} used {used} of {max} tokens today, {then}"))
    };
    let spent = |who: String| {
        let then = match is_used_up {
            true => "and may spend no more before midnight UTC".to_owned(),
            false => format!("and another run is expected to cost {}", money(expected)),
        };
        Shortage::Budget(format!("{who} spent {} of {} today, {then}", money(used), money(max)))
    };
    match counter {
        Counter::AgentRuns(agent, _) => Shortage::Budget(format!(
            "agent `{agent}` has started {max} runs today, and may start no more before midnight UTC"
        )),
        Counter::TokensSpent(_) => tokens("all agents together have".to_owned()),
        Counter::AgentTokensSpent(agent, _) => tokens(format!("agent `{agent}` has")),
        Counter::ScheduleTokensSpent(schedule, _) => tokens(format!("schedule `{schedule}` has")),
        Counter::Cost(_) => spent("all agents together have".to_owned()),
        Counter::AgentCost(agent, _) => spent(format!("agent `{agent}` has")),
        Counter::ScheduleCost(schedule, _) => spent(format!("schedule `{schedule}` has")),
        Counter::PendingApprovals(agent) => {
            Shortage::Approvals(format!("{max} approvals of agent `{agent}` are pending already"))
        }
        Counter::ApprovalRequests(agent, _) => Shortage::Approvals(format!(
            "{max} approvals were requested for agent `{agent}` today, the limit until midnight UTC"
        )),
        Counter::Runs(_) => Shortage::Budget(format!(
            "{max} runs were started today, and no more may start before midnight UTC"
        )),
        Counter::Objects(_) | Counter::AgentChanges(..) | Counter::AgentBytes(..) => {
            Shortage::Budget(format!("the limit of {max} {} is reached", counter.name()))
        }
    }
}

/// Formats millionths, capped at the largest amount.
fn money(micros: i64) -> String {
    Money::from_micros(micros).unwrap_or(Money::MAX).to_string()
}
