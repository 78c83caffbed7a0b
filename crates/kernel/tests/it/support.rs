//! A schedule and its runs in memory, asked one thing at a time; what was decided comes back as text.
//!
//! Seconds count from midnight of Monday 2026-01-05 in UTC.

use std::sync::atomic::{AtomicU64, Ordering};

use calendar::Trigger;
use kernel::agent::Agent;
use kernel::approval::{self, Approval, Hashes, Looked, Plan, Question};
use kernel::authority::{Authority, Lease};
use kernel::backend::{Backend, Tier};
use kernel::budget::Limits;
use kernel::progress::Progress;
use kernel::ruling::{Approvers, Details, Posture, Request, Ruling, Verdict};
use kernel::run::{self, Cause, Failure, Kind, Occurrence, Orders, Report, Run};
use kernel::schedule::terms::Terms;
use kernel::schedule::{self, Action, Backfill, Command, Definition, Event, Schedule};
use kernel::slot::{self, Slot, Source};
use kernel::tick::{Happened, Tick, happened, tick};
use kernel::{Actor, ApprovalId, Body, Counter, Noun, RunId, ScheduleId, State, Tables, Timestamp};

const MIDNIGHT_S: i64 = 1_767_571_200;
/// The run of another schedule: no run here has its number.
const ANOTHER_RUN: u128 = u128::MAX >> 8;
pub(crate) const DENIED_FOR_US: i64 = 72_000_000_000;

