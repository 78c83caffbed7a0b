//! What became of a slot, and why: from the slot ledger alone.
//!
//! Slots of the past are judged by what the schedule was when they were decided, not by what it is now.

use api::{Error, Explained, Why};
use calendar::Calendar;
use kernel::progress::{Progress, Status};
use kernel::run::Run;
use kernel::schedule::Schedule;
use kernel::slot::{self, Fate, Slot};
use kernel::{Noun, ScheduleId, Timestamp};
use store::Item;

use crate::errors::{self, internal};
use crate::schedules::parsed_id;
use crate::stored;
use crate::times::rfc3339;
use crate::watch::Engine;
use crate::when;

/// A slot, and its run if it got one.
type WithRun = (Slot, Option<Run>);

impl Engine {
    /// Also of a schedule that was removed: its slots stay.
    pub(crate) async fn why(&self, asked: Why) -> Result<Explained, Error> {
        let id = parsed_id(&asked.id)?;
        let key = |noun: Noun| (noun, id.to_string());
        let rows = self.load(&[key(Noun::Schedule), key(Noun::Progress)]).await?;
        let unknown = || errors::schedule(kernel::schedule::Refusal::Unknown(id.clone()));
        let progress = rows.progress(&id).ok_or_else(unknown)?;
        let now = rows.schedule(&id).map(|it| Now::of(it, progress)).transpose()?;
        let asking = Asking { id: &id, progress, now };
        let at = match asked.at {
            Some(text) => {
                let at_us = when::instant(&text, asking.calendar().map(Calendar::zone))?;
                Some(Timestamp::from_micros(at_us))
            }
            None => self.last_slot(&id).await?.or(progress.ahead.next),
        };
        let Some(at) = at else { return Ok(asking.nothing_yet()) };
        let covering = self.slot_covering(&id, at).await?;
        let filled = self.slot_in_row(&slot::backfill_key(&id, at)).await?;
        let (own, range) = match covering {
            Some(slot) if slot.has(at, asking.calendar_of(&slot).as_ref()) => (Some(slot), None),
            other => (None, other),
        };
        let own = self.with_run(own).await?;
        let filled = self.with_run(filled).await?;
        Ok(match (own, filled) {
            (Some(own), filled) => asking.decided(at, &own, filled.as_ref()),
            (None, Some(filled)) => asking.decided(at, &filled, None),
            (None, None) => asking.no_slot(at, range.as_ref()),
        })
    }

    /// The newest slot that was decided.
    async fn last_slot(&self, id: &ScheduleId) -> Result<Option<Timestamp>, Error> {
        let noun = Noun::Slot.name();
        let found = self.store().newest(noun, None, &slot::end_key(id), 1).await;
        let found = found.map_err(errors::store)?.into_iter().next();
        Ok(found.map(|item| slot_of(id, item)).transpose()?.flatten().map(|slot| slot.last))
    }

    /// The row that covers an instant, if there is one.
    async fn slot_covering(&self, id: &ScheduleId, at: Timestamp) -> Result<Option<Slot>, Error> {
        let before = slot::key(id, Timestamp::from_micros(at.as_micros() - 1));
        let found =
            self.store().list(Noun::Slot.name(), &before, 1).await.map_err(errors::store)?;
        let found = found.into_iter().next().map(|item| slot_of(id, item)).transpose()?.flatten();
        Ok(found.filter(|slot| slot.first <= at && at <= slot.last))
    }

    async fn slot_in_row(&self, key: &str) -> Result<Option<Slot>, Error> {
        let rows = self.load(&[(Noun::Slot, key.to_owned())]).await?;
        Ok(rows.slot(key).cloned())
    }

    async fn with_run(&self, slot: Option<Slot>) -> Result<Option<WithRun>, Error> {
        let Some(slot) = slot else { return Ok(None) };
        let run = match &slot.fate {
            Fate::Run { run, .. } => {
                self.load(&[(Noun::Run, run.to_string())]).await?.run(run).cloned()
            }
            Fate::Passed { .. } | Fate::Buffered => None,
        };
        Ok(Some((slot, run)))
    }
}

/// What is known of the schedule whose slot is asked for.
struct Asking<'a> {
    id: &'a ScheduleId,
    progress: &'a Progress,
    /// Unless it was removed.
    now: Option<Now<'a>>,
}

/// What a schedule is now.
struct Now<'a> {
    schedule: &'a Schedule,
    calendar: Calendar,
    describe: String,
}

impl<'a> Now<'a> {
    fn of(schedule: &'a Schedule, progress: &Progress) -> Result<Now<'a>, Error> {
        let Schedule { definition, .. } = schedule;
        let calendar = definition.calendar(progress.ahead.next).map_err(errors::schedule)?;
        Ok(Now { schedule, calendar, describe: definition.describe().map_err(errors::schedule)? })
    }

    /// Whether it asks for this instant.
    fn asks_for(&self, at: Timestamp) -> bool {
        let terms = &self.schedule.definition.terms;
        let is_early = terms.start_at.is_some_and(|start| at < start);
        let is_late = terms.end_at.is_some_and(|end| end < at);
        let at_us = at.as_micros();
        !is_early && !is_late && self.calendar.last_until(at_us) == Some(at_us)
    }
}

impl Asking<'_> {
    fn calendar(&self) -> Option<&Calendar> {
        self.now.as_ref().map(|now| &now.calendar)
    }

    /// When the schedule fired as these slots were decided, as far as that is known.
    fn calendar_of(&self, slot: &Slot) -> Option<Calendar> {
        let is_same = |schedule: &Schedule| {
            schedule.revision == slot.revision && schedule.changed_at <= slot.decided_at
        };
        match &slot.timing {
            Some(timing) => timing.calendar(),
            None => {
                let now = self.now.as_ref().filter(|now| is_same(now.schedule));
                now.map(|now| now.calendar.clone())
            }
        }
    }

