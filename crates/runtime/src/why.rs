//! What became of a slot, and why: from the slot ledger alone.

use api::{Error, Explained, Why};
use calendar::Calendar;
use kernel::progress::Progress;
use kernel::slot::{self, Fate, Slot};
use kernel::{Noun, ScheduleId, Timestamp};

use crate::errors::{self, internal};
use crate::schedules::parsed_id;
use crate::stored;
use crate::times::rfc3339;
use crate::watch::Watch;
use crate::when;

impl Watch {
    /// Also of a schedule that was removed: its slots stay.
    pub(crate) async fn why(&self, asked: Why) -> Result<Explained, Error> {
        let id = parsed_id(&asked.id)?;
        let key = |noun: Noun| (noun, id.to_string());
        let rows = self.load(&[key(Noun::Schedule), key(Noun::Progress)]).await?;
        let unknown = || errors::schedule(kernel::schedule::Refusal::Unknown(id.clone()));
        let progress = rows.progress(&id).ok_or_else(unknown)?;
        let schedule = rows.schedule(&id);
        let calendar = schedule.map(|it| it.definition.calendar(progress.ahead.next));
        let calendar = calendar.transpose().map_err(errors::schedule)?;
        let at_us = match asked.at {
            Some(text) => when::instant(&text, calendar.as_ref().map(Calendar::zone))?,
            None => self.last_slot(&id, calendar.as_ref(), progress).await?,
        };
        let found = self.slot_at(&id, at_us).await?;
        // Between the slots of a range is no slot.
        let is_on_calendar =
            calendar.as_ref().is_none_or(|calendar| calendar.last_until(at_us) == Some(at_us));
        let Some(found) = found.filter(|slot| slot.count == 1 || is_on_calendar) else {
            return Ok(match (schedule, calendar) {
                (Some(schedule), Some(calendar)) => {
                    undecided(&id, &calendar, progress, schedule.created_at, at_us)
                }
                _ => removed(&id, at_us),
            });
        };
        let (run_id, run) = match &found.fate {
            Fate::Run { run, .. } => {
                let rows = self.load(&[(Noun::Run, run.to_string())]).await?;
                (Some(run.to_string()), rows.run(run).cloned())
            }
            Fate::Passed { .. } | Fate::Buffered => (None, None),
        };
        let reason = match &found.fate {
            Fate::Passed { reason: Some(reason), .. } => Some(reason.name().to_owned()),
            _ => run.as_ref().and_then(|run| run.cause.as_ref()).map(|cause| cause.code.clone()),
        };
        Ok(Explained {
            schedule_id: id.to_string(),
            slot: rfc3339(Timestamp::from_micros(at_us)),
            wall: calendar.map_or_else(
                || found.wall.clone(),
                |calendar| calendar.wall_time(at_us).to_string(),
            ),
            disposition: found.disposition(run.as_ref()).name().to_owned(),
            reason,
            sentence: found.sentence(run.as_ref()),
            run_id,
        })
    }

    /// The newest slot that was decided, or the next one before any was.
    async fn last_slot(
        &self,
        id: &ScheduleId,
        calendar: Option<&Calendar>,
        progress: &Progress,
    ) -> Result<i64, Error> {
        let decided = progress.decided_until.as_micros();
        if let Some(last) = calendar.and_then(|calendar| calendar.last_until(decided))
            && self.slot_at(id, last).await?.is_some()
        {
            return Ok(last);
        }
        Ok(progress.ahead.next.map_or(decided, Timestamp::as_micros))
    }

    /// The row that covers an instant, if there is one.
    async fn slot_at(&self, id: &ScheduleId, at_us: i64) -> Result<Option<Slot>, Error> {
        let noun = Noun::Slot;
        let before = slot::key(id, Timestamp::from_micros(at_us - 1));
        let found = self.store().list(noun.name(), &before, 1).await.map_err(errors::store)?;
        let Some(item) = found.into_iter().next() else { return Ok(None) };
        let is_ours = item.id.split_once('/').is_some_and(|(owner, _)| owner == id.as_str());
        let Some(body) = item.body.filter(|_| is_ours) else { return Ok(None) };
        let slot = stored::state(noun, &body)?.slot();
        let slot = slot.ok_or_else(|| internal("a row of a slot holds something else"))?;
        let covers = slot.first.as_micros() <= at_us && at_us <= slot.last.as_micros();
        Ok(Some(slot).filter(|_| covers))
    }
}

/// A slot that the ledger does not know, of a schedule that is gone.
fn removed(id: &ScheduleId, at_us: i64) -> Explained {
    let at = rfc3339(Timestamp::from_micros(at_us));
    Explained {
        schedule_id: id.to_string(),
        wall: String::new(),
        disposition: "none".to_owned(),
        reason: None,
        sentence: format!("the schedule was removed, and {at} is no slot that it had decided"),
        slot: at,
        run_id: None,
    }
}

/// A slot that the ledger does not know.
fn undecided(
    id: &ScheduleId,
    calendar: &Calendar,
    progress: &Progress,
    created: Timestamp,
    at_us: i64,
) -> Explained {
    let at = rfc3339(Timestamp::from_micros(at_us));
    let is_slot = calendar.last_until(at_us) == Some(at_us);
    let is_ahead = progress.decided_until.as_micros() < at_us;
    let (disposition, sentence) = match (is_slot, is_ahead) {
        (false, _) => {
            ("none", format!("{at} is no slot of this schedule: {}", calendar.describe()))
        }
        (true, true) if progress.due().is_none() => {
            ("upcoming", format!("{at} is not decided: the schedule is paused or has ended"))
        }
        (true, true) => ("upcoming", format!("{at} is a slot that is not decided yet")),
        (true, false) => {
            let created = rfc3339(created);
            ("none", format!("{at} was before this schedule was added, at {created}"))
        }
    };
    Explained {
        schedule_id: id.to_string(),
        slot: at,
        wall: calendar.wall_time(at_us).to_string(),
        disposition: disposition.to_owned(),
        reason: None,
        sentence,
        run_id: None,
    }
}
