//! Work on runs: taking them from the desk, having them done, and recording how they ended.
//!
//! The commit that starts a run precedes its effect, and what the doer says is recorded only for the
//! try that it was told to do. Whatever is found at work after a crash was left by an earlier process
//! of this directory: its lock is ours now.

use std::sync::Arc;
use std::time::Duration;

use agents::{Doer, Ended, Outcome, Work};
use api::Error;
use kernel::agent::AgentName;
use kernel::run::{self, Cause, Event, Failure, Ground, OUTPUT_BYTES_MAX, Output, Report, State};
use kernel::schedule::Action;
use kernel::{Body, Noun, RunId, ScheduleId, Timestamp};
use tokio::select;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::desk::Taken;
use crate::errors;
use crate::holder::Holder;
use crate::rows::{RowKey, Rows};
use crate::stored;
use crate::times::rfc3339;
use crate::watch::Watch;

/// Live runs that are looked at after a start.
const LIVE_MAX: usize = 1_000_000;
/// How long runs that are at work may go on after the watch was told to stop.
const DRAIN: Duration = Duration::from_secs(5);
/// Before another try to record how a run ended.
const PAUSE: Duration = Duration::from_secs(1);

/// A try that was begun.
struct Begun {
    epoch: u32,
    work: Work,
}

impl Watch {
    /// Takes up what the store holds: runs that wait, and those that an earlier process left behind.
    pub(crate) async fn take_up(&self) -> Result<(), Error> {
        self.desk().open();
        let holder = Holder::of(&self.settings().data)?;
        let holder = self.holder().get_or_init(|| holder);
        let live = self.store().due(Noun::Run.name(), i64::MAX, LIVE_MAX).await;
        for item in live.map_err(errors::store)? {
            let Some(body) = &item.body else { continue };
            let id: RunId = item.id.parse().map_err(errors::internal)?;
            let Some(run) = stored::state(Noun::Run, body)?.run() else { continue };
            match &run.state {
                State::Running { holder: other, .. } if holder.left_behind(other) => {
                    self.recover(&id, &run.schedule).await?;
                }
                State::Running { .. } | State::Ended(_) => {}
                State::Queued { .. } => self.desk().put(&id, &run),
            }
        }
        Ok(())
    }

    async fn recover(&self, id: &RunId, schedule: &ScheduleId) -> Result<(), Error> {
        let recovered = self
            .act(&rows_of(id, schedule, None), "recovery", |rows, now| {
                let ground = ground(rows, id, schedule, now);
                Ok(ground.map(run::recover).unwrap_or_default())
            })
            .await?;
        let state = recovered.and_then(|done| done.after.run(id).map(|run| run.state.name()));
        info!(%id, state, "a run was found that an earlier process had begun");
        Ok(())
    }

    /// Works on runs until it is told to stop; then lets those at work end, and stops the rest.
    pub(crate) async fn work(&self, doer: Arc<dyn Doer>, stop: CancellationToken) {
        let mut at_work = JoinSet::new();
        while !stop.is_cancelled() {
            for taken in self.desk().take(self.now()) {
                at_work.spawn(self.clone().work_on(taken, Arc::clone(&doer)));
            }
            let next = self.desk().next_from();
            select! {
                () = stop.cancelled() => {}
                () = self.desk().changed() => {}
                Some(_) = at_work.join_next() => {}
                () = self.reaches(next.unwrap_or(Timestamp::from_micros(i64::MAX))), if next.is_some() => {}
            }
        }
        let all = async |at_work: &mut JoinSet<()>| while at_work.join_next().await.is_some() {};
        if timeout(DRAIN, all(&mut at_work)).await.is_err() {
            warn!(runs = at_work.len(), "runs are stopped: the watch ends");
            self.desk().stop_all();
            all(&mut at_work).await;
        }
    }

    async fn work_on(self, taken: Taken, doer: Arc<dyn Doer>) {
        match self.begin(&taken).await {
            Ok(Some(begun)) => {
                let ended = doer.work(begun.work, taken.stop.clone()).await;
                self.end(&taken, begun.epoch, ended).await;
            }
            Ok(None) => {}
            Err(failed) => {
                error!(%failed, id = %taken.id, "a run could not be started");
                sleep(PAUSE).await;
                return self.put_back(&taken).await;
            }
        }
        self.desk().done(&taken.id);
    }

