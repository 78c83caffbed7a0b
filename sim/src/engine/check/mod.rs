//! Checks the invariants after every step, from the ledger and from what the backend recorded.
//!
//! The ledger is read entry by entry, so that every invariant is checked at every prefix. Slots, live runs and attempts
//! are counted independently of the kernel's fold, which is only compared with the tables. A message starts with the
//! invariant of `scheduling.md`, 19.

mod acknowledgements;
mod effects;
mod queries;
mod reads;
mod run;
mod schedule;
mod spending;
mod start_inputs;
mod tables;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, Result, ensure};
use kernel::agent::AgentName;
use kernel::approval::{self, Approval, Requested};
use kernel::authority::{Authority, Event as AuthorityEvent};
use kernel::backend::Tier;
use kernel::budget::Charge;
use kernel::installation::Event as InstallationEvent;
use kernel::progress::Progress;
use kernel::run::{Event as RunEvent, Occurrence, Run, StartBlocker};
use kernel::schedule::Event as ScheduleEvent;
use kernel::slot::Source;
use kernel::{ApprovalId, EventBody, Noun, RunId, ScheduleId, Tables};
use ledger::{Chain, EntryRef};

use super::history::History;
use super::process::LIMITS;
use super::scripted_backend::Attempts;
use super::store_view::StoreView;
use crate::fold::decode;
use run::{RunTrack, StartedAttempt};
use schedule::ScheduleTrack;
use spending::Spending;
use start_inputs::{StartInputs, check_no_dependency_cycle};

#[derive(Debug)]
pub(super) struct Audit {
    view: StoreView,
    chain: Chain,
    tables: Tables,
    schedules: BTreeMap<ScheduleId, ScheduleTrack>,
    runs: BTreeMap<RunId, RunTrack>,
    /// The slots, events, runs and manual keys that fired a schedule: each has one run.
    run_keys: BTreeSet<(ScheduleId, String)>,
    /// The last entry of each call.
    causes: HashMap<String, u64>,
    /// When the cancel of a run was acknowledged, and how often the run had been retried by hand until then.
    cancels: BTreeMap<RunId, (u128, u32)>,
    /// A freeze is in effect that the ledger does not have yet.
    has_unrecorded_freeze: bool,
    /// Runs that started on a day, by agent and in total.
    charged: BTreeMap<(Option<AgentName>, i64), i64>,
    spending: Spending,
    pub(super) history: History,
}

impl Audit {
    pub(super) fn new(view: StoreView) -> Audit {
        Audit {
            view,
            chain: Chain::empty(),
            tables: Tables::default(),
            schedules: BTreeMap::new(),
            runs: BTreeMap::new(),
            run_keys: BTreeSet::new(),
            causes: HashMap::new(),
            cancels: BTreeMap::new(),
            has_unrecorded_freeze: false,
            history: History::default(),
            charged: BTreeMap::new(),
            spending: Spending::default(),
        }
    }

    fn entries(&self) -> u64 {
        self.chain.size()
    }

    /// Reads the new entries and checks them.
    pub(super) fn read_new_entries(&mut self, attempts: &Attempts) -> Result<()> {
        let mut rows = BTreeSet::new();
        loop {
            let page = self.view.entries(self.chain.size());
            if page.is_empty() {
                break;
            }
            for fields in page.iter() {
                self.apply_entry(&fields, attempts, &mut rows)
                    .with_context(|| format!("at entry {} of the ledger", fields.seq))?;
            }
        }
        self.check_rows(rows)?;
        for (id, track) in &mut self.schedules {
            let progress = self.tables.get::<Progress>(id);
            track.check_committed(progress).with_context(|| format!("schedule {id}"))?;
        }
        self.check_effects(attempts)
    }

