//! All derived state, as a fold over events: what `ledger rebuild` makes and what the stored tables
//! must equal. No rule lives here; each noun's `apply` says what an event does to its state.
//!
//! Invariant: a row's version is the number of events that changed it. A removed thing keeps its row
//! without a state, so that a version is never given twice for one id.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::{self, Agent, AgentName, Tested};
use crate::approval::{self, Approval};
use crate::authority::{self, Authority};
use crate::backend::Tier;
use crate::budget::{Charge, Hold, Limits, Spent, day};
use crate::event::{Body, Noun};
use crate::id::{RunId, ScheduleId};
use crate::progress::{self, Progress};
use crate::run::{self, Run};
use crate::schedule::terms::Terms;
use crate::schedule::{self, Added, Removed, Schedule};
use crate::slot::{self, Slot, Source};
use crate::time::Timestamp;
use crate::token::{self, Token};
use crate::tool::{self, Use};
use crate::watch::{self, Identity};

/// Every derived row and counter.
///
/// ```
/// use kernel::agent::{Event, Removed};
/// use kernel::{Body, Noun, Tables, Timestamp};
///
/// let mut tables = Tables::default();
/// let removed = Event::Removed(Removed { at: Timestamp::from_micros(0) });
/// tables.apply(&Body::Agent("ada".parse()?, removed));
/// let row = &tables.rows[&(Noun::Agent, "ada".to_owned())];
/// assert_eq!((row.version, &row.state), (1, &None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub rows: BTreeMap<(Noun, String), Row>,
    pub counters: BTreeMap<Counter, i64>,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub version: u64,
    pub state: Option<State>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    Agent(Agent),
    Approval(Box<Approval>),
    Authority(Authority),
    Progress(Progress),
    Run(Run),
    Schedule(Schedule),
    Slot(Slot),
    Token(Token),
    Tool(Use),
    Watch(Identity),
}

/// A number that many writers share, changed by deltas and never by version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    Agents,
    Schedules,
    Tokens,
    /// Runs that were begun on a day since 1970 and are counted.
    Runs(i64),
    /// Those of one agent.
    AgentRuns(AgentName, i64),
    /// Questions about runs of an agent on a day since 1970.
    Asks(AgentName, i64),
    /// Those of them that nobody has answered.
    PendingAsks(AgentName),
    /// Tokens that were used on a day, or are held back.
    Spent(i64),
    /// Those of one agent.
    AgentSpent(AgentName, i64),
    /// Those of one schedule.
    ScheduleSpent(ScheduleId, i64),
    /// What runs have cost on a day, or is held back, in millionths.
    Cost(i64),
    /// Those of one agent.
    AgentCost(AgentName, i64),
    /// Those of one schedule.
    ScheduleCost(ScheduleId, i64),
}

impl Tables {
    pub fn apply(&mut self, body: &Body) {
        for Touched { noun, id, .. } in touched(body) {
            self.rows.entry((noun, id.clone())).or_default().apply(noun, &id, body);
        }
        for (counter, add) in deltas(body) {
            *self.counters.entry(counter).or_default() += add;
        }
    }
}

impl Row {
    /// A row of this noun after an event that touches it.
    pub fn apply(&mut self, noun: Noun, id: &str, body: &Body) {
        self.version += 1;
        self.state = apply(noun, id, self.state.take(), body);
    }

    /// When it is to be looked at.
    pub fn due(&self) -> Option<Timestamp> {
        match self.state.as_ref()? {
            State::Progress(progress) => progress.due(),
            State::Run(run) => run.due(),
            State::Approval(approval) => approval.due(),
            State::Agent(_) | State::Schedule(_) | State::Slot(_) => None,
            State::Authority(_) | State::Token(_) | State::Tool(_) | State::Watch(_) => None,
        }
    }

    /// What it can be listed under.
    pub fn under(&self) -> Option<String> {
        match self.state.as_ref()? {
            State::Run(run) => Some(run.schedule.to_string()),
            State::Approval(approval) => approval.listed_under(),
            State::Schedule(schedule) => schedule.definition.listed_under(),
            State::Progress(progress) => progress.listed_under(),
            State::Token(token) => token.listed_under(),
            State::Agent(agent) => agent.listed_under(),
            State::Authority(_) | State::Slot(_) | State::Tool(_) | State::Watch(_) => None,
        }
    }
}

