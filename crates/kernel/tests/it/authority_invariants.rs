//! Invariants of approvals, budgets and freezing, in any order of operations by any caller.
//!
//! The test keeps its own account from the events alone. Like a store, it refuses a whole commit that would
//! take a counter past its limit.

use std::collections::{BTreeMap, BTreeSet};

use kernel::agent::Agent;
use kernel::approval::{self, Approval, ApprovalContext, Plan};
use kernel::authority::{self, Authority, Lease};
use kernel::backend::{Backend, Tier};
use kernel::budget::{Limits, Usage, day, start_counter_guards};
use kernel::money::{Money, Price};
use kernel::policy_decision::{Approvers, Details, PolicyDecision, Request, Verdict};
use kernel::posture::Posture;
use kernel::progress::Progress;
use kernel::run::{self, Report, Run, StartContext};
use kernel::schedule::terms::{Overlap, Terms};
use kernel::schedule::{self, Action, Command, Definition, Schedule};
use kernel::{
    Actor, ApprovalId, Counter, EventBody, Now, Role, RunId, ScheduleId, Tables, Timestamp,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::support::{at, every, hash_plan};

const LIMITS: Limits = Limits {
    runs: 4,
    runs_per_agent: 3,
    asks_per_agent: 0,
    pending_per_agent: 0,
    denied_for_us: 0,
    tokens: 1_500,
    tokens_per_agent: 1_000,
    money: money(1_500),
    money_per_agent: money(1_000),
    changes_per_agent: 0,
    bytes_per_agent: 0,
};
/// A millionth for each token, and ten for each attempt.
const PRICE: Price = Price { input: money(1_000_000), output: money(1_000_000), run: money(10) };
/// Money per day of one of the schedules.
const OWN: Money = money(500);
const AGENTS: [(&str, Tier); 2] = [("ada", Tier::External), ("bob", Tier::LocalWrite)];
const RUNS: usize = 5;

const fn money(micros: i64) -> Money {
    match Money::from_micros(micros) {
        Some(money) => money,
        None => Money::ZERO,
    }
}

/// A random operation. Runs are chosen by index.
#[derive(Clone, Debug)]
enum Step {
    Fire(usize),
    Start(usize),
    /// With the approval of another run.
    StartWith(usize, usize),
    /// With an outdated row of the run.
    StartStale(usize),
    /// Whether it succeeded, and the tokens used if reported.
    Finish(usize, bool, Option<u32>),
    Requeue(usize),
    Recover(usize),
    Cancel(usize, CallerKind),
    Retry(usize, CallerKind),
    Decide(usize, ApprovalAnswer, CallerKind),
    Expire(usize),
    Freeze(CallerKind),
    Thaw(CallerKind),
    EditPrompt(usize),
    /// Advances the clock, or sets it back.
    AdvanceClock(i64),
}

/// Every kind of caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CallerKind {
    Observer,
    /// A process that a run started.
    Run,
    /// A caller with an agent's token.
    Agent,
    /// An assistant of a maintainer.
    Assistant,
    Operator,
    Maintainer,
}

#[derive(Clone, Copy, Debug)]
enum ApprovalAnswer {
    Approve,
    /// Approves with the hash of another plan.
    ApproveOther,
    Deny,
    Revoke,
}

/// The account, derived from events alone.
#[derive(Debug, Default)]
struct Account {
    /// Run, attempt and start deadline of each granted approval.
    approved: BTreeMap<ApprovalId, (RunId, u32, Timestamp)>,
    plans: BTreeMap<ApprovalId, Plan>,
    consumed: BTreeSet<ApprovalId>,
    /// The agent and day that each running run was counted in.
    charged: BTreeMap<RunId, (String, i64)>,
    counted: BTreeMap<(String, i64), i64>,
    /// The reservation of each running run.
    reserved: BTreeMap<RunId, (Key, i64)>,
    /// Reported cost, and reservations of attempts that reported none.
    spent: BTreeMap<Key, i64>,
    /// The same per run.
    costs: BTreeMap<RunId, i64>,
    is_frozen: bool,
}

/// An agent and a day.
type Key = (String, i64);

struct World {
    tables: Tables,
    account: Account,
    prompts: [String; 2],
    clock: Timestamp,
    latest: Timestamp,
    /// Each run as it was when it was last ready to start with an approval.
    stale: BTreeMap<RunId, Run>,
    runs: u128,
    approvals: u128,
}

