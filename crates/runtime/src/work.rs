//! Work on runs: taking them from the desk, having them done, and recording how they ended.
//!
//! The commit that starts a run precedes its effect, and what the doer says is recorded only for the
//! try that it was told to do. Whatever is found at work after a crash was left by an earlier process
//! of this directory: its lock is ours now.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use agents::{AgentBackend, Ended, Outcome, Work};
use api::Error;
use futures::future::FutureExt;
use kernel::agent::{AGENTS_MAX, AgentName};
use kernel::run::{self, Cause, Event, Failure, Ground, Kind, Orders, Output, Report, Run, State};
use kernel::schedule::Action;
use kernel::wording::Wording;
use kernel::{Actor, Body, Noun, RunId, ScheduleId, Timestamp};
use store::FIRST_DUE;
use tokio::select;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::approvals;
use crate::budgets::{Lacks, Wanted};
use crate::desk::Taken;
use crate::errors;
use crate::holder::Holder;
use crate::keep::micros;
use crate::rows::{RowKey, Rows};
use crate::runs;
use crate::sealing::Purpose;
use crate::seen::Seen;
use crate::stored;
use crate::times::rfc3339;
use crate::tools::Call;
use crate::transact::{Change, Done};
use crate::watch::Engine;

/// Live runs that are looked at at a time.
const LIVE_PAGE: usize = 1_000;
/// How long runs have to stop once the watch does not wait for them any more.
const STOP: Duration = Duration::from_secs(15);
/// How often to look for runs that wait and are not on the desk.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// Before another try to record how a run ended.
pub(crate) const PAUSE: Duration = Duration::from_secs(1);

/// What came of the attempt to begin a try.
pub(crate) enum Begin {
    Now(Box<Begun>),
    /// It waits for a human, or has ended.
    Decided,
    /// Nothing is left of a budget, or it may not ask.
    Lacks(Lacks),
    NotNow,
}

/// A run that somebody else has begun, or nobody knows whether it was.
pub(crate) struct Handed {
    pub taken: Taken,
    pub begun: Option<Begun>,
}

/// A try that was begun.
pub(crate) struct Begun {
    epoch: u32,
    /// Or why nobody can be told anything.
    task: Result<Task, Error>,
}

/// What is to be done.
enum Task {
    Prompt(Box<Work>),
    Call(Call),
}

/// A try that is over.
struct Over {
    report: Report,
    was_stopped: bool,
}

/// A walk through the live runs.
#[derive(Default)]
struct Live {
    /// When the last one that was seen is due, and its id.
    seen: Option<(i64, String)>,
}

impl Live {
    /// The next of them, if there are more.
    async fn page(&mut self, watch: &Engine) -> Result<Option<Vec<(RunId, Run)>>, Error> {
        let after = self.seen.as_ref().map_or(FIRST_DUE, |(due_us, id)| (*due_us, id));
        let live = watch.store().due(Noun::Run.name(), after, i64::MAX, LIVE_PAGE).await;
        let live = live.map_err(errors::store)?;
        let Some(last) = live.last() else { return Ok(None) };
        self.seen = Some((last.due_us.unwrap_or(i64::MAX), last.id.clone()));
        // One that cannot be read must not keep the others from being worked on.
        let readable = live.iter().filter_map(|item| match runs::run_in(item) {
            Ok(run) => Some(run),
            Err(failed) => {
                error!(%failed, id = item.id, "a run cannot be read");
                None
            }
        });
        Ok(Some(readable.collect()))
    }
}

