//! All derived state, as a fold over events: `ledger rebuild` computes it, and the stored tables must equal it.
//! No rule lives here; each noun's `apply` says what an event does to its state.
//!
//! Invariant: a row's version is the number of events that changed it. A removed object keeps its row
//! without a state, so no version is used twice for one id.

use std::borrow::Cow;
use std::collections::BTreeMap;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use crate::agent::{self, Agent, AgentName, Tested};
use crate::approval::{self, Approval};
use crate::authority::{self, Authority};
use crate::backend::Tier;
use crate::budget::{Charge, Limits, Reservation, Spent, day};
use crate::event::{EventBody, Noun};
use crate::id::{RunId, ScheduleId};
use crate::installation::{self, Identity};
use crate::progress::{self, Progress};
use crate::run::{self, Run};
use crate::schedule::terms::Terms;
use crate::schedule::{self, Added, Removed, Schedule};
use crate::slot::{self, Slot, Source};
use crate::time::Timestamp;
use crate::token::{self, Token};
use crate::tool::{self, ToolStats};

/// Every derived row and counter.
///
/// ```
/// use kernel::agent::{Event, Removed};
/// use kernel::{EventBody, Noun, Tables, Timestamp};
///
/// let mut tables = Tables::default();
/// let removed = Event::Removed(Removed { at: Timestamp::from_micros(0) });
/// tables.apply(&EventBody::Agent("ada".parse()?, removed));
/// let row = &tables.rows[&(Noun::Agent, "ada".to_owned())];
/// assert_eq!((row.version, &row.state), (1, &None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub rows: BTreeMap<(Noun, String), Row>,
    pub counters: BTreeMap<Counter, i64>,
}

/// A derived row. Its state is `None` after the object was removed.
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
    Tool(ToolStats),
    Installation(Identity),
}

/// A number that many writers share. Events change it by deltas, without checking a version.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Counter {
    Agents,
    Schedules,
    AccessTokens,
    /// Counted runs that started on a day, numbered from 1970.
    Runs(i64),
    AgentRuns(AgentName, i64),
    /// Approvals requested for runs of an agent on a day.
    ApprovalRequests(AgentName, i64),
    /// Approvals of an agent's runs that are still pending.
    PendingApprovals(AgentName),
    /// LLM tokens used or reserved on a day.
    TokensSpent(i64),
    AgentTokensSpent(AgentName, i64),
    ScheduleTokensSpent(ScheduleId, i64),
    /// Money spent or reserved on a day, in millionths.
    Cost(i64),
    AgentCost(AgentName, i64),
    ScheduleCost(ScheduleId, i64),
}

impl Tables {
    pub fn apply(&mut self, body: &EventBody) {
        for ChangedRow { noun, id, .. } in changed_rows(body) {
            self.rows.entry((noun, id.clone())).or_default().apply(noun, &id, body);
        }
        for (counter, add) in counter_deltas(body) {
            *self.counters.entry(counter).or_default() += add;
        }
    }
}

impl Row {
    /// Applies an event that changes this row.
    pub fn apply(&mut self, noun: Noun, id: &str, body: &EventBody) {
        self.version += 1;
        self.state = apply(noun, id, self.state.take(), body);
    }

    /// When the timer must handle it next.
    pub fn due(&self) -> Option<Timestamp> {
        match self.state.as_ref()? {
            State::Progress(progress) => progress.due(),
            State::Run(run) => run.due(),
            State::Approval(approval) => approval.due(),
            State::Agent(_) | State::Schedule(_) | State::Slot(_) => None,
            State::Authority(_) | State::Token(_) | State::Tool(_) | State::Installation(_) => None,
        }
    }

    /// The secondary key that it can be listed by.
    pub fn index_key(&self) -> Option<String> {
        match self.state.as_ref()? {
            State::Run(run) => Some(run.schedule.to_string()),
            State::Approval(approval) => approval.index_key(),
            State::Schedule(schedule) => schedule.definition.index_key(),
            State::Progress(progress) => progress.index_key(),
            State::Token(token) => token.index_key(),
            State::Agent(agent) => agent.index_key(),
            State::Authority(_) | State::Slot(_) | State::Tool(_) | State::Installation(_) => None,
        }
    }
}