fn schedule_id(agent: usize) -> ScheduleId {
    ["sch_0000000a", "sch_0000000b"][agent].parse().unwrap()
}

fn actor(caller: CallerKind) -> Actor {
    let person = |role| Actor::token_holder("mia".parse().unwrap(), role);
    match caller {
        CallerKind::Observer => person(Role::Observer),
        CallerKind::Run => Actor::for_run(&RunId::of(1)),
        CallerKind::Agent => Actor::token_holder(AGENTS[0].0.parse().unwrap(), Role::Runner),
        CallerKind::Assistant => person(Role::Maintainer).into_assistant(),
        CallerKind::Operator => person(Role::Operator),
        CallerKind::Maintainer => person(Role::Maintainer),
    }
}

impl CallerKind {
    fn is_human(self) -> bool {
        matches!(self, CallerKind::Operator | CallerKind::Maintainer)
    }
}

impl World {
    fn new() -> World {
        let mut world = World {
            tables: Tables::default(),
            account: Account::default(),
            prompts: ["look".to_owned(), "look".to_owned()],
            clock: at(0),
            latest: at(0),
            stale: BTreeMap::new(),
            runs: 0,
            approvals: 0,
        };
        for agent in 0..AGENTS.len() {
            let definition = Box::new(world.definition(agent));
            let added = world.decide_schedule(agent, Command::Add { definition, paused: false });
            world.commit(&actor(CallerKind::Operator), added);
        }
        world
    }

    fn agent(&self, agent: usize) -> Agent {
        let (name, tier) = AGENTS[agent];
        Agent {
            name: name.parse().unwrap(),
            backend: Backend::Builtin { script: None },
            repeatable: false,
            price: PRICE,
            tier,
            credential: None,
            schedules_made: 0,
            denials: 0,
            raised_to_1: 0,
            raised_to_2: 0,
            changed_by: Vec::new(),
            registered_at: at(0),
            changed_at: at(0),
        }
    }

    fn definition(&self, agent: usize) -> Definition {
        let prompt = self.prompts[agent].clone();
        Definition {
            name: AGENTS[agent].0.into(),
            trigger: every(86_400).into(),
            zone: "UTC".parse().unwrap(),
            action: Action::Prompt {
                agent: AGENTS[agent].0.parse().unwrap(),
                prompt: prompt.into(),
            },
            tier: None,
            terms: Terms {
                overlap: Overlap::Allow(5),
                pause_after: 0,
                money_per_day: (agent == 1).then_some(OWN),
                ..Terms::default()
            },
        }
    }

    fn schedule(&self, agent: usize) -> (Option<Schedule>, Option<Progress>) {
        let id = schedule_id(agent);
        let schedule = self.tables.get::<Schedule>(&id).cloned();
        (schedule, self.tables.get::<Progress>(&id).cloned())
    }

    fn authority(&self) -> Authority {
        self.tables.get::<Authority>("here").cloned().unwrap_or_default()
    }

    fn run(&self, index: usize) -> Option<(RunId, Run)> {
        let number = 1 + u128::try_from(index).unwrap() % self.runs.max(1);
        let id = RunId::of(number);
        let run = self.tables.get::<Run>(&id)?.clone();
        Some((id, run))
    }

    /// The newest approval of a run.
    fn approval(&self, of: &RunId) -> Option<(ApprovalId, Approval)> {
        let mut plans = self.account.plans.iter().filter(|(_, plan)| plan.run == *of);
        let id = plans.next_back()?.0.clone();
        let approval = self.tables.get::<Approval>(&id)?.clone();
        Some((id, approval))
    }

    fn approvals(&self) -> Vec<(ApprovalId, Approval)> {
        let approvals = self
            .account
            .plans
            .keys()
            .filter_map(|id| Some((id.clone(), self.tables.get::<Approval>(id)?.clone())));
        approvals.collect()
    }

    /// No two pending approvals are for the same action.
    fn check_no_duplicate_approvals(&self) {
        let mut seen = BTreeSet::new();
        for (id, approval) in self.approvals() {
            let is_open = matches!(approval.state, approval::State::Pending { approve_by } if self.latest < approve_by);
            assert!(
                !is_open || seen.insert(approval.action_hash),
                "{id} is for the same action as another"
            );
        }
    }

