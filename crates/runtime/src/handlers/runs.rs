//! Lists, shows, cancels, retries and settles runs.

use api::{
    ApiRequest, Code, Containment, Error, RunCancel, RunCancelled, RunChanged, RunList, RunOutput,
    RunRetry, RunSettle, RunShow, RunShown, RunSource, RunUsage, Runs, Serve,
};
use kernel::agent::Agent;
use kernel::run::{self, Command, Refusal, Run, State};
use kernel::schedule::{Schedule, check_note};
use kernel::slot::Source;
use kernel::{Noun, Role, RunId, ScheduleId};
use tokio::time::timeout;
use tracing::warn;

use crate::authorize::stop_markers::StopTarget;
use crate::commit::caller::Caller;
use crate::commit::codec::decode_listed;
use crate::commit::ids::run_id;
use crate::commit::rows::{Rows, row_key};
use crate::commit::run_context::{definition_rows, run_context, run_rows};
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors::{self, ToError};
use crate::handlers::authority::RECORD_WITHIN;
use crate::pages::{self, Order, PageRequest};
use crate::secrets::sealing::Purpose;
use crate::timestamps::rfc3339;
use crate::wire::{containment, run_origin, run_state, settled_outcome};

impl Serve<RunList> for Engine {
    async fn serve(&self, _: &Caller, list: RunList) -> Result<Runs, Error> {
        let schedule: Option<ScheduleId> =
            list.schedule.map(|id| id.parse()).transpose().map_err(|invalid| {
                Error::new(Code::InvalidInput, invalid)
                    .hint("`midwatch schedule list` shows the schedules")
            })?;
        let agent = list.agent.as_deref();
        let page = PageRequest {
            noun: Noun::Run,
            order: Order::NewestFirst(schedule.as_ref().map(ScheduleId::as_str)),
            limit: list.limit,
            cursor: list.cursor,
        };
        let (mut runs, cursor) = pages::page::<RunId, _>(&*self.store, page, |item| {
            let (id, run) = decode_listed::<Run>(item)?;
            let of = run.agent.as_ref().map(|agent| agent.as_str());
            let matches = (agent.is_none() || agent == of)
                && list.state.is_none_or(|state| state == run_state(&run.state));
            Ok(matches.then(|| wire(&id, &run)))
        })
        .await?;
        self.name_runs(&mut runs).await?;
        Ok(Runs { runs, cursor })
    }
}

impl Serve<RunShow> for Engine {
    async fn serve(&self, caller: &Caller, show: RunShow) -> Result<RunShown, Error> {
        let id = run_id(&show.id)?;
        let rows = self.transactions.load(&[(Noun::Run, id.to_string())]).await?;
        let mut shown = wire_in(&rows, &id)?;
        let stored =
            rows.get::<Run>(&id).and_then(|run| Some((&run.output.as_ref()?.text, &run.agent)));
        if let (Some((text, agent)), Some(output)) = (stored, &mut shown.output)
            && output.sealed
            && self.scope.may_read_sealed(&caller.actor, agent.as_ref()).await?
        {
            output.text = self.sealing.open(text, Purpose::Output)?;
            output.sealed = false;
        }
        if let Some(file) = shown.output.as_mut().and_then(|output| output.file.as_mut()) {
            *file = self.installation.output_file(file);
        }
        if let Some(run) = rows.get::<Run>(&id) {
            shown.source = self.feed.source_of(&id, run).await?.map(|source| match source {
                Source::Run(id) => RunSource::Run(id.to_string()),
                Source::Event(id) => RunSource::Event(id),
            });
            shown.containment = self.containment_of(run).await?;
            shown.attempts = self.feed.attempts_of(&id).await?;
            shown.attempts_max = self.attempts_max(run).await?;
        }
        self.name_runs(std::slice::from_mut(&mut shown)).await?;
        Ok(RunShown { run: shown })
    }
}

/// A cancellation by a person takes effect at once. The response does not wait for a ledger that cannot record it.
impl Serve<RunCancel> for Engine {
    async fn serve(&self, caller: &Caller, request: RunCancel) -> Result<RunCancelled, Error> {
        let id = run_id(&request.id)?;
        let note = request.note.as_deref();
        check_note(note).map_err(errors::refused)?;
        // An operator may cancel any run; of others, the policy and the kernel decide about each run.
        let stopped = Role::Operator <= caller.actor.role
            && self.stop_switch.cancel(&id, &caller.actor, note);
        let recorded = self.record_cancel(caller, &id, note);
        match timeout(RECORD_WITHIN, recorded).await {
            Ok(Ok(response)) => {
                self.stop_switch.cancel_recorded(&id);
                return Ok(RunCancelled { changed: response.changed || stopped, ..response });
            }
            Ok(Err(error)) if !stopped => return Err(error),
            // The run has ended by this cancellation, and the executor has recorded it.
            Ok(Err(error)) if error.code == Code::NotNow => {
                let rows = self.transactions.load(&[row_key::<Run>(&id)]).await?;
                let run = Some(wire_in(&rows, &id)?);
                return Ok(RunCancelled { run, changed: true, recorded: true });
            }
            Ok(Err(error)) => warn!(%error, run = %id, "cancelled a run, but failed to record it"),
            Err(_) if !stopped => return Err(no_answer()),
            Err(_) => warn!(run = %id, "cancelled a run, but the store does not answer"),
        }
        self.stop_switch.leave_marker(StopTarget::Run(&id), note);
        Ok(RunCancelled { run: None, changed: true, recorded: false })
    }
}

