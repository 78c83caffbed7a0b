//! The timer: sleeps until a schedule is due, and has its slots decided.
//!
//! It asks the store's index for what is due; there is no timer for each schedule, and no look at all
//! of them. Whoever makes one due earlier rings.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use api::{Code, Error};
use calendar::Calendar;
use futures::future::{join_all, pending};
use kernel::progress::Progress;
use kernel::run::Run;
use kernel::schedule::Schedule;
use kernel::schedule::trigger::Trigger;
use kernel::slot::{self, Fate, Slot};
use kernel::tick::{Tick, tick};
use kernel::{Actor, ApprovalId, Noun, Row, RunId, ScheduleId, State, Timestamp, TokenId};
use store::{FIRST_DUE, Item};
use tokio::select;
use tokio::sync::Notify;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;
use tracing::error;

use crate::at_once::{AtOnce, Hand};
use crate::errors::internal;
use crate::keep::micros;
use crate::rows::Rows;
use crate::stored;
use crate::transact::Done;
use crate::watch::Engine;

/// Schedules that are decided at a time.
const BATCH: usize = 1_024;
/// Definitions that are kept at hand.
const KNOWN_MAX: usize = 65_536;
/// After a failure of the store.
const PAUSE: Duration = Duration::from_secs(1);
/// When a schedule whose slots could not be decided has its next turn.
const RETRY_AFTER: Duration = Duration::from_secs(10);
/// The longest sleep: another process on the same database may have added a schedule.
const SLEEP_US_MAX: i64 = 60_000_000;

/// When the timer wakes, and how it is woken earlier.
#[derive(Debug)]
pub(crate) struct Bell {
    wakes_us: AtomicI64,
    rung: Notify,
}

/// Schedules whose slots could not be decided, and until when they are left alone.
#[derive(Debug, Default)]
struct Failed(HashMap<String, Timestamp>);

/// Definitions with their calendars, as they were at a revision.
#[derive(Debug, Default)]
pub(crate) struct Known(Mutex<HashMap<ScheduleId, Arc<Ready>>>);

/// A definition, ready to be asked.
#[derive(Debug)]
pub(crate) struct Ready {
    pub schedule: Schedule,
    /// Of a trigger that goes by the time.
    calendar: Calendar,
}

/// A schedule that is due, and what its tick may have to know.
struct Due {
    id: ScheduleId,
    ready: Arc<Ready>,
    beside: Beside,
}

/// What a tick may have to know besides how far the schedule has got.
#[derive(Debug, Default)]
struct Beside {
    /// Runs that a slot may end.
    live: Vec<RunId>,
    /// The slot that a backfill goes on with, if it has a run.
    filled: Option<Slot>,
    decided_wall: Option<String>,
}

impl Default for Bell {
    fn default() -> Bell {
        Bell { wakes_us: AtomicI64::new(i64::MIN), rung: Notify::new() }
    }
}

impl Bell {
    /// A schedule is due then.
    pub(crate) fn ring(&self, due: Timestamp) {
        if due.as_micros() < self.wakes_us.load(Ordering::SeqCst) {
            self.rung.notify_one();
        }
    }
}

impl Engine {
    /// Decides what is due until it is told to stop.
    pub(crate) async fn timer(&self, at_once: AtOnce) {
        let mut failed = Failed::default();
        while !at_once.stop.is_cancelled() {
            // What it decides may begin a run, so it is not left in the middle.
            self.decide_due(&mut failed, &at_once).await;
        }
        drop(at_once);
        pending().await
    }

    /// Decides what is due, and waits until something is.
    async fn decide_due(&self, failed: &mut Failed, at_once: &AtOnce) {
        let decided = match self.decide_batch(failed, at_once).await {
            Ok(()) => self.sleep_until_due(failed, &at_once.stop).await,
            Err(unreachable) => Err(unreachable),
        };
        if let Err(unreachable) = decided {
            error!(error = %unreachable, "what is due could not be read");
            let _ = at_once.stop.run_until_cancelled(sleep(PAUSE)).await;
        }
    }