    fn decide_schedule(&self, agent: usize, command: Command) -> Vec<EventBody> {
        let (schedule, progress) = self.schedule(agent);
        let agent_row = self.agent(agent);
        let context = schedule::ScheduleContext {
            id: &schedule_id(agent),
            schedule: schedule.as_ref(),
            progress: progress.as_ref(),
            agent: Some(&agent_row),
            tool: None,
            upstream: &[],
            caller: None,
            fired: None,
            now: self.clock,
        };
        schedule::decide(context, &actor(CallerKind::Operator), command).unwrap_or_default()
    }

    fn decide_run<T>(
        &self,
        id: &RunId,
        run: &Run,
        decide: impl FnOnce(run::RunContext<'_>) -> T,
    ) -> T {
        let (schedule, progress) = self.schedule(self.agent_of(run));
        let definition = schedule.as_ref().map(|it| &it.definition);
        decide(run::RunContext {
            id,
            run,
            definition,
            progress: progress.as_ref(),
            now: self.latest,
        })
    }

    fn agent_of(&self, run: &Run) -> usize {
        usize::from(run.schedule == schedule_id(1))
    }

    /// Decides the start of a run with its own approval or that of another.
    fn decide_start(&self, id: &RunId, run: &Run, with: &RunId) -> Vec<EventBody> {
        let approval = self.approval(with).map(|(_, it)| it);
        let agent = self.agent(self.agent_of(run));
        let approvals = self.approvals();
        let approvals: Vec<_> = approvals.iter().map(|(id, it)| (id, it)).collect();
        let evaluate = |_: &Request| PolicyDecision {
            verdict: Verdict::Allow,
            rules: vec!["test/all".to_owned()],
            posture: Posture::Staging,
            policy: "0123".to_owned(),
            approvers: Approvers::default(),
        };
        let start_context = StartContext {
            instance: "here",
            data_directory: None,
            authority: &self.authority(),
            lease: Lease::default(),
            clock: self.clock,
            evaluate: &evaluate,
            hash_plan: &hash_plan,
            approval: approval.as_ref(),
            is_signed: &|_| false,
            new_approval: &|| ApprovalId::of(self.approvals + 1),
            authors: &[],
            limits: &LIMITS,
            tool_call: None,
            counters: &[],
            trust: Posture::Staging.trust(),
            agent_details: &|_| Details::default(),
            preflight: Some(&Ok(None)),
            other_approvals: &approvals,
        };
        self.decide_run(id, run, |run_context| {
            run::start(run_context, Some(&agent), "me", &start_context, run_context.now)
        })
    }

    fn start(&mut self, index: usize, with: usize) {
        let Some(((id, run), (other, _))) = self.run(index).zip(self.run(with)) else { return };
        let started = self.decide_start(&id, &run, &other);
        self.approvals += 1;
        if !self.commit(&Actor::system(), started) {
            let over_budget = self
                .decide_run(&id, &run, |run_context| run::end_over_budget(run_context, "spent"));
            assert!(self.commit(&Actor::system(), over_budget));
        }
    }

    /// A store refuses decisions on outdated rows; here the approval alone must prevent a second start.
    fn start_stale(&self, index: usize) {
        let Some((id, _)) = self.run(index) else { return };
        let Some(run) = self.stale.get(&id) else { return };
        let is_open =
            run.approval.as_ref().is_some_and(|it| self.account.approved.contains_key(it));
        let started = self.decide_start(&id, run, &id);
        let starts =
            started.iter().any(|it| matches!(it, EventBody::Run(_, run::Event::Started(_))));
        assert!(is_open || !starts, "{id} starts again with a used approval");
    }

    fn decide_approval(&mut self, index: usize, answer: ApprovalAnswer, caller: CallerKind) {
        let Some((id, run)) = self.run(index) else { return };
        let Some((approval_id, approval)) = self.approval(&id) else { return };
        let (shown, note) = (approval.plan_hash.clone(), None);
        let command = match answer {
            ApprovalAnswer::Approve => approval::Command::Approve { shown, note, signed: None },
            ApprovalAnswer::ApproveOther => {
                approval::Command::Approve { shown: format!("{shown} "), note, signed: None }
            }
            ApprovalAnswer::Deny => approval::Command::Deny { shown, note },
            ApprovalAnswer::Revoke => approval::Command::Revoke { note },
        };
        let decided = self.decide_run(&id, &run, |run_context| {
            let (id, approval, rules) = (&approval_id, &approval, &approval.plan.policy);
            let context =
                ApprovalContext { id, approval, run_context, agent: None, active_policy: rules };
            approval::decide(context, &self.authority(), &actor(caller), command)
        });
        let decided = decided.unwrap_or_default();
        assert!(decided.is_empty() || caller.is_human(), "{caller:?} has decided {decided:?}");
        self.commit(&actor(caller), decided);
    }

    fn command_authority(&mut self, caller: CallerKind, command: authority::Command) {
        let now = Now { clock: self.clock, latest: self.latest };
        let events = authority::decide(&self.authority(), &actor(caller), command, now);
        let events = events.unwrap_or_default();
        assert!(events.is_empty() || caller.is_human(), "{caller:?} has decided {events:?}");
        let bodies = events.into_iter();
        let bodies = bodies.map(|event| EventBody::Authority("here".into(), event)).collect();
        self.commit(&actor(caller), bodies);
    }

    fn step(&mut self, step: &Step) {
        let system = Actor::system();
        let about = |world: &World,
                     index: usize,
                     decide: &dyn Fn(run::RunContext<'_>) -> Vec<EventBody>| {
            let found = world.run(index);
            found.map(|(id, run)| world.decide_run(&id, &run, decide)).unwrap_or_default()
        };
        match step {
            Step::Fire(agent) if self.runs < RUNS as u128 => {
                let run = RunId::of(self.runs + 1);
                let fire = Command::Fire { run, key: self.runs.to_string() };
                let fired = self.decide_schedule(*agent, fire);
                self.runs += u128::from(!fired.is_empty());
                self.commit(&actor(CallerKind::Operator), fired);
            }
            Step::Fire(_) => {}
            Step::Start(index) => self.start(*index, *index),
            Step::StartWith(index, other) => self.start(*index, *other),
            Step::StartStale(index) => self.start_stale(*index),
            Step::Finish(index, is_done, tokens) => {
                let failed = crate::support::failed_attempt(false);
                let result = if *is_done { Ok(()) } else { failed };
                let usage = tokens.map(|tokens| Usage { input_tokens: tokens, output_tokens: 0 });
                let bodies = about(self, *index, &|run_context| {
                    let report = Report { result: result.clone(), output: None, usage };
                    run::finish(run_context, run_context.run.epoch, report, 1).unwrap_or_default()
                });
                self.commit(&system, bodies);
            }
            Step::Requeue(index) => {
                let bodies = about(self, *index, &|run_context| run::requeue(run_context, "me"));
                self.commit(&system, bodies);
            }
            Step::Recover(index) => {
                let bodies = about(self, *index, &run::recover);
                self.commit(&system, bodies);
            }
            Step::Cancel(index, caller) | Step::Retry(index, caller) => {
                let is_retry = matches!(step, Step::Retry(..));
                let bodies = about(self, *index, &|run_context| {
                    let command = match is_retry {
                        true => run::Command::Retry,
                        false => run::Command::Cancel { note: None },
                    };
                    run::decide(run_context, &actor(*caller), command).unwrap_or_default()
                });
                self.commit(&actor(*caller), bodies);
            }
            Step::Decide(index, answer, caller) => self.decide_approval(*index, *answer, *caller),
            Step::Expire(index) => {
                let found = self.run(*index).and_then(|(id, _)| self.approval(&id));
                let Some((id, approval)) = found else { return };
                let bodies = about(self, *index, &|run_context| {
                    let (id, approval, rules) = (&id, &approval, &approval.plan.policy);
                    approval::expire(ApprovalContext {
                        id,
                        approval,
                        run_context,
                        agent: None,
                        active_policy: rules,
                    })
                });
                self.commit(&system, bodies);
            }
            Step::Freeze(caller) => {
                self.command_authority(*caller, authority::Command::Freeze { note: None })
            }
            Step::Thaw(caller) => {
                self.command_authority(*caller, authority::Command::Thaw { note: None })
            }
            Step::EditPrompt(agent) => {
                self.prompts[*agent].push('!');
                let definition = Box::new(self.definition(*agent));
                let edited = self.decide_schedule(*agent, Command::Edit { definition });
                self.commit(&actor(CallerKind::Operator), edited);
            }
            Step::AdvanceClock(seconds) => self.clock = self.clock.after_us(seconds * 1_000_000),
        }
        self.latest = self.latest.max(self.clock);
    }

    /// Commits all or nothing, like a store. Returns whether it did.
    fn commit(&mut self, by: &Actor, bodies: Vec<EventBody>) -> bool {
        let mut after = self.tables.counters.clone();
        for (counter, add, most) in bodies.iter().flat_map(|body| self.added(body)) {
            let value = after.entry(counter).or_default();
            *value += add;
            assert!(0 <= *value, "a counter is below zero");
            if most < *value {
                return false;
            }
        }
        self.check_plans(&bodies);
        self.account.record(by, &bodies, self.latest);
        bodies.iter().for_each(|body| self.tables.apply(body));
        self.account.check_money(&self.tables);
        let is_about_to_start = |(_, run): &(RunId, Run)| {
            run.approval.is_some() && matches!(run.state, run::State::Queued { .. })
        };
        let runs = (0..RUNS).filter_map(|index| self.run(index)).filter(is_about_to_start);
        let runs: Vec<(RunId, Run)> = runs.collect();
        self.stale.extend(runs);
        self.check_no_duplicate_approvals();
        true
    }
}

impl World {
    /// What an event adds to counters, and the limit of each.
    fn added(&self, body: &EventBody) -> Vec<(Counter, i64, i64)> {
        let run = match body {
            EventBody::Run(id, _) => self.tables.get::<Run>(id),
            _ => None,
        };
        let guards = run.map_or_else(Vec::new, |run| {
            start_counter_guards(body, run, &self.definition(self.agent_of(run)).terms, &LIMITS)
        });
        let guards = guards.into_iter().map(|(counter, most)| (counter, 0, most));
        let added = body.counter_deltas().into_iter().map(|(counter, add)| {
            let most = counter.max_value(&LIMITS);
            (counter, add, most)
        });
        guards.chain(added).collect()
    }

