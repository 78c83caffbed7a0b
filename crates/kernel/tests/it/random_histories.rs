//! Random histories of random schedules, checked after every step against a slow evaluation that walks
//! the calendar slot by slot. The clock jumps, is set back and stands still; people give commands.
//!
//! A failure prints its seed; set `SEEDS` to it alone to reproduce the failure.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use calendar::{Calendar, EVERY_MIN, Span, Trigger, Zone};
use kernel::agent::Agent;
use kernel::approval::{self, Approval, ApprovalContext, Command as ApprovalCommand};
use kernel::authority::Authority;
use kernel::backend::{Backend, Tier};
use kernel::budget::Usage;
use kernel::event::Label;
use kernel::policy_decision::Verdict;
use kernel::progress::{Progress, Status};
use kernel::run::{self, Cause, Failure, FailureKind, Occurrence, Outcome, Report, Run};
use kernel::schedule::terms::{Missed, Overlap, Resume, Retry, Terms};
use kernel::schedule::{self, Action, Backfill, Command, Definition, Schedule};
use kernel::slot::{self, Disposition, Slot, SlotOutcome};
use kernel::tick::{Tick, tick};
use kernel::{
    Actor, ApprovalId, EventBody, Noun, NounState, RunId, ScheduleId, State, Tables, Timestamp,
};

use crate::support::{PolicySetup, with_start_context};

const SEEDS: Range<u64> = 0..400;
const STEPS: usize = 60;
const SECOND_US: i64 = 1_000_000;
const DAY_US: i64 = 86_400 * SECOND_US;
/// Most slots that the walk of one history may have.
const SLOTS_MAX: i64 = 4_000;

fn decide_approval(context: ApprovalContext<'_>, command: ApprovalCommand) -> Vec<EventBody> {
    let actor = Actor::local_user(1);
    approval::decide(context, &Authority::default(), &actor, command).unwrap_or_default()
}

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn between(&mut self, range: Range<i64>) -> i64 {
        range.start + self.below((range.end - range.start) as u64) as i64
    }

    fn one_in(&mut self, count: u64) -> bool {
        self.below(count) == 0
    }

    fn pick<T: Clone>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize].clone()
    }

    fn maybe<T>(&mut self, one_in: u64, value: impl FnOnce(&mut Random) -> T) -> Option<T> {
        self.one_in(one_in).then(|| value(self))
    }
}

fn micros(at: Timestamp) -> i64 {
    at.as_micros()
}

fn at(us: i64) -> Timestamp {
    Timestamp::from_micros(us)
}

fn agent() -> Agent {
    Agent {
        name: "ada".parse().unwrap(),
        backend: Backend::Builtin { script: None },
        repeatable: false,
        tier: Tier::ReadOnly,
        credential: None,
        price: kernel::money::Price::default(),
        schedules_made: 0,
        denials: 0,
        raised_to_1: 0,
        raised_to_2: 0,
        changed_by: Vec::new(),
        registered_at: at(0),
        changed_at: at(0),
    }
}

/// Returns a trigger and the approximate gap between its slots in seconds.
fn trigger(random: &mut Random, now: i64) -> (Trigger, i64) {
    let cron =
        |text: &str| Trigger::Cron { expression: text.parse().unwrap(), dst: Default::default() };
    match random.below(4) {
        0 => (Trigger::Once { at_us: now + random.between(1..5_000) * SECOND_US }, 86_400),
        1 => {
            let seconds = random.pick(&[1, 7, 60, 3_600, 86_400, 604_800]);
            let every = Span::from_millis(seconds * 1_000).unwrap_or(EVERY_MIN);
            let anchor_us = random.pick(&[0, now, now + 17 * SECOND_US]);
            (Trigger::Interval { every, anchor_us }, seconds)
        }
        2 => {
            let times = random.pick(&["09:00", "00:00,02:30", "01:15,02:15,23:59:59"]);
            let weekdays = random.pick(&["mon-fri", "sat,sun", "mon"]);
            let (times, weekdays) = (times.parse().unwrap(), weekdays.parse().unwrap());
            (Trigger::Daily { times, weekdays, dst: Default::default() }, 28_800)
        }
        _ => {
            let (text, seconds) = random.pick(&[
                ("*/20 * * * * *", 20),
                ("* * * * *", 60),
                ("*/5 9-17 * * MON-FRI", 300),
                ("30 2 * * *", 86_400),
                ("0 */2 * * *", 7_200),
                ("0 0 L * *", 2_600_000),
                ("0 0 29 2 *", 100_000_000),
            ]);
            (cron(text), seconds)
        }
    }
}