    /// The durable intent: after this the run may take effect.
    async fn begin(&self, taken: &Taken) -> Result<Option<Begun>, Error> {
        let Taken { id, schedule, agent, .. } = taken;
        let holder = self.holder().get().map(Holder::name).unwrap_or_default();
        let done = self
            .act(&rows_of(id, schedule, agent.as_ref()), "", |rows, now| {
                let Some(ground) = ground(rows, id, schedule, now) else { return Ok(Vec::new()) };
                let agent = agent.as_ref().and_then(|name| rows.agent(name));
                Ok(run::start(ground, agent, holder))
            })
            .await?;
        let Some(done) = done else { return Ok(None) };
        let Some(Body::Run(_, Event::Started(started))) = done.bodies.first() else {
            return Ok(None);
        };
        let rows = &done.after;
        let (Some(run), Some(schedule)) = (rows.run(id), rows.schedule(schedule)) else {
            return Ok(None);
        };
        let (Action::Prompt { prompt, .. }, Some(agent)) =
            (&schedule.definition.action, agent.as_ref().and_then(|name| rows.agent(name)))
        else {
            return Ok(None);
        };
        let work = Work {
            run: id.to_string(),
            schedule: Some(taken.schedule.to_string()),
            slot: run.slot.map(rfc3339),
            attempt: started.attempt,
            agent: agent.clone(),
            prompt: prompt.clone(),
            time_max: agent.time_limit(),
        };
        Ok(Some(Begun { epoch: started.epoch, work }))
    }

    /// Records how a try ended. Until that is done the run is not over, so it does not give up.
    async fn end(&self, taken: &Taken, epoch: u32, ended: Ended) {
        let was_stopped = ended.outcome == Outcome::Cancelled;
        let report = report(ended);
        let Taken { id, schedule, agent, .. } = taken;
        loop {
            let recorded = self
                .act(&rows_of(id, schedule, agent.as_ref()), "", |rows, now| {
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

    /// A run that could not be started waits again.
    async fn put_back(&self, taken: &Taken) {
        self.desk().done(&taken.id);
        let key = (Noun::Run, taken.id.to_string());
        if let Ok(rows) = self.load(&[key], false).await
            && let Some(run) = rows.run(&taken.id)
        {
            self.desk().put(&taken.id, run);
        }
    }
}

/// What is decided about a run depends on these.
pub(crate) fn rows_of(id: &RunId, schedule: &ScheduleId, agent: Option<&AgentName>) -> Vec<RowKey> {
    let mut rows = vec![
        (Noun::Run, id.to_string()),
        (Noun::Schedule, schedule.to_string()),
        (Noun::Progress, schedule.to_string()),
    ];
    rows.extend(agent.map(|name| (Noun::Agent, name.to_string())));
    rows
}

pub(crate) fn ground<'a>(
    rows: &'a Rows,
    id: &'a RunId,
    schedule: &ScheduleId,
    now: Timestamp,
) -> Option<Ground<'a>> {
    let (schedule, progress) = (rows.schedule(schedule), rows.progress(schedule));
    Some(Ground { id, run: rows.run(id)?, schedule, progress, now })
}

fn report(ended: Ended) -> Report {
    let Ended { outcome, output } = ended;
    let end = output.text.floor_char_boundary(OUTPUT_BYTES_MAX);
    let output = Output {
        text: output.text.get(..end).unwrap_or_default().to_owned(),
        bytes: output.bytes,
        file: output.file.map(|file| file.display().to_string()),
    };
    let result = match outcome {
        Outcome::Done => Ok(()),
        Outcome::Failed(failure) => Err(Failure {
            cause: Cause::new(failure.reason.as_str(), &failure.message),
            is_permanent: failure.is_permanent,
        }),
        Outcome::Cancelled => Err(Failure {
            cause: Cause::new("cancelled", "it was told to stop"),
            is_permanent: true,
        }),
    };
    Report { result, output: Some(output).filter(|output| 0 < output.bytes) }
}
