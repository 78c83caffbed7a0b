//! What must be so after every step, by the log and by what was seen outside it.
//!
//! The log is followed entry by entry, so that what holds at every prefix of it is checked at every
//! prefix. Slots, live runs and tries are counted again here, without the kernel's own fold; that one
//! is only compared with the tables. A message begins with the invariant of `scheduling.md`, 19.

mod effects;
mod look;
mod promises;
mod reads;
mod run;
mod schedule;
mod spending;
mod tables;
mod written;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use anyhow::{Context, Result, ensure};
use kernel::agent::AgentName;
use kernel::approval::{self, Asked};
use kernel::backend::Tier;
use kernel::budget::Charge;
use kernel::run::{Event as RunEvent, Lack, Occurrence};
use kernel::schedule::Event as ScheduleEvent;
use kernel::slot::Source;
use kernel::tables::{deltas, touched};
use kernel::watch::Event as WatchEvent;
use kernel::{ApprovalId, Body, Noun, RunId, ScheduleId, State, Tables};
use ledger::{Chain, Fields};

use super::hands::Tries;
use super::history::History;
use super::peek::Peek;
use super::process::LIMITS;
use crate::fold::decode;
use run::{Begun, RunTrack};
use schedule::Track;
use spending::Spending;
use written::{Written, check_chain};

#[derive(Debug)]
pub(super) struct Audit {
    peek: Peek,
    chain: Chain,
    tables: Tables,
    schedules: BTreeMap<ScheduleId, Track>,
    runs: BTreeMap<RunId, RunTrack>,
    /// What runs stand for; there is one for each.
    run_keys: BTreeSet<(ScheduleId, String)>,
    /// The last entry that a call led to.
    causes: HashMap<String, u64>,
    /// When people were told that a run is cancelled, and how often it had been asked for by then.
    cancels: BTreeMap<RunId, (u128, u32)>,
    /// Runs of an agent, or of all, that were begun on a day.
    charged: BTreeMap<(Option<AgentName>, i64), i64>,
    spending: Spending,
    pub(super) history: History,
}

impl Audit {
    pub(super) fn new(peek: Peek) -> Audit {
        Audit {
            peek,
            chain: Chain::empty(),
            tables: Tables::default(),
            schedules: BTreeMap::new(),
            runs: BTreeMap::new(),
            run_keys: BTreeSet::new(),
            causes: HashMap::new(),
            cancels: BTreeMap::new(),
            history: History::default(),
            charged: BTreeMap::new(),
            spending: Spending::default(),
        }
    }

    fn entries(&self) -> u64 {
        self.chain.size()
    }

    /// Looks at all that is new.
    pub(super) fn follow(&mut self, tries: &Tries) -> Result<()> {
        let mut rows = BTreeSet::new();
        loop {
            let page = self.peek.entries(self.chain.size());
            if page.is_empty() {
                break;
            }
            for fields in page.iter() {
                self.entry(&fields, tries, &mut rows)
                    .with_context(|| format!("at entry {} of the log", fields.seq))?;
            }
        }
        self.check_rows(rows)?;
        for (id, track) in &mut self.schedules {
            let progress = progress(&self.tables, id);
            track.check_now(progress).with_context(|| format!("schedule {id}"))?;
        }
        self.check_effects(tries)
    }

    fn entry(
        &mut self,
        fields: &Fields<'_>,
        tries: &Tries,
        rows: &mut BTreeSet<(Noun, String)>,
    ) -> Result<()> {
        self.chain.check(fields)?;
        let body = decode(fields)?;
        self.history.add(fields, &body);
        self.check_cause(fields)?;
        self.tables.apply(&body);
        for (counter, _) in deltas(&body) {
            let count = self.tables.counters.get(&counter).copied().unwrap_or_default();
            ensure!((0..=counter.limit(&LIMITS)).contains(&count), "I8: {counter:?} is {count}");
        }
        rows.extend(touched(&body).into_iter().map(|row| (row.noun, row.id)));
        match &body {
            Body::Schedule(id, event) => self.of_schedule(id, event)?,
            Body::Run(id, event) => self.of_run(id, event, tries)?,
            Body::Watch(_, WatchEvent::Rebuilt(it)) => {
                ensure!(it.differences == 0, "the watch found wrong tables: {it:?}")
            }
            Body::Approval(id, event) => {
                let run = match event {
                    approval::Event::Asked(asked) => {
                        self.check_asked_once(id, asked)?;
                        &asked.plan.run
                    }
                    approval::Event::Assented(assented) => &assented.run,
                    approval::Event::Decided(decided) => &decided.run,
                    approval::Event::Consumed(consumed) => &consumed.run,
                    approval::Event::Lapsed(lapsed) => &lapsed.run,
                };
                let track = self.runs.get_mut(run).with_context(|| format!("{run} of {id}"))?;
                let by = fields.actor;
                track.answered(id, event, by).with_context(|| format!("{run}: {event:?}"))?;
            }
            Body::Watch(..) | Body::Agent(..) => {}
            Body::Authority(..) | Body::Token(..) | Body::Tool(..) => {}
        }
        for row in touched(&body).into_iter().filter(|row| row.noun == Noun::Progress) {
            let id: ScheduleId = row.id.parse()?;
            let (track, progress) = (self.schedules.get_mut(&id), progress(&self.tables, &id));
            if let (Some(track), Some(progress)) = (track, progress) {
                track
                    .check_progress(progress)
                    .with_context(|| format!("schedule {id}: {body:?}"))?;
            }
        }
        Ok(())
    }