fn apply(noun: Noun, id: &str, state: Option<State>, body: &Body) -> Option<State> {
    match (noun, body) {
        (Noun::Agent, Body::Agent(name, event)) => {
            let agent = state.and_then(State::agent);
            agent::apply(name, agent, event).map(State::Agent)
        }
        (Noun::Schedule, Body::Schedule(_, event)) => {
            let schedule = state.and_then(State::schedule);
            schedule::apply(schedule, event).map(State::Schedule)
        }
        (Noun::Run, Body::Run(_, event)) => {
            run::apply(state.and_then(State::run), event).map(State::Run)
        }
        (Noun::Approval, Body::Approval(_, event)) => {
            let approval = state.and_then(State::approval).map(|it| *it);
            approval::apply(approval, event).map(|it| State::Approval(Box::new(it)))
        }
        (Noun::Run, Body::Approval(id, event)) => {
            run::answered(state.and_then(State::run), id, event).map(State::Run)
        }
        (Noun::Run, Body::Schedule(_, event)) => {
            run::made(state.and_then(State::run), event).map(State::Run)
        }
        (Noun::Agent, Body::Approval(_, event)) => {
            agent::answered(state.and_then(State::agent), event).map(State::Agent)
        }
        (Noun::Agent, Body::Schedule(_, event)) => {
            agent::made(state.and_then(State::agent), event).map(State::Agent)
        }
        (Noun::Progress, body) => {
            progress::apply(id, state.and_then(State::progress), body).map(State::Progress)
        }
        (Noun::Slot, body) => slot::apply(state.and_then(State::slot), body).map(State::Slot),
        (Noun::Watch, Body::Watch(instance, event)) => {
            watch::apply(instance, state.and_then(State::watch), event).map(State::Watch)
        }
        (Noun::Authority, Body::Authority(_, event)) => {
            Some(State::Authority(authority::apply(state.and_then(State::authority), event)))
        }
        (Noun::Authority, Body::Watch(_, watch::Event::Started(started))) => {
            Some(State::Authority(authority::started(state.and_then(State::authority), started)))
        }
        (Noun::Authority, Body::Watch(_, watch::Event::ClockAnomaly(anomaly))) => {
            authority::clock_set(state.and_then(State::authority), anomaly).map(State::Authority)
        }
        (Noun::Agent | Noun::Approval | Noun::Authority, _) => state,
        (Noun::Token, Body::Token(_, event)) => {
            token::apply(state.and_then(State::token), event).map(State::Token)
        }
        (Noun::Tool, Body::Tool(_, event)) => {
            tool::apply(state.and_then(State::tool), event).map(State::Tool)
        }
        (Noun::Tool, Body::Watch(_, watch::Event::ToolsUsed(told))) => {
            tool::counted(state.and_then(State::tool), id, told).map(State::Tool)
        }
        (Noun::Schedule | Noun::Run | Noun::Token | Noun::Tool | Noun::Watch, _) => state,
    }
}

/// A row that an event changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Touched {
    pub noun: Noun,
    pub id: String,
    /// Whether there can be no such row yet.
    pub is_new: bool,
}

