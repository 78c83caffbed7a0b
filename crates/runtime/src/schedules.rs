//! Requests about schedules, carried out.

mod add;
mod backfill;
mod define;
mod wire;

use api::{
    Answer, Code, Error, LIST_BYTES_MAX, ScheduleAdd, ScheduleFire, ScheduleFired, ScheduleList,
    SchedulePause, SchedulePaused, ScheduleRemove, ScheduleRemoved, ScheduleResume,
    ScheduleResumed, ScheduleShow, ScheduleShown, Schedules,
};
use kernel::id::SCHEDULE_DIGITS;
use kernel::schedule::{self, Action, Command, Ground, Schedule};
use kernel::{Actor, Body, Noun, ScheduleId, Timestamp, slot};
use store::Item;

use crate::agents::{page_size, page_start};
use crate::errors::{self, internal};
use crate::reach::Asking;
use crate::rows::{RowKey, Rows};
use crate::runs;
use crate::sealing::Purpose;
use crate::stored;
use crate::transact::{Change, Key};
use crate::watch::Watch;
pub(crate) use define::edited_action;
use wire::{bounds, released, skipped, upcoming, wire};

/// Rows that are looked at for one page of an agent's schedules. Where there are more of others between two of its
/// own, a page may be empty and have another's id for its cursor.
const LOOKED_AT_MAX: usize = 100_000;
const READ_AT_ONCE: usize = 256;

/// Whether a schedule could be added as it is said, whoever its agent is. Pure.
pub fn check_schedule(asked: &ScheduleAdd, now: Timestamp) -> Result<(), Error> {
    let definition = Box::new(define::new(asked.clone())?.definition);
    let (rows, id) = (Rows::default(), ScheduleId::of(&[0; 32], SCHEDULE_DIGITS));
    let add = Command::Add { definition, paused: false };
    match schedule::decide(ground(&rows, &id, now), &Actor::system(), add) {
        Ok(_) | Err(schedule::Refusal::UnknownAgent(_)) => Ok(()),
        Err(refusal) => Err(errors::schedule(refusal)),
    }
}

impl Watch {
    pub(crate) async fn schedule_list(&self, asked: ScheduleList) -> Result<Schedules, Error> {
        let limit = page_size(asked.limit)?;
        let agent = asked.agent.as_deref();
        let is_asked_for = |schedule: &Schedule| {
            let of = schedule.definition.action.agent().map(|agent| agent.as_str());
            agent.is_none() || agent == of
        };
        let mut after = page_start::<ScheduleId>(asked.cursor)?;
        // One more than asked for tells whether there is a next page.
        let read = agent.map_or(limit + 1, |_| READ_AT_ONCE.max(limit + 1));
        let (mut ids, mut bytes, mut looked_at) = (Vec::new(), 0, 0);
        let has_more = loop {
            let items = self.store().list(Noun::Schedule.name(), &after, read).await;
            let items = items.map_err(errors::store)?;
            for item in &items {
                after.clone_from(&item.id);
                let (id, schedule) = schedule_in(item)?;
                if is_asked_for(&schedule) {
                    ids.push(id);
                    bytes += item.body.as_ref().map_or(0, |body| body.len());
                }
                if ids.len() == limit || LIST_BYTES_MAX <= bytes {
                    break;
                }
            }
            looked_at += items.len();
            let is_full = ids.len() == limit || LIST_BYTES_MAX <= bytes;
            let is_last = items.len() < read && items.last().is_none_or(|item| item.id == after);
            if is_last || is_full || LOOKED_AT_MAX <= looked_at {
                break !is_last;
            }
        };
        let rows: Vec<RowKey> = ids.iter().flat_map(rows_of).collect();
        let rows = self.load(&rows).await?;
        let listed = ids.iter().filter(|id| rows.schedule(id).is_some_and(is_asked_for));
        let schedules: Vec<_> = listed.map(|id| wire(id, &rows)).collect::<Result<_, _>>()?;
        // The last one that is shown, so that nobody learns of another's.
        let last = ids.last().map_or(after, ScheduleId::to_string);
        Ok(Schedules { schedules, agent: asked.agent, cursor: has_more.then_some(last) })
    }

    pub(crate) async fn schedule_show(
        &self,
        actor: &Actor,
        asked: ScheduleShow,
    ) -> Result<ScheduleShown, Error> {
        let id = self.schedule_id(&asked.id).await?;
        let mut rows = self.load(&rows_of(&id)).await?;
        let mut schedule = wire(&id, &rows)?;
        let action = rows.schedule(&id).map(|it| &it.definition.action);
        let agent = action.and_then(Action::agent);
        if let Some(action) = action.filter(|action| action.words().is_sealed())
            && self.may_read_sealed(actor, agent).await?
        {
            let words = Some(self.sealing().open(action.words(), Purpose::Words)?);
            match action {
                Action::Prompt { .. } => schedule.action.prompt = words,
                Action::Tool { .. } => schedule.action.payload = words,
            }
        }
        let agent = agent.map(|name| (Noun::Agent, name.to_string()));
        let called = match action {
            Some(action) => self.called(action).await?,
            None => None,
        };
        let reads: Vec<RowKey> = agent.into_iter().chain([self.authority_row()]).collect();
        rows.extend(self.load(&reads).await?);
        let next = upcoming(&id, &rows, self.now())?;
        let bounds = bounds(&id, &rows, self.now())?;
        let orders = self.foretell(&id, &rows, called.as_ref())?;
        Ok(ScheduleShown { schedule, next, bounds, orders })
    }