fn terms(random: &mut Random, now: i64) -> Terms {
    let few = |random: &mut Random| random.between(1..6) as u32;
    let span = |random: &mut Random| {
        let seconds = random.pick(&[1, 30, 90, 4_000, 100_000, 3_000_000]);
        Span::from_millis(seconds * 1_000).unwrap()
    };
    let overlap = match random.below(6) {
        0 => Overlap::Skip,
        1 => Overlap::BufferOne,
        2 => Overlap::BufferAll(few(random)),
        3 => Overlap::CancelOther,
        4 => Overlap::TerminateOther,
        _ => Overlap::Allow(few(random)),
    };
    let missed = match random.below(4) {
        0 => Missed::Latest,
        1 => Missed::Earliest,
        2 => Missed::All(few(random)),
        _ => Missed::Skip,
    };
    Terms {
        overlap,
        missed,
        window: random.maybe(2, span),
        jitter: random.maybe(3, span),
        retry: Retry { attempts: Some(few(random)), ..Retry::default() },
        pause_after: random.below(4) as u32,
        resume: random.pick(&[Resume::Skip, Resume::AsMissed]),
        priority: 5,
        keys: Vec::new(),
        per_day: random.maybe(3, few),
        tokens_per_day: None,
        money_per_day: None,
        max_fires: random.maybe(3, |random| random.between(1..9) as u64),
        start_at: random.maybe(5, |random| at(now + random.between(-100..5_000) * SECOND_US)),
        end_at: random.maybe(5, |random| at(now + random.between(5_000..500_000) * SECOND_US)),
    }
}

