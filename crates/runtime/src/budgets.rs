//! Budgets: what is left of them, and what a run cannot begin without. The rules are the kernel's.

use api::{Amount, Budget, BudgetLimit, Budgets, Error};
use kernel::agent::AgentName;
use kernel::backend::Tier;
use kernel::budget::{self, Limits};
use kernel::money::Money;
use kernel::schedule::terms::Terms;
use kernel::schedule::{Definition, Schedule};
use kernel::tables::bounds;
use kernel::tick::Tick;
use kernel::{Body, Counter, Noun, ScheduleId, State, run};

use crate::errors;
use crate::rows::Rows;
use crate::stored;
use crate::times::rfc3339;
use crate::transact::{Added, added_by};
use crate::watch::Engine;
use crate::work::defined_by;

/// Limits that one answer tells of.
const LIMITS_MAX: usize = 1_000;
/// Schedules up to which a status looks at the limits of each.
const SCHEDULES_LOOKED_AT_MAX: i64 = 1_000;
/// Agents and schedules that are looked at in one go.
const PAGE_ITEMS: usize = 1_000;

/// What a run cannot begin without, in a sentence.
pub(crate) enum Lacks {
    Budget(String),
    Asks(String),
}

/// What the beginning of a run would have added to budgets.
#[derive(Default)]
pub(crate) struct Wanted {
    added: Vec<Added>,
    terms: Terms,
    limits: Limits,
}

impl Wanted {
    pub(crate) fn of(
        bodies: &[Body],
        rows: &Rows,
        definition: Option<&Definition>,
        limits: &Limits,
    ) -> Wanted {
        let added = bodies.iter().flat_map(|body| added_by(body, rows, limits)).collect();
        let terms = definition.map(|it| it.terms.clone()).unwrap_or_default();
        Wanted { added, terms, limits: *limits }
    }
}

impl Engine {
    /// Budgets that one schedule exceeds alone, so that it stands still for a part of each day.
    pub(crate) fn exceeded(&self, id: &ScheduleId, rows: &Rows) -> Result<Vec<String>, Error> {
        let (Some(schedule), Some(progress)) = (rows.schedule(id), rows.progress(id)) else {
            return Ok(Vec::new());
        };
        let Schedule { definition, .. } = schedule;
        let Some(agent) = definition.action.agent().and_then(|name| rows.agent(name)) else {
            return Ok(Vec::new());
        };
        let calendar = definition.calendar(progress.ahead.next).map_err(errors::schedule)?;
        let asked = Tick::new(id, schedule, &calendar, self.now()).asked_per_day(progress);
        let in_force = self.in_force();
        let (tier, rules) = (run::tier(definition, agent), (&definition.terms, &in_force.limits));
        let exceeded = bounds(Some(agent), id, tier, rules, self.today()).into_iter();
        let exceeded = exceeded.filter(|(_, most)| u64::try_from(*most).is_ok_and(|it| it < asked));
        let said = exceeded.filter_map(|(counter, most)| {
            let (who, key) = match counter {
                Counter::Runs(_) => ("all agents together".to_owned(), "budget.runs"),
                Counter::AgentRuns(name, _) => (format!("agent `{name}`"), "budget.runs_per_agent"),
                _ => return None,
            };
            Some(format!(
                "it asks for {asked} runs a day, and {who} may have {most}: the rest is left out until `{key}` is raised"
            ))
        });
        Ok(said.collect())
    }

    /// The first thing that there is too little of.
    pub(crate) async fn lacking(&self, wanted: Wanted) -> Option<Lacks> {
        for Added { counter, add, max } in wanted.added {
            let used = self.store().counter(&counter.name()).await.unwrap_or_default();
            if max < used + add {
                let most = counter.most(&wanted.terms, &wanted.limits);
                return Some(lacks(&counter, used, most, most - max));
            }
        }
        None
    }

    /// What the counters show that bound a run of a schedule which is to begin, by what is remembered of it.
    pub(crate) async fn used_by(
        &self,
        schedule: &ScheduleId,
        agent: Option<&AgentName>,
    ) -> Result<Vec<(Counter, i64)>, Error> {
        let rows = self.load_remembered(&defined_by(schedule, agent)).await?;
        let agent = agent.and_then(|name| rows.agent(name));
        let Some(of) = rows.schedule(schedule) else { return Ok(Vec::new()) };
        let in_force = self.in_force();
        let rules = (&of.definition.terms, &in_force.limits);
        // How far a call reaches is known later; what there is to count, it may count in.
        let tier = agent.map_or(Tier::External, |agent| run::tier(&of.definition, agent));
        let mut used = Vec::new();
        for (counter, _) in bounds(agent, schedule, tier, rules, self.today()) {
            used.push((counter.clone(), self.count(&counter).await?));
        }
        Ok(used)
    }