impl Serve<RunRetry> for Engine {
    async fn serve(&self, caller: &Caller, retry: RunRetry) -> Result<RunChanged, Error> {
        let id = run_id(&retry.id)?;
        let response =
            self.change_run::<RunRetry>(caller, &id, Command::Retry, changed_run).await?;
        // A marker that was left for an earlier attempt must not stop the next one.
        self.stop_switch.cancel_recorded(&id);
        Ok(response)
    }
}

impl Serve<RunSettle> for Engine {
    async fn serve(&self, caller: &Caller, settle: RunSettle) -> Result<RunChanged, Error> {
        let outcome = settled_outcome(settle.state);
        let command = Command::Settle { outcome, note: settle.note };
        self.change_run::<RunSettle>(caller, &run_id(&settle.id)?, command, changed_run).await
    }
}

impl Engine {
    /// What contains the agent of a run now.
    pub(crate) async fn containment_of(&self, run: &Run) -> Result<Option<Containment>, Error> {
        let Some(name) = &run.agent else { return Ok(None) };
        let rows = self.transactions.load(&[row_key::<Agent>(name)]).await?;
        Ok(rows.get::<Agent>(name).map(|agent| containment(agent.backend.containment())))
    }

    /// The most attempts of a run, unless its schedule was removed.
    async fn attempts_max(&self, run: &Run) -> Result<Option<u32>, Error> {
        let rows = self.transactions.load(&[row_key::<Schedule>(&run.schedule)]).await?;
        let schedule = rows.get::<Schedule>(&run.schedule);
        Ok(schedule.map(|schedule| run.attempts_max(&schedule.definition)))
    }

    async fn record_cancel(
        &self,
        caller: &Caller,
        id: &RunId,
        note: Option<&str>,
    ) -> Result<RunCancelled, Error> {
        let command = Command::Cancel { note: note.map(str::to_owned) };
        let response = self.change_run::<RunCancel>(caller, id, command, |run, changed| {
            RunCancelled { run: Some(run), changed, recorded: true }
        });
        let response = response.await?;
        // An earlier request, whose response was lost, may have committed the cancellation.
        let rows = self.transactions.load(&[row_key::<Run>(id)]).await?;
        if rows.get::<Run>(id).is_some_and(|run| run.cancel.is_some()) {
            self.dispatcher.cancel(id);
        }
        Ok(response)
    }

    async fn change_run<R: ApiRequest>(
        &self,
        caller: &Caller,
        id: &RunId,
        command: Command,
        response: impl Fn(api::Run, bool) -> R::Response + Sync,
    ) -> Result<R::Response, Error> {
        let found = self.transactions.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::refused(Refusal::Unknown(id.clone()));
        let schedule = found.get::<Run>(id).ok_or_else(unknown)?.schedule.clone();
        let (rows, reads) = (run_rows(id, &schedule), definition_rows(&schedule, None));
        let transaction = Transaction { rows, reads, ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| {
            let context = run_context(rows, id, &schedule, now).ok_or_else(unknown)?;
            run::decide(context, &caller.actor, command.clone()).map_err(errors::refused)
        };
        let responded =
            self.transactions.respond::<R>(caller, transaction, decide, |before, after| {
                let changed = before.get::<Run>(id) != after.get::<Run>(id);
                Ok(response(wire_in(after, id)?, changed))
            });
        responded.await
    }
}

impl ToError for Refusal {
    fn to_error(&self) -> Error {
        match self {
            Refusal::Unknown(_) => {
                Error::new(Code::NotFound, self).hint("`midwatch run list` shows the runs")
            }
            Refusal::Wrong { id, state, .. } => {
                let hint = match *state {
                    "unknown" => format!(
                        "record its outcome with `midwatch run settle {id} --as done|failed`; a failed run can be \
                         retried"
                    ),
                    _ => format!("`midwatch run show {id}` shows its state"),
                };
                Error::new(Code::NotNow, self).hint(hint)
            }
            Refusal::Stale(_) => Error::new(Code::Stale, self),
            Refusal::Schedule(inner) => inner.to_error(),
        }
    }
}

fn changed_run(run: api::Run, changed: bool) -> RunChanged {
    RunChanged { run, changed }
}

fn no_answer() -> Error {
    Error::new(Code::DatabaseAway, "the store does not answer, and the run is not running here")
        .hint("`midwatch freeze` stops everything, also without the store")
}

/// A run of these rows in wire form.
pub(crate) fn wire_in(rows: &Rows, id: &RunId) -> Result<api::Run, Error> {
    let run = rows.get::<Run>(id).ok_or_else(|| errors::refused(Refusal::Unknown(id.clone())))?;
    Ok(wire(id, run))
}

fn wire(id: &RunId, run: &Run) -> api::Run {
    let is_retried = 0 < run.epoch;
    api::Run {
        id: id.to_string(),
        state: run_state(&run.state),
        approval_id: run.approval.as_ref().map(ToString::to_string),
        schedule_id: Some(run.schedule.to_string()),
        schedule_name: None,
        slot: run.slot.map(rfc3339),
        origin: run_origin(run.origin),
        source: None,
        agent: run.agent.as_ref().map(ToString::to_string),
        containment: None,
        attempt: run.attempt,
        attempts_max: None,
        attempts: Vec::new(),
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