/// The rows that an event changes.
pub fn touched(body: &Body) -> Vec<Touched> {
    use {run::Event as Run, schedule::Event as Schedule};
    let known = |noun, id: &str| Touched { noun, id: id.to_owned(), is_new: false };
    let new = |noun, id: String| Touched { noun, id, is_new: true };
    match body {
        Body::Agent(name, _) => vec![known(Noun::Agent, name.as_str())],
        Body::Schedule(id, event) => {
            let schedule = || known(Noun::Schedule, id.as_str());
            let progress = known(Noun::Progress, id.as_str());
            let source = |it: &Option<Source>| {
                it.as_ref().map(|it| new(Noun::Slot, slot::source_key(id, it)))
            };
            let mut rows = match event {
                Schedule::Added(_) | Schedule::Changed(_) | Schedule::Removed(_) => {
                    vec![schedule(), progress]
                }
                Schedule::Paused(_) | Schedule::Resumed(_) | Schedule::Moved(_) => vec![progress],
                Schedule::BackfillBegun(_) | Schedule::BackfillMoved(_) => vec![progress],
                Schedule::Passed(it) => vec![progress, new(Noun::Slot, slot::key(id, it.last))],
                Schedule::Buffered(it) => vec![progress, new(Noun::Slot, slot::key(id, it.slot))],
                Schedule::Dropped(it) => vec![progress, known(Noun::Slot, &slot::key(id, it.slot))],
            };
            match event {
                Schedule::Added(_) | Schedule::Changed(_) | Schedule::Removed(_) => {
                    let others = followed(event).into_iter();
                    rows.extend(others.map(|other| known(Noun::Progress, other.as_str())));
                    rows.extend(makers(event).map(|(noun, id)| known(noun, id)));
                }
                Schedule::Passed(it) => rows.extend(source(&it.source)),
                Schedule::Buffered(it) => rows.extend(source(&it.source)),
                _ => {}
            }
            rows
        }
        Body::Run(id, event) => {
            let run = known(Noun::Run, id.as_str());
            let progress = |id: &ScheduleId| known(Noun::Progress, id.as_str());
            match event {
                Run::Queued(queued) => {
                    let slot = match queued.has_waited() {
                        true => known(Noun::Slot, &queued.slot_key()),
                        false => new(Noun::Slot, queued.slot_key()),
                    };
                    let source = queued
                        .source()
                        .map(|source| new(Noun::Slot, slot::source_key(&queued.schedule, source)));
                    let rows = [new(Noun::Run, run.id), progress(&queued.schedule), slot];
                    rows.into_iter().chain(source).collect()
                }
                Run::Ended(ended) => vec![run, progress(&ended.schedule)],
                Run::Requeued(requeued) => vec![run, progress(&requeued.schedule)],
                Run::Started(_) | Run::Retried(_) => vec![run],
                Run::CancelAsked(_) | Run::Settled(_) => vec![run],
            }
        }
        Body::Approval(id, event) => {
            let approval = known(Noun::Approval, id.as_str());
            let run = |id: &RunId| known(Noun::Run, id.as_str());
            match event {
                approval::Event::Asked(asked) => {
                    vec![new(Noun::Approval, approval.id), run(&asked.plan.run)]
                }
                approval::Event::Decided(decided) => {
                    let streak = decided.streak.as_ref();
                    let agent = streak.map(|it| known(Noun::Agent, it.agent.as_str()));
                    [approval, run(&decided.run)].into_iter().chain(agent).collect()
                }
                approval::Event::Assented(_) => vec![approval],
                approval::Event::Consumed(_) | approval::Event::Lapsed(_) => vec![approval],
            }
        }
        Body::Authority(instance, _) => vec![known(Noun::Authority, instance)],
        Body::Token(id, token::Event::Created(_)) => vec![new(Noun::Token, id.to_string())],
        Body::Token(id, token::Event::Revoked(_)) => vec![known(Noun::Token, id.as_str())],
        Body::Tool(_, tool::Event::Made(_)) => Vec::new(),
        Body::Tool(name, tool::Event::Alerted(_)) => vec![known(Noun::Tool, name.as_str())],
        Body::Watch(_, watch::Event::ToolsUsed(told)) => {
            told.tools.iter().map(|used| known(Noun::Tool, used.tool.as_str())).collect()
        }
        Body::Watch(instance, watch::Event::Started(started)) => {
            match started.lease_from.is_some() || started.is_other_posture {
                true => vec![known(Noun::Authority, instance)],
                false => Vec::new(),
            }
        }
        Body::Watch(instance, watch::Event::ClockAnomaly(anomaly)) => {
            let lease = anomaly.lease_from.map(|_| known(Noun::Authority, instance));
            lease.into_iter().collect()
        }
        Body::Watch(instance, event) => match watch::is_about_identity(event) {
            true => vec![known(Noun::Watch, instance)],
            false => Vec::new(),
        },
    }
}

/// The schedules that one begins or ceases to follow.
fn followed(event: &schedule::Event) -> Vec<&ScheduleId> {
    let (definition, unfollows) = match event {
        schedule::Event::Added(added) => (Some(&added.definition), None),
        schedule::Event::Changed(it) => (Some(&it.definition), it.unfollows.as_ref()),
        schedule::Event::Removed(removed) => (None, removed.unfollows.as_ref()),
        _ => (None, None),
    };
    let follows = definition.and_then(|it| it.trigger.follows()).map(|(id, _)| id);
    follows.into_iter().chain(unfollows).collect()
}