/// A schedule under test, with its history.
struct World {
    random: Random,
    id: ScheduleId,
    definition: Definition,
    calendar: Calendar,
    /// Approximate gap between slots.
    slot_gap_s: i64,
    now: i64,
    tables: Tables,
    events: Vec<EventBody>,
    runs: u128,
    /// Every calendar slot while the schedule existed, up to the last decided one.
    walked: Vec<i64>,
    walked_until: i64,
    /// Final dispositions by row key; they must never change.
    final_dispositions: BTreeMap<String, Disposition>,
    decided: i64,
    next: Option<i64>,
    /// Runs per day; the day never goes back.
    days: BTreeMap<i64, u32>,
    consumed: BTreeSet<ApprovalId>,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed);
        let starts = [1_772_928_000, 1_792_800_000, 1_700_000_000, 4_000_000_000];
        let now = random.pick(&starts) * SECOND_US + random.between(0..DAY_US);
        let zone =
            ["UTC", "America/New_York", "Africa/Cairo", "Australia/Lord_Howe", "Asia/Kolkata"];
        let zone: Zone = random.pick(&zone).parse().unwrap();
        let (trigger, slot_gap_s) = trigger(&mut random, now);
        let agent = "ada".parse().unwrap();
        let definition = Definition {
            name: "random".into(),
            trigger: trigger.clone().into(),
            zone: zone.clone(),
            action: Action::Prompt { agent, prompt: "work".into() },
            tier: None,
            terms: terms(&mut random, now),
        };
        World {
            random,
            id: "sch_0123abcd".parse().unwrap(),
            definition,
            calendar: Calendar::new(trigger, zone).unwrap(),
            slot_gap_s,
            now,
            tables: Tables::default(),
            events: Vec::new(),
            runs: 0,
            walked: Vec::new(),
            walked_until: i64::MIN,
            final_dispositions: BTreeMap::new(),
            decided: i64::MIN,
            next: None,
            days: BTreeMap::new(),
            consumed: BTreeSet::new(),
        }
    }

    fn schedule(&self) -> Option<Schedule> {
        self.tables.get::<Schedule>(&self.id).cloned()
    }

    fn progress(&self) -> Option<Progress> {
        self.tables.get::<Progress>(&self.id).cloned()
    }

    fn all_runs(&self) -> Vec<(RunId, Run)> {
        let runs = self.tables.rows.iter().filter(|((noun, _), _)| *noun == Noun::Run);
        runs.filter_map(|((_, id), row)| Some((id.parse().unwrap(), row.get::<Run>()?.clone())))
            .collect()
    }

    /// The pending or granted approval of a run.
    fn approval_of(&self, run: &Run) -> Option<(ApprovalId, Approval)> {
        let id = run.approval.clone()?;
        let approval = self.tables.get::<Approval>(&id)?.clone();
        Some((id, approval))
    }

    /// An approval is open exactly while its run waits for it.
    fn check_approvals(&self) {
        let mut open = Vec::new();
        for (id, run) in self.all_runs() {
            let approval = self.approval_of(&run);
            assert_eq!(run.approval.is_some(), approval.is_some(), "{id}");
            match (&run.state, approval.as_ref().map(|(_, it)| it.state)) {
                (run::State::Parked, Some(approval::State::Pending { .. })) => {}
                (run::State::Queued { .. }, Some(approval::State::Approved { .. }) | None) => {}
                (run::State::Running { .. } | run::State::Ended(_), None) => {}
                other => panic!("{id}: {other:?}"),
            }
            open.extend(approval.map(|(id, _)| id));
        }
        for ((noun, id), row) in &self.tables.rows {
            if let (Noun::Approval, Some(due)) = (noun, row.due()) {
                assert!(open.iter().any(|open| open.as_str() == id), "no run waits until {due:?}");
            }
        }
    }

    fn commit(&mut self, bodies: Vec<EventBody>) {
        for body in bodies {
            for row in body.changed_rows() {
                let exists = self.tables.rows.contains_key(&(row.noun, row.id.clone()));
                assert!(!row.is_new || !exists, "{} is not new: {body:?}", row.id);
            }
            self.check_event(&body);
            self.tables.apply(&body);
            let label = body.label();
            let label = Label { kind: label.kind, version: label.version, noun_id: label.noun_id };
            let stored = serde_json::to_value(&body).unwrap();
            assert_eq!(EventBody::decode(label, stored).unwrap(), body);
            for row in body.changed_rows() {
                if let Some(state) = &self.tables.rows[&(row.noun, row.id)].state {
                    let stored = serde_json::to_value(state).unwrap();
                    assert_eq!(State::decode(row.noun, stored).unwrap(), *state);
                }
            }
            self.events.push(body);
        }
    }

    fn check_event(&mut self, body: &EventBody) {
        match body {
            EventBody::Run(_, run::Event::Queued(queued)) => {
                if matches!(queued.occurrence, Occurrence::Slot(_)) {
                    let progress = self.progress().unwrap();
                    assert_eq!(progress.status, Status::Active, "a slot fires during a pause");
                }
                if matches!(queued.occurrence, Occurrence::Backfill(_)) {
                    return;
                }
                let latest = self.days.last_key_value().map_or(i64::MIN, |(day, _)| *day);
                let day = micros(queued.at).div_euclid(DAY_US).max(latest);
                *self.days.entry(day).or_default() += 1;
            }
            // The schedule was added again: instants in between are not slots.
            EventBody::Schedule(_, schedule::Event::Added(added)) => self.restart_walk(added.at),
            EventBody::Schedule(_, schedule::Event::Changed(changed)) => {
                // Slots decided under the previous definition are in its rows.
                let decided = micros(self.progress().unwrap().decided_until);
                self.walk_until(decided);
                self.decided = decided;
                self.definition = (*changed.definition).clone();
                self.calendar = self.definition.calendar(None).unwrap();
                self.restart_walk(changed.at);
            }
            EventBody::Approval(id, approval::Event::Consumed(_)) => {
                assert!(self.consumed.insert(id.clone()), "{id} was consumed twice");
            }
            _ => {}
        }
    }

    fn restart_walk(&mut self, at: Timestamp) {
        self.walked_until = self.decided.max(micros(at));
        self.next = None;
    }

    fn walk_until(&mut self, decided: i64) {
        while let Some(slot) = self.walk_after(self.walked_until).filter(|slot| *slot <= decided) {
            self.walked.push(slot);
            self.walked_until = slot;
        }
    }

    fn new_run(&mut self) -> RunId {
        self.runs += 1;
        RunId::of(self.runs)
    }

    fn command(&mut self, command: Command) -> Result<Vec<EventBody>, schedule::Refusal> {
        let (schedule, progress, agent) = (self.schedule(), self.progress(), agent());
        let context = schedule::ScheduleContext {
            id: &self.id,
            schedule: schedule.as_ref(),
            progress: progress.as_ref(),
            agent: Some(&agent),
            tool: None,
            upstream: &[],
            fired: None,
            caller: None,
            now: at(self.now),
        };
        let bodies = schedule::decide(context, &Actor::local_user(1), command);
        if let Ok(bodies) = &bodies {
            self.commit(bodies.clone());
        }
        bodies
    }

    fn tick(&mut self) {
        let (Some(schedule), Some(progress)) = (self.schedule(), self.progress()) else { return };
        let live: Vec<(RunId, Run)> =
            self.all_runs().into_iter().filter(|(id, _)| progress.live.contains(id)).collect();
        let backfill_next = progress.backfill.as_ref().and_then(|it| it.next);
        let backfill_slot = backfill_next.and_then(|next| self.slot_with_run(next));
        let tick_input = Tick::new(&self.id, &schedule, &self.calendar, at(self.now));
        let tick_input = Tick { live: &live, backfill_slot: backfill_slot.as_ref(), ..tick_input };
        let mut runs = self.runs;
        let mut new_run = || {
            runs += 1;
            RunId::of(runs)
        };
        let bodies = tick(tick_input, &progress, &mut new_run);
        self.runs = runs;
        if progress.due().is_none_or(|due| self.now < micros(due)) {
            assert_eq!(bodies, Vec::new(), "it was not due");
            return;
        }
        assert!(!bodies.is_empty(), "a tick must advance a due schedule");
        self.commit(bodies);
        let after = self.progress().unwrap();
        if progress.backfill.is_none() {
            let is_due = after.due().is_some_and(|due| micros(due) <= self.now);
            assert!(!is_due, "it is still due: {after:?}");
        }
        let taken = |it: &Progress| it.fires + it.waiting.len() as u64;
        let most = match schedule.definition.terms.missed {
            Missed::Latest | Missed::Skip => 1,
            Missed::Earliest => 2,
            Missed::All(max) => u64::from(max) + 1,
        };
        assert!(taken(&after) <= taken(&progress) + most, "too many slots are caught up");
    }

    /// The row of a slot that has a run: its own or that of a backfill.
    fn slot_with_run(&self, nominal: Timestamp) -> Option<Slot> {
        let keys = [slot::backfill_key(&self.id, nominal), slot::key(&self.id, nominal)];
        let mut slots = keys.iter().filter_map(|key| self.tables.get::<Slot>(key));
        slots.find(|slot| matches!(slot.outcome, SlotOutcome::Run { .. })).cloned()
    }

    fn change_random_run(&mut self) {
        let runs = self.all_runs();
        if runs.is_empty() {
            return;
        }
        let (id, run) = self.random.pick(&runs);
        let (schedule, progress, agent) = (self.schedule(), self.progress(), agent());
        let run_context = run::RunContext {
            id: &id,
            run: &run,
            definition: schedule.as_ref().map(|it| &it.definition),
            progress: progress.as_ref(),
            now: at(self.now),
        };
        let approval = self.approval_of(&run);
        let actor = Actor::local_user(1);
        let has_agent = !self.random.one_in(10);
        let kinds = [
            FailureKind::Transient { wait_us: 5 },
            FailureKind::Permanent,
            FailureKind::PaymentRequired,
            FailureKind::Delivered,
            FailureKind::Indeterminate,
        ];
        let kind = self.random.pick(&kinds);
        let failure = Failure { cause: Cause::new("oops", "it broke"), kind };
        let result = if self.random.one_in(2) { Ok(()) } else { Err(failure) };
        if let Some((id, approval)) = approval.as_ref().filter(|_| self.random.one_in(3)) {
            let (shown, note) = (approval.plan_hash.clone(), None);
            let rules = &approval.plan.policy;
            let context =
                ApprovalContext { id, approval, run_context, agent: None, active_policy: rules };
            let decided = match self.random.below(5) {
                0..2 => {
                    decide_approval(context, ApprovalCommand::Approve { shown, note, signed: None })
                }
                2 => decide_approval(context, ApprovalCommand::Deny { shown, note }),
                3 => decide_approval(context, ApprovalCommand::Revoke { note }),
                _ => approval::expire(context),
            };
            return self.commit(decided);
        }
        let decided = match self.random.below(12) {
            0..3 => {
                let verdict = self.random.pick(&[
                    Verdict::Allow,
                    Verdict::Allow,
                    Verdict::Allow,
                    Verdict::Ask,
                    Verdict::Ask,
                    Verdict::Deny,
                ]);
                Ok(with_start_context(
                    (&PolicySetup::default(), &[]),
                    verdict,
                    approval.as_ref().map(|(_, it)| it),
                    |start_context| {
                        run::start(
                            run_context,
                            has_agent.then_some(&agent),
                            "me",
                            start_context,
                            run_context.now,
                        )
                    },
                ))
            }
            3..8 => {
                let epoch = run.epoch - u32::from(0 < run.epoch && self.random.one_in(5));
                {
                    let usage = self
                        .random
                        .one_in(2)
                        .then_some(Usage { input_tokens: 7, output_tokens: 1 });
                    let report = Report { result, output: None, usage };
                    run::finish(run_context, epoch, report, self.random.next())
                }
            }
            8 => Ok(run::recover(run_context)),
            9 => run::decide(run_context, &actor, run::Command::Cancel { note: None }),
            10 => run::decide(run_context, &actor, run::Command::Retry),
            _ => {
                let settle = run::Command::Settle { outcome: Outcome::Done, note: None };
                run::decide(run_context, &actor, settle)
            }
        };
        self.commit(decided.unwrap_or_default());
    }

    fn step(&mut self) {
        let longest_s = self.slot_gap_s.saturating_mul(SLOTS_MAX / 10).clamp(600, 366 * 86_400);
        match self.random.below(27) {
            0..3 => self.now += self.random.between(0..3 * self.slot_gap_s.min(86_400) * SECOND_US),
            3 => self.now += self.random.between(0..longest_s * SECOND_US),
            4 => self.now -= self.random.between(0..2 * DAY_US),
            // Exactly to the due instant.
            5..8 => self.now = self.progress().and_then(|it| it.due()).map_or(self.now, micros),
            8..13 => self.tick(),
            13..20 => self.change_random_run(),
            20 => drop(self.command(Command::Pause { note: None })),
            21 => drop(self.command(Command::Resume)),
            22 => {
                let run = self.new_run();
                let key = self.runs.to_string();
                drop(self.command(Command::Fire { run, key }));
            }
            23 => {
                let from = at(self.now - self.random.between(0..20 * self.slot_gap_s * SECOND_US));
                let backfill = Backfill { from, to: at(self.now), at_once: None, gap: None };
                drop(self.command(Command::Backfill(backfill)));
            }
            24 => drop(self.command(Command::EndBackfill)),
            25 => {
                let mut definition = Box::new(self.definition.clone());
                definition.terms.missed = self.random.pick(&[Missed::Latest, Missed::Skip]);
                if self.random.one_in(2) {
                    let (trigger, slot_gap_s) = trigger(&mut self.random, self.now);
                    definition.trigger = trigger.into();
                    if self.command(Command::Edit { definition }).is_ok_and(|it| !it.is_empty()) {
                        self.slot_gap_s = slot_gap_s;
                    }
                } else {
                    drop(self.command(Command::Edit { definition }));
                }
            }
            _ if self.random.one_in(3) => drop(self.command(Command::Remove)),
            _ => {
                let definition = Box::new(self.definition.clone());
                drop(self.command(Command::Add { definition, paused: false }));
            }
        }
    }

    /// Checks all invariants.
    fn check(&mut self) {
        let Some(progress) = self.progress() else { return };
        let terms = self.definition.terms.clone();
        let decided = micros(progress.decided_until);
        assert!(self.decided <= decided, "decided_until must only grow");
        self.decided = decided;
        let taken = progress.fires + progress.waiting.len() as u64;
        let is_over = progress.status == Status::Removed || Some(taken) == terms.max_fires;
        let expected = self.walk_after(decided).filter(|_| !is_over);
        assert_eq!(
            progress.next_fire.slot.map(micros),
            expected,
            "the next slot is the first undecided one"
        );
        if let Some(next) = expected {
            assert!(decided < next, "the next slot is decided");
            assert!(self.next.is_none_or(|before| before <= next), "the next slot went back");
            assert!(
                next <= progress.next_fire.due.map(micros).unwrap(),
                "due before its nominal instant"
            );
            self.next = Some(next);
        }
        let live = self.all_runs().into_iter();
        let live = live.filter(|(_, run)| !matches!(run.state, run::State::Ended(_)));
        let mut live: Vec<RunId> = live.map(|(id, _)| id).collect();
        let mut known = progress.live.clone();
        known.sort();
        live.sort();
        assert_eq!(known, live);
        assert!(live.len() <= terms.overlap.live_max(), "{} live runs", live.len());
        let catch_up = if let Missed::All(max) = terms.missed { max as usize } else { 0 };
        let buffer = match terms.overlap {
            // Behind a backfill only.
            Overlap::Skip | Overlap::Allow(_) => 1,
            Overlap::BufferOne | Overlap::CancelOther | Overlap::TerminateOther => 1,
            Overlap::BufferAll(max) => max as usize,
        };
        assert!(progress.waiting.len() <= buffer.max(catch_up), "{:?} wait", progress.waiting);
        assert!(progress.waiting.is_sorted());
        if let Some(max) = terms.max_fires {
            assert!(taken <= max);
        }
        if let Some(max) = terms.per_day {
            assert!(self.days.values().all(|runs| *runs <= max), "{:?}", self.days);
        }
        self.check_approvals();
        self.check_slots(decided, &progress);
    }

    fn walk_after(&self, after: i64) -> Option<i64> {
        let terms = &self.definition.terms;
        let (start, end) = (terms.start_at.map(micros), terms.end_at.map(micros));
        let mut slots =
            self.calendar.slots_after(after).skip_while(|slot| start.is_some_and(|it| *slot < it));
        slots.next().filter(|slot| end.is_none_or(|end| *slot <= end))
    }

    /// Every slot up to the decided one is in exactly one row, and none after it.
    fn check_slots(&mut self, decided: i64, progress: &Progress) {
        self.walk_until(decided);
        let mut walked = self.walked.as_slice();
        let mut waiting = Vec::new();
        for ((_, key), row) in &self.tables.rows {
            let is_calendar_slot = !key.contains("manual") && !key.contains("backfill");
            let Some(slot) = row.get::<Slot>().filter(|_| is_calendar_slot) else { continue };
            let (range, rest) =
                walked.split_at_checked(slot.count as usize).expect("too many slots");
            assert_eq!(range.first(), Some(&micros(slot.first)), "{slot:?}");
            assert_eq!(range.last(), Some(&micros(slot.last)), "{slot:?}");
            walked = rest;
            let disposition = self.disposition(slot, progress);
            if let SlotOutcome::Buffered = slot.outcome {
                waiting.push(slot.last);
            }
            if let SlotOutcome::Passed { disposition: Disposition::Coalesced, into, .. } =
                slot.outcome
            {
                assert!(
                    self.walked.contains(&micros(into.unwrap())),
                    "merged into no slot: {slot:?}"
                );
            }
            match self.final_dispositions.get(key) {
                Some(before) => {
                    assert_eq!(*before, disposition, "the disposition of {key} was final")
                }
                None if disposition.is_final() => {
                    self.final_dispositions.insert(key.clone(), disposition);
                }
                None => {}
            }
        }
        assert!(walked.is_empty(), "no row for {walked:?}");
        assert_eq!(waiting, progress.waiting);
    }

    fn disposition(&self, slot: &Slot, progress: &Progress) -> Disposition {
        let run = match &slot.outcome {
            SlotOutcome::Run { run, .. } => self.tables.get::<Run>(run).cloned(),
            SlotOutcome::Passed { .. } | SlotOutcome::Buffered => None,
        };
        assert!(slot.describe(run.as_ref(), progress).contains("run"));
        slot.disposition(run.as_ref())
    }
}

