//! What holds of approvals, budgets and the kill switch in every order of events, whoever asks for what.
//!
//! The test keeps its own account by the events alone. What a store does is done here: a commit that would
//! lead a counter past its limit is refused as a whole.

use std::collections::{BTreeMap, BTreeSet};

use kernel::agent::Agent;
use kernel::approval::{self, Approval, Plan, Question};
use kernel::authority::{self, Authority, Lease};
use kernel::backend::{Backend, Tier};
use kernel::budget::{Limits, day};
use kernel::progress::Progress;
use kernel::ruling::{Approvers, Posture, Request, Ruling, Verdict};
use kernel::run::{self, Orders, Report, Run};
use kernel::schedule::terms::{Overlap, Terms};
use kernel::schedule::{self, Action, Command, Definition, Schedule};
use kernel::tables::deltas;
use kernel::{
    Actor, ApprovalId, Body, Noun, Now, Role, RunId, ScheduleId, State, Tables, Timestamp,
};
use proptest::prelude::*;
use proptest::strategy::ValueTree;

use crate::support::{at, every, hashes};

const LIMITS: Limits = Limits {
    runs: 4,
    runs_per_agent: 3,
    asks_per_agent: 0,
    pending_per_agent: 0,
    denied_for_us: 0,
    tokens: 0,
    tokens_per_agent: 0,
};
const AGENTS: [(&str, Tier); 2] = [("ada", Tier::External), ("bob", Tier::LocalWrite)];
const RUNS: usize = 5;

/// Something that happens. Runs are chosen by their place among all that there are.
#[derive(Clone, Debug)]
enum Step {
    Fire(usize),
    Start(usize),
    /// With the approval of another run.
    StartWith(usize, usize),
    /// As somebody would who has not seen what became of it.
    StartStale(usize),
    Finish(usize, bool),
    GiveBack(usize),
    Recover(usize),
    Cancel(usize, Role),
    Retry(usize, Role),
    Say(usize, Said, Role),
    Expire(usize),
    Freeze(Role),
    Thaw(Role),
    EditPrompt(usize),
    /// The clock goes on, or is set back.
    Pass(i64),
}

#[derive(Clone, Copy, Debug)]
enum Said {
    Approve,
    /// What was shown for another plan.
    ApproveOther,
    Deny,
    Revoke,
}

/// What the events alone tell.
#[derive(Debug, Default)]
struct Account {
    /// The run, its try and the end of the time to begin, of each that is approved.
    approved: BTreeMap<ApprovalId, (RunId, u32, Timestamp)>,
    plans: BTreeMap<ApprovalId, Plan>,
    consumed: BTreeSet<ApprovalId>,
    /// What each run at work was counted for.
    charged: BTreeMap<RunId, (String, i64)>,
    counted: BTreeMap<(String, i64), i64>,
    is_frozen: bool,
}

struct World {
    tables: Tables,
    account: Account,
    prompts: [String; 2],
    clock: Timestamp,
    latest: Timestamp,
    /// Each run as it was when it was last about to begin with an approval.
    stale: BTreeMap<RunId, Run>,
    runs: u128,
    approvals: u128,
}

fn schedule_id(agent: usize) -> ScheduleId {
    ["sch_0000000a", "sch_0000000b"][agent].parse().unwrap()
}

fn actor(role: Role) -> Actor {
    match role {
        Role::Runner => Actor::of_run(&RunId::of(1)),
        role => Actor { name: "somebody".into(), role },
    }
}