    fn apply_entry(
        &mut self,
        fields: &EntryRef<'_>,
        attempts: &Attempts,
        rows: &mut BTreeSet<(Noun, String)>,
    ) -> Result<()> {
        self.chain.verify_next(fields)?;
        let body = decode(fields)?;
        self.history.add(fields, &body);
        self.check_cause(fields)?;
        if let EventBody::Authority(_, AuthorityEvent::Frozen(_)) = &body {
            ensure!(!self.is_frozen(), "I11: a freeze is recorded again");
            self.has_unrecorded_freeze = false;
        }
        self.tables.apply(&body);
        for (counter, _) in body.counter_deltas() {
            let count = self.tables.counters.get(&counter).copied().unwrap_or_default();
            ensure!(
                (0..=counter.max_value(&LIMITS)).contains(&count),
                "I8: {counter:?} is {count}"
            );
        }
        rows.extend(body.changed_rows().into_iter().map(|row| (row.noun, row.id)));
        match &body {
            EventBody::Schedule(id, event) => self.apply_schedule_event(id, event)?,
            EventBody::Run(id, event) => self.apply_run_event(id, event, attempts)?,
            EventBody::Installation(_, InstallationEvent::Rebuilt(it)) => {
                ensure!(it.differences == 0, "the engine found wrong tables: {it:?}")
            }
            EventBody::Approval(id, event) => {
                let run = match event {
                    approval::Event::Requested(requested) => {
                        self.check_requested_once(id, requested)?;
                        &requested.plan.run
                    }
                    approval::Event::Assented(assented) => &assented.run,
                    approval::Event::Decided(decided) => &decided.run,
                    approval::Event::Consumed(consumed) => &consumed.run,
                    approval::Event::Lapsed(lapsed) => &lapsed.run,
                };
                let track = self.runs.get_mut(run).with_context(|| format!("{run} of {id}"))?;
                let by = fields.actor;
                track
                    .apply_approval_event(id, event, by)
                    .with_context(|| format!("{run}: {event:?}"))?;
            }
            _ => {}
        }
        for row in body.changed_rows().into_iter().filter(|row| row.noun == Noun::Progress) {
            let id: ScheduleId = row.id.parse()?;
            let (track, progress) = (self.schedules.get_mut(&id), self.tables.get::<Progress>(&id));
            if let (Some(track), Some(progress)) = (track, progress) {
                track
                    .check_progress(progress)
                    .with_context(|| format!("schedule {id}: {body:?}"))?;
            }
        }
        Ok(())
    }

    fn apply_schedule_event(&mut self, id: &ScheduleId, event: &ScheduleEvent) -> Result<()> {
        check_no_dependency_cycle(&self.tables, id)?;
        if let ScheduleEvent::Added(added) = event {
            let before = self.schedules.remove(id);
            self.schedules.insert(id.clone(), ScheduleTrack::new(added, before)?);
            return Ok(());
        }
        let track = self.schedules.get_mut(id).with_context(|| format!("{id} was never added"))?;
        track.apply(event).with_context(|| format!("schedule {id}: {event:?}"))
    }

