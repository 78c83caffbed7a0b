//! Requests about runs, carried out.

use api::{
    Answer, Code, Error, RunCancel, RunChanged, RunList, RunOutput, RunRetry, RunSettle, RunShow,
    RunShown, RunSource, RunUsage, Runs,
};
use kernel::run::{self, Command, Outcome, Run, State};
use kernel::slot::Source;
use kernel::{Actor, Noun, RunId, ScheduleId};
use store::Item;
use tokio::time::sleep;
use tracing::error;

use crate::desk::Cancel;
use crate::errors::{self, internal};
use crate::page::{Listed, Order};
use crate::rows::Rows;
use crate::sealing::Purpose;
use crate::stored;
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Engine;
use crate::work::{PAUSE, defined_by, ground, rows_of};

const STATES: [&str; 7] =
    ["queued", "waiting_permission", "running", "done", "failed", "cancelled", "unknown"];

impl Engine {
    pub(crate) async fn run_list(&self, asked: RunList) -> Result<Runs, Error> {
        let state = asked.state.as_deref();
        if state.is_some_and(|state| !STATES.contains(&state)) {
            return Err(Error::new(Code::InvalidInput, "that is no state of a run")
                .hint(format!("the states are {}", STATES.join(", "))));
        }
        let schedule: Option<ScheduleId> =
            asked.schedule.map(|id| id.parse()).transpose().map_err(|invalid| {
                Error::new(Code::InvalidInput, invalid)
                    .hint("`midwatch schedule list` shows the schedules")
            })?;
        let agent = asked.agent.as_deref();
        let page = Listed {
            noun: Noun::Run,
            order: Order::NewestFirst(schedule.as_ref().map(ScheduleId::as_str)),
            limit: asked.limit,
            cursor: asked.cursor,
        };
        let (runs, cursor) = self
            .page::<RunId, _>(page, |item| {
                let (id, run) = run_in(item)?;
                let of = run.agent.as_ref().map(|agent| agent.as_str());
                let is_asked_for = (agent.is_none() || agent == of)
                    && state.is_none_or(|state| state == run.state.name());
                Ok(is_asked_for.then(|| wire(&id, &run)))
            })
            .await?;
        Ok(Runs { runs, cursor })
    }

    pub(crate) async fn run_show(&self, actor: &Actor, asked: RunShow) -> Result<RunShown, Error> {
        let id = run_id(&asked.id)?;
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        let mut shown = wire_in(&rows, &id)?;
        let said = rows.run(&id).and_then(|run| Some((&run.output.as_ref()?.text, &run.agent)));
        if let (Some((text, agent)), Some(output)) = (said, &mut shown.output)
            && output.sealed
            && self.may_read_sealed(actor, agent.as_ref()).await?
        {
            output.text = self.sealing().open(text, Purpose::Output)?;
            output.sealed = false;
        }
        if let Some(run) = rows.run(&id) {
            shown.source = self.source_of(&id, run).await?.map(|source| match source {
                Source::Run(id) => RunSource::Run(id.to_string()),
                Source::Event(id) => RunSource::Event(id),
            });
        }
        Ok(RunShown { run: shown })
    }

    pub(crate) async fn run_cancel(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: RunCancel,
    ) -> Result<Answer, Error> {
        let id = run_id(&asked.id)?;
        let command = Command::Cancel { note: asked.note.clone() };
        let answer = match self.change_run(actor, key, &id, command, Answer::RunCancel).await {
            Err(full) if full.code == Code::DiskFull => {
                let cancel = Cancel { by: actor.clone(), note: asked.note };
                return Err(match self.desk().stop_unwritten(&id, cancel) {
                    true => stopped_unwritten(),
                    false => full,
                });
            }
            answer => answer?,
        };
        // The commit may have been made by an earlier call, whose answer was lost.
        let rows = self.load(&[(Noun::Run, id.to_string())]).await?;
        if rows.run(&id).is_some_and(|run| run.cancel.is_some()) {
            self.desk().stop(&id);
        }
        Ok(answer)
    }

    pub(crate) async fn run_retry(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: RunRetry,
    ) -> Result<Answer, Error> {
        self.change_run(actor, key, &run_id(&asked.id)?, Command::Retry, Answer::RunRetry).await
    }

    pub(crate) async fn run_settle(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: RunSettle,
    ) -> Result<Answer, Error> {
        let outcome = match asked.state.as_str() {
            "done" => Outcome::Done,
            "failed" => Outcome::Failed,
            other => {
                let what = format!("a run cannot be settled as `{other}`");
                return Err(Error::new(Code::InvalidInput, what).hint("it is `done` or `failed`"));
            }
        };
        let command = Command::Settle { outcome, note: asked.note };
        self.change_run(actor, key, &run_id(&asked.id)?, command, Answer::RunSettle).await
    }