/// What is asked. Runs are numbered as they come to be, from 1.
#[derive(Clone, Debug)]
pub(crate) enum Ask {
    Add,
    /// To the definition as it is by now.
    Edit,
    /// An event with this id.
    Event(&'static str),
    /// A run of another schedule has ended, and with it so many runs in a row have led to this.
    After(u32),
    /// The slots between two seconds.
    Backfill(i64, i64),
    EndBackfill,
    Tick,
    Pause,
    Resume,
    Remove,
    /// By hand, with a key.
    Fire(&'static str),
    Start(u128),
    /// Without any agent.
    StartAlone(u128),
    /// How the try of this epoch ended.
    Finish(u128, u32, Result<(), Failure>),
    Recover(u128),
    /// Its own process breaks off the try of this epoch.
    Interrupt(u128, u32),
    Run(u128, run::Command),
    /// Begins a run when the standing orders say this.
    StartUnder(u128, Verdict),
    /// Says something to the question about a run, or to its last one.
    Answer(u128, approval::Command),
    /// Nobody has said anything to it.
    Expire(u128),
}

/// What the standing orders say beside allow, ask or deny.
#[derive(Clone)]
pub(crate) struct Standing {
    pub(crate) posture: Posture,
    pub(crate) approvers: Approvers,
    /// Whether signatures that were good still are.
    pub(crate) signatures_hold: bool,
    /// Of the data directory.
    pub(crate) place: Option<&'static str>,
    /// What is seen of the machine.
    pub(crate) looked: Looked,
    /// What humans have before them.
    pub(crate) questions: Vec<(ApprovalId, Approval)>,
}

impl Default for Standing {
    fn default() -> Standing {
        let (posture, approvers) = (Posture::default(), Approvers::default());
        Standing {
            posture,
            approvers,
            signatures_hold: false,
            place: None,
            looked: Ok(None),
            questions: Vec::new(),
        }
    }
}

pub(crate) struct World {
    pub(crate) actor: Actor,
    pub(crate) agent: Option<Agent>,
    pub(crate) definition: Definition,
    pub(crate) standing: Standing,
    /// Those in force, if they are others than those that asked.
    pub(crate) rules: Option<String>,
    id: ScheduleId,
    tables: Tables,
    runs: u128,
}

pub(crate) fn at(second: i64) -> Timestamp {
    Timestamp::from_micros((MIDNIGHT_S + second) * 1_000_000)
}

pub(crate) fn every(seconds: i64) -> Trigger {
    let every = format!("{seconds}s").parse().unwrap();
    Trigger::Interval { every, anchor_us: at(0).as_micros() }
}

pub(crate) fn broken(is_permanent: bool) -> Result<(), Failure> {
    let kind = if is_permanent { Kind::Permanent } else { Kind::Passing { wait_us: 0 } };
    Err(Failure { cause: Cause::new("oops", "it broke"), kind })
}

impl World {
    pub(crate) fn new(trigger: impl Into<schedule::trigger::Trigger>, terms: Terms) -> World {
        let name: kernel::agent::AgentName = "ada".parse().unwrap();
        World {
            actor: Actor::local_user(7),
            agent: Some(Agent {
                name: name.clone(),
                backend: Backend::Builtin { script: None },
                repeatable: false,
                tier: Tier::ReadOnly,
                credential: None,
                price: kernel::money::Price::default(),
                schedules_made: 0,
                denials: 0,
                registered_at: at(0),
                changed_at: at(0),
            }),
            definition: Definition {
                name: "inbox".into(),
                trigger: trigger.into(),
                zone: "UTC".parse().unwrap(),
                action: Action::Prompt { agent: name, prompt: "look".into() },
                tier: None,
                terms,
            },
            standing: Standing::default(),
            rules: None,
            id: "sch_0123abcd".parse().unwrap(),
            tables: Tables::default(),
            runs: 0,
        }
    }

    fn state(&self, noun: Noun, id: &str) -> Option<State> {
        self.tables.rows.get(&(noun, id.to_owned()))?.state.clone()
    }

    pub(crate) fn schedule(&self) -> Option<Schedule> {
        self.state(Noun::Schedule, self.id.as_str())?.schedule()
    }

    pub(crate) fn counter(&self, counter: &Counter) -> i64 {
        self.tables.counters.get(counter).copied().unwrap_or_default()
    }

    fn authors(&self) -> Vec<String> {
        self.schedule().map(|schedule| schedule.authors()).unwrap_or_default()
    }

    pub(crate) fn progress(&self) -> Option<Progress> {
        self.state(Noun::Progress, self.id.as_str())?.progress()
    }

    pub(crate) fn run(&self, number: u128) -> Option<Run> {
        self.state(Noun::Run, RunId::of(number).as_str())?.run()
    }

    /// The newest question about a run.
    pub(crate) fn approval(&self, number: u128) -> Option<(ApprovalId, Approval)> {
        let run = RunId::of(number);
        self.approvals().find(|(_, approval)| approval.plan.run == run)
    }

    /// The newest first.
    fn approvals(&self) -> impl Iterator<Item = (ApprovalId, Approval)> {
        self.tables.rows.iter().rev().filter_map(|((noun, id), row)| {
            let approval = row.state.clone().filter(|_| *noun == Noun::Approval)?.approval()?;
            Some((id.parse().ok()?, *approval))
        })
    }

    pub(crate) fn slot(&self, second: i64) -> Option<Slot> {
        self.state(Noun::Slot, &slot::key(&self.id, at(second)))?.slot()
    }

    pub(crate) fn manual(&self, key: &str) -> Option<Slot> {
        self.state(Noun::Slot, &slot::manual_key(&self.id, key))?.slot()
    }

    /// What is decided is done, and said.
    pub(crate) fn ask(&mut self, second: i64, ask: &Ask) -> String {
        self.ask_at(at(second), ask)
    }

    pub(crate) fn ask_at(&mut self, now: Timestamp, ask: &Ask) -> String {
        let decided = match ask {
            Ask::Add => {
                let definition = Box::new(self.definition.clone());
                self.decide(now, Command::Add { definition, paused: false })
            }
            Ask::Edit => {
                let definition = Box::new(self.definition.clone());
                self.decide(now, Command::Edit { definition })
            }
            Ask::Backfill(from, to) => {
                let (from, to) = (at(*from), at(*to));
                let asked = Backfill { from, to, at_once: None, gap: None };
                self.decide(now, Command::Backfill(asked))
            }
            Ask::EndBackfill => self.decide(now, Command::EndBackfill),
            Ask::Event(id) => {
                let source = Source::Event((*id).to_owned());
                Ok(self.happened(now, &source, run::Origin::Event, 0))
            }
            Ask::After(depth) => {
                let source = Source::Run(RunId::of(ANOTHER_RUN));
                Ok(self.happened(now, &source, run::Origin::After, *depth))
            }
            Ask::Pause => self.decide(now, Command::Pause { note: None }),
            Ask::Resume => self.decide(now, Command::Resume),
            Ask::Remove => self.decide(now, Command::Remove),
            Ask::Fire(key) => {
                let run = RunId::of(self.runs + 1);
                let fired = self.decide(now, Command::Fire { run, key: (*key).to_owned() });
                self.runs += u128::from(fired.is_ok());
                fired
            }
            Ask::Tick => Ok(self.tick(now)),
            Ask::Start(number) => return self.start(now, *number),
            Ask::StartAlone(number) => self.of_run(now, *number, |ground| {
                Ok(under((&self.standing, &self.authors()), Verdict::Allow, None, |orders| {
                    run::start(ground, None, "me", orders, ground.now)
                }))
            }),
            Ask::StartUnder(number, verdict) => {
                let approval = self.approval(*number).map(|(_, it)| it);
                self.standing.questions = self.approvals().collect();
                self.of_run(now, *number, |ground| {
                    let agent = self.agent.as_ref();
                    Ok(under(
                        (&self.standing, &self.authors()),
                        *verdict,
                        approval.as_ref(),
                        |orders| run::start(ground, agent, "me", orders, ground.now),
                    ))
                })
            }
            Ask::Answer(number, command) => {
                let (id, approval) = self.approval(*number).expect("an approval");
                let (id, approval) = (&id, &approval);
                let mut refused = None;
                let decided = self.of_run(now, *number, |ground| {
                    let agent = self.agent.as_ref();
                    let rules = self.rules.as_deref().unwrap_or(&approval.plan.policy);
                    let question = Question { id, approval, ground, agent, rules };
                    let authority = Authority::default();
                    let decided =
                        approval::decide(question, &authority, &self.actor, command.clone());
                    Ok(decided.unwrap_or_else(|refusal| {
                        refused = Some(refusal.to_string().replace(id.as_str(), "A"));
                        Vec::new()
                    }))
                });
                refused.map_or(decided, Err)
            }
            Ask::Expire(number) => {
                let (id, approval) = self.approval(*number).expect("an approval");
                self.of_run(now, *number, |ground| {
                    Ok(approval::expire(Question {
                        id: &id,
                        approval: &approval,
                        ground,
                        agent: None,
                        rules: &approval.plan.policy,
                    }))
                })
            }
            Ask::Finish(number, epoch, result) => self.of_run(now, *number, |ground| {
                let report = Report { result: result.clone(), output: None, usage: None };
                run::finish(ground, *epoch, report, 500_000)
            }),
            Ask::Recover(number) => self.of_run(now, *number, |ground| Ok(run::recover(ground))),
            Ask::Interrupt(number, epoch) => {
                self.of_run(now, *number, |ground| run::interrupt(ground, *epoch))
            }
            Ask::Run(number, command) => self
                .of_run(now, *number, |ground| run::decide(ground, &self.actor, command.clone())),
        };
        match decided {
            Ok(bodies) => {
                bodies.iter().for_each(|body| self.tables.apply(body));
                self.count_denials(&bodies);
                bodies.iter().map(describe).collect::<Vec<_>>().join(", ")
            }
            Err(refusal) => format!("no: {refusal}"),
        }
    }

    /// The agent was never added, so no row has it.
    fn count_denials(&mut self, bodies: &[Body]) {
        for body in bodies {
            if let Body::Approval(_, approval::Event::Decided(decided)) = body
                && let (Some(agent), Some(streak)) = (&mut self.agent, &decided.streak)
            {
                agent.denials = streak.denials;
            }
        }
    }

    /// Begins a run, with a human's word if it needs one.
    fn start(&mut self, now: Timestamp, number: u128) -> String {
        let said = self.ask_at(now, &Ask::StartUnder(number, Verdict::Allow));
        if !said.starts_with("asked") {
            return said;
        }
        let shown = self.approval(number).expect("an approval").1.plan_hash;
        let approve = approval::Command::Approve { shown, note: None, signed: None };
        self.ask_at(now, &Ask::Answer(number, approve));
        let said = self.ask_at(now, &Ask::StartUnder(number, Verdict::Ask));
        said.split_once(", ").expect("consumed and started").1.to_owned()
    }

    fn decide(&self, now: Timestamp, command: Command) -> Result<Vec<Body>, String> {
        let (schedule, progress) = (self.schedule(), self.progress());
        let fired = match &command {
            Command::Fire { key, .. } => {
                self.tables.rows.get(&(Noun::Slot, slot::manual_key(&self.id, key)))
            }
            _ => None,
        };
        let fired = fired.and_then(|row| row.state.clone()).and_then(State::slot);
        let ground = schedule::Ground {
            id: &self.id,
            schedule: schedule.as_ref(),
            progress: progress.as_ref(),
            agent: self.agent.as_ref(),
            upstream: &[],
            maker: None,
            fired: fired.as_ref(),
            now,
        };
        schedule::decide(ground, &self.actor, command).map_err(|refusal| refusal.to_string())
    }

    fn tick(&mut self, now: Timestamp) -> Vec<Body> {
        self.ticking(now, |at, progress, new_run| tick(at, progress, new_run))
    }

    fn happened(
        &mut self,
        now: Timestamp,
        source: &Source,
        origin: run::Origin,
        depth: u32,
    ) -> Vec<Body> {
        let what = Happened { source, origin, depth };
        self.ticking(now, |at, progress, new_run| happened(at, progress, what, new_run))
    }

    fn ticking(
        &mut self,
        now: Timestamp,
        decide: impl FnOnce(Tick<'_>, &Progress, &mut dyn FnMut() -> RunId) -> Vec<Body>,
    ) -> Vec<Body> {
        let (Some(schedule), Some(progress)) = (self.schedule(), self.progress()) else {
            return Vec::new();
        };
        let calendar = schedule.definition.calendar(progress.ahead.next).unwrap();
        let live: Vec<(RunId, Run)> =
            progress.live.iter().map(|id| (id.clone(), self.run_of(id))).collect();
        let filling = progress.backfill.as_ref().and_then(|it| it.next);
        let filled = filling.and_then(|next| self.state(Noun::Slot, &slot::key(&self.id, next)));
        let filled = filled.and_then(State::slot);
        let tick = Tick::new(&self.id, &schedule, &calendar, now);
        let tick = Tick { live: &live, filled: filled.as_ref(), ..tick };
        let mut runs = self.runs;
        let mut new_run = || {
            runs += 1;
            RunId::of(runs)
        };
        let bodies = decide(tick, &progress, &mut new_run);
        self.runs = runs;
        bodies
    }

    fn run_of(&self, id: &RunId) -> Run {
        self.state(Noun::Run, id.as_str()).and_then(State::run).expect("a run")
    }

    fn of_run(
        &self,
        now: Timestamp,
        number: u128,
        decide: impl FnOnce(run::Ground<'_>) -> Result<Vec<Body>, run::Refusal>,
    ) -> Result<Vec<Body>, String> {
        let (id, run) = (RunId::of(number), self.run(number).expect("a run"));
        let (schedule, progress) = (self.schedule(), self.progress());
        let ground = run::Ground {
            id: &id,
            run: &run,
            definition: schedule.as_ref().map(|it| &it.definition),
            progress: progress.as_ref(),
            now,
        };
        decide(ground).map_err(|refusal| refusal.to_string().replace(id.as_str(), "R"))
    }
}

/// What a run is begun under when the standing orders say this of everything.
pub(crate) fn under<T>(
    (standing, authors): (&Standing, &[String]),
    verdict: Verdict,
    approval: Option<&Approval>,
    begin: impl FnOnce(&Orders<'_>) -> T,
) -> T {
    let judge = |_: &Request| Ruling {
        verdict,
        rules: vec!["test/all".to_owned()],
        posture: standing.posture,
        policy: "0123".to_owned(),
        approvers: standing.approvers,
    };
    let new_approval = || ApprovalId::of(another());
    let questions: Vec<_> = standing.questions.iter().map(|(id, it)| (id, it)).collect();
    begin(&Orders {
        instance: "here",
        place: standing.place,
        authority: &Authority::default(),
        lease: Lease::default(),
        clock: Timestamp::from_micros(0),
        judge: &judge,
        hash: &hashes,
        approval,
        is_signed: &|decision| decision.signature.is_some() && standing.signatures_hold,
        new_approval: &new_approval,
        authors,
        limits: &Limits { denied_for_us: DENIED_FOR_US, ..Limits::default() },
        called: None,
        used: &[],
        trust: standing.posture.trust(),
        details: &|_| Details::default(),
        looked: Some(&standing.looked),
        questions: &questions,
    })
}

/// Whatever is part of a plan is part of its hash.
pub(crate) fn hashes(plan: &Plan) -> Hashes {
    let mut action = serde_json::to_value(plan).unwrap();
    let fields = action.as_object_mut().unwrap();
    fields.remove("run");
    fields.remove("attempt");
    fields.remove("place");
    Hashes { plan: serde_json::to_string(plan).unwrap(), action: action.to_string() }
}

/// Another number each time.
fn another() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Seconds, or `1.5` for what is between them.
fn time(at: Timestamp) -> String {
    let us = at.as_micros().saturating_sub(MIDNIGHT_S * 1_000_000);
    match us % 1_000_000 {
        0 => format!("{}", us / 1_000_000),
        _ => format!("{}", us as f64 / 1e6),
    }
}

fn into(into: Option<Timestamp>) -> String {
    into.map(|into| format!(" into {}", time(into))).unwrap_or_default()
}

fn describe(body: &Body) -> String {
    let because = |reason: Option<slot::Reason>| {
        reason.map(|reason| format!(" ({reason:?})").to_lowercase()).unwrap_or_default()
    };
    let cause = |cause: &Option<Cause>| {
        cause.as_ref().map(|cause| format!(" ({})", cause.message)).unwrap_or_default()
    };
    match body {
        Body::Schedule(_, event) => match event {
            Event::Added(added) => match added.ahead.next {
                Some(next) => format!("added, next {}", time(next)),
                None => "added".to_owned(),
            },
            Event::Paused(paused) => {
                let note = paused.note.as_ref().map(|note| format!(" ({note})"));
                format!("paused{}", note.unwrap_or_default())
            }
            Event::Changed(changed) => match changed.ahead.next {
                Some(next) => format!("changed, next {}", time(next)),
                None => "changed".to_owned(),
            },
            Event::Moved(moved) => match moved.ahead.next {
                Some(next) => format!("moved to {}", time(next)),
                None => "moved".to_owned(),
            },
            Event::BackfillBegun(it) => {
                format!("backfill {}..{} ×{}", time(it.first), time(it.last), it.count)
            }
            Event::BackfillMoved(it) => match it.next {
                Some(next) => format!("backfill goes on with {}", time(next)),
                None => "backfill ends".to_owned(),
            },
            Event::Resumed(_) => "resumed".to_owned(),
            Event::Removed(_) => "removed".to_owned(),
            Event::Passed(it) => {
                let slots = match it.count {
                    1 => time(it.last),
                    count => format!("{}..{} ×{count}", time(it.first), time(it.last)),
                };
                format!("{} {slots}{}{}", it.disposition.name(), because(it.reason), into(it.into))
            }
            Event::Buffered(it) => format!("waits {}", time(it.slot)),
            Event::Dropped(it) => {
                let (slot, reason) = (time(it.slot), because(it.reason));
                format!("{} {slot} that waited{reason}{}", it.disposition.name(), into(it.into))
            }
        },
        Body::Run(_, event) => match event {
            run::Event::Queued(queued) => match &queued.occurrence {
                Occurrence::Slot(slot) => {
                    let late = match slot.late_us {
                        0 => String::new(),
                        late_us => format!(" late {}", late_us as f64 / 1e6),
                    };
                    format!("{} fires {}{late}", slot.origin.name(), time(slot.nominal))
                }
                Occurrence::Manual { key } => format!("manual fires {key}"),
                Occurrence::Backfill(fill) => format!("backfill fires {}", time(fill.nominal)),
            },
            run::Event::Started(it) => {
                let repeatable = if it.repeatable { " repeatable" } else { "" };
                format!("started {} {} tier {}{repeatable}", it.epoch, it.attempt, it.tier)
            }
            run::Event::Retried(it) => {
                format!("retried from {} ({})", time(it.from), it.cause.message)
            }
            run::Event::CancelAsked(_) => "cancel asked".to_owned(),
            run::Event::Ended(it) => format!("{}{}", it.outcome.name(), cause(&it.cause)),
            run::Event::Requeued(_) => "requeued".to_owned(),
            run::Event::Settled(it) => format!("settled {}", it.outcome.name()),
        },
        Body::Approval(_, event) => match event {
            approval::Event::Asked(it) => format!("asked, until {}", time(it.approve_by)),
            approval::Event::Assented(it) => format!("assented by {}", it.decision.by),
            approval::Event::Decided(it) => match it.execute_by {
                Some(until) => format!("approved, until {}", time(until)),
                None => "denied".to_owned(),
            },
            approval::Event::Consumed(it) => format!("consumed by {}", it.epoch),
            approval::Event::Lapsed(it) => format!("lapsed {:?}", it.why).to_lowercase(),
        },
        Body::Agent(..)
        | Body::Authority(..)
        | Body::Token(..)
        | Body::Tool(..)
        | Body::Watch(..) => {
            unreachable!("no rule here writes this")
        }
    }
}