/// The run and the agent that have added a schedule, as far as they count it.
fn makers(event: &schedule::Event) -> impl Iterator<Item = (Noun, &str)> {
    let (run, agent) = match event {
        schedule::Event::Added(Added { made_by: Some(by), .. }) => {
            (by.run.as_ref(), Some(&by.agent))
        }
        schedule::Event::Removed(Removed { made_by: Some(by), .. }) => (None, Some(&by.agent)),
        _ => (None, None),
    };
    let run = run.map(|run| (Noun::Run, run.as_str()));
    run.into_iter().chain(agent.map(|agent| (Noun::Agent, agent.as_str())))
}

/// What an event adds to counters.
pub fn deltas(body: &Body) -> Vec<(Counter, i64)> {
    match body {
        Body::Agent(_, agent::Event::Registered(_)) => vec![(Counter::Agents, 1)],
        Body::Agent(_, agent::Event::Removed(_)) => vec![(Counter::Agents, -1)],
        Body::Schedule(_, schedule::Event::Added(_)) => vec![(Counter::Schedules, 1)],
        Body::Schedule(_, schedule::Event::Removed(_)) => vec![(Counter::Schedules, -1)],
        Body::Token(_, token::Event::Created(_)) => vec![(Counter::Tokens, 1)],
        Body::Token(_, token::Event::Revoked(_)) => vec![(Counter::Tokens, -1)],
        Body::Run(_, run::Event::Started(started)) => {
            let counted = counted(started.charge.as_ref(), 1).into_iter();
            counted.chain(held(started.hold.as_ref(), 1)).collect()
        }
        Body::Run(_, run::Event::Retried(retried)) => {
            let refunded = counted(retried.refund.as_ref(), -1).into_iter();
            let freed = held(retried.frees.as_ref(), -1);
            refunded.chain(freed).chain(used(retried.spent.as_ref())).collect()
        }
        Body::Run(_, run::Event::Ended(ended)) => {
            let refunded = counted(ended.refund.as_ref(), -1).into_iter();
            let freed = held(ended.frees.as_ref(), -1);
            refunded.chain(freed).chain(used(ended.spent.as_ref())).collect()
        }
        Body::Agent(_, agent::Event::Tested(tested)) => counted(tested.charge.as_ref(), 1),
        Body::Agent(_, agent::Event::Answered(answered)) => used(Some(&answered.spent)),
        Body::Agent(_, agent::Event::Changed(_)) => Vec::new(),
        Body::Approval(_, event) => asked(event),
        Body::Authority(..) | Body::Tool(..) => Vec::new(),
        Body::Schedule(..) | Body::Run(..) | Body::Watch(..) => Vec::new(),
    }
}

fn asked(event: &approval::Event) -> Vec<(Counter, i64)> {
    let frees = match event {
        approval::Event::Asked(asked) => {
            let Some(Charge { agent: Some(agent), day }) = &asked.charge else {
                return Vec::new();
            };
            let asks = Counter::Asks(agent.clone(), *day);
            return vec![(asks, 1), (Counter::PendingAsks(agent.clone()), 1)];
        }
        approval::Event::Decided(decided) => &decided.frees,
        approval::Event::Lapsed(lapsed) => &lapsed.frees,
        approval::Event::Assented(_) | approval::Event::Consumed(_) => &None,
    };
    frees.iter().map(|agent| (Counter::PendingAsks(agent.clone()), -1)).collect()
}

fn counted(charge: Option<&Charge>, add: i64) -> Vec<(Counter, i64)> {
    let Some(Charge { agent, day }) = charge else { return Vec::new() };
    let of_agent = agent.iter().map(|agent| (Counter::AgentRuns(agent.clone(), *day), add));
    [(Counter::Runs(*day), add)].into_iter().chain(of_agent).collect()
}

/// What no budget can refuse any more.
fn used(spent: Option<&Spent>) -> Vec<(Counter, i64)> {
    let Some(Spent { agent, schedule, day, usage, cost }) = spent else { return Vec::new() };
    let (tokens, cost) = (usage.unwrap_or_default().tokens(), cost.as_micros());
    let own = |counter: fn(ScheduleId, i64) -> Counter, add: i64| {
        let schedule = schedule.iter().filter(move |_| add != 0);
        schedule.map(move |schedule| (counter(schedule.clone(), *day), add))
    };
    let tokens_of = [Counter::Spent(*day), Counter::AgentSpent(agent.clone(), *day)];
    let tokens_of = tokens_of.into_iter().filter(|_| usage.is_some()).map(|it| (it, tokens));
    let cost_of = [Counter::Cost(*day), Counter::AgentCost(agent.clone(), *day)];
    let cost_of = cost_of.into_iter().filter(|_| cost != 0).map(|it| (it, cost));
    let own = own(Counter::ScheduleSpent, tokens).chain(own(Counter::ScheduleCost, cost));
    tokens_of.chain(cost_of).chain(own).collect()
}

