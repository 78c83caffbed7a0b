//! What holds of approvals, budgets and the kill switch in every order of events, whoever asks for what.
//!
//! The test keeps its own account by the events alone. What a store does is done here: a commit that would
//! lead a counter past its limit is refused as a whole.

use std::collections::{BTreeMap, BTreeSet};

use kernel::agent::Agent;
use kernel::approval::{self, Approval, Plan, Question};
use kernel::authority::{self, Authority, Lease};
use kernel::backend::{Backend, Tier};
use kernel::budget::{Limits, Usage, day};
use kernel::money::{Money, Price};
use kernel::progress::Progress;
use kernel::ruling::{Approvers, Details, Posture, Request, Ruling, Verdict};
use kernel::run::{self, Orders, Report, Run};
use kernel::schedule::terms::{Overlap, Terms};
use kernel::schedule::{self, Action, Command, Definition, Schedule};
use kernel::tables::{deltas, guards};
use kernel::{
    Actor, ApprovalId, Body, Counter, Noun, Now, Role, RunId, ScheduleId, State, Tables, Timestamp,
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
    tokens: 1_500,
    tokens_per_agent: 1_000,
    money: money(1_500),
    money_per_agent: money(1_000),
};
/// A millionth for each token, and ten for each try.
const PRICE: Price = Price { input: money(1_000_000), output: money(1_000_000), run: money(10) };
/// What one of the schedules may cost in a day.
const OWN: Money = money(500);
const AGENTS: [(&str, Tier); 2] = [("ada", Tier::External), ("bob", Tier::LocalWrite)];
const RUNS: usize = 5;

const fn money(micros: i64) -> Money {
    match Money::from_micros(micros) {
        Some(money) => money,
        None => Money::ZERO,
    }
}

/// Something that happens. Runs are chosen by their place among all that there are.
#[derive(Clone, Debug)]
enum Step {
    Fire(usize),
    Start(usize),
    /// With the approval of another run.
    StartWith(usize, usize),
    /// As somebody would who has not seen what became of it.
    StartStale(usize),
    /// Well or not, and perhaps it tells how many tokens it used.
    Finish(usize, bool, Option<u32>),
    GiveBack(usize),
    Recover(usize),
    Cancel(usize, Who),
    Retry(usize, Who),
    Say(usize, Said, Who),
    Expire(usize),
    Freeze(Who),
    Thaw(Who),
    EditPrompt(usize),
    /// The clock goes on, or is set back.
    Pass(i64),
}

/// Everybody who has a way in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Observer,
    /// A process that a run has started.
    Run,
    /// Somebody with the token of an agent.
    Agent,
    /// A program that speaks for a maintainer.
    Assistant,
    Operator,
    Maintainer,
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
    /// What each run at work may cost, as far as that was known when it began.
    held: BTreeMap<RunId, (Key, i64)>,
    /// What was told, or stays held back because nobody did.
    spent: BTreeMap<Key, i64>,
    /// The same of each run.
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
    /// Each run as it was when it was last about to begin with an approval.
    stale: BTreeMap<RunId, Run>,
    runs: u128,
    approvals: u128,
}

fn schedule_id(agent: usize) -> ScheduleId {
    ["sch_0000000a", "sch_0000000b"][agent].parse().unwrap()
}

fn actor(who: Who) -> Actor {
    let person = |role| Actor { name: "somebody".into(), role };
    match who {
        Who::Observer => person(Role::Observer),
        Who::Run => Actor::of_run(&RunId::of(1)),
        Who::Agent => Actor { name: AGENTS[0].0.into(), role: Role::Runner },
        Who::Assistant => person(Role::Maintainer).assistant(),
        Who::Operator => person(Role::Operator),
        Who::Maintainer => person(Role::Maintainer),
    }
}

