//! Shows, pauses, resumes, removes and fires schedules. `add.rs` adds and edits them, `list.rs` lists them, `backfill.rs`
//! runs past slots.

mod add;
mod backfill;
mod define;
mod list;
mod refusal;
mod slots;
mod wire;

use std::sync::OnceLock;

use api::{
    ApiRequest, Error, ScheduleAdd, ScheduleFire, ScheduleFired, SchedulePause, SchedulePaused,
    ScheduleRemove, ScheduleRemoved, ScheduleResume, ScheduleResumed, ScheduleShow, ScheduleShown,
    ScheduleStatus, Serve,
};
use kernel::authority::Authority;
use kernel::progress::Progress;
use kernel::run::{self, Run};
use kernel::schedule::{self, Action, Command, SCHEDULE_DIGITS, Schedule, ScheduleContext};
use kernel::slot::Slot;
use kernel::{Actor, EventBody, Noun, RunId, ScheduleId, Timestamp, slot};

use crate::authorize::scope::RunnerScope;
use crate::commit::caller::Caller;
use crate::commit::ids::schedule_id;
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::errors;
use crate::handlers::runs;
use crate::secrets::sealing::Purpose;
use wire::{bounds, released, skipped, upcoming, wire};

/// Checks whether a schedule is valid, except for the existence of its agent. Pure.
pub fn check_schedule(add: &ScheduleAdd, now: Timestamp) -> Result<(), Error> {
    let definition = Box::new(define::parse_add(add.clone())?.definition);
    let (rows, id) = (Rows::default(), ScheduleId::of(&[0; 32], SCHEDULE_DIGITS));
    let command = Command::Add { definition, paused: false };
    match schedule::decide(schedule_context(&rows, &id, now), &Actor::system(), command) {
        Ok(_) | Err(schedule::Refusal::UnknownAgent(_)) => Ok(()),
        Err(refusal) => Err(errors::refused(refusal)),
    }
}

impl Serve<ScheduleShow> for Engine {
    async fn serve(&self, caller: &Caller, show: ScheduleShow) -> Result<ScheduleShown, Error> {
        let id = self.existing_schedule(&show.id).await?;
        let mut rows = self.transactions.load(&rows_of(&id)).await?;
        let mut schedule = wire(&id, &rows)?;
        let action = rows.get::<Schedule>(&id).map(|it| &it.definition.action);
        let agent = action.and_then(Action::agent);
        if let Some(action) = action.filter(|action| action.text().is_sealed())
            && self.scope.may_read_sealed(&caller.actor, agent).await?
        {
            let text = Some(self.sealing.open(action.text(), Purpose::PrivateFields)?);
            match action {
                Action::Prompt { .. } => schedule.action.prompt = text,
                Action::Tool { .. } => schedule.action.payload = text,
            }
        }
        let agent = agent.map(|name| (Noun::Agent, name.to_string()));
        let tool_call = match action {
            Some(action) => self.tool_calls.resolve(action).await?,
            None => None,
        };
        let authority = row_key::<Authority>(&self.installation.instance);
        let reads: Vec<RowKey> = agent.into_iter().chain([authority]).collect();
        rows.extend(self.transactions.load(&reads).await?);
        let next = upcoming(&id, &rows, self.time.now())?;
        let bounds = bounds(&id, &rows, self.time.now())?;
        let policy = self.policy.preview(&id, &rows, tool_call.as_ref())?;
        Ok(ScheduleShown { schedule, next, bounds, policy })
    }
}

impl Serve<SchedulePause> for Engine {
    async fn serve(&self, caller: &Caller, pause: SchedulePause) -> Result<SchedulePaused, Error> {
        let id = schedule_id(&pause.id)?;
        let command = Command::Pause { note: pause.note };
        self.change_schedule::<SchedulePause>(caller, &id, command, |before, after| {
            let changed = before.get::<Progress>(&id) != after.get::<Progress>(&id);
            Ok(SchedulePaused { schedule: wire(&id, after)?, changed })
        })
        .await
    }
}

impl Serve<ScheduleResume> for Engine {
    async fn serve(
        &self,
        caller: &Caller,
        resume: ScheduleResume,
    ) -> Result<ScheduleResumed, Error> {
        let id = schedule_id(&resume.id)?;
        self.change_schedule::<ScheduleResume>(caller, &id, Command::Resume, |before, after| {
            Ok(ScheduleResumed {
                schedule: wire(&id, after)?,
                changed: before.get::<Progress>(&id) != after.get::<Progress>(&id),
                skipped: skipped(&id, before, after)?,
                released: released(&id, before, after),
                next: upcoming(&id, after, self.time.now())?,
            })
        })
        .await
    }
}

