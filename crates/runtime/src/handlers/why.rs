//! Explains the outcome of a slot, from the stored slots alone.
//!
//! Past slots are explained by the schedule at the time of their decision, not by the current one.

use api::{Disposition, Error, Explained, Serve, StartObstacle, Why};
use calendar::Calendar;
use kernel::progress::{LastRun, Progress, Status};
use kernel::run::{Origin, Run};
use kernel::schedule::Schedule;
use kernel::slot::{self, Slot, SlotOutcome};
use kernel::{Noun, ScheduleId, Timestamp};
use store::{Item, Newest};

use crate::commit::caller::Caller;
use crate::commit::codec;
use crate::commit::ids::schedule_id;
use crate::commit::rows::row_key;
use crate::engine::Engine;
use crate::errors;
use crate::schedule::trigger;
use crate::timestamps::rfc3339;
use crate::wire;

/// A slot, and its run if it has one.
type SlotWithRun = (Slot, Option<Run>);

/// Also explains slots of a removed schedule, because they stay stored.
impl Serve<Why> for Engine {
    async fn serve(&self, _: &Caller, request: Why) -> Result<Explained, Error> {
        let id = schedule_id(&request.id)?;
        let key = |noun: Noun| (noun, id.to_string());
        let rows = self.transactions.load(&[key(Noun::Schedule), key(Noun::Progress)]).await?;
        let unknown = || errors::refused(kernel::schedule::Refusal::Unknown(id.clone()));
        let progress = rows.get::<Progress>(&id).ok_or_else(unknown)?;
        let current =
            rows.get::<Schedule>(&id).map(|it| CurrentSchedule::of(it, progress)).transpose()?;
        let explainer = Explainer { id: &id, progress, current };
        let asks_for_last = request.at.is_none();
        let at = match request.at {
            Some(text) => {
                let at_us =
                    trigger::parse_instant(&text, explainer.calendar().map(Calendar::zone))?;
                Some(Timestamp::from_micros(at_us))
            }
            None => self.last_slot(&id).await?.or(progress.next_fire.slot),
        };
        let Some(at) = at else {
            let explained = explainer.no_slots();
            let by_hand = self.last_manual_run(progress).await?.unwrap_or_default();
            let explained = Explained { sentence: explained.sentence + &by_hand, ..explained };
            return self.name_obstacle(explained, progress).await;
        };
        let covering = self.slot_covering(&id, at).await?;
        let backfilled = self.load_slot(&slot::backfill_key(&id, at)).await?;
        let (own, range) = match covering {
            Some(slot) if slot.covers(at, explainer.calendar_of(&slot).as_ref()) => {
                (Some(slot), None)
            }
            other => (None, other),
        };
        let own = self.with_run(own).await?;
        let backfilled = self.with_run(backfilled).await?;
        let mut explained = match (own, backfilled) {
            (Some(own), backfilled) => explainer.decided(at, &own, backfilled.as_ref()),
            (None, Some(backfilled)) => explainer.decided(at, &backfilled, None),
            (None, None) if asks_for_last => explainer.nothing_due(at),
            (None, None) => explainer.no_slot(at, range.as_ref()),
        };
        if asks_for_last && let Some(by_hand) = self.last_manual_run(progress).await? {
            explained.sentence.push_str(&by_hand);
        }
        self.name_obstacle(explained, progress).await
    }
}

impl Engine {
    /// Adds what keeps every run from starting, if this slot or the run before it may wait for that.
    async fn name_obstacle(
        &self,
        explained: Explained,
        progress: &Progress,
    ) -> Result<Explained, Error> {
        use Disposition::{Buffered, Fired, SkippedOverlap, Upcoming};
        let may_wait = match progress.status {
            Status::Active => {
                [Buffered, Fired, SkippedOverlap, Upcoming].contains(&explained.disposition)
            }
            Status::Paused(_) | Status::Removed => false,
        };
        let obstacle = if may_wait { self.start_obstacle().await? } else { None };
        let obstacle = match obstacle {
            Some(StartObstacle::Frozen) => {
                "Midwatch is frozen, so no run starts before it is thawed"
            }
            Some(StartObstacle::NoDaemon) => "no daemon is running, so no run starts",
            Some(StartObstacle::Stopping) => "the daemon is stopping, so no run starts",
            None => return Ok(explained),
        };
        let sentence = format!("{}; {obstacle}", explained.sentence);
        Ok(Explained { sentence, ..explained })
    }

    /// The last slot that was decided.
    async fn last_slot(&self, id: &ScheduleId) -> Result<Option<Timestamp>, Error> {
        let noun = Noun::Slot.name();
        let found = self
            .store
            .list_newest(Newest { noun, index_key: None, before: &slot::end_key(id), limit: 1 })
            .await;
        let found = found.map_err(errors::store)?;
        let slot = found.first().map(|item| decode_slot(id, item)).transpose()?.flatten();
        Ok(slot.map(|slot| slot.last))
    }