    /// A started plan is the one that was approved.
    fn check_plans(&self, bodies: &[EventBody]) {
        for body in bodies {
            let EventBody::Approval(id, approval::Event::Consumed(consumed)) = body else {
                continue;
            };
            let run = self.tables.get::<Run>(&consumed.run).unwrap();
            let (schedule, progress) = self.schedule(self.agent_of(run));
            let Action::Prompt { prompt, .. } = schedule.unwrap().definition.action else {
                panic!("no prompt")
            };
            let plan = &self.account.plans[id];
            assert_eq!((&plan.prompt, plan.revision), (&prompt, progress.unwrap().revision));
        }
    }
}

impl Account {
    fn record(&mut self, by: &Actor, bodies: &[EventBody], now: Timestamp) {
        for body in bodies {
            match body {
                EventBody::Approval(id, event) => self.approval(by, id, event, bodies, now),
                EventBody::Run(id, run::Event::Started(started)) => {
                    assert!(!self.is_frozen, "it was started while frozen");
                    let is_external = started.tier == Tier::External;
                    let consumes = |it: &EventBody| matches!(it, EventBody::Approval(_, approval::Event::Consumed(it)) if it.run == *id);
                    assert!(
                        !is_external || bodies.iter().any(consumes),
                        "an external run started without an approval"
                    );
                    let agent = if is_external { "ada" } else { "bob" };
                    let key = (agent.to_owned(), day(now));
                    assert!(
                        self.charged.insert(id.clone(), key.clone()).is_none(),
                        "started twice at the same time"
                    );
                    self.record_start(
                        id,
                        &key,
                        started.reservation.as_ref().unwrap().money.as_micros(),
                    );
                    *self.counted.entry(key).or_default() += 1;
                }
                EventBody::Run(id, run::Event::Retried(retried)) => {
                    let cost = retried.spent.as_ref().map(|it| it.cost.as_micros());
                    self.record_end(id, cost, retried.released.is_some(), now);
                    let charged = self.charged.remove(id);
                    if retried.refund.is_some() {
                        assert!(
                            retried.released.is_some(),
                            "nothing was done, but the reservation stays"
                        );
                        *self.counted.get_mut(&charged.unwrap()).unwrap() -= 1;
                    }
                }
                EventBody::Run(id, run::Event::Ended(ended)) => {
                    let cost = ended.spent.as_ref().map(|it| it.cost.as_micros());
                    self.record_end(id, cost, ended.released.is_some(), now);
                    let charged = self.charged.remove(id);
                    if ended.refund.is_some() {
                        assert!(
                            ended.released.is_some(),
                            "nothing was done, but the reservation stays"
                        );
                        *self.counted.get_mut(&charged.unwrap()).unwrap() -= 1;
                    }
                }
                EventBody::Authority(_, authority::Event::Frozen(_)) => self.is_frozen = true,
                EventBody::Authority(_, authority::Event::Thawed(_)) => {
                    assert_eq!(by.role, Role::Maintainer);
                    self.is_frozen = false;
                }
                _ => {}
            }
        }
        let mut of_day: BTreeMap<i64, i64> = BTreeMap::new();
        for ((agent, day), count) in &self.counted {
            assert!((0..=LIMITS.runs_per_agent).contains(count), "{agent} {day} {count}");
            *of_day.entry(*day).or_default() += count;
        }
        assert!(of_day.values().all(|count| *count <= LIMITS.runs), "{of_day:?}");
    }

