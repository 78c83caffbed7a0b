//! Schedules that fire after a run of another schedule, or on an event.
//!
//! What follows from the end of a run is decided in the commit that ends it.

use std::sync::Arc;

use api::{Code, Error};
use futures::future::{BoxFuture, FutureExt};
use kernel::progress::Progress;
use kernel::run::{Event as RunEvent, Origin, Outcome, Run};
use kernel::schedule::Schedule;
use kernel::slot::{self, Slot, Source};
use kernel::tick::{EventOccurrence, Tick, decide_event};
use kernel::{EventBody, Noun, RunId, ScheduleId, Timestamp};

use crate::clock::Time;
use crate::commit::hooks::Consequences;
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::commit::transaction::Transactions;
use crate::schedule::compiled::CompiledSchedule;

#[derive(Debug)]
pub(crate) struct Dependents {
    pub(crate) time: Arc<Time>,
}

/// A run that ends.
struct EndedRun {
    id: RunId,
    schedule: ScheduleId,
    outcome: Outcome,
    depth: u32,
}

impl Consequences for Dependents {
    fn of<'a>(
        &'a self,
        transactions: &'a Transactions,
        rows: &'a mut Rows,
        events: &'a [EventBody],
        now: Timestamp,
    ) -> Option<BoxFuture<'a, Result<Vec<EventBody>, Error>>> {
        let ended: Vec<EndedRun> =
            events.iter().filter_map(|event| ended_run(rows, event)).collect();
        (!ended.is_empty()).then(|| self.fire_dependents(transactions, rows, ended, now).boxed())
    }
}

impl Dependents {
    async fn fire_dependents(
        &self,
        transactions: &Transactions,
        rows: &mut Rows,
        ended: Vec<EndedRun>,
        now: Timestamp,
    ) -> Result<Vec<EventBody>, Error> {
        let mut events = Vec::new();
        for run in ended {
            let dependents = rows.get::<Progress>(&run.schedule).map(|it| it.dependents.clone());
            for dependent in dependents.unwrap_or_default() {
                let source = Source::Run(run.id.clone());
                let keys = self.rows_of(transactions, &dependent, &source).await?;
                rows.extend(transactions.load(&keys).await?);
                let depth = run.depth.saturating_add(1);
                let occurrence = EventOccurrence { source: &source, origin: Origin::After, depth };
                let matches = rows.get::<Schedule>(&dependent).is_some_and(|schedule| {
                    let upstream = schedule.definition.trigger.upstream();
                    upstream.is_some_and(|(id, on)| *id == run.schedule && on.matches(run.outcome))
                });
                if matches {
                    events.extend(self.fire(rows, &dependent, occurrence, now)?);
                }
            }
        }
        Ok(events)
    }

    /// The rows that [`Dependents::fire`] needs.
    pub(crate) async fn rows_of(
        &self,
        transactions: &Transactions,
        id: &ScheduleId,
        source: &Source,
    ) -> Result<Vec<RowKey>, Error> {
        let mut keys = vec![(Noun::Schedule, id.to_string()), (Noun::Progress, id.to_string())];
        let rows = transactions.load(&keys).await?;
        let ends_others =
            rows.get::<Schedule>(id).is_some_and(|it| it.definition.terms.overlap.ends_others());
        let live = rows.get::<Progress>(id).filter(|_| ends_others).map(|it| it.live.as_slice());
        keys.extend(live.unwrap_or_default().iter().map(row_key::<Run>));
        keys.push((Noun::Slot, slot::source_key(id, source)));
        Ok(keys)
    }

    /// The events of a schedule that fires because of an occurrence. None if it has fired for it before.
    pub(crate) fn fire(
        &self,
        rows: &Rows,
        id: &ScheduleId,
        occurrence: EventOccurrence<'_>,
        now: Timestamp,
    ) -> Result<Vec<EventBody>, Error> {
        let has_fired = rows.get::<Slot>(&slot::source_key(id, occurrence.source)).is_some();
        let (Some(schedule), Some(progress)) = (rows.get::<Schedule>(id), rows.get::<Progress>(id))
        else {
            return Ok(Vec::new());
        };
        if has_fired {
            return Ok(Vec::new());
        }
        // The two rows were read separately: an edit came in between.
        if schedule.revision != progress.revision {
            return Err(Error::new(Code::Busy, "the schedule was changed at the same time")
                .hint("publish the event again, with the same id"));
        }
        let compiled = CompiledSchedule::new(schedule.clone())?;
        let calendar = compiled.calendar(progress)?;
        let live = progress.live.iter();
        let live: Vec<(RunId, Run)> =
            live.filter_map(|id| Some((id.clone(), rows.get::<Run>(id)?.clone()))).collect();
        let tick = Tick { live: &live, ..Tick::new(id, schedule, &calendar, now) };
        Ok(decide_event(tick, progress, occurrence, &mut || RunId::of(self.time.time_ordered(now))))
    }
}

fn ended_run(rows: &Rows, event: &EventBody) -> Option<EndedRun> {
    let EventBody::Run(id, event) = event else { return None };
    let outcome = match event {
        RunEvent::Ended(ended) => ended.outcome,
        RunEvent::Settled(settled) => settled.outcome,
        _ => return None,
    };
    let run = rows.get::<Run>(id)?;
    Some(EndedRun { id: id.clone(), schedule: run.schedule.clone(), outcome, depth: run.depth })
}
