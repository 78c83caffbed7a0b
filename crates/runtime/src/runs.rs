//! Requests about runs, carried out.

use api::{
    Answer, Code, Error, LIST_BYTES_MAX, RunCancel, RunChanged, RunList, RunOutput, RunRetry,
    RunSettle, RunShow, RunShown, RunUsage, Runs,
};
use kernel::run::{self, Command, Outcome, Run, State};
use kernel::{Actor, Noun, RunId, ScheduleId};
use store::Item;

use crate::agents::{page_size, page_start};
use crate::errors::{self, internal};
use crate::rows::Rows;
use crate::sealing::Purpose;
use crate::stored;
use crate::times::rfc3339;
use crate::transact::{Change, Key};
use crate::watch::Watch;
use crate::work::{ground, reads_of, rows_of};

/// Rows that are looked at for one page of a list by state.
const LOOKED_AT_MAX: usize = 10_000;
const STATES: [&str; 7] =
    ["queued", "waiting_permission", "running", "done", "failed", "cancelled", "unknown"];

impl Watch {
    pub(crate) async fn run_list(&self, asked: RunList) -> Result<Runs, Error> {
        let limit = page_size(asked.limit)?;
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
        let under = schedule.as_ref().map(ScheduleId::as_str);
        let mut before = page_start::<RunId>(asked.cursor)?;
        let (mut runs, mut bytes, mut looked_at) = (Vec::new(), 0, 0);
        loop {
            let items = self.store().newest(Noun::Run.name(), under, &before, limit + 1).await;
            let items = items.map_err(errors::store)?;
            let is_last = items.len() <= limit;
            for item in items.iter().take(limit) {
                before.clone_from(&item.id);
                bytes += item.body.as_ref().map_or(0, |body| body.len());
                let run = run_in(item)?;
                let of = run.1.agent.as_ref().map(|agent| agent.as_str());
                let is_asked_for = asked.agent.is_none() || asked.agent.as_deref() == of;
                if is_asked_for && state.is_none_or(|state| state == run.1.state.name()) {
                    runs.push(wire(&run.0, &run.1));
                }
                if runs.len() == limit || LIST_BYTES_MAX <= bytes {
                    break;
                }
            }
            looked_at += items.len();
            let is_full =
                runs.len() == limit || LIST_BYTES_MAX <= bytes || LOOKED_AT_MAX <= looked_at;
            if is_last || is_full {
                let has_more = !is_last || items.last().is_some_and(|item| item.id != before);
                return Ok(Runs { runs, cursor: has_more.then_some(before) });
            }
        }
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
        Ok(RunShown { run: shown })
    }

    pub(crate) async fn run_cancel(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: RunCancel,
    ) -> Result<Answer, Error> {
        let command = Command::Cancel { note: asked.note };
        let answer = self.change_run(actor, key, &asked.id, command, Answer::RunCancel).await?;
        // The commit may have been made by an earlier call, whose answer was lost.
        let id = run_id(&asked.id)?;
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
        self.change_run(actor, key, &asked.id, Command::Retry, Answer::RunRetry).await
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
        self.change_run(actor, key, &asked.id, command, Answer::RunSettle).await
    }

    async fn change_run(
        &self,
        actor: &Actor,
        key: Option<Key>,
        id: &str,
        command: Command,
        answer: impl Fn(RunChanged) -> Answer,
    ) -> Result<Answer, Error> {
        let id = run_id(id)?;
        let found = self.load(&[(Noun::Run, id.to_string())]).await?;
        let unknown = || errors::run(run::Refusal::Unknown(id.clone()));
        let schedule = found.run(&id).ok_or_else(unknown)?.schedule.clone();
        let (rows, reads) = (rows_of(&id, &schedule), reads_of(&schedule, None));
        let change = Change { rows, reads, ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| {
            let ground = ground(rows, &id, &schedule, now).ok_or_else(unknown)?;
            run::decide(ground, actor, command.clone()).map_err(errors::run)
        };
        self.transact(change, decide, |before, after| {
            let changed = before.run(&id) != after.run(&id);
            Ok(answer(RunChanged { run: wire_in(after, &id)?, changed }))
        })
        .await
    }
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
