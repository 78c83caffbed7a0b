//! How far a person has seen what happened, and what failed since.

use api::{Error, Failures, SeenMarked, Serve, StatusRun, StatusSeen};
use kernel::run::{Outcome, Run, State};
use kernel::seen::{self, Refusal, Seen};
use kernel::{Actor, EventBody, Noun, Role, RunId, Timestamp};
use store::Newest;

use crate::commit::caller::Caller;
use crate::commit::codec::decode_listed;
use crate::commit::rows::row_key;
use crate::engine::Engine;
use crate::errors::{self, ToError, internal};
use crate::schedule::trigger;
use crate::timestamps::rfc3339;
use crate::wire::run_state;

const DAY_US: i64 = 86_400_000_000;
/// The newest runs among which failures are searched.
const RUNS_SEARCHED_MAX: usize = 2_000;
/// Runs that are read at a time.
const BATCH: usize = 100;

impl Serve<StatusSeen> for Engine {
    async fn serve(&self, caller: &Caller, request: StatusSeen) -> Result<SeenMarked, Error> {
        let until = Timestamp::from_micros(trigger::parse_instant(&request.until, None)?);
        let person = caller.actor.name();
        let decide = |seen: Option<&Seen>, now| {
            let event = seen::decide(seen, &caller.actor, until, now).map_err(errors::refused)?;
            Ok(event.map(|event| EventBody::Seen(person.to_owned(), event)))
        };
        let respond = |before: Option<&Seen>, after: Option<&Seen>| {
            let seen = after.ok_or_else(|| internal("the position was not recorded"))?;
            Ok(SeenMarked { until: rfc3339(seen.until), changed: before != after })
        };
        self.transactions.change::<StatusSeen, Seen>(caller, person, decide, respond).await
    }
}

impl Engine {
    /// What failed or ended unknown since the actor last looked; in the last day if they never did. A run that was queued more
    /// than a day before that is not looked at.
    pub(crate) async fn failures(&self, actor: &Actor, now: Timestamp) -> Result<Failures, Error> {
        let seen = self.seen_until(actor).await?;
        // A clock that was ahead may have left a position in the future.
        let since = seen.unwrap_or_else(|| now.after_us(-DAY_US)).min(now);
        let first_queued = since.after_us(-DAY_US);
        let mut failures =
            Failures { since: rfc3339(since), seen: seen.is_some(), ..Failures::default() };
        let (mut before, mut searched) = (String::new(), 0);
        loop {
            let newest =
                Newest { noun: Noun::Run.name(), index_key: None, before: &before, limit: BATCH };
            let batch = self.store.list_newest(newest).await.map_err(errors::store)?;
            for item in &batch {
                let (id, run) = decode_listed::<Run>(item)?;
                if run.queued_at < first_queued {
                    return Ok(failures);
                }
                let has_failed =
                    matches!(run.state, State::Ended(Outcome::Failed | Outcome::Unknown));
                // A person who settled a run knows about it.
                let is_new = run.settled_by.is_none() && run.finished_at > Some(since);
                if has_failed && is_new {
                    failures.runs.push(status_run(&id, &run, run.finished_at));
                }
            }
            searched += batch.len();
            let Some(last) = batch.last().filter(|_| batch.len() == BATCH) else {
                break;
            };
            before.clone_from(&last.id);
            if RUNS_SEARCHED_MAX <= searched {
                failures.incomplete = self.has_run_before(&before, first_queued).await?;
                break;
            }
        }
        Ok(failures)
    }

    /// Whether the next older run was queued after an instant.
    async fn has_run_before(&self, before: &str, queued_from: Timestamp) -> Result<bool, Error> {
        let newest = Newest { noun: Noun::Run.name(), index_key: None, before, limit: 1 };
        let older = self.store.list_newest(newest).await.map_err(errors::store)?;
        let run = older.first().map(decode_listed::<Run>).transpose()?;
        Ok(run.is_some_and(|(_, run)| queued_from <= run.queued_at))
    }

    /// How far a person has seen what happened. Agents and assistants have no position.
    async fn seen_until(&self, actor: &Actor) -> Result<Option<Timestamp>, Error> {
        if actor.role < Role::Operator {
            return Ok(None);
        }
        let rows = self.transactions.load(&[row_key::<Seen>(actor.name())]).await?;
        Ok(rows.get::<Seen>(actor.name()).map(|seen| seen.until))
    }
}

/// A run as a status shows it, without the name of its schedule.
pub(crate) fn status_run(id: &RunId, run: &Run, at: Option<Timestamp>) -> StatusRun {
    StatusRun {
        run_id: id.to_string(),
        state: run_state(&run.state),
        schedule_id: run.schedule.to_string(),
        schedule_name: None,
        agent: run.agent.as_ref().map(ToString::to_string),
        at: rfc3339(at.unwrap_or(run.queued_at)),
        reason: run.cause.as_ref().map(|cause| cause.code.clone()),
        message: run.cause.as_ref().map(|cause| cause.message.clone()),
    }
}

impl ToError for Refusal {
    fn to_error(&self) -> Error {
        match self {
            Refusal::RoleTooLow { .. } => errors::too_low(self),
        }
    }
}