    /// What became of the schedule's last run, if a person started it: it belongs to no slot.
    async fn last_manual_run(&self, progress: &Progress) -> Result<Option<String>, Error> {
        let Some(LastRun { id, .. }) = &progress.last_run else { return Ok(None) };
        let rows = self.transactions.load(&[row_key::<Run>(id)]).await?;
        let run = rows.get::<Run>(id).filter(|run| run.origin == Origin::Manual);
        Ok(run.map(|run| format!("; run {id} was started by hand: {}", run.summary())))
    }

    /// The stored range of slots that covers an instant.
    async fn slot_covering(&self, id: &ScheduleId, at: Timestamp) -> Result<Option<Slot>, Error> {
        let before = slot::key(id, Timestamp::from_micros(at.as_micros() - 1));
        let found = self.store.list(Noun::Slot.name(), &before, 1).await.map_err(errors::store)?;
        let slot = found.first().map(|item| decode_slot(id, item)).transpose()?.flatten();
        Ok(slot.filter(|slot| slot.first <= at && at <= slot.last))
    }

    async fn load_slot(&self, key: &str) -> Result<Option<Slot>, Error> {
        let rows = self.transactions.load(&[(Noun::Slot, key.to_owned())]).await?;
        Ok(rows.get::<Slot>(key).cloned())
    }

    async fn with_run(&self, slot: Option<Slot>) -> Result<Option<SlotWithRun>, Error> {
        let Some(slot) = slot else { return Ok(None) };
        let run = match &slot.outcome {
            SlotOutcome::Run { run, .. } => self
                .transactions
                .load(&[(Noun::Run, run.to_string())])
                .await?
                .get::<Run>(run)
                .cloned(),
            SlotOutcome::Passed { .. } | SlotOutcome::Buffered => None,
        };
        Ok(Some((slot, run)))
    }
}

/// Explains slots of one schedule.
struct Explainer<'a> {
    id: &'a ScheduleId,
    progress: &'a Progress,
    /// `None` if the schedule was removed.
    current: Option<CurrentSchedule<'a>>,
}

/// A schedule as it is now.
struct CurrentSchedule<'a> {
    schedule: &'a Schedule,
    calendar: Calendar,
    describe: String,
}

impl<'a> CurrentSchedule<'a> {
    fn of(schedule: &'a Schedule, progress: &Progress) -> Result<CurrentSchedule<'a>, Error> {
        let Schedule { definition, .. } = schedule;
        let calendar = definition.calendar(progress.next_fire.slot).map_err(errors::refused)?;
        let describe = definition.describe().map_err(errors::refused)?;
        Ok(CurrentSchedule { schedule, calendar, describe })
    }

    /// Whether the schedule has a slot at this instant.
    fn has_slot_at(&self, at: Timestamp) -> bool {
        let terms = &self.schedule.definition.terms;
        let is_early = terms.start_at.is_some_and(|start| at < start);
        let is_late = terms.end_at.is_some_and(|end| end < at);
        let at_us = at.as_micros();
        !is_early && !is_late && self.calendar.last_at_or_before(at_us) == Some(at_us)
    }
}

impl Explainer<'_> {
    fn calendar(&self) -> Option<&Calendar> {
        self.current.as_ref().map(|current| &current.calendar)
    }

    /// The calendar of the schedule when these slots were decided, if it is known.
    fn calendar_of(&self, slot: &Slot) -> Option<Calendar> {
        let is_same = |schedule: &Schedule| {
            schedule.revision == slot.revision && schedule.changed_at <= slot.decided_at
        };
        match &slot.timing {
            Some(timing) => timing.calendar(),
            None => {
                let current = self.current.as_ref().filter(|current| is_same(current.schedule));
                current.map(|current| current.calendar.clone())
            }
        }
    }

    /// Explains a stored slot, and its backfill if it has one.
    fn decided(
        &self,
        at: Timestamp,
        own: &SlotWithRun,
        backfilled: Option<&SlotWithRun>,
    ) -> Explained {
        let (slot, run) = own;
        let reason = match &slot.outcome {
            SlotOutcome::Passed { reason: Some(reason), .. } => Some(reason.name().to_owned()),
            _ => run.as_ref().and_then(|run| run.cause.as_ref()).map(|cause| cause.code.clone()),
        };
        let run_of = |slot: &Slot| match &slot.outcome {
            SlotOutcome::Run { run, .. } => Some(run.to_string()),
            SlotOutcome::Passed { .. } | SlotOutcome::Buffered => None,
        };
        let sentence = |(slot, run): &SlotWithRun| slot.describe(run.as_ref(), self.progress);
        let later = backfilled.map(|it| format!("; later {}", sentence(it)));
        // A stored range has the wall time of its last slot.
        let is_recorded = at == slot.last && !slot.wall.is_empty();
        let calendar = self.calendar_of(slot).filter(|_| !is_recorded);
        Explained {
            schedule_id: self.id.to_string(),
            slot: rfc3339(at),
            wall: calendar.map_or_else(|| slot.wall.clone(), |it| wall(&it, at)),
            disposition: wire::disposition(slot.disposition(run.as_ref())),
            reason,
            sentence: format!("{}{}", sentence(own), later.unwrap_or_default()),
            run_id: run_of(slot).or_else(|| backfilled.and_then(|(slot, _)| run_of(slot))),
            into: match &slot.outcome {
                SlotOutcome::Passed { into, .. } => into.map(rfc3339),
                SlotOutcome::Run { .. } | SlotOutcome::Buffered => None,
            },
        }
    }