/// Prints the seed if the test panics.
struct Seed(u64);

impl Drop for Seed {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("seed {}", self.0);
        }
    }
}

#[test]
fn every_slot_of_random_histories_is_accounted_for() {
    let mut decided = 0;
    for seed in SEEDS {
        let _seed = Seed(seed);
        let mut world = World::new(seed);
        let definition = Box::new(world.definition.clone());
        drop(world.command(Command::Add { definition, paused: false }));
        for _ in 0..STEPS {
            world.step();
            world.check();
        }
        let mut replayed = Tables::default();
        world.events.iter().for_each(|body| replayed.apply(body));
        assert_eq!(replayed, world.tables);
        decided += world.walked.len();
    }
    assert!(20_000 < decided, "only {decided} slots were checked");
}

#[test]
fn previewed_slots_are_the_ones_that_fire() {
    for seed in SEEDS {
        let _seed = Seed(seed);
        let mut world = World::new(seed);
        world.definition.terms.per_day = None;
        let definition = Box::new(world.definition.clone());
        if world.command(Command::Add { definition, paused: false }).is_err() {
            continue;
        }
        let (schedule, progress) = (world.schedule().unwrap(), world.progress().unwrap());
        let tick_input = Tick::new(&world.id, &schedule, &world.calendar, at(world.now));
        let previewed = tick_input.upcoming(&progress, 20);
        let mut fired = Vec::new();
        for _ in 0..20 {
            let Some(due) = world.progress().unwrap().due() else { break };
            world.now = micros(due);
            world.tick();
            for (id, run) in world.all_runs() {
                if matches!(run.state, run::State::Ended(_)) {
                    continue;
                }
                fired.extend(run.slot);
                let (agent, now) = (agent(), at(world.now));
                let schedule = world.schedule();
                let run_context = |run| run::RunContext {
                    id: &id,
                    run,
                    definition: schedule.as_ref().map(|it| &it.definition),
                    progress: None,
                    now,
                };
                let started = with_start_context(
                    (&PolicySetup::default(), &[]),
                    Verdict::Allow,
                    None,
                    |start_context| {
                        run::start(
                            run_context(&run),
                            Some(&agent),
                            "me",
                            start_context,
                            run_context(&run).now,
                        )
                    },
                );
                world.commit(started);
                let run = world.tables.get::<Run>(&id).unwrap().clone();
                let report = Report { result: Ok(()), output: None, usage: None };
                let ended = run::finish(run_context(&run), 1, report, 0).unwrap();
                world.commit(ended);
            }
            world.check();
        }
        assert_eq!(fired, previewed);
    }
}