    async fn decide_batch(
        &self,
        failed: &mut Failed,
        at_once: &AtOnce,
    ) -> Result<(), store::Error> {
        // Nobody need ring, as there is a look for what is next afterwards.
        self.bell().wakes_us.store(i64::MIN, Ordering::SeqCst);
        let now = self.now();
        // Nobody is left alone for longer, though the clock was set back.
        let latest = Timestamp::from_micros(now.as_micros().saturating_add(micros(RETRY_AFTER)));
        failed.0.retain(|_, until| now < *until && *until <= latest);
        // Those that failed a moment ago must not keep the others from their turn.
        let limit = BATCH + failed.0.len();
        let mark = self.remembered().mark();
        let noun = Noun::Progress.name();
        let due = self.store().due(noun, FIRST_DUE, now.as_micros(), limit).await?;
        let due: Vec<_> = due.iter().filter(|item| !failed.0.contains_key(&item.id)).collect();
        let ticks = join_all(due.iter().map(|item| self.tick(item, mark, at_once))).await;
        for (item, ticked) in due.into_iter().zip(ticks) {
            if let Err(reason) = ticked {
                error!(schedule = item.id, %reason, "its slots could not be decided");
                failed.0.insert(item.id.clone(), latest);
            }
        }
        Ok(())
    }

    async fn sleep_until_due(
        &self,
        failed: &Failed,
        stop: &CancellationToken,
    ) -> Result<(), store::Error> {
        // From here on whoever makes a schedule due rings, so that none is overlooked below.
        self.bell().wakes_us.store(i64::MAX, Ordering::SeqCst);
        let noun = Noun::Progress.name();
        let items = self.store().due(noun, FIRST_DUE, i64::MAX, 1 + failed.0.len()).await?;
        let next = items.iter().find(|item| !failed.0.contains_key(&item.id));
        let next = next.and_then(|item| item.due_us).unwrap_or(i64::MAX);
        let again = failed.0.values().min().map_or(i64::MAX, |until| until.as_micros());
        self.bell().wakes_us.store(next, Ordering::SeqCst);
        let at = next.min(again).min(self.now().as_micros().saturating_add(SLEEP_US_MAX));
        select! {
            biased;
            () = self.reaches(Timestamp::from_micros(at)) => {}
            () = self.bell().rung.notified() => {}
            () = stop.cancelled() => {}
        }
        Ok(())
    }

    /// Decides the slots of one schedule that are due, and begins a run of them if it can begin at once.
    async fn tick(&self, item: &Item, mark: u64, at_once: &AtOnce) -> Result<(), Error> {
        let id: ScheduleId = item.id.parse().map_err(internal)?;
        let row = self.row_of(item, mark)?;
        let Some(State::Progress(progress)) = &row.state else { return Ok(()) };
        let Some(ready) = self.ready(&id, progress.revision).await? else { return Ok(()) };
        let beside = self.beside(&id, &ready, progress).await?;
        let due = Due { id, ready, beside };
        if let Some(hand) = self.hand_for(&due.id, &due.ready, at_once).await? {
            let ticked = self.decide(&due, Some(&hand), &at_once.stop).await;
            let is_over_budget = matches!(&ticked, Err(it) if it.code == Code::LimitReached);
            at_once.hand_over(self, hand, &ticked);
            if !is_over_budget {
                return ticked.map(drop);
            }
        }
        self.decide(&due, None, &at_once.stop).await.map(drop)
    }