    /// Explains a schedule that has had no slot, by its next one.
    fn nothing_due(&self, next: Timestamp) -> Explained {
        let explained = self.no_slot(next, None);
        match (explained.disposition, &self.progress.status) {
            (Disposition::Upcoming, Status::Active) => {
                let sentence = format!("nothing was due yet; next due {}", explained.slot);
                Explained { sentence, ..explained }
            }
            _ => explained,
        }
    }

    /// Explains an instant that is not a stored slot. `range` are stored slots around it.
    fn no_slot(&self, at: Timestamp, range: Option<&Slot>) -> Explained {
        let (disposition, sentence) = match (range, &self.current) {
            (Some(range), _) => (Disposition::NoSlot, self.explain_between(at, range)),
            (None, None) => {
                let at = rfc3339(at);
                (
                    Disposition::NoSlot,
                    format!("the schedule was removed, and {at} was not one of its slots"),
                )
            }
            (None, Some(current)) if at <= self.progress.decided_until => {
                (Disposition::NoSlot, explain_past(at, current))
            }
            (None, Some(current)) => self.explain_future(at, current),
        };
        self.explained(at, disposition, sentence)
    }

    fn explain_between(&self, at: Timestamp, range: &Slot) -> String {
        let at = rfc3339(at);
        match self.calendar_of(range) {
            Some(calendar) => {
                let due = calendar.describe();
                format!("{at} was not a slot of this schedule, which was due {due} then")
            }
            None => {
                let outcome = range.describe(None, self.progress);
                format!(
                    "the schedule was changed since, so it is unknown whether {at} was a slot; {outcome}"
                )
            }
        }
    }

    fn explain_future(
        &self,
        at: Timestamp,
        current: &CurrentSchedule<'_>,
    ) -> (Disposition, String) {
        let time = rfc3339(at);
        let is_paused = matches!(self.progress.status, Status::Paused(_));
        match (current.has_slot_at(at), self.progress.next_fire.slot) {
            (false, _) => (
                Disposition::NoSlot,
                format!("{time} is not a slot of this schedule: {}", current.describe),
            ),
            (true, None) => {
                (Disposition::NoSlot, format!("{time} is not a slot: the schedule has ended"))
            }
            (true, Some(_)) if is_paused => {
                (Disposition::Upcoming, format!("{time} is not decided: the schedule is paused"))
            }
            (true, Some(_)) => {
                (Disposition::Upcoming, format!("{time} is an upcoming slot, not decided yet"))
            }
        }
    }

    /// Explains a schedule that has had no slot and has none ahead.
    fn no_slots(&self) -> Explained {
        let sentence = match &self.current {
            Some(current) => format!("the schedule was not triggered yet: {}", current.describe),
            None => "the schedule was removed, and never had a slot".to_owned(),
        };
        self.explained(self.progress.decided_until, Disposition::NoSlot, sentence)
    }

    fn explained(&self, at: Timestamp, disposition: Disposition, sentence: String) -> Explained {
        Explained {
            schedule_id: self.id.to_string(),
            slot: rfc3339(at),
            wall: self.calendar().map_or_else(String::new, |calendar| wall(calendar, at)),
            disposition,
            reason: None,
            sentence,
            run_id: None,
            into: None,
        }
    }
}

/// Explains a past instant that was not a slot.
fn explain_past(at: Timestamp, current: &CurrentSchedule<'_>) -> String {
    let (created, changed) = (current.schedule.created_at, current.schedule.changed_at);
    let time = rfc3339(at);
    if at < created {
        return format!("{time} is before this schedule was added, at {}", rfc3339(created));
    }
    if changed < at && !current.has_slot_at(at) {
        return format!("{time} is not a slot of this schedule: {}", current.describe);
    }
    let verb = if created == changed { "added" } else { "changed" };
    format!("{time} was not a slot then; the schedule was {verb} at {}", rfc3339(changed))
}

fn wall(calendar: &Calendar, at: Timestamp) -> String {
    calendar.wall_time(at.as_micros()).to_string()
}

/// The slot of a listed row, if it belongs to this schedule.
fn decode_slot(id: &ScheduleId, item: &Item) -> Result<Option<Slot>, Error> {
    let is_ours = item.id.split_once('/').is_some_and(|(owner, _)| owner == id.as_str());
    if is_ours { codec::decode_item(item) } else { Ok(None) }
}