    fn of_schedule(&mut self, id: &ScheduleId, event: &ScheduleEvent) -> Result<()> {
        check_chain(&self.tables, id)?;
        if let ScheduleEvent::Added(added) = event {
            let before = self.schedules.remove(id);
            self.schedules.insert(id.clone(), Track::new(added, before)?);
            return Ok(());
        }
        let track = self.schedules.get_mut(id).with_context(|| format!("{id} was never added"))?;
        track.happened(event).with_context(|| format!("schedule {id}: {event:?}"))
    }

    fn of_run(&mut self, id: &RunId, event: &RunEvent, tries: &Tries) -> Result<()> {
        if let RunEvent::Queued(queued) = event {
            let key = match &queued.occurrence {
                // A slot has one run, whether it was due or is run by a backfill.
                Occurrence::Slot(fired) => fired.nominal.as_micros().to_string(),
                Occurrence::Backfill(fill) => fill.nominal.as_micros().to_string(),
                Occurrence::Manual { key } => format!("by hand {key}"),
            };
            self.take_key(&queued.schedule, key)?;
            match queued.source() {
                Some(Source::Run(run)) => self.take_key(&queued.schedule, run.to_string())?,
                Some(Source::Event(event)) => {
                    self.take_key(&queued.schedule, format!("event {event}"))?;
                }
                None => {}
            }
            let new = self.runs.insert(id.clone(), RunTrack::new(queued)).is_none();
            ensure!(new, "S2: run {id} was queued twice");
        }
        match event {
            RunEvent::Started(started) => {
                ensure!(!self.is_frozen(), "I11: run {id} is started while the watch is frozen");
                let is_counted = Tier::ReadOnly < started.tier;
                ensure!(started.charge.is_some() == is_counted, "I8: {started:?} is not counted");
                self.charge(started.charge.as_ref(), 1)?;
                let run = run(&self.tables, id).context("a run begins that is not there")?;
                let written = Written::of(&self.tables, run)?;
                written.check(started)?;
                let (agent, terms) = (&written.agent.name, &written.definition.terms);
                self.spending.begins(id, (agent, &run.schedule), started, terms)?;
                if let Some(run) = self.runs.get_mut(id) {
                    let prompt = written.prompt.to_owned();
                    let (is_repeatable, requeued) = (started.repeatable, run.requeued);
                    let begun = Begun { prompt, is_repeatable, requeued };
                    run.begun.insert(started.epoch, begun);
                }
            }
            RunEvent::Retried(retried) => {
                self.charge(retried.refund.as_ref(), -1)?;
                self.spending.ends(id, retried.spent.as_ref(), retried.frees.as_ref())?;
            }
            RunEvent::Ended(ended) => {
                self.charge(ended.refund.as_ref(), -1)?;
                if ended.lacking == Some(Lack::Budget) {
                    let why = ended.cause.as_ref().map_or("", |cause| &cause.message);
                    self.spending.lacked(why);
                }
                self.spending.ends(id, ended.spent.as_ref(), ended.frees.as_ref())?;
            }
            _ => {}
        }
        let run = self.runs.get_mut(id).with_context(|| format!("{id} was never queued"))?;
        let about = || format!("run {id} of {}", run.schedule);
        let (about, schedule) = (about(), run.schedule.clone());
        run.happened(id, event, tries).with_context(|| about.clone())?;
        let track = self.schedules.get_mut(&schedule).with_context(|| about.clone())?;
        track.run_happened(id, event).with_context(|| format!("schedule {schedule}, {about}"))
    }

    /// No more begin in a day than may, whatever the clock shows.
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

    /// Nobody has the same question before them twice.
    fn check_asked_once(&self, id: &ApprovalId, asked: &Asked) -> Result<()> {
        let from = (Noun::Approval, String::new());
        let rows = self.tables.rows.range(from..);
        for ((_, other), row) in rows.take_while(|((noun, _), _)| *noun == Noun::Approval) {
            let Some(State::Approval(question)) = &row.state else { continue };
            let is_open = matches!(question.state, approval::State::Pending { approve_by } if asked.at < approve_by);
            let is_same = question.action_hash == asked.action_hash && other != id.as_str();
            ensure!(!(is_open && is_same), "{id} asks what {other} asks");
        }
        Ok(())
    }

    fn is_frozen(&self) -> bool {
        let mut rows = self.tables.rows.range((Noun::Authority, String::new())..);
        match rows.next().and_then(|(_, row)| row.state.as_ref()) {
            Some(State::Authority(authority)) => authority.frozen.is_some(),
            _ => false,
        }
    }

    fn take_key(&mut self, schedule: &ScheduleId, key: String) -> Result<()> {
        let is_new = self.run_keys.insert((schedule.clone(), key.clone()));
        ensure!(is_new, "S2: there is a second run of {schedule} for {key}");
        Ok(())
    }

    /// What one call led to is one commit, so its entries follow one another.
    fn check_cause(&mut self, fields: &Fields<'_>) -> Result<()> {
        if fields.cause.is_empty() {
            return Ok(());
        }
        let before = self.causes.insert(fields.cause.to_owned(), fields.seq);
        let is_one = before.is_none_or(|before| before + 1 == fields.seq);
        ensure!(is_one, "`{}` was carried out twice, the first time at {before:?}", fields.cause);
        Ok(())
    }
}

fn run<'a>(tables: &'a Tables, id: &RunId) -> Option<&'a kernel::run::Run> {
    match tables.rows.get(&(Noun::Run, id.to_string()))?.state.as_ref()? {
        State::Run(run) => Some(run),
        _ => None,
    }
}

fn progress<'a>(tables: &'a Tables, id: &ScheduleId) -> Option<&'a kernel::progress::Progress> {
    match tables.rows.get(&(Noun::Progress, id.to_string()))?.state.as_ref()? {
        State::Progress(progress) => Some(progress),
        _ => None,
    }
}