impl Serve<ScheduleRemove> for Engine {
    async fn serve(
        &self,
        caller: &Caller,
        remove: ScheduleRemove,
    ) -> Result<ScheduleRemoved, Error> {
        let id = schedule_id(&remove.id)?;
        self.change_schedule::<ScheduleRemove>(caller, &id, Command::Remove, |before, _| {
            let was = wire(&id, before)?;
            let (status, next_run_at) = (ScheduleStatus::Removed, None);
            Ok(ScheduleRemoved { schedule: api::Schedule { status, next_run_at, ..was } })
        })
        .await
    }
}

impl Serve<ScheduleFire> for Engine {
    async fn serve(&self, caller: &Caller, fire: ScheduleFire) -> Result<ScheduleFired, Error> {
        let id = schedule_id(&fire.id)?;
        let run = RunId::of(self.time.time_ordered(self.time.now()));
        // A request that is repeated after its stored response was removed is still the same run.
        let fire_key = caller.key.as_ref().map_or_else(|| run.to_string(), |key| key.name.clone());
        let slot = slot::manual_key(&id, &fire_key);
        let scope = self.scope.runner_scope(&caller.actor, "run.start", Some(id.as_str())).await?;
        let slot_row = (Noun::Slot, slot.clone());
        let reads = scope.iter().flat_map(RunnerScope::all_rows).chain([slot_row]).collect();
        let transaction = Transaction { rows: rows_of(&id), reads, ..Transaction::of(caller) };
        let command = Command::Fire { run: run.clone(), key: fire_key };
        let live_run = OnceLock::new();
        let decide = |rows: &Rows, now| -> Result<Vec<EventBody>, Error> {
            let agent = scope.as_ref().and_then(|scope| scope.caller(rows, 0));
            let context = schedule_context(rows, &id, now);
            let context =
                ScheduleContext { fired: rows.get::<Slot>(&slot), caller: agent, ..context };
            schedule::decide(context, &caller.actor, command.clone()).map_err(|refusal| {
                if let schedule::Refusal::RunIsLive(live) = &refusal {
                    let _ = live_run.set(live.clone());
                }
                errors::refused(refusal)
            })
        };
        let response =
            self.transactions.respond::<ScheduleFire>(caller, transaction, decide, |_, after| {
                Ok(ScheduleFired { run: runs::wire_in(after, &run)?, held_by: None })
            });
        let fired = match (response.await, live_run.get()) {
            (Err(error), Some(live)) => return Err(self.with_approval_hint(error, live).await?),
            (fired, _) => fired?,
        };
        Ok(ScheduleFired { held_by: self.start_obstacle().await?, ..fired })
    }
}

impl Engine {
    async fn change_schedule<R: ApiRequest>(
        &self,
        caller: &Caller,
        id: &ScheduleId,
        command: Command,
        respond: impl Fn(&Rows, &Rows) -> Result<R::Response, Error> + Sync,
    ) -> Result<R::Response, Error> {
        let scope =
            self.scope.runner_scope(&caller.actor, "schedule.change", Some(id.as_str())).await?;
        let reads = scope.iter().flat_map(RunnerScope::all_rows).collect();
        let transaction = Transaction { rows: rows_of(id), reads, ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| -> Result<Vec<EventBody>, Error> {
            let agent = scope.as_ref().and_then(|scope| scope.caller(rows, 0));
            let context = ScheduleContext { caller: agent, ..schedule_context(rows, id, now) };
            schedule::decide(context, &caller.actor, command.clone()).map_err(errors::refused)
        };
        self.transactions.respond::<R>(caller, transaction, decide, respond).await
    }

    /// Names the approval that the live run waits for, if it does.
    async fn with_approval_hint(&self, error: Error, live: &RunId) -> Result<Error, Error> {
        let rows = self.transactions.load(&[row_key::<Run>(live)]).await?;
        let parked = rows.get::<Run>(live).filter(|run| run.state == run::State::Parked);
        Ok(match parked.and_then(|run| run.approval.as_ref()) {
            Some(approval) => error.hint(format!(
                "it waits for approval: `midwatch approval show {approval}`; or cancel it with `midwatch run cancel {live}`"
            )),
            None => error,
        })
    }

    /// Parses the id of a schedule that must exist.
    pub(crate) async fn existing_schedule(&self, text: &str) -> Result<ScheduleId, Error> {
        let id = schedule_id(text)?;
        let rows = self.transactions.load(&[(Noun::Schedule, id.to_string())]).await?;
        match rows.get::<Schedule>(&id) {
            Some(_) => Ok(id),
            None => Err(errors::refused(schedule::Refusal::Unknown(id))),
        }
    }
}

fn rows_of(id: &ScheduleId) -> Vec<RowKey> {
    vec![(Noun::Schedule, id.to_string()), (Noun::Progress, id.to_string())]
}

fn schedule_context<'a>(rows: &'a Rows, id: &'a ScheduleId, now: Timestamp) -> ScheduleContext<'a> {
    ScheduleContext {
        id,
        schedule: rows.get::<Schedule>(id),
        progress: rows.get::<Progress>(id),
        agent: None,
        tool: None,
        upstream: &[],
        fired: None,
        caller: None,
        now,
    }
}