impl Engine {
    /// Takes up what the store holds: runs that wait, and those that an earlier process left behind.
    pub(crate) async fn take_up(&self) -> Result<(), Error> {
        self.desk().open();
        self.obey(&self.authority().await?);
        let holder = Holder::of(&self.settings().data)?;
        let holder = self.holder().get_or_init(|| holder);
        self.get_to_know_agents().await?;
        let mut live = Live::default();
        while let Some(page) = live.page(self).await? {
            for (id, run) in page {
                match &run.state {
                    // Nobody else can be at work on a store that nobody else can write.
                    State::Running { holder: other, .. }
                        if holder.left_behind(other) || !self.store().is_shared() =>
                    {
                        self.recover(&id, &run.schedule).await?;
                    }
                    State::Running { .. }
                    | State::Queued { .. }
                    | State::Parked
                    | State::Ended(_) => {
                        self.desk().put(&id, &run);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whom each agent shares with is known before its first run begins.
    async fn get_to_know_agents(&self) -> Result<(), Error> {
        let most = usize::try_from(AGENTS_MAX).map_err(errors::internal)?;
        let all = self.store().list(Noun::Agent.name(), "", most).await.map_err(errors::store)?;
        for item in all {
            let row = store::Row { version: item.version, body: item.body };
            // One that cannot be read must not keep the others from work.
            let state = match stored::row(Noun::Agent, row) {
                Ok(row) => row.state,
                Err(failed) => {
                    error!(%failed, id = item.id, "an agent cannot be read");
                    continue;
                }
            };
            state.and_then(kernel::State::agent).iter().for_each(|agent| self.desk().know(agent));
        }
        Ok(())
    }

    /// Puts on the desk what waits in the store: nothing is forgotten there for long, whatever became
    /// of the answer to the commit that queued it.
    async fn look_for_queued(&self) -> Result<(), Error> {
        let mut live = Live::default();
        while let Some(page) = live.page(self).await? {
            for (id, run) in page {
                if matches!(run.state, State::Queued { .. }) {
                    self.desk().put(&id, &run);
                }
            }
        }
        Ok(())
    }

    async fn recover(&self, id: &RunId, schedule: &ScheduleId) -> Result<(), Error> {
        let recovered = self
            .act(rows_of(id, schedule), defined_by(schedule, None), |rows, now| {
                Ok(ground(rows, id, schedule, now).map(run::recover).unwrap_or_default())
            })
            .await?;
        if let Some(run) = recovered.as_ref().and_then(|done| done.after.run(id)) {
            info!(%id, state = run.state.name(), "a run was found that an earlier process had begun");
        }
        Ok(())
    }

    /// Works on runs until it is told to stop; then lets those at work end, and stops the rest.
    pub(crate) async fn work(
        &self,
        doer: Arc<dyn AgentBackend>,
        mut handed: UnboundedReceiver<Handed>,
        stop: CancellationToken,
    ) {
        let mut at_work = JoinSet::new();
        let go_on = |at_work: &mut JoinSet<()>, run: Handed| {
            at_work.spawn(self.clone().go_on_with(run, Arc::clone(&doer), stop.clone()));
        };
        let mut look_at = self.after(LOOK_EVERY);
        while !stop.is_cancelled() {
            for taken in self.desk().take(self.now()) {
                let run = self.clone().work_on(taken, Arc::clone(&doer), stop.clone());
                at_work.spawn(run);
            }
            let wake = self.desk().next_from().map_or(look_at, |from| from.min(look_at));
            select! {
                biased;
                () = stop.cancelled() => {}
                Some(run) = handed.recv() => go_on(&mut at_work, run),
                () = self.desk().changed() => {}
                Some(_) = at_work.join_next() => {}
                () = self.reaches(wake) => {}
            }
            // Also when the clock was set back.
            if look_at <= self.now() || self.after(LOOK_EVERY) < look_at {
                look_at = self.after(LOOK_EVERY);
                if let Err(failed) = self.look_for_queued().await {
                    error!(%failed, "queued runs could not be looked for");
                }
            }
        }
        let mut all = async |at_work: &mut JoinSet<()>| {
            // Until the timer has decided all that it was about to.
            while let Some(run) = handed.recv().await {
                go_on(at_work, run);
            }
            while at_work.join_next().await.is_some() {}
        };
        if timeout(self.settings().drain, all(&mut at_work)).await.is_err() {
            warn!(runs = at_work.len(), "runs are stopped: the watch ends");
            self.desk().stop_all();
            // Whatever cannot be recorded now, the next start finds.
            let _ = timeout(STOP, all(&mut at_work)).await;
        }
    }

    async fn go_on_with(self, run: Handed, doer: Arc<dyn AgentBackend>, stop: CancellationToken) {
        let Handed { taken, begun } = run;
        match begun {
            Some(begun) => self.carry_on(&taken, begun, &*doer).await,
            None => self.put_back(&taken, &stop).await,
        }
        self.desk().done(&taken.id);
    }

    async fn work_on(self, taken: Taken, doer: Arc<dyn AgentBackend>, stop: CancellationToken) {
        match self.begin(&taken, &*doer, &stop).await {
            Ok(Begin::Now(begun)) => self.carry_on(&taken, *begun, &*doer).await,
            Ok(Begin::Decided) => {}
            Ok(Begin::Lacks(lacks)) => self.starve(&taken, lacks).await,
            Ok(Begin::NotNow) => {
                // Another process may have frozen the watch, and this one not know it yet.
                if self.authority().await.is_ok_and(|authority| authority.frozen.is_some()) {
                    sleep(PAUSE).await;
                }
                self.put_back(&taken, &stop).await;
            }
            Err(failed) => {
                error!(%failed, id = %taken.id, "a run could not be started");
                sleep(PAUSE).await;
                self.put_back(&taken, &stop).await;
            }
        }
        self.desk().done(&taken.id);
    }

    /// Does what was begun, and records how it ended.
    async fn carry_on(&self, taken: &Taken, begun: Begun, doer: &dyn AgentBackend) {
        let Begun { epoch, task } = begun;
        let (over, is_sensitive) = match task {
            Ok(Task::Prompt(work)) => {
                let is_sensitive = work.is_sensitive;
                (done(doer, *work, taken.stop.clone()).await, is_sensitive)
            }
            // It is short, and whole or nothing: there is no stopping it.
            Ok(Task::Call(call)) => {
                let report = self.make(&call, &taken.id).await;
                (Over { report, was_stopped: false }, call.is_sensitive)
            }
            Err(unreadable) => (unsaid(&unreadable), false),
        };
        let over = if is_sensitive { self.sealed(over) } else { over };
        self.end(taken, epoch, over).await;
    }

    /// Begins a run, or asks a human about it. Only what asks or was approved is looked at before.
    async fn begin(
        &self,
        taken: &Taken,
        doer: &dyn AgentBackend,
        told: &CancellationToken,
    ) -> Result<Begin, Error> {
        if taken.approval.is_none()
            && let begun @ (Begin::Now(_) | Begin::Decided) =
                self.begin_on(taken, None, told).await?
        {
            return Ok(begun);
        }
        let seen = self.look_at(taken, doer).await?;
        self.begin_on(taken, Some(&seen), told).await
    }

    /// The durable intent: after this the run may take effect. It begins as its schedule, its agent and the
    /// authority of the watch are at that commit, whoever has changed them meanwhile.
    async fn begin_on(
        &self,
        taken: &Taken,
        seen: Option<&Seen>,
        told: &CancellationToken,
    ) -> Result<Begin, Error> {
        let Taken { id, schedule, agent, approval, .. } = taken;
        let mut rows = vec![(Noun::Run, id.to_string()), self.authority_row()];
        rows.extend(defined_by(schedule, agent.as_ref()));
        rows.extend(approval.as_ref().map(approvals::row_of));
        rows.extend(self.signers_of(approval.as_ref()).await?);
        rows.extend(seen.iter().flat_map(|seen| seen.others.iter().cloned()));
        let reads = vec![(Noun::Progress, schedule.to_string())];
        let holder = self.holder().get().map(Holder::name).unwrap_or_default();
        let system = Actor::system();
        let change = Change { rows, reads, ..Change::by(&system, None) };
        let used = self.used_by(schedule, agent.as_ref()).await?;
        let mut wanted = Wanted::default();
        // Only a call is for no agent.
        let action = match agent {
            Some(_) => None,
            None => self.action_of(schedule).await?,
        };
        let called = match &action {
            Some(action) => self.called(action).await?,
            None => None,
        };
        let done = self
            .act_for(change, |rows, now| {
                // What is begun after that would only be cut off.
                if told.is_cancelled() {
                    return Ok(Vec::new());
                }
                let Some(ground) = ground(rows, id, schedule, now) else { return Ok(Vec::new()) };
                let agent = agent.as_ref().and_then(|name| rows.agent(name));
                // Somebody has asked or answered since it was taken: it is taken anew.
                if ground.run.approval != *approval {
                    return Ok(Vec::new());
                }
                // What is called was looked up for what the schedule said then.
                let says = ground.definition.map(|definition| &definition.action);
                if called.is_some() && says != action.as_ref() {
                    return Ok(Vec::new());
                }
                let called = called.as_ref();
                let approval = approval.as_ref();
                let sight = seen.and_then(|seen| seen.on(taken, rows));
                let looked = sight.as_ref().map(|sight| sight.looked);
                let questions = sight.as_ref().map_or(&[][..], |sight| &sight.questions);
                let begun = self.under_orders(schedule, approval, rows, &used, |orders| {
                    let orders = Orders { called, looked, questions, ..*orders };
                    run::start(ground, agent, holder, &orders, self.now())
                });
                wanted = Wanted::of(&begun, rows, ground.definition, &self.in_force().limits);
                Ok(begun)
            })
            .await;
        let done = match done {
            Err(spent) if spent.code == api::Code::LimitReached => {
                // Somebody may have given back since.
                return Ok(self.lacking(wanted).await.map_or(Begin::NotNow, Begin::Lacks));
            }
            done => done?,
        };
        Ok(self.begun(taken, &done))
    }

    /// What a decision about a run that was taken has begun.
    pub(crate) fn begun(&self, taken: &Taken, done: &Done) -> Begin {
        let Taken { id, schedule, agent, .. } = taken;
        if done.bodies.is_empty() {
            return Begin::NotNow;
        }
        let started = done.bodies.iter().find_map(|body| match body {
            Body::Run(_, Event::Started(started)) => Some(started),
            _ => None,
        });
        let Some(started) = started else { return Begin::Decided };
        let rows = &done.after;
        let (Some(run), Some(schedule)) = (rows.run(id), rows.schedule(schedule)) else {
            return Begin::NotNow;
        };
        let agent = agent.as_ref().and_then(|name| rows.agent(name));
        let (prompt, agent) = match (&schedule.definition.action, agent) {
            (Action::Prompt { prompt, .. }, Some(agent)) => (prompt, agent),
            (Action::Prompt { .. }, None) => return Begin::NotNow,
            (Action::Tool { tool, payload, .. }, _) => {
                let (tool, is_sensitive) = (tool.clone(), payload.is_sealed());
                if started.charge.is_some() {
                    self.tallied_run(&tool);
                }
                let payload = self.sealing().open(payload, Purpose::Words);
                let task = payload.map(|payload| Task::Call(Call { tool, payload, is_sensitive }));
                return Begin::Now(Box::new(Begun { epoch: started.epoch, task }));
            }
        };
        self.desk().know(agent);
        let work = self.sealing().open(prompt, Purpose::Words).map(|text| Work {
            run: id.to_string(),
            schedule: Some(taken.schedule.to_string()),
            slot: run.slot.map(rfc3339),
            attempt: started.attempt,
            epoch: started.epoch,
            at: started.at,
            agent: agent.clone(),
            prompt: text,
            is_sensitive: prompt.is_sealed(),
            time_max: agent.time_limit(),
            said: taken.said.clone(),
        });
        let task = work.map(|work| Task::Prompt(Box::new(work)));
        Begin::Now(Box::new(Begun { epoch: started.epoch, task }))
    }

    async fn action_of(&self, schedule: &ScheduleId) -> Result<Option<Action>, Error> {
        let rows = self.load(&[(Noun::Schedule, schedule.to_string())]).await?;
        Ok(rows.schedule(schedule).map(|schedule| schedule.definition.action.clone()))
    }

    /// Ends a run for which nothing is left of a budget, or which may not ask. What could not be recorded
    /// is tried again with the run.
    async fn starve(&self, taken: &Taken, lacks: Lacks) {
        let Taken { id, schedule, .. } = taken;
        let mut rows = rows_of(id, schedule);
        rows.extend(taken.approval.as_ref().map(approvals::row_of));
        let ended = self.act(rows, defined_by(schedule, None), |rows, now| {
            let ground = ground(rows, id, schedule, now);
            let end = |ground| match &lacks {
                Lacks::Budget(what) => run::starve(ground, what),
                Lacks::Asks(what) => run::hush(ground, what),
            };
            Ok(ground.map(end).unwrap_or_default())
        });
        if let Err(failed) = ended.await {
            error!(%failed, %id, "that a run has no budget could not be recorded");
            sleep(PAUSE).await;
            let loaded = self.load(&[(Noun::Run, id.to_string())]).await;
            let run = loaded.as_ref().ok().and_then(|rows| rows.run(id));
            run.into_iter().for_each(|run| self.desk().put(id, run));
        }
    }

    /// Records how a try ended. Until that is done the run is not over, so it does not give up.
    async fn end(&self, taken: &Taken, epoch: u32, over: Over) {
        let Over { report, was_stopped } = over;
        let Taken { id, schedule, .. } = taken;
        if let Some(cancel) = taken.wish.get() {
            self.write_wish(id, cancel).await;
        }
        loop {
            let recorded = self
                .act(rows_of(id, schedule), defined_by(schedule, None), |rows, now| {
                    let Some(ground) = ground(rows, id, schedule, now) else { return Ok(vec![]) };
                    // Nobody wanted this run to stop: the watch ends.
                    if was_stopped && ground.run.cancel.is_none() {
                        return run::interrupt(ground, epoch).map_err(errors::run);
                    }
                    run::finish(ground, epoch, report.clone(), self.random()).map_err(errors::run)
                })
                .await;
            match recorded {
                Ok(_) => return,
                Err(stale) if stale.code == api::Code::Stale => {
                    warn!(%id, epoch, "the end of a run came too late: it is another's by now");
                    return;
                }
                Err(failed) => {
                    error!(%failed, %id, "how a run ended could not be recorded yet");
                    sleep(PAUSE).await;
                }
            }
        }
    }

    /// Without what was said of sensitive words, which may repeat them. What cannot be sealed is gone.
    fn sealed(&self, over: Over) -> Over {
        let Over { mut report, was_stopped } = over;
        report.output = report.output.map(|output| Output {
            text: self.sealing().seal(output.text, Purpose::Output).unwrap_or_else(|failed| {
                error!(%failed, "what a run said could not be sealed, and is not kept");
                Wording::Sealed { sealed: String::new() }
            }),
            ..output
        });
        report.result = report.result.map_err(|failure| Failure {
            cause: Cause::new(&failure.cause.code, "its schedule is sensitive: no more is told"),
            ..failure
        });
        Over { report, was_stopped }
    }

    /// A run that was taken and not begun waits again, if it is still to be done.
    async fn put_back(&self, taken: &Taken, stop: &CancellationToken) {
        let Taken { id, schedule, .. } = taken;
        let ours = self.holder().get().map(Holder::name).unwrap_or_default();
        while !stop.is_cancelled() {
            // The commit that begins it may have been made, and only its answer be lost. Nothing was
            // done about it then.
            let found = self
                .act(rows_of(id, schedule), defined_by(schedule, None), |rows, now| {
                    let ground = ground(rows, id, schedule, now);
                    Ok(ground.map(|it| run::give_back(it, ours)).unwrap_or_default())
                })
                .await;
            let loaded = self.load(&[(Noun::Run, id.to_string())]).await;
            if let (Ok(_), Ok(rows)) = (found, loaded) {
                rows.run(id).into_iter().for_each(|run| self.desk().put(id, run));
                return;
            }
            sleep(PAUSE).await;
        }
    }

    pub(crate) fn after(&self, span: Duration) -> Timestamp {
        self.now().after_us(micros(span))
    }
}

/// What a decision about a run may change.
pub(crate) fn rows_of(id: &RunId, schedule: &ScheduleId) -> Vec<RowKey> {
    vec![(Noun::Run, id.to_string()), (Noun::Progress, schedule.to_string())]
}

/// The rows of what a run does: its schedule and its agent.
pub(crate) fn defined_by(schedule: &ScheduleId, agent: Option<&AgentName>) -> Vec<RowKey> {
    let mut rows = vec![(Noun::Schedule, schedule.to_string())];
    rows.extend(agent.map(|name| (Noun::Agent, name.to_string())));
    rows
}

pub(crate) fn ground<'a>(
    rows: &'a Rows,
    id: &'a RunId,
    schedule: &ScheduleId,
    now: Timestamp,
) -> Option<Ground<'a>> {
    let definition = rows.schedule(schedule).map(|schedule| &schedule.definition);
    let progress = rows.progress(schedule);
    Some(Ground { id, run: rows.run(id)?, definition, progress, now })
}

async fn done(doer: &dyn AgentBackend, work: Work, stop: CancellationToken) -> Over {
    // Nobody knows how far it got that went to pieces.
    let broken = || Ended { outcome: Outcome::Cancelled, output: Default::default(), usage: None };
    let work = AssertUnwindSafe(doer.work(work, stop)).catch_unwind();
    let ended = work.await.unwrap_or_else(|_| broken());
    Over { was_stopped: ended.outcome == Outcome::Cancelled, report: report(ended) }
}

/// Of a run whose words cannot be read: nobody was told anything, and the next try would not be either.
fn unsaid(unreadable: &Error) -> Over {
    let cause = Cause::new("words_unreadable", &unreadable.message);
    let result = Err(Failure { cause, kind: Kind::Permanent });
    Over { report: Report { result, output: None, usage: None }, was_stopped: false }
}

fn report(ended: Ended) -> Report {
    let Ended { outcome, output, usage } = ended;
    let output = Output {
        text: output.text.into(),
        bytes: output.bytes,
        file: output.file.map(|file| file.display().to_string()),
    };
    let result = match outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(failure) => Err(Failure {
            cause: Cause::new(failure.reason.as_str(), &failure.message),
            kind: failure.kind,
        }),
        Outcome::Cancelled => Err(Failure {
            cause: Cause::new("cancelled", "it was told to stop"),
            kind: Kind::Permanent,
        }),
    };
    Report { result, output: Some(output).filter(|output| 0 < output.bytes), usage }
}
