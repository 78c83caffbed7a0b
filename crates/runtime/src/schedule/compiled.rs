//! Schedules with their calendar compiled, ready to fire.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use api::Error;
use calendar::Calendar;
use kernel::progress::Progress;
use kernel::schedule::Schedule;
use kernel::schedule::trigger::Trigger;
use kernel::slot::{self, Slot, SlotOutcome};
use kernel::{Noun, ScheduleId, Timestamp};

use crate::commit::rows::Rows;
use crate::commit::transaction::Transactions;
use crate::errors::internal;

/// Compiled schedules kept in the cache.
const CACHED_MAX: usize = 65_536;

/// Loads schedules that are about to fire.
#[derive(Debug)]
pub(crate) struct Schedules {
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) cache: Arc<ScheduleCache>,
}

/// A schedule at a revision, and its calendar.
#[derive(Debug)]
pub(crate) struct CompiledSchedule {
    pub schedule: Schedule,
    /// Used only by a timed trigger.
    calendar: Calendar,
}

/// Compiled schedules by id.
#[derive(Debug, Default)]
pub(crate) struct ScheduleCache(Mutex<HashMap<ScheduleId, Arc<CompiledSchedule>>>);

impl Schedules {
    /// A schedule at a revision. `None` if it was removed or has another revision.
    pub(crate) async fn compiled(
        &self,
        id: &ScheduleId,
        revision: u32,
    ) -> Result<Option<Arc<CompiledSchedule>>, Error> {
        if let Some(compiled) = self.cache.get(id, revision) {
            return Ok(Some(compiled));
        }
        let key = [(Noun::Schedule, id.to_string())];
        let at_revision = |rows: &Rows| {
            rows.get::<Schedule>(id).filter(|schedule| schedule.revision == revision).cloned()
        };
        let found = match at_revision(&self.transactions.load(&key).await?) {
            // A commit may be in the store and not yet in the row cache.
            None => at_revision(&self.transactions.load_stored(&key).await?),
            found => found,
        };
        let Some(schedule) = found else { return Ok(None) };
        let compiled = Arc::new(CompiledSchedule::new(schedule)?);
        self.cache.insert(id, &compiled);
        Ok(Some(compiled))
    }

    /// The slot at an instant, if it has a run: its own or that of a backfill.
    pub(crate) async fn slot_with_run(
        &self,
        id: &ScheduleId,
        nominal: Timestamp,
    ) -> Result<Option<Slot>, Error> {
        let keys = [slot::key(id, nominal), slot::backfill_key(id, nominal)];
        let rows = self.transactions.load(&keys.clone().map(|key| (Noun::Slot, key))).await?;
        let mut slots = keys.iter().filter_map(|key| rows.get::<Slot>(key));
        Ok(slots.find(|slot| matches!(slot.outcome, SlotOutcome::Run { .. })).cloned())
    }

    /// The wall time of the last slot that was decided.
    pub(crate) async fn decided_wall(
        &self,
        id: &ScheduleId,
        progress: &Progress,
    ) -> Result<Option<String>, Error> {
        let key = slot::key(id, progress.decided_until);
        let rows = self.transactions.load(&[(Noun::Slot, key.clone())]).await?;
        Ok(rows.get::<Slot>(&key).map(|slot| slot.wall.clone()))
    }
}

impl ScheduleCache {
    pub(crate) fn remove(&self, id: &ScheduleId) {
        self.compiled().remove(id);
    }

    fn get(&self, id: &ScheduleId, revision: u32) -> Option<Arc<CompiledSchedule>> {
        self.compiled().get(id).filter(|it| it.schedule.revision == revision).cloned()
    }

    fn insert(&self, id: &ScheduleId, compiled: &Arc<CompiledSchedule>) {
        let mut cached = self.compiled();
        if CACHED_MAX <= cached.len() {
            cached.clear();
        }
        cached.insert(id.clone(), Arc::clone(compiled));
    }

    fn compiled(&self) -> MutexGuard<'_, HashMap<ScheduleId, Arc<CompiledSchedule>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CompiledSchedule {
    pub(crate) fn new(schedule: Schedule) -> Result<CompiledSchedule, Error> {
        let calendar = schedule.definition.calendar(None).map_err(internal)?;
        Ok(CompiledSchedule { schedule, calendar })
    }

    /// The calendar of a timed trigger, or of an event trigger after its last fire.
    pub(crate) fn calendar(&self, progress: &Progress) -> Result<Cow<'_, Calendar>, Error> {
        match self.schedule.definition.trigger {
            Trigger::Timed(_) => Ok(Cow::Borrowed(&self.calendar)),
            Trigger::Event(_) => {
                let calendar = self.schedule.definition.calendar(progress.next_fire.slot);
                calendar.map(Cow::Owned).map_err(internal)
            }
        }
    }

    /// Whether the calendar no longer has the next slot, because the rules of its time zone changed.
    pub(crate) fn has_moved(&self, progress: &Progress) -> bool {
        let next =
            progress.next_fire.slot.filter(|_| self.schedule.definition.trigger.timed().is_some());
        next.is_some_and(|next| {
            let next = next.as_micros();
            self.calendar.last_at_or_before(next) != Some(next)
        })
    }
}