    /// At a start, spent and reserved money with the new reservation is within every limit, and the limit was
    /// not reached before.
    fn record_start(&mut self, id: &RunId, key: &Key, reserved: i64) {
        assert!(PRICE.run.as_micros() <= reserved, "the price per attempt is not reserved");
        let agent = self.money_of(|it| it == key);
        let all = self.money_of(|it| it.1 == key.1);
        let own = if key.0 == "bob" { OWN } else { LIMITS.money_per_agent };
        for (used, most) in [(agent, LIMITS.money_per_agent), (all, LIMITS.money), (agent, own)] {
            assert!(used < most.as_micros(), "{key:?} starts, but {used} of {most} are spent");
            assert!(used + reserved <= most.as_micros(), "{key:?}: {used}, {reserved} of {most}");
        }
        self.reserved.insert(id.clone(), (key.clone(), reserved));
    }

    fn record_end(&mut self, id: &RunId, cost: Option<i64>, is_released: bool, now: Timestamp) {
        let Some((key, reserved)) = self.reserved.remove(id) else { return };
        assert!(cost.is_none() || is_released, "a reported cost must replace the reservation");
        let kept = if is_released { 0 } else { reserved };
        let today = (key.0.clone(), day(now));
        *self.spent.entry(key).or_default() += kept;
        *self.spent.entry(today).or_default() += cost.unwrap_or_default();
        *self.costs.entry(id.clone()).or_default() += kept + cost.unwrap_or_default();
    }