/// Whatever is part of a plan is part of its hash.
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
            let added = world.of_schedule(agent, Command::Add { definition });
            world.commit(&actor(Role::Operator), added);
        }
        world
    }

    fn agent(&self, agent: usize) -> Agent {
        let (name, tier) = AGENTS[agent];
        Agent {
            name: name.parse().unwrap(),
            backend: Backend::Builtin { script: None },
            repeatable: false,
            tier,
            credential: None,
            schedules_made: 0,
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
            terms: Terms { overlap: Overlap::Allow(5), pause_after: 0, ..Terms::default() },
        }
    }

    fn state(&self, noun: Noun, id: &str) -> Option<State> {
        self.tables.rows.get(&(noun, id.to_owned()))?.state.clone()
    }

    fn schedule(&self, agent: usize) -> (Option<Schedule>, Option<Progress>) {
        let id = schedule_id(agent);
        let schedule = self.state(Noun::Schedule, id.as_str()).and_then(State::schedule);
        (schedule, self.state(Noun::Progress, id.as_str()).and_then(State::progress))
    }

    fn authority(&self) -> Authority {
        self.state(Noun::Authority, "here").and_then(State::authority).unwrap_or_default()
    }

    fn run(&self, place: usize) -> Option<(RunId, Run)> {
        let number = 1 + u128::try_from(place).unwrap() % self.runs.max(1);
        let id = RunId::of(number);
        Some((id.clone(), self.state(Noun::Run, id.as_str())?.run()?))
    }

    /// The question that a run has asked last, answered or not.
    fn approval(&self, of: &RunId) -> Option<(ApprovalId, Approval)> {
        let mut asked = self.account.plans.iter().filter(|(_, plan)| plan.run == *of);
        let id = asked.next_back()?.0.clone();
        let approval = self.state(Noun::Approval, id.as_str())?.approval()?;
        Some((id, *approval))
    }

    fn of_schedule(&self, agent: usize, command: Command) -> Vec<Body> {
        let (schedule, progress) = self.schedule(agent);
        let known = self.agent(agent);
        let ground = schedule::Ground {
            id: &schedule_id(agent),
            schedule: schedule.as_ref(),
            progress: progress.as_ref(),
            agent: Some(&known),
            upstream: &[],
            maker: None,
            fired: None,
            now: self.clock,
        };
        schedule::decide(ground, &actor(Role::Operator), command).unwrap_or_default()
    }

    fn of_run<T>(&self, id: &RunId, run: &Run, decide: impl FnOnce(run::Ground<'_>) -> T) -> T {
        let (schedule, progress) = self.schedule(self.agent_of(run));
        let definition = schedule.as_ref().map(|it| &it.definition);
        decide(run::Ground { id, run, definition, progress: progress.as_ref(), now: self.latest })
    }

    fn agent_of(&self, run: &Run) -> usize {
        usize::from(run.schedule == schedule_id(1))
    }

    /// What is decided of a run that is to begin, with its own approval or that of another.
    fn begin(&self, id: &RunId, run: &Run, with: &RunId) -> Vec<Body> {
        let approval = self.approval(with).map(|(_, it)| it);
        let agent = self.agent(self.agent_of(run));
        let judge = |_: &Request| Ruling {
            verdict: Verdict::Allow,
            rules: vec!["test/all".to_owned()],
            posture: Posture::Staging,
            policy: "0123".to_owned(),
            approvers: Approvers::default(),
        };
        let orders = Orders {
            instance: "here",
            authority: &self.authority(),
            lease: Lease::default(),
            clock: self.clock,
            judge: &judge,
            hash: &hashes,
            approval: approval.as_ref(),
            is_signed: &|_| false,
            new_approval: &|| ApprovalId::of(self.approvals + 1),
            authors: &[],
            denied_for_us: LIMITS.denied_for_us,
        };
        self.of_run(id, run, |ground| run::start(ground, Some(&agent), "me", &orders))
    }

    fn start(&mut self, place: usize, with: usize) {
        let Some(((id, run), (other, _))) = self.run(place).zip(self.run(with)) else { return };
        let begun = self.begin(&id, &run, &other);
        self.approvals += 1;
        if !self.commit(&Actor::system(), begun) {
            let starved = self.of_run(&id, &run, |ground| run::starve(ground, "spent"));
            assert!(self.commit(&Actor::system(), starved));
        }
    }

    /// A store refuses what was decided on an old row; here the approval alone must.
    fn start_stale(&self, place: usize) {
        let Some((id, _)) = self.run(place) else { return };
        let Some(run) = self.stale.get(&id) else { return };
        let is_open =
            run.approval.as_ref().is_some_and(|it| self.account.approved.contains_key(it));
        let begun = self.begin(&id, run, &id);
        let begins = begun.iter().any(|it| matches!(it, Body::Run(_, run::Event::Started(_))));
        assert!(is_open || !begins, "{id} begins again with an approval that is over");
    }

    fn say(&mut self, place: usize, said: Said, role: Role) {
        let Some((id, run)) = self.run(place) else { return };
        let Some((question, approval)) = self.approval(&id) else { return };
        let (shown, note) = (approval.plan_hash.clone(), None);
        let command = match said {
            Said::Approve => approval::Command::Approve { shown, note, signed: None },
            Said::ApproveOther => {
                approval::Command::Approve { shown: format!("{shown} "), note, signed: None }
            }
            Said::Deny => approval::Command::Deny { shown, note },
            Said::Revoke => approval::Command::Revoke { note },
        };
        let decided = self.of_run(&id, &run, |ground| {
            let question = Question { id: &question, approval: &approval, ground };
            approval::decide(question, &self.authority(), &actor(role), command)
        });
        let decided = decided.unwrap_or_default();
        assert!(decided.is_empty() || Role::Operator <= role, "{role:?} has decided {decided:?}");
        self.commit(&actor(role), decided);
    }

    fn authorise(&mut self, role: Role, command: authority::Command) {
        let now = Now { clock: self.clock, latest: self.latest };
        let events = authority::decide(&self.authority(), &actor(role), command, now);
        let bodies = events.unwrap_or_default().into_iter();
        let bodies = bodies.map(|event| Body::Authority("here".into(), event)).collect();
        self.commit(&actor(role), bodies);
    }

    fn step(&mut self, step: &Step) {
        let system = Actor::system();
        let about = |world: &World, place: usize, decide: &dyn Fn(run::Ground<'_>) -> Vec<Body>| {
            let found = world.run(place);
            found.map(|(id, run)| world.of_run(&id, &run, decide)).unwrap_or_default()
        };
        match step {
            Step::Fire(agent) if self.runs < RUNS as u128 => {
                let run = RunId::of(self.runs + 1);
                let fire = Command::Fire { run, key: self.runs.to_string() };
                let fired = self.of_schedule(*agent, fire);
                self.runs += u128::from(!fired.is_empty());
                self.commit(&actor(Role::Operator), fired);
            }
            Step::Fire(_) => {}
            Step::Start(place) => self.start(*place, *place),
            Step::StartWith(place, other) => self.start(*place, *other),
            Step::StartStale(place) => self.start_stale(*place),
            Step::Finish(place, is_done) => {
                let failed = crate::support::broken(false);
                let result = if *is_done { Ok(()) } else { failed };
                let bodies = about(self, *place, &|ground| {
                    let report = Report { result: result.clone(), output: None, usage: None };
                    run::finish(ground, ground.run.epoch, report, 1).unwrap_or_default()
                });
                self.commit(&system, bodies);
            }
            Step::GiveBack(place) => {
                let bodies = about(self, *place, &|ground| run::give_back(ground, "me"));
                self.commit(&system, bodies);
            }
            Step::Recover(place) => {
                let bodies = about(self, *place, &run::recover);
                self.commit(&system, bodies);
            }
            Step::Cancel(place, role) | Step::Retry(place, role) => {
                let is_retry = matches!(step, Step::Retry(..));
                let bodies = about(self, *place, &|ground| {
                    let command = match is_retry {
                        true => run::Command::Retry,
                        false => run::Command::Cancel { note: None },
                    };
                    run::decide(ground, &actor(*role), command).unwrap_or_default()
                });
                self.commit(&actor(*role), bodies);
            }
            Step::Say(place, said, role) => self.say(*place, *said, *role),
            Step::Expire(place) => {
                let found = self.run(*place).and_then(|(id, _)| self.approval(&id));
                let Some((id, approval)) = found else { return };
                let bodies = about(self, *place, &|ground| {
                    approval::expire(Question { id: &id, approval: &approval, ground })
                });
                self.commit(&system, bodies);
            }
            Step::Freeze(role) => self.authorise(*role, authority::Command::Freeze { note: None }),
            Step::Thaw(role) => self.authorise(*role, authority::Command::Thaw { note: None }),
            Step::EditPrompt(agent) => {
                self.prompts[*agent].push('!');
                let definition = Box::new(self.definition(*agent));
                let edited = self.of_schedule(*agent, Command::Edit { definition });
                self.commit(&actor(Role::Operator), edited);
            }
            Step::Pass(seconds) => self.clock = self.clock.after_us(seconds * 1_000_000),
        }
        self.latest = self.latest.max(self.clock);
    }

    /// As a store does it: all or nothing. Whether it was done.
    fn commit(&mut self, by: &Actor, bodies: Vec<Body>) -> bool {
        let added = bodies.iter().flat_map(deltas);
        let mut after = self.tables.counters.clone();
        for (counter, add) in added {
            let value = after.entry(counter.clone()).or_default();
            *value += add;
            if *value < 0 || counter.limit(&LIMITS) < *value {
                return false;
            }
        }
        self.check_plans(&bodies);
        self.account.follow(by, &bodies, self.latest);
        bodies.iter().for_each(|body| self.tables.apply(body));
        let about_to_begin = |(_, run): &(RunId, Run)| {
            run.approval.is_some() && matches!(run.state, run::State::Queued { .. })
        };
        let runs = (0..RUNS).filter_map(|place| self.run(place)).filter(about_to_begin);
        let runs: Vec<(RunId, Run)> = runs.collect();
        self.stale.extend(runs);
        true
    }
}