/// What is held back, or given back.
fn held(hold: Option<&Hold>, sign: i64) -> Vec<(Counter, i64)> {
    let Some(Hold { agent, schedule, day, tokens, money }) = hold else { return Vec::new() };
    let tokens = tokens_of(agent, schedule, *day).map(|counter| (counter, sign * tokens));
    let money = money_of(agent, schedule, *day).map(|it| (it, sign * money.as_micros()));
    tokens.into_iter().chain(money).filter(|(_, add)| *add != 0).collect()
}

/// The counters that must not have reached their limit when a run begins, and the most that each may show
/// then. Tokens count for whatever is begun, and money for whatever has a price.
pub fn guards(body: &Body, run: &Run, terms: &Terms, limits: &Limits) -> Vec<(Counter, i64)> {
    let Body::Run(_, run::Event::Started(started)) = body else { return Vec::new() };
    let Some(agent) = &run.agent else { return Vec::new() };
    let (day, schedule) = (day(started.at), &run.schedule);
    let hold = started.hold.as_ref();
    let (tokens, money) = hold.map_or((0, 0), |hold| (hold.tokens, hold.money.as_micros()));
    let tokens = tokens_of(agent, schedule, day).map(|counter| (counter, tokens));
    let money = money_of(agent, schedule, day).map(|counter| (counter, money));
    let money = money.into_iter().filter(|_| !started.price.is_free());
    let limited = tokens.into_iter().chain(money).filter_map(|(counter, held)| {
        let most = counter.most(terms, limits);
        (most != 0).then(|| (counter, Limits::below(most, held)))
    });
    limited.collect()
}

/// The counters that bound a run of a schedule, each with its limit; those without one are left out. Only prompts
/// to an agent use up tokens and money.
pub fn bounds(
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
    let tokens = name.into_iter().flat_map(|name| tokens_of(name, schedule, day));
    let payable = agent.filter(|agent| !agent.price.is_free());
    let money = payable.into_iter().flat_map(|agent| money_of(&agent.name, schedule, day));
    let all = runs.chain(tokens).chain(money);
    let limited = all.map(|counter| {
        let most = counter.most(terms, limits);
        (counter, most)
    });
    limited.filter(|(_, most)| *most != 0).collect()
}

/// The counters that must not have reached their limit when an agent is tested, and the most that each may
/// show then.
pub fn test_guards(agent: &Agent, tested: &Tested, limits: &Limits) -> Vec<(Counter, i64)> {
    let (name, day) = (&agent.name, day(tested.at));
    let tokens = [Counter::Spent(day), Counter::AgentSpent(name.clone(), day)];
    let money = [Counter::Cost(day), Counter::AgentCost(name.clone(), day)];
    let money = money.into_iter().filter(|_| !agent.price.is_free());
    let limited = tokens.into_iter().chain(money).filter_map(|counter| {
        let most = counter.most(&Terms::default(), limits);
        (most != 0).then(|| (counter, Limits::below(most, 0)))
    });
    limited.collect()
}

fn tokens_of(agent: &AgentName, schedule: &ScheduleId, day: i64) -> [Counter; 3] {
    let of_agent = Counter::AgentSpent(agent.clone(), day);
    [Counter::Spent(day), of_agent, Counter::ScheduleSpent(schedule.clone(), day)]
}

fn money_of(agent: &AgentName, schedule: &ScheduleId, day: i64) -> [Counter; 3] {
    let of_agent = Counter::AgentCost(agent.clone(), day);
    [Counter::Cost(day), of_agent, Counter::ScheduleCost(schedule.clone(), day)]
}