    /// A slot that the ledger knows, and what became of it later if a backfill has run it.
    fn decided(&self, at: Timestamp, own: &WithRun, filled: Option<&WithRun>) -> Explained {
        let (slot, run) = own;
        let reason = match &slot.fate {
            Fate::Passed { reason: Some(reason), .. } => Some(reason.name().to_owned()),
            _ => run.as_ref().and_then(|run| run.cause.as_ref()).map(|cause| cause.code.clone()),
        };
        let run_of = |slot: &Slot| match &slot.fate {
            Fate::Run { run, .. } => Some(run.to_string()),
            Fate::Passed { .. } | Fate::Buffered => None,
        };
        let sentence = |(slot, run): &WithRun| slot.sentence(run.as_ref(), self.progress);
        let later = filled.map(|it| format!("; later {}", sentence(it)));
        // What was recorded is of the last.
        let is_recorded = at == slot.last && !slot.wall.is_empty();
        let calendar = self.calendar_of(slot).filter(|_| !is_recorded);
        Explained {
            schedule_id: self.id.to_string(),
            slot: rfc3339(at),
            wall: calendar.map_or_else(|| slot.wall.clone(), |it| wall(&it, at)),
            disposition: slot.disposition(run.as_ref()).name().to_owned(),
            reason,
            sentence: format!("{}{}", sentence(own), later.unwrap_or_default()),
            run_id: run_of(slot).or_else(|| filled.and_then(|(slot, _)| run_of(slot))),
            into: match &slot.fate {
                Fate::Passed { into, .. } => into.map(rfc3339),
                Fate::Run { .. } | Fate::Buffered => None,
            },
        }
    }

    /// An instant that is no slot which the ledger knows, though it may be between those of a range.
    fn no_slot(&self, at: Timestamp, range: Option<&Slot>) -> Explained {
        let (disposition, sentence) = match (range, &self.now) {
            (Some(range), _) => ("none", self.between(at, range)),
            (None, None) => {
                let at = rfc3339(at);
                (
                    "none",
                    format!("the schedule was removed, and {at} is no slot that it had decided"),
                )
            }
            (None, Some(now)) if at <= self.progress.decided_until => ("none", past(at, now)),
            (None, Some(now)) => self.ahead(at, now),
        };
        self.explained(at, disposition, sentence)
    }

    fn between(&self, at: Timestamp, range: &Slot) -> String {
        let at = rfc3339(at);
        match self.calendar_of(range) {
            Some(calendar) => {
                let due = calendar.describe();
                format!("{at} was no slot of this schedule, which then was due {due}")
            }
            None => {
                let told = range.sentence(None, self.progress);
                format!(
                    "the schedule was changed since, and whether {at} was a slot is not known; {told}"
                )
            }
        }
    }

    /// After all that is decided.
    fn ahead(&self, at: Timestamp, now: &Now<'_>) -> (&'static str, String) {
        let told = rfc3339(at);
        let is_paused = matches!(self.progress.status, Status::Paused(_));
        match (now.asks_for(at), self.progress.ahead.next) {
            (false, _) => ("none", format!("{told} is no slot of this schedule: {}", now.describe)),
            (true, None) => ("none", format!("{told} is no slot any more: the schedule has ended")),
            (true, Some(_)) if is_paused => {
                ("upcoming", format!("{told} is not decided: the schedule is paused"))
            }
            (true, Some(_)) => ("upcoming", format!("{told} is a slot that is not decided yet")),
        }
    }

    /// Of a schedule that never had a slot, and has none ahead.
    fn nothing_yet(&self) -> Explained {
        let sentence = match &self.now {
            Some(now) => {
                format!("nothing has happened yet that the schedule waits for: {}", now.describe)
            }
            None => "the schedule was removed, and never had a slot".to_owned(),
        };
        self.explained(self.progress.decided_until, "none", sentence)
    }

    fn explained(&self, at: Timestamp, disposition: &str, sentence: String) -> Explained {
        Explained {
            schedule_id: self.id.to_string(),
            slot: rfc3339(at),
            wall: self.calendar().map_or_else(String::new, |calendar| wall(calendar, at)),
            disposition: disposition.to_owned(),
            reason: None,
            sentence,
            run_id: None,
            into: None,
        }
    }
}

/// Of an instant up to which all is decided, so that it was no slot when it came.
fn past(at: Timestamp, now: &Now<'_>) -> String {
    let (created, changed) = (now.schedule.created_at, now.schedule.changed_at);
    let told = rfc3339(at);
    if at < created {
        return format!("{told} was before this schedule was added, at {}", rfc3339(created));
    }
    if changed < at && !now.asks_for(at) {
        return format!("{told} is no slot of this schedule: {}", now.describe);
    }
    let became = if created == changed { "added" } else { "changed" };
    format!("{told} was no slot of it then; it was {became} at {}", rfc3339(changed))
}

fn wall(calendar: &Calendar, at: Timestamp) -> String {
    calendar.wall_time(at.as_micros()).to_string()
}

/// The slot in a row, if it is one of this schedule.
fn slot_of(id: &ScheduleId, item: Item) -> Result<Option<Slot>, Error> {
    let is_ours = item.id.split_once('/').is_some_and(|(owner, _)| owner == id.as_str());
    let Some(body) = item.body.filter(|_| is_ours) else { return Ok(None) };
    let slot = stored::state(Noun::Slot, &body)?.slot();
    slot.ok_or_else(|| internal("a row of a slot holds something else")).map(Some)
}