    /// Writes down the wish that a run at work be cancelled, as soon as there is room for it.
    pub(crate) async fn write_wish(&self, id: &RunId, Cancel { by, note }: &Cancel) {
        let command = Command::Cancel { note: note.clone() };
        while let Err(failed) =
            self.change_run(by, None, id, command.clone(), Answer::RunCancel).await
            && failed.code != Code::NotNow
        {
            error!(%failed, %id, "that a run was cancelled could not be written down yet");
            sleep(PAUSE).await;
        }
    }

    async fn change_run(
        &self,
        actor: &Actor,
        key: Option<Key>,
        id: &RunId,
        command: Command,
        answer: impl Fn(RunChanged) -> Answer,
    ) -> Result<Answer, Error> {
        let found = self.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::run(run::Refusal::Unknown(id.clone()));
        let schedule = found.run(id).ok_or_else(unknown)?.schedule.clone();
        let (rows, reads) = (rows_of(id, &schedule), defined_by(&schedule, None));
        let change = Change { rows, reads, ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| {
            let ground = ground(rows, id, &schedule, now).ok_or_else(unknown)?;
            run::decide(ground, actor, command.clone()).map_err(errors::run)
        };
        self.transact(change, decide, |before, after| {
            let changed = before.run(id) != after.run(id);
            Ok(answer(RunChanged { run: wire_in(after, id)?, changed }))
        })
        .await
    }
}

fn stopped_unwritten() -> Error {
    let what = "the run was told to stop, and there is no room on the disk to write that down yet";
    Error::new(Code::DiskFull, what).hint(
        "make room: it is written down then; if the watch ends before, nobody knows that you asked",
    )
}

pub(crate) fn run_id(text: &str) -> Result<RunId, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::NotFound, invalid).hint("`midwatch run list` shows the runs")
    })
}

/// The run in a row of the store.
pub(crate) fn run_in(item: &Item) -> Result<(RunId, Run), Error> {
    let id = item.id.parse().map_err(internal)?;
    let state = item.body.as_ref().map(|body| stored::state(Noun::Run, body)).transpose()?;
    let run = state.and_then(kernel::State::run);
    Ok((id, run.ok_or_else(|| internal("a listed run has no state"))?))
}

/// A run among rows, as it is shown.
pub(crate) fn wire_in(rows: &Rows, id: &RunId) -> Result<api::Run, Error> {
    let run = rows.run(id).ok_or_else(|| errors::run(run::Refusal::Unknown(id.clone())))?;
    Ok(wire(id, run))
}

fn wire(id: &RunId, run: &Run) -> api::Run {
    let is_retried = 0 < run.epoch;
    api::Run {
        id: id.to_string(),
        state: run.state.name().to_owned(),
        approval_id: run.approval.as_ref().map(ToString::to_string),
        schedule_id: Some(run.schedule.to_string()),
        slot: run.slot.map(rfc3339),
        origin: run.origin.name().to_owned(),
        source: None,
        agent: run.agent.as_ref().map(ToString::to_string),
        attempt: run.attempt,
        queued_at: rfc3339(run.queued_at),
        started_at: run.started_at.map(rfc3339),
        finished_at: run.finished_at.map(rfc3339),
        reason: run.cause.as_ref().map(|cause| cause.code.clone()),
        message: run.cause.as_ref().map(|cause| cause.message.clone()),
        retry_at: match run.state {
            State::Queued { from } if is_retried => Some(rfc3339(from)),
            State::Queued { .. } | State::Parked | State::Running { .. } | State::Ended(_) => None,
        },
        output: run.output.clone().map(|output| RunOutput {
            text: output.text.plain().unwrap_or_default().to_owned(),
            bytes: output.bytes,
            sealed: output.text.is_sealed(),
            file: output.file,
        }),
        usage: run
            .usage
            .map(|usage| RunUsage { input: usage.input_tokens, output: usage.output_tokens }),
        cost: (!run.price.is_free() || !run.cost.is_zero()).then(|| run.cost.to_string()),
        keys: run.keys.iter().map(ToString::to_string).collect(),
        settled_by: run.settled_by.clone(),
        settled_at: run.settled.as_ref().map(|settled| rfc3339(settled.at)),
        settled_note: run.settled.as_ref().and_then(|settled| settled.note.clone()),
    }
}