fn apply(noun: Noun, id: &str, state: Option<State>, body: &EventBody) -> Option<State> {
    match (noun, body) {
        (Noun::Agent, EventBody::Agent(name, event)) => {
            let agent = state.and_then(State::agent);
            agent::apply(name, agent, event).map(State::Agent)
        }
        (Noun::Schedule, EventBody::Schedule(_, event)) => {
            let schedule = state.and_then(State::schedule);
            schedule::apply(schedule, event).map(State::Schedule)
        }
        (Noun::Run, EventBody::Run(_, event)) => {
            run::apply(state.and_then(State::run), event).map(State::Run)
        }
        (Noun::Approval, EventBody::Approval(_, event)) => {
            let approval = state.and_then(State::approval).map(|it| *it);
            approval::apply(approval, event).map(|it| State::Approval(Box::new(it)))
        }
        (Noun::Run, EventBody::Approval(id, event)) => {
            run::apply_approval_event(state.and_then(State::run), id, event).map(State::Run)
        }
        (Noun::Run, EventBody::Schedule(_, event)) => {
            run::apply_schedule_event(state.and_then(State::run), event).map(State::Run)
        }
        (Noun::Agent, EventBody::Approval(_, event)) => {
            agent::apply_approval_event(state.and_then(State::agent), event).map(State::Agent)
        }
        (Noun::Agent, EventBody::Schedule(_, event)) => {
            agent::apply_schedule_event(state.and_then(State::agent), event).map(State::Agent)
        }
        (Noun::Progress, body) => {
            progress::apply(id, state.and_then(State::progress), body).map(State::Progress)
        }
        (Noun::Slot, body) => slot::apply(state.and_then(State::slot), body).map(State::Slot),
        (Noun::Installation, EventBody::Installation(instance, event)) => {
            installation::apply(instance, state.and_then(State::installation), event)
                .map(State::Installation)
        }
        (Noun::Authority, EventBody::Authority(_, event)) => {
            Some(State::Authority(authority::apply(state.and_then(State::authority), event)))
        }
        (Noun::Authority, EventBody::Installation(_, installation::Event::Started(started))) => {
            Some(State::Authority(authority::apply_started(
                state.and_then(State::authority),
                started,
            )))
        }
        (
            Noun::Authority,
            EventBody::Installation(_, installation::Event::ClockAnomaly(anomaly)),
        ) => authority::apply_clock_anomaly(state.and_then(State::authority), anomaly)
            .map(State::Authority),
        (Noun::Agent | Noun::Approval | Noun::Authority, _) => state,
        (Noun::Token, EventBody::Token(_, event)) => {
            token::apply(state.and_then(State::token), event).map(State::Token)
        }
        (Noun::Tool, EventBody::Tool(_, event)) => {
            tool::apply(state.and_then(State::tool), event).map(State::Tool)
        }
        (Noun::Tool, EventBody::Installation(_, installation::Event::ToolsUsed(summary))) => {
            tool::apply_summary(state.and_then(State::tool), id, summary).map(State::Tool)
        }
        (Noun::Schedule | Noun::Run | Noun::Token | Noun::Tool | Noun::Installation, _) => state,
    }
}

/// A row that an event changes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedRow {
    pub noun: Noun,
    pub id: String,
    /// Whether the row cannot exist yet.
    pub is_new: bool,
}