    fn apply_run_event(&mut self, id: &RunId, event: &RunEvent, attempts: &Attempts) -> Result<()> {
        if let RunEvent::Queued(queued) = event {
            let key = match &queued.occurrence {
                // A slot has one run, whether the timer or a backfill fired it.
                Occurrence::Slot(fired) => fired.nominal.as_micros().to_string(),
                Occurrence::Backfill(fill) => fill.nominal.as_micros().to_string(),
                Occurrence::Manual { key } => format!("manual {key}"),
            };
            self.claim_run_key(&queued.schedule, key)?;
            match queued.source() {
                Some(Source::Run(run)) => self.claim_run_key(&queued.schedule, run.to_string())?,
                Some(Source::Event(event)) => {
                    self.claim_run_key(&queued.schedule, format!("event {event}"))?;
                }
                None => {}
            }
            let is_new = self.runs.insert(id.clone(), RunTrack::new(queued)).is_none();
            ensure!(is_new, "S2: run {id} was queued twice");
        }
        match event {
            RunEvent::Started(started) => {
                let is_frozen = self.is_frozen() || self.has_unrecorded_freeze;
                ensure!(!is_frozen, "I11: run {id} is started during a freeze");
                let is_counted = Tier::ReadOnly < started.tier;
                ensure!(started.charge.is_some() == is_counted, "I8: {started:?} is not counted");
                self.charge(started.charge.as_ref(), 1)?;
                let run = self.tables.get::<Run>(id).context("a run starts that does not exist")?;
                let inputs = StartInputs::of(&self.tables, run)?;
                inputs.check(started)?;
                let (agent, terms) = (&inputs.agent.name, &inputs.definition.terms);
                self.spending.record_start(id, (agent, &run.schedule), started, terms)?;
                if let Some(run) = self.runs.get_mut(id) {
                    let prompt = inputs.prompt.to_owned();
                    let (is_repeatable, requeued) = (started.repeatable, run.requeued);
                    let start = StartedAttempt { prompt, is_repeatable, requeued };
                    run.starts.insert(started.epoch, start);
                }
            }
            RunEvent::Retried(retried) => {
                self.charge(retried.refund.as_ref(), -1)?;
                self.spending.record_end(id, retried.spent.as_ref(), retried.released.as_ref())?;
            }
            RunEvent::Ended(ended) => {
                self.charge(ended.refund.as_ref(), -1)?;
                if ended.blocked_by == Some(StartBlocker::Budget) {
                    let why = ended.cause.as_ref().map_or("", |cause| &cause.message);
                    self.spending.record_shortage(why);
                }
                self.spending.record_end(id, ended.spent.as_ref(), ended.released.as_ref())?;
            }
            _ => {}
        }
        let run = self.runs.get_mut(id).with_context(|| format!("{id} was never queued"))?;
        let about = || format!("run {id} of {}", run.schedule);
        let (about, schedule) = (about(), run.schedule.clone());
        run.apply(id, event, attempts).with_context(|| about.clone())?;
        let track = self.schedules.get_mut(&schedule).with_context(|| about.clone())?;
        track.apply_run_event(id, event).with_context(|| format!("schedule {schedule}, {about}"))
    }

    /// Counts a start, and checks that no more runs start in a day than the budget allows, whatever the clock shows.
    fn charge(&mut self, charge: Option<&Charge>, add: i64) -> Result<()> {
        let Some(Charge { agent, day }) = charge else { return Ok(()) };
        let all = self.charged.entry((None, *day)).or_default();
        *all += add;
        ensure!((0..=LIMITS.runs).contains(all), "I8: {all} runs on day {day}");
        let Some(agent) = agent else { return Ok(()) };
        let own = self.charged.entry((Some(agent.clone()), *day)).or_default();
        *own += add;
        ensure!((0..=LIMITS.runs_per_agent).contains(own), "I8: {own} runs of {agent} on {day}");
        Ok(())
    }

    /// Checks that no approval for the same action is pending.
    fn check_requested_once(&self, id: &ApprovalId, requested: &Requested) -> Result<()> {
        let from = (Noun::Approval, String::new());
        let rows = self.tables.rows.range(from..);
        for ((_, other), row) in rows.take_while(|((noun, _), _)| *noun == Noun::Approval) {
            let Some(approval) = row.get::<Approval>() else { continue };
            let is_pending = matches!(
                approval.state,
                approval::State::Pending { approve_by } if requested.at < approve_by
            );
            let is_same = approval.action_hash == requested.action_hash && other != id.as_str();
            ensure!(!(is_pending && is_same), "{id} requests the same approval as {other}");
        }
        Ok(())
    }

    pub(super) fn is_frozen(&self) -> bool {
        let mut rows = self.tables.rows.range((Noun::Authority, String::new())..);
        let authority = rows.next().and_then(|(_, row)| row.get::<Authority>());
        authority.is_some_and(|authority| authority.frozen.is_some())
    }

    fn claim_run_key(&mut self, schedule: &ScheduleId, key: String) -> Result<()> {
        let is_new = self.run_keys.insert((schedule.clone(), key.clone()));
        ensure!(is_new, "S2: {schedule} has a second run for {key}");
        Ok(())
    }

    /// A call makes one commit, so its entries are consecutive.
    fn check_cause(&mut self, fields: &EntryRef<'_>) -> Result<()> {
        if fields.cause.is_empty() {
            return Ok(());
        }
        let before = self.causes.insert(fields.cause.to_owned(), fields.seq);
        let is_consecutive = before.is_none_or(|before| before + 1 == fields.seq);
        ensure!(is_consecutive, "`{}` was executed twice, first at {before:?}", fields.cause);
        Ok(())
    }
}