    /// How much of the day is used, and which limits are used up.
    pub(crate) async fn budget(&self) -> Result<Budget, Error> {
        let (day, limits) = (self.today(), self.in_force().limits);
        let runs = self.count(&Counter::Runs(day)).await?;
        let tokens = self.count(&Counter::Spent(day)).await?;
        let cost = self.count(&Counter::Cost(day)).await?;
        let mut used_up = self.of_all(day).await?;
        // What one agent has used, all have.
        let has_reached = |used: i64, most: i64| 0 < most && most <= used;
        let may_be = has_reached(runs, limits.runs_per_agent)
            || has_reached(tokens, limits.tokens_per_agent)
            || has_reached(cost, limits.money_per_agent.as_micros());
        if may_be {
            used_up.extend(self.of_agents(day).await?);
        }
        let is_few = self.count(&Counter::Schedules).await? <= SCHEDULES_LOOKED_AT_MAX;
        if is_few && (0 < tokens || 0 < cost) {
            used_up.extend(self.of_schedules(day).await?);
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
            until: rfc3339(budget::end_of(day)),
        })
    }

    /// Every limit of which something is used today, those that are used up first.
    pub(crate) async fn budgets(&self) -> Result<Budgets, Error> {
        let day = self.today();
        let mut budgets = self.of_all(day).await?;
        budgets.extend(self.of_agents(day).await?);
        budgets.extend(self.of_schedules(day).await?);
        budgets.sort_by_key(|limit| !limit.used_up);
        let left_out = budgets.len().saturating_sub(LIMITS_MAX);
        budgets.truncate(LIMITS_MAX);
        Ok(Budgets { budgets, left_out, until: rfc3339(budget::end_of(day)) })
    }

    async fn of_all(&self, day: i64) -> Result<Vec<BudgetLimit>, Error> {
        let counters = vec![Counter::Runs(day), Counter::Spent(day), Counter::Cost(day)];
        self.limits_of(counters, &Terms::default()).await
    }

    async fn of_agents(&self, day: i64) -> Result<Vec<BudgetLimit>, Error> {
        let mut found = Vec::new();
        for (_, agent) in self.every(Noun::Agent, State::agent).await? {
            let name = agent.name;
            let runs = Counter::AgentRuns(name.clone(), day);
            let tokens = Counter::AgentSpent(name.clone(), day);
            let counters = vec![runs, tokens, Counter::AgentCost(name, day)];
            found.extend(self.limits_of(counters, &Terms::default()).await?);
        }
        Ok(found)
    }

    async fn of_schedules(&self, day: i64) -> Result<Vec<BudgetLimit>, Error> {
        let mut found = Vec::new();
        for (id, schedule) in self.every(Noun::Schedule, State::schedule).await? {
            let id: ScheduleId = id.parse().map_err(errors::internal)?;
            let tokens = Counter::ScheduleSpent(id.clone(), day);
            let counters = vec![tokens, Counter::ScheduleCost(id, day)];
            found.extend(self.limits_of(counters, &schedule.definition.terms).await?);
        }
        Ok(found)
    }

    /// Those of them that have a limit and show something.
    async fn limits_of(
        &self,
        counters: Vec<Counter>,
        terms: &Terms,
    ) -> Result<Vec<BudgetLimit>, Error> {
        let limits = self.in_force().limits;
        let mut found = Vec::new();
        for counter in counters {
            let most = counter.most(terms, &limits);
            let used = if most == 0 { 0 } else { self.count(&counter).await? };
            found.extend(
                Some(used).filter(|used| 0 < *used).and_then(|used| limit(&counter, used, most)),
            );
        }
        Ok(found)
    }

    async fn every<T>(
        &self,
        noun: Noun,
        of: fn(State) -> Option<T>,
    ) -> Result<Vec<(String, T)>, Error> {
        let mut found = Vec::new();
        let mut after = String::new();
        loop {
            let page = self.store().list(noun.name(), &after, PAGE_ITEMS).await;
            let page = page.map_err(errors::store)?;
            let Some(last) = page.last().map(|item| item.id.clone()) else { return Ok(found) };
            for item in page {
                let state = item.body.map(|body| stored::state(noun, &body)).transpose()?;
                found.extend(state.and_then(of).map(|state| (item.id, state)));
            }
            after = last;
        }
    }

    async fn count(&self, counter: &Counter) -> Result<i64, Error> {
        self.store().counter(&counter.name()).await.map_err(errors::store)
    }

    fn today(&self) -> i64 {
        budget::day(self.by_log().latest)
    }
}