/// The rows that an event changes.
pub fn changed_rows(body: &EventBody) -> Vec<ChangedRow> {
    use {run::Event as Run, schedule::Event as Schedule};
    let existing = |noun, id: &str| ChangedRow { noun, id: id.to_owned(), is_new: false };
    let new = |noun, id: String| ChangedRow { noun, id, is_new: true };
    match body {
        EventBody::Agent(name, _) => vec![existing(Noun::Agent, name.as_str())],
        EventBody::Schedule(id, event) => {
            let schedule = || existing(Noun::Schedule, id.as_str());
            let progress = existing(Noun::Progress, id.as_str());
            let source = |it: &Option<Source>| {
                it.as_ref().map(|it| new(Noun::Slot, slot::source_key(id, it)))
            };
            let mut rows = match event {
                Schedule::Added(_) | Schedule::Changed(_) | Schedule::Removed(_) => {
                    vec![schedule(), progress]
                }
                Schedule::Paused(_) | Schedule::Resumed(_) | Schedule::Moved(_) => vec![progress],
                Schedule::BackfillStarted(_) | Schedule::BackfillMoved(_) => vec![progress],
                Schedule::Passed(it) => vec![progress, new(Noun::Slot, slot::key(id, it.last))],
                Schedule::Buffered(it) => vec![progress, new(Noun::Slot, slot::key(id, it.slot))],
                Schedule::Dropped(it) => {
                    vec![progress, existing(Noun::Slot, &slot::key(id, it.slot))]
                }
            };
            match event {
                Schedule::Added(_) | Schedule::Changed(_) | Schedule::Removed(_) => {
                    let others = changed_upstreams(event).into_iter();
                    rows.extend(others.map(|other| existing(Noun::Progress, other.as_str())));
                    rows.extend(schedule_creators(event).map(|(noun, id)| existing(noun, id)));
                }
                Schedule::Passed(it) => rows.extend(source(&it.source)),
                Schedule::Buffered(it) => rows.extend(source(&it.source)),
                _ => {}
            }
            rows
        }
        EventBody::Run(id, event) => {
            let run = existing(Noun::Run, id.as_str());
            let progress = |id: &ScheduleId| existing(Noun::Progress, id.as_str());
            match event {
                Run::Queued(queued) => {
                    let slot = match queued.was_buffered() {
                        true => existing(Noun::Slot, &queued.slot_key()),
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
                Run::CancelRequested(_) | Run::Settled(_) => vec![run],
            }
        }
        EventBody::Approval(id, event) => {
            let approval = existing(Noun::Approval, id.as_str());
            let run = |id: &RunId| existing(Noun::Run, id.as_str());
            match event {
                approval::Event::Requested(requested) => {
                    vec![new(Noun::Approval, approval.id), run(&requested.plan.run)]
                }
                approval::Event::Decided(decided) => {
                    let streak = decided.streak.as_ref();
                    let agent = streak.map(|it| existing(Noun::Agent, it.agent.as_str()));
                    [approval, run(&decided.run)].into_iter().chain(agent).collect()
                }
                approval::Event::Assented(_) => vec![approval],
                approval::Event::Consumed(_) | approval::Event::Lapsed(_) => vec![approval],
            }
        }
        EventBody::Authority(instance, _) => vec![existing(Noun::Authority, instance)],
        EventBody::Token(id, token::Event::Created(_)) => vec![new(Noun::Token, id.to_string())],
        EventBody::Token(id, token::Event::Revoked(_)) => vec![existing(Noun::Token, id.as_str())],
        EventBody::Tool(_, tool::Event::Called(_)) => Vec::new(),
        EventBody::Tool(name, tool::Event::Alerted(_)) => vec![existing(Noun::Tool, name.as_str())],
        EventBody::Installation(_, installation::Event::ToolsUsed(summary)) => {
            summary.tools.iter().map(|used| existing(Noun::Tool, used.tool.as_str())).collect()
        }
        EventBody::Installation(instance, installation::Event::Started(started)) => {
            match started.lease_from.is_some() || started.is_other_posture {
                true => vec![existing(Noun::Authority, instance)],
                false => Vec::new(),
            }
        }
        EventBody::Installation(instance, installation::Event::ClockAnomaly(anomaly)) => {
            let lease = anomaly.lease_from.map(|_| existing(Noun::Authority, instance));
            lease.into_iter().collect()
        }
        EventBody::Installation(instance, event) => match installation::changes_identity(event) {
            true => vec![existing(Noun::Installation, instance)],
            false => Vec::new(),
        },
    }
}

/// The schedules whose list of dependents an event changes.
fn changed_upstreams(event: &schedule::Event) -> Vec<&ScheduleId> {
    let (definition, former) = match event {
        schedule::Event::Added(added) => (Some(&added.definition), None),
        schedule::Event::Changed(it) => (Some(&it.definition), it.former_upstream.as_ref()),
        schedule::Event::Removed(removed) => (None, removed.former_upstream.as_ref()),
        _ => (None, None),
    };
    let upstream = definition.and_then(|it| it.trigger.upstream()).map(|(id, _)| id);
    upstream.into_iter().chain(former).collect()
}

/// The run and the agent that count an added or removed schedule.
fn schedule_creators(event: &schedule::Event) -> impl Iterator<Item = (Noun, &str)> {
    let (run, agent) = match event {
        schedule::Event::Added(Added { added_by_agent: Some(by), .. }) => {
            (by.run.as_ref(), Some(&by.agent))
        }
        schedule::Event::Removed(Removed { added_by_agent: Some(by), .. }) => {
            (None, Some(&by.agent))
        }
        _ => (None, None),
    };
    let run = run.map(|run| (Noun::Run, run.as_str()));
    run.into_iter().chain(agent.map(|agent| (Noun::Agent, agent.as_str())))
}

/// The changes that an event makes to counters.
pub fn counter_deltas(body: &EventBody) -> Vec<(Counter, i64)> {
    match body {
        EventBody::Agent(_, agent::Event::Registered(_)) => vec![(Counter::Agents, 1)],
        EventBody::Agent(_, agent::Event::Removed(_)) => vec![(Counter::Agents, -1)],
        EventBody::Schedule(_, schedule::Event::Added(_)) => vec![(Counter::Schedules, 1)],
        EventBody::Schedule(_, schedule::Event::Removed(_)) => vec![(Counter::Schedules, -1)],
        EventBody::Token(_, token::Event::Created(_)) => vec![(Counter::AccessTokens, 1)],
        EventBody::Token(_, token::Event::Revoked(_)) => vec![(Counter::AccessTokens, -1)],
        EventBody::Run(_, run::Event::Started(started)) => {
            let counted = run_deltas(started.charge.as_ref(), 1).into_iter();
            counted.chain(reservation_deltas(started.reservation.as_ref(), 1)).collect()
        }
        EventBody::Run(_, run::Event::Retried(retried)) => {
            let refunded = run_deltas(retried.refund.as_ref(), -1).into_iter();
            let released = reservation_deltas(retried.released.as_ref(), -1);
            refunded.chain(released).chain(spent_deltas(retried.spent.as_ref())).collect()
        }
        EventBody::Run(_, run::Event::Ended(ended)) => {
            let refunded = run_deltas(ended.refund.as_ref(), -1).into_iter();
            let released = reservation_deltas(ended.released.as_ref(), -1);
            refunded.chain(released).chain(spent_deltas(ended.spent.as_ref())).collect()
        }
        EventBody::Agent(_, agent::Event::Tested(tested)) => run_deltas(tested.charge.as_ref(), 1),
        EventBody::Agent(_, agent::Event::TestSpent(test)) => spent_deltas(Some(&test.spent)),
        EventBody::Agent(_, agent::Event::Changed(_)) => Vec::new(),
        EventBody::Approval(_, event) => approval_deltas(event),
        EventBody::Authority(..) | EventBody::Tool(..) => Vec::new(),
        EventBody::Schedule(..) | EventBody::Run(..) | EventBody::Installation(..) => Vec::new(),
    }
}

fn approval_deltas(event: &approval::Event) -> Vec<(Counter, i64)> {
    let frees = match event {
        approval::Event::Requested(requested) => {
            let Some(Charge { agent: Some(agent), day }) = &requested.charge else {
                return Vec::new();
            };
            let requests = Counter::ApprovalRequests(agent.clone(), *day);
            return vec![(requests, 1), (Counter::PendingApprovals(agent.clone()), 1)];
        }
        approval::Event::Decided(decided) => &decided.frees,
        approval::Event::Lapsed(lapsed) => &lapsed.frees,
        approval::Event::Assented(_) | approval::Event::Consumed(_) => &None,
    };
    frees.iter().map(|agent| (Counter::PendingApprovals(agent.clone()), -1)).collect()
}

fn run_deltas(charge: Option<&Charge>, add: i64) -> Vec<(Counter, i64)> {
    let Some(Charge { agent, day }) = charge else { return Vec::new() };
    let of_agent = agent.iter().map(|agent| (Counter::AgentRuns(agent.clone(), *day), add));
    [(Counter::Runs(*day), add)].into_iter().chain(of_agent).collect()
}

/// Usage is already spent, so no limit applies to it.
fn spent_deltas(spent: Option<&Spent>) -> Vec<(Counter, i64)> {
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

/// `sign` is 1 to reserve, -1 to release.
fn reservation_deltas(reservation: Option<&Reservation>, sign: i64) -> Vec<(Counter, i64)> {
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

impl Counter {
    pub fn name(&self) -> Cow<'static, str> {
        match self {
            Counter::Agents => "agents".into(),
            Counter::Schedules => "schedules".into(),
            Counter::AccessTokens => "tokens".into(),
            Counter::Runs(day) => format!("runs:{day}").into(),
            Counter::AgentRuns(agent, day) => format!("runs:{agent}:{day}").into(),
            Counter::ApprovalRequests(agent, day) => format!("asks:{agent}:{day}").into(),
            Counter::PendingApprovals(agent) => format!("asks:{agent}").into(),
            Counter::TokensSpent(day) => format!("spent:{day}").into(),
            Counter::AgentTokensSpent(agent, day) => format!("spent:{agent}:{day}").into(),
            Counter::ScheduleTokensSpent(schedule, day) => {
                format!("spent_by:{schedule}:{day}").into()
            }
            Counter::Cost(day) => format!("cost:{day}").into(),
            Counter::AgentCost(agent, day) => format!("cost:{agent}:{day}").into(),
            Counter::ScheduleCost(schedule, day) => format!("cost_by:{schedule}:{day}").into(),
        }
    }

    /// The configured limit of what it counts; zero if there is none.
    pub fn budget_limit(&self, terms: &Terms, limits: &Limits) -> i64 {
        match self {
            Counter::Agents | Counter::Schedules | Counter::AccessTokens => self.max_value(limits),
            Counter::Runs(_) => limits.runs,
            Counter::AgentRuns(..) => limits.runs_per_agent,
            Counter::ApprovalRequests(..) => limits.asks_per_agent,
            Counter::PendingApprovals(_) => limits.pending_per_agent,
            Counter::TokensSpent(_) => limits.tokens,
            Counter::AgentTokensSpent(..) => limits.tokens_per_agent,
            Counter::ScheduleTokensSpent(..) => terms.tokens_per_day.map_or(0, i64::from),
            Counter::Cost(_) => limits.money.as_micros(),
            Counter::AgentCost(..) => limits.money_per_agent.as_micros(),
            Counter::ScheduleCost(..) => terms.money_per_day.unwrap_or_default().as_micros(),
        }
    }

    /// The highest value that a commit may bring it to.
    pub const fn max_value(&self, limits: &Limits) -> i64 {
        match self {
            Counter::Agents => agent::AGENTS_MAX,
            Counter::Schedules => schedule::SCHEDULES_MAX,
            Counter::AccessTokens => token::TOKENS_MAX,
            Counter::Runs(_) => Limits::or_unlimited(limits.runs),
            Counter::AgentRuns(..) => Limits::or_unlimited(limits.runs_per_agent),
            Counter::ApprovalRequests(..) => Limits::or_unlimited(limits.asks_per_agent),
            Counter::PendingApprovals(_) => Limits::or_unlimited(limits.pending_per_agent),
            Counter::TokensSpent(_)
            | Counter::AgentTokensSpent(..)
            | Counter::ScheduleTokensSpent(..) => i64::MAX,
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
            State::Installation(identity) => identity.serialize(out),
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
            Noun::Tool => ToolStats::deserialize(body).map(State::Tool),
            Noun::Installation => Identity::deserialize(body).map(State::Installation),
        }
    }
}

/// Conversions of a row's state into the state of one noun.
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
    tool Tool ToolStats;
    installation Installation Identity;
}
