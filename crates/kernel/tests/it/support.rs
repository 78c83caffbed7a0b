//! A schedule and its runs in memory. Each operation returns the decided events as text.
//!
//! Seconds count from Monday 2026-01-05, midnight UTC.

use std::sync::atomic::{AtomicU64, Ordering};

use calendar::Trigger;
use kernel::agent::Agent;
use kernel::approval::{self, Approval, ApprovalContext, Hashes, Plan, Preflight};
use kernel::authority::{Authority, Lease};
use kernel::backend::{Backend, Tier};
use kernel::budget::Limits;
use kernel::policy_decision::{Approvers, Details, PolicyDecision, Request, Verdict};
use kernel::posture::Posture;
use kernel::progress::Progress;
use kernel::run::{
    self, Cause, Failure, FailureKind, Occurrence, Output, Report, Run, StartContext,
};
use kernel::schedule::terms::Terms;
use kernel::schedule::{self, Action, Backfill, Command, Definition, Event, Schedule};
use kernel::slot::{self, Slot, Source};
use kernel::tick::{EventOccurrence, Tick, decide_event, tick};
use kernel::{
    Actor, ApprovalId, Counter, EventBody, Principal, RunId, ScheduleId, Tables, Timestamp,
};

const MIDNIGHT_S: i64 = 1_767_571_200;
/// Number of a run of another schedule; no run here has it.
const ANOTHER_RUN: u128 = u128::MAX >> 8;
pub(crate) const DENIED_FOR_US: i64 = 72_000_000_000;