/// A limit of the day, as it is told.
fn limit(counter: &Counter, used: i64, most: i64) -> Option<BudgetLimit> {
    let (scope, name) = match counter {
        Counter::Runs(_) | Counter::Spent(_) | Counter::Cost(_) => ("installation", None),
        Counter::AgentRuns(agent, _) | Counter::AgentSpent(agent, _) => {
            ("agent", Some(agent.to_string()))
        }
        Counter::AgentCost(agent, _) => ("agent", Some(agent.to_string())),
        Counter::ScheduleSpent(schedule, _) | Counter::ScheduleCost(schedule, _) => {
            ("schedule", Some(schedule.to_string()))
        }
        Counter::Agents | Counter::Schedules | Counter::Tokens => return None,
        Counter::Asks(..) | Counter::PendingAsks(_) => return None,
    };
    let what = what(counter);
    let amount = |number: i64| match what {
        "money" => Amount::Money(money(number)),
        _ => Amount::Count(number),
    };
    Some(BudgetLimit {
        scope: scope.to_owned(),
        name,
        what: what.to_owned(),
        used: amount(used),
        most: amount(most),
        used_up: most <= used,
    })
}

fn what(counter: &Counter) -> &'static str {
    match counter {
        Counter::Spent(_) | Counter::AgentSpent(..) | Counter::ScheduleSpent(..) => "tokens",
        Counter::Cost(_) | Counter::AgentCost(..) | Counter::ScheduleCost(..) => "money",
        Counter::Runs(_) | Counter::AgentRuns(..) => "runs",
        Counter::Asks(..) | Counter::PendingAsks(_) => "questions",
        Counter::Agents | Counter::Schedules | Counter::Tokens => "rows",
    }
}

/// That a run cannot begin: so much is used, so much may be, and it would take so much.
fn lacks(counter: &Counter, used: i64, most: i64, wants: i64) -> Lacks {
    let is_over = most <= used;
    let tokens = |who: String| {
        let then = match is_over {
            true => "and may use no more before midnight UTC".to_owned(),
            false => format!("and another run is expected to use {wants}"),
        };
        Lacks::Budget(format!("{who} used {used} of {most} tokens today, {then}"))
    };
    let spent = |who: String| {
        let then = match is_over {
            true => "and may spend no more before midnight UTC".to_owned(),
            false => format!("and another run is expected to cost {}", money(wants)),
        };
        Lacks::Budget(format!("{who} spent {} of {} today, {then}", money(used), money(most)))
    };
    match counter {
        Counter::AgentRuns(agent, _) => Lacks::Budget(format!(
            "agent `{agent}` has begun {most} runs today, and may begin no more before midnight UTC"
        )),
        Counter::Spent(_) => tokens("all agents together have".to_owned()),
        Counter::AgentSpent(agent, _) => tokens(format!("agent `{agent}` has")),
        Counter::ScheduleSpent(schedule, _) => tokens(format!("schedule `{schedule}` has")),
        Counter::Cost(_) => spent("all agents together have".to_owned()),
        Counter::AgentCost(agent, _) => spent(format!("agent `{agent}` has")),
        Counter::ScheduleCost(schedule, _) => spent(format!("schedule `{schedule}` has")),
        Counter::PendingAsks(agent) => Lacks::Asks(format!(
            "{most} questions about agent `{agent}` wait for an answer already"
        )),
        Counter::Asks(agent, _) => Lacks::Asks(format!(
            "{most} questions about agent `{agent}` were asked today, and no more are"
        )),
        Counter::Runs(_) | Counter::Agents | Counter::Schedules | Counter::Tokens => Lacks::Budget(
            format!("{most} runs were begun today, and no more may before midnight UTC"),
        ),
    }
}

/// An amount in millionths. More than can be is as much as can be.
fn money(micros: i64) -> String {
    Money::from_micros(micros).unwrap_or(Money::MAX).to_string()
}