impl Who {
    fn is_human(self) -> bool {
        matches!(self, Who::Operator | Who::Maintainer)
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
            let added = world.of_schedule(agent, Command::Add { definition, paused: false });
            world.commit(&actor(Who::Operator), added);
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

    fn questions(&self) -> Vec<(ApprovalId, Approval)> {
        let questions = self.account.plans.keys().filter_map(|id| {
            let question = self.state(Noun::Approval, id.as_str())?.approval()?;
            Some((id.clone(), *question))
        });
        questions.collect()
    }

    /// Nobody has the same question before them twice.
    fn check_questions(&self) {
        let mut seen = BTreeSet::new();
        for (id, question) in self.questions() {
            let is_open = matches!(question.state, approval::State::Pending { approve_by } if self.latest < approve_by);
            assert!(!is_open || seen.insert(question.action_hash), "{id} asks what another asks");
        }
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
        schedule::decide(ground, &actor(Who::Operator), command).unwrap_or_default()
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
        let questions = self.questions();
        let questions: Vec<_> = questions.iter().map(|(id, it)| (id, it)).collect();
        let judge = |_: &Request| Ruling {
            verdict: Verdict::Allow,
            rules: vec!["test/all".to_owned()],
            posture: Posture::Staging,
            policy: "0123".to_owned(),
            approvers: Approvers::default(),
        };
        let orders = Orders {
            instance: "here",
            place: None,
            authority: &self.authority(),
            lease: Lease::default(),
            clock: self.clock,
            judge: &judge,
            hash: &hashes,
            approval: approval.as_ref(),
            is_signed: &|_| false,
            new_approval: &|| ApprovalId::of(self.approvals + 1),
            authors: &[],
            limits: &LIMITS,
            called: None,
            used: &[],
            trust: Posture::Staging.trust(),
            details: &|_| Details::default(),
            looked: Some(&Ok(None)),
            questions: &questions,
        };
        self.of_run(id, run, |ground| run::start(ground, Some(&agent), "me", &orders, ground.now))
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

    fn say(&mut self, place: usize, said: Said, who: Who) {
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
            let (id, approval, rules) = (&question, &approval, &approval.plan.policy);
            let question = Question { id, approval, ground, agent: None, rules };
            approval::decide(question, &self.authority(), &actor(who), command)
        });
        let decided = decided.unwrap_or_default();
        assert!(decided.is_empty() || who.is_human(), "{who:?} has decided {decided:?}");
        self.commit(&actor(who), decided);
    }