    pub(crate) async fn schedule_pause(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: SchedulePause,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        let command = Command::Pause { note: asked.note };
        self.change_schedule(actor, key, &id, command, |before, after| {
            let changed = before.progress(&id) != after.progress(&id);
            Ok(Answer::SchedulePause(SchedulePaused { schedule: wire(&id, after)?, changed }))
        })
        .await
    }

    pub(crate) async fn schedule_resume(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleResume,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        self.change_schedule(actor, key, &id, Command::Resume, |before, after| {
            Ok(Answer::ScheduleResume(ScheduleResumed {
                schedule: wire(&id, after)?,
                changed: before.progress(&id) != after.progress(&id),
                skipped: skipped(&id, before, after)?,
                released: released(&id, before, after),
                next: upcoming(&id, after, self.now())?,
            }))
        })
        .await
    }

    pub(crate) async fn schedule_remove(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleRemove,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        self.change_schedule(actor, key, &id, Command::Remove, |before, _| {
            Ok(Answer::ScheduleRemove(ScheduleRemoved { schedule: wire(&id, before)? }))
        })
        .await
    }

    pub(crate) async fn schedule_fire(
        &self,
        actor: &Actor,
        key: Option<Key>,
        asked: ScheduleFire,
    ) -> Result<Answer, Error> {
        let id = parsed_id(&asked.id)?;
        let run = self.new_run(self.now());
        // A call that is repeated long after its answer was forgotten is still the same run.
        let once = key.as_ref().map_or_else(|| run.to_string(), |key| key.name().to_owned());
        let slot = slot::manual_key(&id, &once);
        let asking = self.asking(actor, "run.start", Some(id.as_str())).await?;
        let slot_row = (Noun::Slot, slot.clone());
        let reads = asking.iter().flat_map(Asking::all_rows).chain([slot_row]).collect();
        let change = Change { rows: rows_of(&id), reads, ..Change::by(actor, key) };
        let command = Command::Fire { run: run.clone(), key: once };
        let decide = |rows: &Rows, now| -> Result<Vec<Body>, Error> {
            let maker = asking.as_ref().and_then(|asking| asking.among(rows, 0));
            let ground = Ground { fired: rows.slot(&slot), maker, ..ground(rows, &id, now) };
            schedule::decide(ground, actor, command.clone()).map_err(errors::schedule)
        };
        self.transact(change, decide, |_, after| {
            Ok(Answer::ScheduleFire(ScheduleFired { run: runs::wire_in(after, &run)? }))
        })
        .await
    }

    async fn change_schedule(
        &self,
        actor: &Actor,
        key: Option<Key>,
        id: &ScheduleId,
        command: Command,
        answer: impl Fn(&Rows, &Rows) -> Result<Answer, Error>,
    ) -> Result<Answer, Error> {
        let asking = self.asking(actor, "schedule.change", Some(id.as_str())).await?;
        let reads = asking.iter().flat_map(Asking::all_rows).collect();
        let change = Change { rows: rows_of(id), reads, ..Change::by(actor, key) };
        let decide = |rows: &Rows, now| -> Result<Vec<Body>, Error> {
            let maker = asking.as_ref().and_then(|asking| asking.among(rows, 0));
            let ground = Ground { maker, ..ground(rows, id, now) };
            schedule::decide(ground, actor, command.clone()).map_err(errors::schedule)
        };
        self.transact(change, decide, answer).await
    }

    /// The id of a schedule that is there.
    pub(crate) async fn schedule_id(&self, text: &str) -> Result<ScheduleId, Error> {
        let id = parsed_id(text)?;
        let rows = self.load(&[(Noun::Schedule, id.to_string())]).await?;
        match rows.schedule(&id) {
            Some(_) => Ok(id),
            None => Err(errors::schedule(schedule::Refusal::Unknown(id))),
        }
    }
}

pub(crate) fn parsed_id(text: &str) -> Result<ScheduleId, Error> {
    text.parse().map_err(|invalid| {
        Error::new(Code::NotFound, invalid).hint("`midwatch schedule list` shows the schedules")
    })
}

/// The schedule in a row of the store.
fn schedule_in(item: &Item) -> Result<(ScheduleId, Schedule), Error> {
    let id = item.id.parse().map_err(internal)?;
    let state = item.body.as_ref().map(|body| stored::state(Noun::Schedule, body)).transpose()?;
    let schedule = state.and_then(kernel::State::schedule);
    Ok((id, schedule.ok_or_else(|| internal("a listed schedule has no state"))?))
}

fn rows_of(id: &ScheduleId) -> Vec<RowKey> {
    vec![(Noun::Schedule, id.to_string()), (Noun::Progress, id.to_string())]
}

fn ground<'a>(rows: &'a Rows, id: &'a ScheduleId, now: Timestamp) -> Ground<'a> {
    Ground {
        id,
        schedule: rows.schedule(id),
        progress: rows.progress(id),
        agent: None,
        upstream: &[],
        fired: None,
        maker: None,
        now,
    }
}
