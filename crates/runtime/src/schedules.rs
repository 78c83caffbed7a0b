//! Requests about schedules, carried out.

mod add;
mod backfill;
mod define;
mod wire;

use api::{
    Answer, Code, Error, ScheduleAdd, ScheduleFire, ScheduleFired, ScheduleList, SchedulePause,
    SchedulePaused, ScheduleRemove, ScheduleRemoved, ScheduleResume, ScheduleResumed, ScheduleShow,
    ScheduleShown, Schedules,
};
use kernel::id::SCHEDULE_DIGITS;
use kernel::schedule::{self, Action, Command, Ground, Schedule};
use kernel::{Actor, Body, Noun, ScheduleId, Timestamp, slot};
use store::Item;

use crate::errors::{self, internal};
use crate::page::{Listed, Order};
use crate::reach::Asking;
use crate::rows::{RowKey, Rows};
use crate::runs;
use crate::sealing::Purpose;
use crate::stored;
use crate::transact::{Change, Key};
use crate::watch::Engine;
pub(crate) use add::not_scheduled;
pub(crate) use define::edited_action;
use wire::{bounds, released, skipped, upcoming, wire};

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

impl Engine {
    pub(crate) async fn schedule_list(&self, asked: ScheduleList) -> Result<Schedules, Error> {
        let agent = asked.agent.as_deref();
        let is_asked_for = |schedule: &Schedule| {
            let of = schedule.definition.action.agent().map(|agent| agent.as_str());
            agent.is_none() || agent == of
        };
        let page = Listed {
            noun: Noun::Schedule,
            order: Order::ById,
            limit: asked.limit,
            cursor: asked.cursor,
        };
        let (ids, cursor) = self
            .page::<ScheduleId, _>(page, |item| {
                let (id, schedule) = schedule_in(item)?;
                Ok(is_asked_for(&schedule).then_some(id))
            })
            .await?;
        let rows: Vec<RowKey> = ids.iter().flat_map(rows_of).collect();
        let rows = self.load(&rows).await?;
        // Meanwhile one may have been removed, or given to another.
        let listed = ids.iter().filter(|id| rows.schedule(id).is_some_and(is_asked_for));
        let schedules: Vec<_> = listed.map(|id| wire(id, &rows)).collect::<Result<_, _>>()?;
        Ok(Schedules { schedules, agent: asked.agent, cursor })
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