    fn authorise(&mut self, who: Who, command: authority::Command) {
        let now = Now { clock: self.clock, latest: self.latest };
        let events = authority::decide(&self.authority(), &actor(who), command, now);
        let events = events.unwrap_or_default();
        assert!(events.is_empty() || who.is_human(), "{who:?} has decided {events:?}");
        let bodies = events.into_iter();
        let bodies = bodies.map(|event| Body::Authority("here".into(), event)).collect();
        self.commit(&actor(who), bodies);
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
                self.commit(&actor(Who::Operator), fired);
            }
            Step::Fire(_) => {}
            Step::Start(place) => self.start(*place, *place),
            Step::StartWith(place, other) => self.start(*place, *other),
            Step::StartStale(place) => self.start_stale(*place),
            Step::Finish(place, is_done, tokens) => {
                let failed = crate::support::broken(false);
                let result = if *is_done { Ok(()) } else { failed };
                let usage = tokens.map(|tokens| Usage { input_tokens: tokens, output_tokens: 0 });
                let bodies = about(self, *place, &|ground| {
                    let report = Report { result: result.clone(), output: None, usage };
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
            Step::Cancel(place, who) | Step::Retry(place, who) => {
                let is_retry = matches!(step, Step::Retry(..));
                let bodies = about(self, *place, &|ground| {
                    let command = match is_retry {
                        true => run::Command::Retry,
                        false => run::Command::Cancel { note: None },
                    };
                    run::decide(ground, &actor(*who), command).unwrap_or_default()
                });
                self.commit(&actor(*who), bodies);
            }
            Step::Say(place, said, who) => self.say(*place, *said, *who),
            Step::Expire(place) => {
                let found = self.run(*place).and_then(|(id, _)| self.approval(&id));
                let Some((id, approval)) = found else { return };
                let bodies = about(self, *place, &|ground| {
                    let (id, approval, rules) = (&id, &approval, &approval.plan.policy);
                    approval::expire(Question { id, approval, ground, agent: None, rules })
                });
                self.commit(&system, bodies);
            }
            Step::Freeze(who) => self.authorise(*who, authority::Command::Freeze { note: None }),
            Step::Thaw(who) => self.authorise(*who, authority::Command::Thaw { note: None }),
            Step::EditPrompt(agent) => {
                self.prompts[*agent].push('!');
                let definition = Box::new(self.definition(*agent));
                let edited = self.of_schedule(*agent, Command::Edit { definition });
                self.commit(&actor(Who::Operator), edited);
            }
            Step::Pass(seconds) => self.clock = self.clock.after_us(seconds * 1_000_000),
        }
        self.latest = self.latest.max(self.clock);
    }

    /// As a store does it: all or nothing. Whether it was done.
    fn commit(&mut self, by: &Actor, bodies: Vec<Body>) -> bool {
        let mut after = self.tables.counters.clone();
        for (counter, add, most) in bodies.iter().flat_map(|body| self.added(body)) {
            let value = after.entry(counter).or_default();
            *value += add;
            assert!(0 <= *value, "more is given back than was taken");
            if most < *value {
                return false;
            }
        }
        self.check_plans(&bodies);
        self.account.follow(by, &bodies, self.latest);
        bodies.iter().for_each(|body| self.tables.apply(body));
        self.account.check_money(&self.tables);
        let about_to_begin = |(_, run): &(RunId, Run)| {
            run.approval.is_some() && matches!(run.state, run::State::Queued { .. })
        };
        let runs = (0..RUNS).filter_map(|place| self.run(place)).filter(about_to_begin);
        let runs: Vec<(RunId, Run)> = runs.collect();
        self.stale.extend(runs);
        self.check_questions();
        true
    }
}

impl World {
    /// What an event adds to counters, and the most that each may show then.
    fn added(&self, body: &Body) -> Vec<(Counter, i64, i64)> {
        let run = match body {
            Body::Run(id, _) => self.state(Noun::Run, id.as_str()).and_then(State::run),
            _ => None,
        };
        let guards = run.map_or_else(Vec::new, |run| {
            guards(body, &run, &self.definition(self.agent_of(&run)).terms, &LIMITS)
        });
        let guards = guards.into_iter().map(|(counter, most)| (counter, 0, most));
        let added = deltas(body).into_iter().map(|(counter, add)| {
            let most = counter.limit(&LIMITS);
            (counter, add, most)
        });
        guards.chain(added).collect()
    }

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
                    self.begins(id, &key, started.hold.as_ref().unwrap().money.as_micros());
                    *self.counted.entry(key).or_default() += 1;
                }
                Body::Run(id, run::Event::Retried(retried)) => {
                    let cost = retried.spent.as_ref().map(|it| it.cost.as_micros());
                    self.ends(id, cost, retried.frees.is_some(), now);
                    let charged = self.charged.remove(id);
                    if retried.refund.is_some() {
                        assert!(retried.frees.is_some(), "nothing was done, and it is held back");
                        *self.counted.get_mut(&charged.unwrap()).unwrap() -= 1;
                    }
                }
                Body::Run(id, run::Event::Ended(ended)) => {
                    let cost = ended.spent.as_ref().map(|it| it.cost.as_micros());
                    self.ends(id, cost, ended.frees.is_some(), now);
                    let charged = self.charged.remove(id);
                    if ended.refund.is_some() {
                        assert!(ended.frees.is_some(), "nothing was done, and it is held back");
                        *self.counted.get_mut(&charged.unwrap()).unwrap() -= 1;
                    }
                }
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