impl World {
    /// What begins is what was shown.
    fn check_plans(&self, bodies: &[Body]) {
        for body in bodies {
            let Body::Approval(id, approval::Event::Consumed(consumed)) = body else { continue };
            let run = self.state(Noun::Run, consumed.run.as_str()).and_then(State::run).unwrap();
            let (schedule, progress) = self.schedule(self.agent_of(&run));
            let Action::Prompt { prompt, .. } = schedule.unwrap().definition.action else {
                panic!("no prompt")
            };
            let plan = &self.account.plans[id];
            assert_eq!((&plan.prompt, plan.revision), (&prompt, progress.unwrap().revision));
        }
    }
}

impl Account {
    fn follow(&mut self, by: &Actor, bodies: &[Body], now: Timestamp) {
        for body in bodies {
            match body {
                Body::Approval(id, event) => self.approval(by, id, event, bodies, now),
                Body::Run(id, run::Event::Started(started)) => {
                    assert!(!self.is_frozen, "it was begun in a frozen watch");
                    let is_external = started.tier == Tier::External;
                    let consumes = |it: &Body| matches!(it, Body::Approval(_, approval::Event::Consumed(it)) if it.run == *id);
                    assert!(!is_external || bodies.iter().any(consumes), "without an approval");
                    let agent = if is_external { "ada" } else { "bob" };
                    let key = (agent.to_owned(), day(now));
                    assert!(
                        self.charged.insert(id.clone(), key.clone()).is_none(),
                        "twice at once"
                    );
                    *self.counted.entry(key).or_default() += 1;
                }
                Body::Run(id, run::Event::Retried(retried)) => {
                    let charged = self.charged.remove(id);
                    if retried.refund.is_some() {
                        *self.counted.get_mut(&charged.unwrap()).unwrap() -= 1;
                    }
                }
                Body::Run(id, run::Event::Ended(_)) => drop(self.charged.remove(id)),
                Body::Authority(_, authority::Event::Frozen(_)) => self.is_frozen = true,
                Body::Authority(_, authority::Event::Thawed(_)) => {
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

    fn approval(
        &mut self,
        by: &Actor,
        id: &ApprovalId,
        event: &approval::Event,
        bodies: &[Body],
        now: Timestamp,
    ) {
        match event {
            approval::Event::Asked(asked) => {
                assert!(self.plans.insert(id.clone(), asked.plan.clone()).is_none());
            }
            approval::Event::Assented(_) => panic!("one is enough here"),
            approval::Event::Decided(decided) => {
                let is_human = Role::Operator <= by.role && !by.name.starts_with("run:");
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
                assert_eq!(run, consumed.run, "by another run");
                assert!(now < execute_by, "too late");
                let begins = bodies.iter().any(|body| {
                    matches!(body, Body::Run(it, run::Event::Started(started))
                        if *it == run && started.attempt == attempt)
                });
                assert!(begins, "it begins no try, or another one");
            }
            approval::Event::Lapsed(_) => drop(self.approved.remove(id)),
        }
    }
}

fn role() -> impl Strategy<Value = Role> {
    prop_oneof![1 => Just(Role::Observer), 1 => Just(Role::Runner), 3 => Just(Role::Operator), 3 => Just(Role::Maintainer)]
}

fn step() -> impl Strategy<Value = Step> {
    let run = || 0..RUNS;
    let said = prop_oneof![
        6 => Just(Said::Approve),
        1 => Just(Said::ApproveOther),
        1 => Just(Said::Deny),
        1 => Just(Said::Revoke),
    ];
    let passes = prop_oneof![
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
        3 => (run(), any::<bool>()).prop_map(|(run, is_done)| Step::Finish(run, is_done)),
        3 => run().prop_map(Step::GiveBack),
        1 => run().prop_map(Step::Recover),
        1 => (run(), role()).prop_map(|(run, role)| Step::Cancel(run, role)),
        2 => (run(), role()).prop_map(|(run, role)| Step::Retry(run, role)),
        10 => (run(), said, role()).prop_map(|(run, said, role)| Step::Say(run, said, role)),
        1 => run().prop_map(Step::Expire),
        1 => role().prop_map(Step::Freeze),
        4 => role().prop_map(Step::Thaw),
        1 => (0..AGENTS.len()).prop_map(Step::EditPrompt),
        4 => passes.prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(400) })]

    #[test]
    fn nothing_begins_beyond_what_was_approved_and_what_may(steps in prop::collection::vec(step(), 1..120)) {
        let mut world = World::new();
        for step in &steps {
            world.step(step);
        }
    }
}

/// Random steps prove nothing if they lead nowhere.
#[test]
fn the_steps_lead_somewhere() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let (mut consumed, mut full) = (0, 0);
    for _ in 0..100 {
        let steps = prop::collection::vec(step(), 120).new_tree(&mut runner).unwrap().current();
        let mut world = World::new();
        steps.iter().for_each(|step| world.step(step));
        consumed += world.account.consumed.len();
        let is_full = |count: &&i64| **count == LIMITS.runs_per_agent;
        full += world.account.counted.values().filter(is_full).count();
    }
    assert!(50 < consumed && 10 < full, "{consumed} consumed, {full} budgets used up");
}