impl Counter {
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Counter::Agents => "agents".into(),
            Counter::Schedules => "schedules".into(),
            Counter::Tokens => "tokens".into(),
            Counter::Runs(day) => format!("runs:{day}").into(),
            Counter::AgentRuns(agent, day) => format!("runs:{agent}:{day}").into(),
            Counter::Asks(agent, day) => format!("asks:{agent}:{day}").into(),
            Counter::PendingAsks(agent) => format!("asks:{agent}").into(),
            Counter::Spent(day) => format!("spent:{day}").into(),
            Counter::AgentSpent(agent, day) => format!("spent:{agent}:{day}").into(),
            Counter::ScheduleSpent(schedule, day) => format!("spent_by:{schedule}:{day}").into(),
            Counter::Cost(day) => format!("cost:{day}").into(),
            Counter::AgentCost(agent, day) => format!("cost:{agent}:{day}").into(),
            Counter::ScheduleCost(schedule, day) => format!("cost_by:{schedule}:{day}").into(),
        }
    }

    /// The most that may be used of what it counts; zero for as much as there is.
    pub fn most(&self, terms: &Terms, limits: &Limits) -> i64 {
        match self {
            Counter::Agents | Counter::Schedules | Counter::Tokens => self.limit(limits),
            Counter::Runs(_) => limits.runs,
            Counter::AgentRuns(..) => limits.runs_per_agent,
            Counter::Asks(..) => limits.asks_per_agent,
            Counter::PendingAsks(_) => limits.pending_per_agent,
            Counter::Spent(_) => limits.tokens,
            Counter::AgentSpent(..) => limits.tokens_per_agent,
            Counter::ScheduleSpent(..) => terms.tokens_per_day.map_or(0, i64::from),
            Counter::Cost(_) => limits.money.as_micros(),
            Counter::AgentCost(..) => limits.money_per_agent.as_micros(),
            Counter::ScheduleCost(..) => terms.money_per_day.unwrap_or_default().as_micros(),
        }
    }

    /// The most it may reach.
    pub const fn limit(&self, limits: &Limits) -> i64 {
        match self {
            Counter::Agents => agent::AGENTS_MAX,
            Counter::Schedules => schedule::SCHEDULES_MAX,
            Counter::Tokens => token::TOKENS_MAX,
            Counter::Runs(_) => Limits::or_none(limits.runs),
            Counter::AgentRuns(..) => Limits::or_none(limits.runs_per_agent),
            Counter::Asks(..) => Limits::or_none(limits.asks_per_agent),
            Counter::PendingAsks(_) => Limits::or_none(limits.pending_per_agent),
            Counter::Spent(_) | Counter::AgentSpent(..) | Counter::ScheduleSpent(..) => i64::MAX,
            Counter::Cost(_) | Counter::AgentCost(..) | Counter::ScheduleCost(..) => i64::MAX,
        }
    }
}

/// The stored body of a row.
impl Serialize for State {
    fn serialize<S: Serializer>(&self, out: S) -> Result<S::Ok, S::Error> {
        match self {
            State::Agent(agent) => agent.serialize(out),
            State::Approval(approval) => approval.serialize(out),
            State::Authority(authority) => authority.serialize(out),
            State::Progress(progress) => progress.serialize(out),
            State::Run(run) => run.serialize(out),
            State::Schedule(schedule) => schedule.serialize(out),
            State::Slot(slot) => slot.serialize(out),
            State::Token(token) => token.serialize(out),
            State::Tool(used) => used.serialize(out),
            State::Watch(identity) => identity.serialize(out),
        }
    }
}

impl State {
    pub fn decode<'de, D: Deserializer<'de>>(noun: Noun, body: D) -> Result<State, D::Error> {
        match noun {
            Noun::Agent => Agent::deserialize(body).map(State::Agent),
            Noun::Approval => Box::deserialize(body).map(State::Approval),
            Noun::Authority => Authority::deserialize(body).map(State::Authority),
            Noun::Progress => Progress::deserialize(body).map(State::Progress),
            Noun::Run => Run::deserialize(body).map(State::Run),
            Noun::Schedule => Schedule::deserialize(body).map(State::Schedule),
            Noun::Slot => Slot::deserialize(body).map(State::Slot),
            Noun::Token => Token::deserialize(body).map(State::Token),
            Noun::Tool => Use::deserialize(body).map(State::Tool),
            Noun::Watch => Identity::deserialize(body).map(State::Watch),
        }
    }
}

/// The state of a row, if it is of this noun.
macro_rules! state_of {
    ($($function:ident $variant:ident $state:ty;)*) => {
        impl State {$(
            pub fn $function(self) -> Option<$state> {
                match self {
                    State::$variant(state) => Some(state),
                    _ => None,
                }
            }
        )*}
    };
}

state_of! {
    agent Agent Agent;
    approval Approval Box<Approval>;
    authority Authority Authority;
    progress Progress Progress;
    run Run Run;
    schedule Schedule Schedule;
    slot Slot Slot;
    token Token Token;
    tool Tool Use;
    watch Watch Identity;
}