    /// What is spent or held back never passes a limit when something begins; nor does it begin if the limit
    /// was reached before.
    fn begins(&mut self, id: &RunId, key: &Key, holds: i64) {
        assert!(PRICE.run.as_micros() <= holds, "what is sure to be spent is held back");
        let agent = self.money_of(|it| it == key);
        let all = self.money_of(|it| it.1 == key.1);
        let own = if key.0 == "bob" { OWN } else { LIMITS.money_per_agent };
        for (used, most) in [(agent, LIMITS.money_per_agent), (all, LIMITS.money), (agent, own)] {
            assert!(used < most.as_micros(), "{key:?} begins, and {used} of {most} are spent");
            assert!(used + holds <= most.as_micros(), "{key:?}: {used}, {holds} of {most}");
        }
        self.held.insert(id.clone(), (key.clone(), holds));
    }

    fn ends(&mut self, id: &RunId, cost: Option<i64>, is_freed: bool, now: Timestamp) {
        let Some((key, held)) = self.held.remove(id) else { return };
        assert!(cost.is_none() || is_freed, "what is told takes the place of what was held back");
        let stays = if is_freed { 0 } else { held };
        let today = (key.0.clone(), day(now));
        *self.spent.entry(key).or_default() += stays;
        *self.spent.entry(today).or_default() += cost.unwrap_or_default();
        *self.costs.entry(id.clone()).or_default() += stays + cost.unwrap_or_default();
    }

    fn money_of(&self, is_meant: impl Fn(&Key) -> bool) -> i64 {
        let spent = self.spent.iter().filter(|(key, _)| is_meant(key)).map(|(_, spent)| spent);
        let held = self.held.values().filter(|(key, _)| is_meant(key)).map(|(_, held)| held);
        spent.chain(held).sum()
    }

    /// The counters and the runs say what the events say.
    fn check_money(&self, tables: &Tables) {
        for (id, cost) in &self.costs {
            let row = &tables.rows[&(Noun::Run, id.to_string())];
            let run = row.state.clone().and_then(State::run).unwrap();
            assert_eq!(run.cost.as_micros(), *cost, "{id}");
        }
        for (counter, counted) in &tables.counters {
            let told = match counter {
                Counter::Cost(day) => self.money_of(|key| key.1 == *day),
                Counter::AgentCost(agent, day) => {
                    self.money_of(|key| key.0 == agent.as_str() && key.1 == *day)
                }
                _ => continue,
            };
            assert_eq!(*counted, told, "{counter:?}");
        }
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
                let is_human = Role::Operator <= by.role && by.name == "somebody";
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

fn who() -> impl Strategy<Value = Who> {
    prop_oneof![
        1 => Just(Who::Observer),
        1 => Just(Who::Run),
        1 => Just(Who::Agent),
        1 => Just(Who::Assistant),
        4 => Just(Who::Operator),
        4 => Just(Who::Maintainer),
    ]
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
        3 => (run(), any::<bool>(), proptest::option::of(0..900_u32))
            .prop_map(|(run, is_done, tokens)| Step::Finish(run, is_done, tokens)),
        3 => run().prop_map(Step::GiveBack),
        1 => run().prop_map(Step::Recover),
        1 => (run(), who()).prop_map(|(run, who)| Step::Cancel(run, who)),
        2 => (run(), who()).prop_map(|(run, who)| Step::Retry(run, who)),
        10 => (run(), said, who()).prop_map(|(run, said, who)| Step::Say(run, said, who)),
        1 => run().prop_map(Step::Expire),
        1 => who().prop_map(Step::Freeze),
        4 => who().prop_map(Step::Thaw),
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
    assert!(10 < broke, "{broke} have spent what they may, or more");
}