    fn money_of(&self, matches_key: impl Fn(&Key) -> bool) -> i64 {
        let spent = self.spent.iter().filter(|(key, _)| matches_key(key)).map(|(_, spent)| spent);
        let reserved = self
            .reserved
            .values()
            .filter(|(key, _)| matches_key(key))
            .map(|(_, reserved)| reserved);
        spent.chain(reserved).sum()
    }

    /// Counters and runs agree with the events.
    fn check_money(&self, tables: &Tables) {
        for (id, cost) in &self.costs {
            let run = tables.get::<Run>(id).unwrap();
            assert_eq!(run.cost.as_micros(), *cost, "{id}");
        }
        for (counter, counted) in &tables.counters {
            let expected = match counter {
                Counter::Cost(day) => self.money_of(|key| key.1 == *day),
                Counter::AgentCost(agent, day) => {
                    self.money_of(|key| key.0 == agent.as_str() && key.1 == *day)
                }
                _ => continue,
            };
            assert_eq!(*counted, expected, "{counter:?}");
        }
    }

    fn approval(
        &mut self,
        by: &Actor,
        id: &ApprovalId,
        event: &approval::Event,
        bodies: &[EventBody],
        now: Timestamp,
    ) {
        match event {
            approval::Event::Requested(requested) => {
                assert!(self.plans.insert(id.clone(), requested.plan.clone()).is_none());
            }
            approval::Event::Assented(_) => panic!("one is enough here"),
            approval::Event::Decided(decided) => {
                let is_human = Role::Operator <= by.role && by.name() == "mia";
                assert!(is_human && by.role != Role::System, "{by:?} has decided");
                self.approved.remove(id);
                if let Some(execute_by) = decided.execute_by {
                    assert!(!self.consumed.contains(id) && !self.is_frozen);
                    let plan = &self.plans[id];
                    let approved = (plan.run.clone(), plan.attempt, execute_by);
                    self.approved.insert(id.clone(), approved);
                }
            }
            approval::Event::Consumed(consumed) => {
                assert!(self.consumed.insert(id.clone()), "{id} is consumed twice");
                let Some((run, attempt, execute_by)) = self.approved.remove(id) else {
                    panic!("{id} is consumed and was not approved")
                };
                assert_eq!(run, consumed.run, "consumed by another run");
                assert!(now < execute_by, "consumed after its deadline");
                let starts = bodies.iter().any(|body| {
                    matches!(body, EventBody::Run(it, run::Event::Started(started))
                        if *it == run && started.attempt == attempt)
                });
                assert!(starts, "it starts no attempt, or another one");
            }
            approval::Event::Lapsed(_) => drop(self.approved.remove(id)),
        }
    }
}

fn caller_kind() -> impl Strategy<Value = CallerKind> {
    prop_oneof![
        1 => Just(CallerKind::Observer),
        1 => Just(CallerKind::Run),
        1 => Just(CallerKind::Agent),
        1 => Just(CallerKind::Assistant),
        4 => Just(CallerKind::Operator),
        4 => Just(CallerKind::Maintainer),
    ]
}

fn step() -> impl Strategy<Value = Step> {
    let run = || 0..RUNS;
    let answer = prop_oneof![
        6 => Just(ApprovalAnswer::Approve),
        1 => Just(ApprovalAnswer::ApproveOther),
        1 => Just(ApprovalAnswer::Deny),
        1 => Just(ApprovalAnswer::Revoke),
    ];
    let seconds = prop_oneof![
        12 => 0..60_i64,
        1 => 600..1_200_i64,
        1 => 80_000..90_000_i64,
        3 => -90_000..0_i64,
    ];
    prop_oneof![
        4 => (0..AGENTS.len()).prop_map(Step::Fire),
        10 => run().prop_map(Step::Start),
        2 => (run(), run()).prop_map(|(one, other)| Step::StartWith(one, other)),
        3 => run().prop_map(Step::StartStale),
        3 => (run(), any::<bool>(), proptest::option::of(0..900_u32))
            .prop_map(|(run, is_done, tokens)| Step::Finish(run, is_done, tokens)),
        3 => run().prop_map(Step::Requeue),
        1 => run().prop_map(Step::Recover),
        1 => (run(), caller_kind()).prop_map(|(run, caller)| Step::Cancel(run, caller)),
        2 => (run(), caller_kind()).prop_map(|(run, caller)| Step::Retry(run, caller)),
        10 => (run(), answer, caller_kind()).prop_map(|(run, answer, caller)| Step::Decide(run, answer, caller)),
        1 => run().prop_map(Step::Expire),
        1 => caller_kind().prop_map(Step::Freeze),
        4 => caller_kind().prop_map(Step::Thaw),
        1 => (0..AGENTS.len()).prop_map(Step::EditPrompt),
        4 => seconds.prop_map(Step::AdvanceClock),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn no_run_starts_without_approval_or_beyond_a_budget(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
    }
}

/// The random steps reach the interesting states.
#[test]
fn random_steps_consume_approvals_and_budgets() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut consumed, mut full, mut broke) = (0, 0, 0);
    for _ in 0..150 {
        let steps = prop::collection::vec(step(), 120).new_tree(&mut runner).unwrap().current();
        let mut world = World::new();
        steps.iter().for_each(|step| world.step(step));
        consumed += world.account.consumed.len();
        let is_full = |count: &&i64| **count == LIMITS.runs_per_agent;
        full += world.account.counted.values().filter(is_full).count();
        let is_broke = |(key, spent): &(&Key, &i64)| key.0 == "bob" && OWN.as_micros() <= **spent;
        broke += world.account.spent.iter().filter(is_broke).count();
    }
    assert!(50 < consumed && 10 < full, "{consumed} consumed, {full} budgets used up");
    assert!(10 < broke, "{broke} budgets spent");
}