/// An operation on the world. Runs are numbered from 1 in the order of creation.
#[derive(Clone, Debug)]
pub(crate) enum Op {
    Add,
    /// Edits the schedule to the world's current definition.
    Edit,
    /// Publishes an event with this id.
    Event(&'static str),
    /// Ends a run of another schedule; the chain of runs so far has this length.
    After(u32),
    /// Backfills the slots between two seconds.
    Backfill(i64, i64),
    EndBackfill,
    Tick,
    Pause,
    Resume,
    Remove,
    /// Starts a run manually, with a key.
    Fire(&'static str),
    Start(u128),
    /// Starts a run although its agent does not exist.
    StartWithoutAgent(u128),
    /// Reports how the attempt of this epoch ended.
    Finish(u128, u32, Result<(), Failure>),
    Recover(u128),
    /// The run's own process interrupts the attempt of this epoch.
    Interrupt(u128, u32),
    /// The run's own process gives it back before the attempt did anything.
    Requeue(u128),
    OnRun(u128, run::Command),
    /// Starts a run under a policy with this verdict.
    StartUnder(u128, Verdict),
    /// Decides the newest approval of a run.
    ApprovalCommand(u128, approval::Command),
    /// Expires the newest approval of a run.
    Expire(u128),
}

/// The policy and the environment that runs start in, besides the verdict.
#[derive(Clone)]
pub(crate) struct PolicySetup {
    pub(crate) posture: Posture,
    pub(crate) approvers: Approvers,
    /// Whether signatures are still valid.
    pub(crate) signatures_hold: bool,
    /// Id of the data directory.
    pub(crate) place: Option<&'static str>,
    /// Result of the preflight check.
    pub(crate) looked: Preflight,
    /// Existing approvals.
    pub(crate) approvals: Vec<(ApprovalId, Approval)>,
}

impl Default for PolicySetup {
    fn default() -> PolicySetup {
        let (posture, approvers) = (Posture::default(), Approvers::default());
        PolicySetup {
            posture,
            approvers,
            signatures_hold: false,
            place: None,
            looked: Ok(None),
            approvals: Vec::new(),
        }
    }
}

pub(crate) struct World {
    pub(crate) actor: Actor,
    pub(crate) agent: Option<Agent>,
    pub(crate) definition: Definition,
    pub(crate) policy: PolicySetup,
    /// Hash of the active rules, if they differ from those that requested approval.
    pub(crate) active_rules: Option<String>,
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

pub(crate) fn failed_attempt(is_permanent: bool) -> Result<(), Failure> {
    let kind =
        if is_permanent { FailureKind::Permanent } else { FailureKind::Transient { wait_us: 0 } };
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
                raised_to_1: 0,
                raised_to_2: 0,
                changed_by: vec![Principal::parse("tom")],
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
            policy: PolicySetup::default(),
            active_rules: None,
            id: "sch_0123abcd".parse().unwrap(),
            tables: Tables::default(),
            runs: 0,
        }
    }

    pub(crate) fn schedule(&self) -> Option<Schedule> {
        self.tables.get::<Schedule>(&self.id).cloned()
    }

    pub(crate) fn counter(&self, counter: &Counter) -> i64 {
        self.tables.counters.get(counter).copied().unwrap_or_default()
    }

    fn authors(&self) -> Vec<Principal> {
        self.schedule().map(|schedule| schedule.authors()).unwrap_or_default()
    }

    pub(crate) fn progress(&self) -> Option<Progress> {
        self.tables.get::<Progress>(&self.id).cloned()
    }

    pub(crate) fn run(&self, number: u128) -> Option<Run> {
        self.tables.get::<Run>(&RunId::of(number)).cloned()
    }

    /// The newest approval of a run.
    pub(crate) fn approval(&self, number: u128) -> Option<(ApprovalId, Approval)> {
        let run = RunId::of(number);
        self.approvals().find(|(_, approval)| approval.plan.run == run)
    }

    /// All approvals, newest first.
    fn approvals(&self) -> impl Iterator<Item = (ApprovalId, Approval)> {
        self.tables.rows.iter().rev().filter_map(|((_, id), row)| {
            let approval = row.get::<Approval>()?.clone();
            Some((id.parse().ok()?, approval))
        })
    }

    pub(crate) fn slot(&self, second: i64) -> Option<Slot> {
        self.tables.get::<Slot>(&slot::key(&self.id, at(second))).cloned()
    }

    pub(crate) fn manual(&self, key: &str) -> Option<Slot> {
        self.tables.get::<Slot>(&slot::manual_key(&self.id, key)).cloned()
    }

    /// Performs an operation, applies its events and returns them as text.
    pub(crate) fn perform(&mut self, second: i64, op: &Op) -> String {
        self.perform_at(at(second), op)
    }

    pub(crate) fn perform_at(&mut self, now: Timestamp, op: &Op) -> String {
        let decided = match op {
            Op::Add => {
                let definition = Box::new(self.definition.clone());
                self.decide(now, Command::Add { definition, paused: false })
            }
            Op::Edit => {
                let definition = Box::new(self.definition.clone());
                self.decide(now, Command::Edit { definition })
            }
            Op::Backfill(from, to) => {
                let (from, to) = (at(*from), at(*to));
                let backfill = Backfill { from, to, at_once: None, gap: None };
                self.decide(now, Command::Backfill(backfill))
            }
            Op::EndBackfill => self.decide(now, Command::EndBackfill),
            Op::Event(id) => {
                let source = Source::Event((*id).to_owned());
                Ok(self.decide_event(now, &source, run::Origin::Event, 0))
            }
            Op::After(depth) => {
                let source = Source::Run(RunId::of(ANOTHER_RUN));
                Ok(self.decide_event(now, &source, run::Origin::After, *depth))
            }
            Op::Pause => self.decide(now, Command::Pause { note: None }),
            Op::Resume => self.decide(now, Command::Resume),
            Op::Remove => self.decide(now, Command::Remove),
            Op::Fire(key) => {
                let run = RunId::of(self.runs + 1);
                let fired = self.decide(now, Command::Fire { run, key: (*key).to_owned() });
                self.runs += u128::from(fired.is_ok());
                fired
            }
            Op::Tick => Ok(self.tick(now)),
            Op::Start(number) => return self.start(now, *number),
            Op::StartWithoutAgent(number) => self.decide_run(now, *number, |context| {
                Ok(with_start_context(
                    (&self.policy, &self.authors()),
                    Verdict::Allow,
                    None,
                    |orders| run::start(context, None, "me", orders, context.now),
                ))
            }),
            Op::StartUnder(number, verdict) => {
                let approval = self.approval(*number).map(|(_, it)| it);
                self.policy.approvals = self.approvals().collect();
                self.decide_run(now, *number, |context| {
                    let agent = self.agent.as_ref();
                    Ok(with_start_context(
                        (&self.policy, &self.authors()),
                        *verdict,
                        approval.as_ref(),
                        |orders| run::start(context, agent, "me", orders, context.now),
                    ))
                })
            }
            Op::ApprovalCommand(number, command) => {
                let (id, approval) = self.approval(*number).expect("an approval");
                let (id, approval) = (&id, &approval);
                let mut refused = None;
                let decided = self.decide_run(now, *number, |context| {
                    let agent = self.agent.as_ref();
                    let rules = self.active_rules.as_deref().unwrap_or(&approval.plan.policy);
                    let context = ApprovalContext {
                        id,
                        approval,
                        run_context: context,
                        agent,
                        active_policy: rules,
                    };
                    let authority = Authority::default();
                    let decided =
                        approval::decide(context, &authority, &self.actor, command.clone());
                    Ok(decided.unwrap_or_else(|refusal| {
                        refused = Some(refusal.to_string().replace(id.as_str(), "A"));
                        Vec::new()
                    }))
                });
                refused.map_or(decided, Err)
            }
            Op::Expire(number) => {
                let (id, approval) = self.approval(*number).expect("an approval");
                self.decide_run(now, *number, |context| {
                    Ok(approval::expire(ApprovalContext {
                        id: &id,
                        approval: &approval,
                        run_context: context,
                        agent: None,
                        active_policy: &approval.plan.policy,
                    }))
                })
            }
            Op::Finish(number, epoch, result) => self.decide_run(now, *number, |context| {
                let output = Output { text: "said".to_owned().into(), bytes: 4, file: None };
                let report = Report { result: result.clone(), output: Some(output), usage: None };
                run::finish(context, *epoch, report, 500_000)
            }),
            Op::Recover(number) => {
                self.decide_run(now, *number, |context| Ok(run::recover(context)))
            }
            Op::Interrupt(number, epoch) => {
                self.decide_run(now, *number, |context| run::interrupt(context, *epoch))
            }
            Op::Requeue(number) => {
                self.decide_run(now, *number, |context| Ok(run::requeue(context, "me")))
            }
            Op::OnRun(number, command) => self.decide_run(now, *number, |context| {
                run::decide(context, &self.actor, command.clone())
            }),
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

    /// Counts denials in the agent itself, which has no row.
    fn count_denials(&mut self, bodies: &[EventBody]) {
        for body in bodies {
            if let EventBody::Approval(_, approval::Event::Decided(decided)) = body
                && let (Some(agent), Some(streak)) = (&mut self.agent, &decided.streak)
            {
                agent.denials = streak.denials;
            }
        }
    }

    /// Starts a run, and approves it first if needed.
    fn start(&mut self, now: Timestamp, number: u128) -> String {
        let outcome = self.perform_at(now, &Op::StartUnder(number, Verdict::Allow));
        if !outcome.starts_with("asked") {
            return outcome;
        }
        let shown = self.approval(number).expect("an approval").1.plan_hash;
        let approve = approval::Command::Approve { shown, note: None, signed: None };
        self.perform_at(now, &Op::ApprovalCommand(number, approve));
        let outcome = self.perform_at(now, &Op::StartUnder(number, Verdict::Ask));
        outcome.split_once(", ").expect("consumed and started").1.to_owned()
    }

    fn decide(&self, now: Timestamp, command: Command) -> Result<Vec<EventBody>, String> {
        let (schedule, progress) = (self.schedule(), self.progress());
        let fired = match &command {
            Command::Fire { key, .. } => self.manual(key),
            _ => None,
        };
        let context = schedule::ScheduleContext {
            id: &self.id,
            schedule: schedule.as_ref(),
            progress: progress.as_ref(),
            agent: self.agent.as_ref(),
            tool: None,
            upstream: &[],
            caller: None,
            fired: fired.as_ref(),
            now,
        };
        schedule::decide(context, &self.actor, command).map_err(|refusal| refusal.to_string())
    }

    fn tick(&mut self, now: Timestamp) -> Vec<EventBody> {
        self.with_tick(now, |at, progress, new_run| tick(at, progress, new_run))
    }

    fn decide_event(
        &mut self,
        now: Timestamp,
        source: &Source,
        origin: run::Origin,
        depth: u32,
    ) -> Vec<EventBody> {
        let what = EventOccurrence { source, origin, depth };
        self.with_tick(now, |at, progress, new_run| decide_event(at, progress, what, new_run))
    }

    fn with_tick(
        &mut self,
        now: Timestamp,
        decide: impl FnOnce(Tick<'_>, &Progress, &mut dyn FnMut() -> RunId) -> Vec<EventBody>,
    ) -> Vec<EventBody> {
        let (Some(schedule), Some(progress)) = (self.schedule(), self.progress()) else {
            return Vec::new();
        };
        let calendar = schedule.definition.calendar(progress.next_fire.slot).unwrap();
        let live: Vec<(RunId, Run)> =
            progress.live.iter().map(|id| (id.clone(), self.run_of(id))).collect();
        let filling = progress.backfill.as_ref().and_then(|it| it.next);
        let filled = filling.and_then(|next| self.tables.get::<Slot>(&slot::key(&self.id, next)));
        let tick = Tick::new(&self.id, &schedule, &calendar, now);
        let tick = Tick { live: &live, backfill_slot: filled, ..tick };
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
        self.tables.get::<Run>(id).cloned().expect("a run")
    }

    fn decide_run(
        &self,
        now: Timestamp,
        number: u128,
        decide: impl FnOnce(run::RunContext<'_>) -> Result<Vec<EventBody>, run::Refusal>,
    ) -> Result<Vec<EventBody>, String> {
        let (id, run) = (RunId::of(number), self.run(number).expect("a run"));
        let (schedule, progress) = (self.schedule(), self.progress());
        let context = run::RunContext {
            id: &id,
            run: &run,
            definition: schedule.as_ref().map(|it| &it.definition),
            progress: progress.as_ref(),
            now,
        };
        decide(context).map_err(|refusal| refusal.to_string().replace(id.as_str(), "R"))
    }
}

/// Calls `decide` with the context of a start under a policy that always has this verdict.
pub(crate) fn with_start_context<T>(
    (policy, authors): (&PolicySetup, &[Principal]),
    verdict: Verdict,
    approval: Option<&Approval>,
    decide: impl FnOnce(&StartContext<'_>) -> T,
) -> T {
    let judge = |_: &Request| PolicyDecision {
        verdict,
        rules: vec!["test/all".to_owned()],
        posture: policy.posture,
        policy: "0123".to_owned(),
        approvers: policy.approvers,
    };
    let new_approval = || ApprovalId::of(next_number());
    let approvals: Vec<_> = policy.approvals.iter().map(|(id, it)| (id, it)).collect();
    decide(&StartContext {
        instance: "here",
        data_directory: policy.place,
        authority: &Authority::default(),
        lease: Lease::default(),
        clock: Timestamp::from_micros(0),
        evaluate: &judge,
        hash_plan: &hash_plan,
        approval,
        is_signed: &|decision| decision.signature.is_some() && policy.signatures_hold,
        new_approval: &new_approval,
        authors,
        limits: &Limits { denied_for_us: DENIED_FOR_US, ..Limits::default() },
        tool_call: None,
        counters: &[],
        trust: policy.posture.trust(),
        agent_details: &|_| Details::default(),
        preflight: Some(&policy.looked),
        other_approvals: &approvals,
    })
}

/// "Hashes" of a plan that contain all its parts.
pub(crate) fn hash_plan(plan: &Plan) -> Hashes {
    let mut action = serde_json::to_value(plan).unwrap();
    let fields = action.as_object_mut().unwrap();
    fields.remove("run");
    fields.remove("attempt");
    fields.remove("previous");
    fields.remove("place");
    Hashes { plan: serde_json::to_string(plan).unwrap(), action: action.to_string() }
}

/// Returns a new number at each call.
fn next_number() -> u128 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    u128::from(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Formats an instant in seconds, such as `1` or `1.5`.
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

fn describe(body: &EventBody) -> String {
    let because = |reason: Option<slot::Reason>| {
        reason.map(|reason| format!(" ({reason:?})").to_lowercase()).unwrap_or_default()
    };
    let cause = |cause: &Option<Cause>| {
        cause.as_ref().map(|cause| format!(" ({})", cause.message)).unwrap_or_default()
    };
    match body {
        EventBody::Schedule(_, event) => match event {
            Event::Added(added) => match added.next_fire.slot {
                Some(next) => format!("added, next {}", time(next)),
                None => "added".to_owned(),
            },
            Event::Paused(paused) => {
                let note = paused.note.as_ref().map(|note| format!(" ({note})"));
                format!("paused{}", note.unwrap_or_default())
            }
            Event::Changed(changed) => match changed.next_fire.slot {
                Some(next) => format!("changed, next {}", time(next)),
                None => "changed".to_owned(),
            },
            Event::Moved(moved) => match moved.next_fire.slot {
                Some(next) => format!("moved to {}", time(next)),
                None => "moved".to_owned(),
            },
            Event::BackfillStarted(it) => {
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
        EventBody::Run(_, event) => match event {
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
            run::Event::CancelRequested(_) => "cancel requested".to_owned(),
            run::Event::Ended(it) => format!("{}{}", it.outcome.name(), cause(&it.cause)),
            run::Event::Requeued(_) => "requeued".to_owned(),
            run::Event::Settled(it) => format!("settled {}", it.outcome.name()),
        },
        EventBody::Approval(_, event) => match event {
            approval::Event::Requested(it) => format!("asked, until {}", time(it.approve_by)),
            approval::Event::Assented(it) => format!("assented by {}", it.decision.by),
            approval::Event::Decided(it) => match it.execute_by {
                Some(until) => format!("approved, until {}", time(until)),
                None => "denied".to_owned(),
            },
            approval::Event::Consumed(it) => format!("consumed by {}", it.epoch),
            approval::Event::Lapsed(it) => format!("lapsed {:?}", it.why).to_lowercase(),
        },
        _ => unreachable!("no operation produces this event"),
    }
}