    async fn decide(
        &self,
        due: &Due,
        hand: Option<&Hand>,
        stop: &CancellationToken,
    ) -> Result<Done, Error> {
        let Due { id, ready, beside } = due;
        let system = Actor::system();
        let mut change = self.tick_with(hand, &system);
        change.rows.push((Noun::Progress, id.to_string()));
        change.rows.extend(beside.live.iter().map(|id| (Noun::Run, id.to_string())));
        let mut is_due = false;
        let decided = self
            .act_for(change, |rows, now| {
                let Some(progress) = rows.progress(id) else { return Ok(Vec::new()) };
                // An edit may have come between: then its own turn follows.
                if progress.revision != ready.schedule.revision {
                    return Ok(Vec::new());
                }
                is_due = progress.due().is_some_and(|due| due <= now);
                let calendar = ready.calendar(progress)?;
                let live = beside.live.iter();
                let live: Vec<(RunId, Run)> =
                    live.filter_map(|id| Some((id.clone(), rows.run(id)?.clone()))).collect();
                let at = Tick::new(id, &ready.schedule, &calendar, now);
                let at = Tick {
                    live: &live,
                    decided_wall: beside.decided_wall.as_deref(),
                    filled: beside.filled.as_ref(),
                    ..at
                };
                let hand = hand.filter(|_| !stop.is_cancelled());
                let mut first = hand.map(|hand| hand.taken.id.clone());
                let mut new_run = || first.take().unwrap_or_else(|| self.new_run(now));
                let mut bodies = tick(at, progress, &mut new_run);
                let begun = hand.map(|hand| self.begin_queued(hand, rows, &bodies, now));
                bodies.extend(begun.unwrap_or_default());
                Ok(bodies)
            })
            .await?;
        match decided.bodies.is_empty() && is_due {
            true => Err(internal("it is due, and none of its slots is")),
            false => Ok(decided),
        }
    }

    /// The row of an item that was read since a mark.
    fn row_of(&self, item: &Item, mark: u64) -> Result<Arc<Row>, Error> {
        let key = (Noun::Progress, item.id.clone());
        let known = self.remembered().get(&key);
        if let Some(row) = known.filter(|row| row.version == item.version) {
            return Ok(row);
        }
        let stored = store::Row { version: item.version, body: item.body.clone() };
        let row = Arc::new(stored::row(Noun::Progress, stored)?);
        self.remembered().keep_read(mark, &key, &row);
        Ok(row)
    }

    /// What else must be known, which most ticks do not need.
    async fn beside(
        &self,
        id: &ScheduleId,
        ready: &Ready,
        progress: &Progress,
    ) -> Result<Beside, Error> {
        let mut beside = Beside::default();
        if ready.schedule.definition.terms.overlap.ends_others() {
            beside.live.clone_from(&progress.live);
        }
        if let Some(next) = progress.backfill.as_ref().and_then(|backfill| backfill.next) {
            beside.filled = self.filled(id, next).await?;
        }
        if ready.has_moved(progress) {
            beside.decided_wall = self.decided_wall(id, progress).await?;
        }
        Ok(beside)
    }

    /// The row of a slot that has a run already.
    pub(crate) async fn filled(
        &self,
        id: &ScheduleId,
        nominal: Timestamp,
    ) -> Result<Option<Slot>, Error> {
        let keys = [slot::key(id, nominal), slot::backfill_key(id, nominal)];
        let rows = self.load(&keys.clone().map(|key| (Noun::Slot, key))).await?;
        let mut slots = keys.iter().filter_map(|key| rows.slot(key));
        Ok(slots.find(|slot| matches!(slot.fate, Fate::Run { .. })).cloned())
    }

    /// What clocks showed at the last slot that was decided.
    pub(crate) async fn decided_wall(
        &self,
        id: &ScheduleId,
        progress: &Progress,
    ) -> Result<Option<String>, Error> {
        let key = slot::key(id, progress.decided_until);
        let rows = self.load(&[(Noun::Slot, key.clone())]).await?;
        Ok(rows.slot(&key).map(|slot| slot.wall.clone()))
    }

