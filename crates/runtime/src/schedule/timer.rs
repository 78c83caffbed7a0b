//! The timer sleeps until a schedule is due, then decides its slots.
//!
//! It reads what is due from an index of the store; there is no timer per schedule and no scan of all of them. A commit that
//! makes a schedule due earlier wakes it.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use api::{Code, Error};
use futures::future::{join_all, pending};
use kernel::progress::Progress;
use kernel::run::Run;
use kernel::slot::Slot;
use kernel::tick::{Tick, tick};
use kernel::{Actor, Noun, NounState, Row, RunId, ScheduleId, Timestamp};
use store::{BEFORE_ALL_DUE, Due, Item, Store};
use tokio::select;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::clock::{Time, micros};
use crate::commit::codec;
use crate::commit::rows::row_key;
use crate::commit::transaction::{Committed, Transactions};
use crate::errors::internal;
use crate::execute::executor::Executor;
use crate::execute::fast_start::{FastStarts, ReservedPermit};
use crate::schedule::compiled::{CompiledSchedule, Schedules};

/// Schedules decided at a time.
const BATCH: usize = 1_024;
/// After a failure of the store.
const RETRY_PAUSE: Duration = Duration::from_secs(1);
/// How long to wait before checking again whether the clock can be trusted.
const UNTRUSTED_PAUSE: Duration = Duration::from_secs(60);
/// How long a schedule is left alone after its slots could not be decided.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// The longest sleep, because another process on the same database may add a schedule.
const SLEEP_US_MAX: i64 = 60_000_000;

/// When the timer wakes, and a way to wake it earlier.
#[derive(Debug)]
pub(crate) struct WakeSignal {
    wakes_us: AtomicI64,
    woken: Notify,
}

#[derive(Debug)]
pub(crate) struct Timer {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) schedules: Arc<Schedules>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) wake: Arc<WakeSignal>,
}

/// Schedules whose slots could not be decided, and until when they are left alone.
#[derive(Debug, Default)]
struct Failing(HashMap<String, Timestamp>);

struct DueSchedule {
    id: ScheduleId,
    compiled: Arc<CompiledSchedule>,
    inputs: TickInputs,
}

/// What a tick may need besides the progress of the schedule.
#[derive(Debug, Default)]
struct TickInputs {
    /// Runs that a slot may cancel.
    live: Vec<RunId>,
    /// The next slot of a backfill, if it has a run already.
    backfill_slot: Option<Slot>,
    decided_wall: Option<String>,
}

impl Default for WakeSignal {
    fn default() -> WakeSignal {
        WakeSignal { wakes_us: AtomicI64::new(i64::MIN), woken: Notify::new() }
    }
}

impl WakeSignal {
    /// Wakes the timer if it would sleep longer.
    pub(crate) fn wake_by(&self, due: Timestamp) {
        if due.as_micros() < self.wakes_us.load(Ordering::SeqCst) {
            self.woken.notify_one();
        }
    }
}

impl Timer {
    /// Decides due slots until it is told to stop.
    pub(crate) async fn run(&self, fast_starts: FastStarts) {
        let mut failing = Failing::default();
        while !fast_starts.shutdown.is_cancelled() {
            // A tick may start a run, so it is not abandoned in the middle.
            self.decide_due(&mut failing, &fast_starts).await;
        }
        // The executor waits until no more runs can be handed over.
        drop(fast_starts);
        pending().await
    }

    /// Decides what is due, then sleeps until something is.
    async fn decide_due(&self, failing: &mut Failing, fast_starts: &FastStarts) {
        if self.time.untrusted().is_some() {
            // It ends as soon as the clock is set.
            let pause = self.time.wait_until(self.time.after(UNTRUSTED_PAUSE));
            let _ = fast_starts.shutdown.run_until_cancelled(pause).await;
            return;
        }
        let decided = match self.decide_batch(failing, fast_starts).await {
            Ok(()) => self.sleep_until_due(failing, &fast_starts.shutdown).await,
            Err(unreachable) => Err(unreachable),
        };
        if let Err(error) = decided {
            error!(%error, "failed to read due schedules");
            let _ = fast_starts.shutdown.run_until_cancelled(sleep(RETRY_PAUSE)).await;
        }
    }

    async fn decide_batch(
        &self,
        failing: &mut Failing,
        fast_starts: &FastStarts,
    ) -> Result<(), store::Error> {
        // No wake is needed now: the next due time is read afterwards.
        self.wake.wakes_us.store(i64::MIN, Ordering::SeqCst);
        let now = self.time.now();
        // Never longer than that, even if the clock was set back.
        let latest = Timestamp::from_micros(now.as_micros().saturating_add(micros(RETRY_AFTER)));
        failing.0.retain(|_, until| now < *until && *until <= latest);
        // Schedules that keep failing must not fill the batch.
        let limit = BATCH + failing.0.len();
        let generation = self.transactions.cache.generation();
        let noun = Noun::Progress.name();
        let due = self
            .store
            .list_due(Due { noun, after: BEFORE_ALL_DUE, until_us: now.as_micros(), limit })
            .await?;
        let due: Vec<_> = due.iter().filter(|item| !failing.0.contains_key(&item.id)).collect();
        let ticks = due.iter().map(|item| self.tick(item, generation, fast_starts));
        for (item, ticked) in due.iter().zip(join_all(ticks).await) {
            if let Err(error) = ticked {
                error!(schedule = item.id, %error, "failed to decide due slots");
                failing.0.insert(item.id.clone(), latest);
            }
        }
        Ok(())
    }