    /// The definition of a schedule at a revision. `None` if it is gone or another by now.
    pub(crate) async fn ready(
        &self,
        id: &ScheduleId,
        revision: u32,
    ) -> Result<Option<Arc<Ready>>, Error> {
        if let Some(ready) = self.known().get(id, revision) {
            return Ok(Some(ready));
        }
        let key = [(Noun::Schedule, id.to_string())];
        let at_revision = |rows: &Rows| {
            rows.schedule(id).filter(|schedule| schedule.revision == revision).cloned()
        };
        let found = match at_revision(&self.load(&key).await?) {
            // A commit whose answer is on its way is in the store, and not remembered yet.
            None => at_revision(&self.load_stored(&key).await?),
            found => found,
        };
        let Some(schedule) = found else { return Ok(None) };
        let ready = Arc::new(Ready::new(schedule)?);
        self.known().put(id, &ready);
        Ok(Some(ready))
    }

    /// Waits until the watch's own time has reached an instant, or may have.
    pub(crate) async fn reaches(&self, at: Timestamp) {
        let ahead = at.as_micros().saturating_sub(self.now().as_micros());
        let on_clock = self.clock().now().as_micros().saturating_add(ahead);
        self.clock().reaches(Timestamp::from_micros(on_clock)).await;
    }

    pub(crate) fn new_run(&self, now: Timestamp) -> RunId {
        RunId::of(self.time_ordered(now))
    }

    pub(crate) fn new_approval(&self) -> ApprovalId {
        ApprovalId::of(self.time_ordered(self.now()))
    }

    pub(crate) fn new_token(&self) -> TokenId {
        TokenId::of(self.time_ordered(self.now()))
    }

    /// What ids are made of: they sort by time, and those of one instant by their turn.
    fn time_ordered(&self, now: Timestamp) -> u128 {
        let time = u128::try_from(now.as_micros()).unwrap_or_default();
        let turn = u64::from(self.runs_made().fetch_add(1, Ordering::Relaxed)) << 48;
        time << 64 | u128::from(turn | self.random() >> 16)
    }

    pub(crate) fn random(&self) -> u64 {
        self.clock().random()
    }
}

impl Known {
    fn get(&self, id: &ScheduleId, revision: u32) -> Option<Arc<Ready>> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(id).filter(|ready| ready.schedule.revision == revision).cloned()
    }

    pub(crate) fn forget(&self, id: &ScheduleId) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
    }

    fn put(&self, id: &ScheduleId, ready: &Arc<Ready>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if KNOWN_MAX <= known.len() {
            known.clear();
        }
        known.insert(id.clone(), Arc::clone(ready));
    }
}

impl Ready {
    pub(crate) fn new(schedule: Schedule) -> Result<Ready, Error> {
        let calendar = schedule.definition.calendar(None).map_err(internal)?;
        Ok(Ready { schedule, calendar })
    }

    /// When it fires, as far as it has got.
    pub(crate) fn calendar(&self, progress: &Progress) -> Result<Cow<'_, Calendar>, Error> {
        match self.schedule.definition.trigger {
            Trigger::Timed(_) => Ok(Cow::Borrowed(&self.calendar)),
            Trigger::Happens(_) => {
                let calendar = self.schedule.definition.calendar(progress.ahead.next);
                calendar.map(Cow::Owned).map_err(internal)
            }
        }
    }

    /// Whether the slot that it waits for is none any more.
    fn has_moved(&self, progress: &Progress) -> bool {
        let next =
            progress.ahead.next.filter(|_| self.schedule.definition.trigger.timed().is_some());
        next.is_some_and(|next| {
            let next = next.as_micros();
            self.calendar.last_until(next) != Some(next)
        })
    }
}

pub(crate) fn progress(item: &Item) -> Result<Option<Progress>, Error> {
    let Some(body) = &item.body else { return Ok(None) };
    Ok(stored::state(Noun::Progress, body)?.progress())
}