    async fn sleep_until_due(
        &self,
        failing: &Failing,
        stop: &CancellationToken,
    ) -> Result<(), store::Error> {
        // From here on a commit wakes the timer, so that no schedule is missed while the index is read.
        self.wake.wakes_us.store(i64::MAX, Ordering::SeqCst);
        let noun = Noun::Progress.name();
        let items = self
            .store
            .list_due(Due {
                noun,
                after: BEFORE_ALL_DUE,
                until_us: i64::MAX,
                limit: 1 + failing.0.len(),
            })
            .await?;
        let next = items.iter().find(|item| !failing.0.contains_key(&item.id));
        let next = next.and_then(|item| item.due_us).unwrap_or(i64::MAX);
        let retry = failing.0.values().min().map_or(i64::MAX, |until| until.as_micros());
        self.wake.wakes_us.store(next, Ordering::SeqCst);
        let at = next.min(retry).min(self.time.now().as_micros().saturating_add(SLEEP_US_MAX));
        select! {
            biased;
            () = self.time.wait_until(Timestamp::from_micros(at)) => {}
            () = self.wake.woken.notified() => {}
            () = stop.cancelled() => {}
        }
        Ok(())
    }

    /// Decides the due slots of one schedule, and starts its run if there is a permit.
    async fn tick(
        &self,
        item: &Item,
        generation: u64,
        fast_starts: &FastStarts,
    ) -> Result<(), Error> {
        let FastStarts { sender, shutdown } = fast_starts;
        let id: ScheduleId = item.id.parse().map_err(internal)?;
        let row = self.progress_row(item, generation)?;
        let Some(progress) = row.get::<Progress>() else { return Ok(()) };
        let compiled = self.schedules.compiled(&id, progress.revision).await?;
        let Some(compiled) = compiled else { return Ok(()) };
        let inputs = self.tick_inputs(&id, &compiled, progress).await?;
        let definition = &compiled.schedule.definition;
        let permit = self.executor.reserve_permit(&id, definition, shutdown).await?;
        let due = DueSchedule { id, compiled, inputs };
        if let Some(permit) = permit {
            let ticked = self.decide(&due, Some(&permit), shutdown).await;
            let is_over_budget = matches!(&ticked, Err(it) if it.code == Code::LimitReached);
            self.executor.hand_over(permit, &ticked, sender);
            if !is_over_budget {
                return ticked.map(drop);
            }
        }
        self.decide(&due, None, shutdown).await.map(drop)
    }

    async fn decide(
        &self,
        due: &DueSchedule,
        permit: Option<&ReservedPermit>,
        shutdown: &CancellationToken,
    ) -> Result<Committed, Error> {
        let DueSchedule { id, compiled, inputs } = due;
        let system = Actor::system();
        let mut transaction = self.executor.tick_transaction(permit, &system);
        transaction.rows.push((Noun::Progress, id.to_string()));
        transaction.rows.extend(inputs.live.iter().map(row_key::<Run>));
        let mut is_due = false;
        let committed = self.transactions.commit(transaction, |rows, now| {
            let Some(progress) = rows.get::<Progress>(id) else { return Ok(Vec::new()) };
            // The schedule was edited meanwhile: the next tick decides by the new definition.
            if progress.revision != compiled.schedule.revision {
                return Ok(Vec::new());
            }
            is_due = progress.due().is_some_and(|due| due <= now);
            let calendar = compiled.calendar(progress)?;
            let live: Vec<(RunId, Run)> = inputs
                .live
                .iter()
                .filter_map(|id| Some((id.clone(), rows.get::<Run>(id)?.clone())))
                .collect();
            let at = Tick {
                live: &live,
                decided_wall: inputs.decided_wall.as_deref(),
                backfill_slot: inputs.backfill_slot.as_ref(),
                ..Tick::new(id, &compiled.schedule, &calendar, now)
            };
            let permit = permit.filter(|_| !shutdown.is_cancelled());
            let mut reserved = permit.map(|permit| permit.claim.id.clone());
            let mut new_run =
                || reserved.take().unwrap_or_else(|| RunId::of(self.time.time_ordered(now)));
            let mut events = tick(at, progress, &mut new_run);
            if let Some(permit) = permit {
                let started = self.executor.fast_start_events(permit, rows, &events, now);
                events.extend(started);
            }
            Ok(events)
        });
        let committed = committed.await?;
        match committed.events.is_empty() && is_due {
            true => Err(internal("the schedule is due, but the tick decided no slot")),
            false => Ok(committed),
        }
    }

    /// The row of a listed item that was read since a generation of the cache.
    fn progress_row(&self, item: &Item, generation: u64) -> Result<Arc<Row>, Error> {
        let key = (Noun::Progress, item.id.clone());
        let cached = self.transactions.cache.get(&key);
        if let Some(row) = cached.filter(|row| row.version == item.version) {
            return Ok(row);
        }
        let stored = store::Row { version: item.version, body: item.body.clone() };
        let row = Arc::new(codec::decode_row(Noun::Progress, stored)?);
        self.transactions.cache.keep_read(generation, &key, &row);
        Ok(row)
    }

    /// Most ticks need none of these, so each is loaded only where it matters.
    async fn tick_inputs(
        &self,
        id: &ScheduleId,
        compiled: &CompiledSchedule,
        progress: &Progress,
    ) -> Result<TickInputs, Error> {
        let mut inputs = TickInputs::default();
        if compiled.schedule.definition.terms.overlap.ends_others() {
            inputs.live.clone_from(&progress.live);
        }
        if let Some(next) = progress.backfill.as_ref().and_then(|backfill| backfill.next) {
            inputs.backfill_slot = self.schedules.slot_with_run(id, next).await?;
        }
        if compiled.has_moved(progress) {
            inputs.decided_wall = self.schedules.decided_wall(id, progress).await?;
        }
        Ok(inputs)
    }
}
