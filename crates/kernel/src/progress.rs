//! The progress of a schedule: which slots are decided, when the next one is due, which runs are live.
//! Every fire writes this row, so it is small.
//!
//! Invariant: every slot up to `decided_until` is decided, and none after it; `decided_until` only grows.
//! A schedule ends with the last slot that may run: later instants of its trigger are not slots.

use calendar::Span;
use serde::{Deserialize, Serialize};

use crate::budget::{Usage, day};
use crate::noun::NounState;
use crate::principal::Principal;
use crate::run::{self, Occurrence};
use crate::schedule::{BackfillStarted, Event, MovedWhy};
use crate::time::Timestamp;
use crate::{EventBody, RunId, ScheduleId};

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub status: Status,
    /// Revision of the schedule.
    pub revision: u32,
    pub decided_until: Timestamp,
    #[serde(rename = "ahead")]
    pub next_fire: NextFire,
    /// Slots that got a run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fires: u64,
    /// Number of runs on the day of the last run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub today: Option<DayRuns>,
    /// Runs that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<RunId>,
    /// Buffered slots, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Timestamp>,
    /// Since when the overlap policy allows a waiting slot to run; `None` once a run is queued.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_since: Option<Timestamp>,
    /// Failed runs in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Schedules that fire when a run of this one ends.
    #[serde(rename = "followers", default, skip_serializing_if = "Vec::is_empty")]
    pub dependents: Vec<ScheduleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Box<Backfill>>,
    /// The last action that a human denied.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Box<Denied>>,
    /// Usage of the last attempt that reported it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
    /// The name of a removed schedule, for its runs and the timeline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub removed_name: Option<String>,
}

/// An action that a human denied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// Hash of the action.
    pub action: String,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    Paused(Pause),
    /// The schedule was removed; its progress remains in case the same schedule is added again.
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    pub by: Principal,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

/// A running backfill: past slots that get a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backfill {
    /// The next slot; `None` while only its last runs are still live.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    pub last: Timestamp,
    pub at_once: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Span>,
    /// Earliest start of the next run.
    pub due: Timestamp,
    /// Its runs that have not ended; they are among the schedule's live runs too.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<RunId>,
}

/// The next slot, and when it is due.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredNextFire", from = "StoredNextFire")]
pub struct NextFire {
    /// The earliest undecided slot.
    pub slot: Option<Timestamp>,
    /// When the slot must be decided: its instant plus jitter.
    pub due: Option<Timestamp>,
}

/// The stored form. It omits `due` for slots without jitter, since every fire writes it twice.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredNextFire {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
    /// Absent if equal to `next`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DayRuns {
    /// UTC days since 1970.
    pub day: i64,
    pub runs: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastRun {
    pub id: RunId,
    pub at: Timestamp,
}

/// Slots that a budget skips are decided a little ahead of the clock, but never this far.
const AHEAD_US_MIN: i64 = 3_600_000_000;

/// Index key of schedules that Midwatch itself has paused.
pub const PAUSED_BY_SYSTEM: &str = "paused";

impl Progress {
    /// When the next slot of a backfill may run. Waiting slots run first, and the live runs must be fewer
    /// than the backfill's own limit.
    pub(crate) fn backfill_due(&self) -> Option<Timestamp> {
        let backfill = self.backfill.as_ref()?;
        let has_room = self.waiting.is_empty() && self.live.len() < backfill.at_once as usize;
        // Without a gap it is due at once, even if the clock was set back.
        let due = backfill.gap.map_or(Timestamp::from_micros(0), |_| backfill.due);
        backfill.next.filter(|_| has_room).map(|_| due)
    }

    /// Number of slots that have a run or wait for one.
    pub(crate) fn slots_used(&self) -> u64 {
        self.fires.saturating_add(self.waiting.len() as u64)
    }

    /// The day that a run at this instant counts towards. A clock that is set back does not restore the
    /// budget of an earlier day.
    pub(crate) fn day(&self, at: Timestamp) -> i64 {
        self.today.map_or(i64::MIN, |today| today.day).max(day(at))
    }

    /// Number of runs on a day.
    pub(crate) fn runs_on(&self, day: i64) -> u32 {
        self.today.filter(|today| today.day == day).map_or(0, |today| today.runs)
    }

    /// Whether slots were decided, or runs counted, by a clock that was well ahead of this time.
    pub(crate) fn is_ahead_of(&self, now: Timestamp) -> bool {
        let later = now.after_us(AHEAD_US_MIN);
        later < self.decided_until || self.today.is_some_and(|today| day(later) < today.day)
    }

    /// Forgets what was decided by a clock that was ahead.
    fn forget_after(&mut self, now: Timestamp) {
        self.decided_until = self.decided_until.min(now);
        self.today = self.today.filter(|today| today.day <= day(now));
        self.denied = self.denied.take().filter(|denied| denied.at <= now);
        if let Some(backfill) = &mut self.backfill {
            backfill.due = backfill.due.min(now);
        }
    }

    fn mark_decided(&mut self, until: Timestamp, next_fire: NextFire) {
        self.decided_until = self.decided_until.max(until);
        self.next_fire = next_fire;
    }

    fn record_queued(&mut self, id: &RunId, queued: &run::Queued) {
        match &queued.occurrence {
            Occurrence::Slot(slot) => {
                self.fires += 1;
                self.waiting.retain(|waiting| *waiting != slot.nominal);
                self.mark_decided(slot.nominal, slot.next_fire);
            }
            Occurrence::Manual { .. } => {}
            Occurrence::Backfill(fill) => self.record_backfill_run(id, fill, queued.at),
        }
        self.room_since = None;
        // Backfill runs do not count towards the daily limit.
        if !matches!(queued.occurrence, Occurrence::Backfill(_)) {
            let day = self.day(queued.at);
            self.today = Some(DayRuns { day, runs: self.runs_on(day).saturating_add(1) });
        }
        self.live.push(id.clone());
        self.last_run = Some(LastRun { id: id.clone(), at: queued.at });
    }

    fn record_backfill_run(&mut self, id: &RunId, fill: &run::BackfillSlot, at: Timestamp) {
        let Some(backfill) = &mut self.backfill else { return };
        let gap_us = backfill.gap.map_or(0, Span::as_micros);
        backfill.next = fill.next;
        backfill.due = Timestamp::from_micros(at.as_micros().saturating_add(gap_us));
        backfill.live.push(id.clone());
    }

    /// Drops the backfill once its last run has ended.
    fn drop_ended_backfill(&mut self) {
        self.backfill = self.backfill.take().filter(|it| it.next.is_some() || !it.live.is_empty());
    }

    fn record_ended(&mut self, id: &RunId, ended: &run::Ended) {
        self.live.retain(|live| live != id);
        if let Some(backfill) = &mut self.backfill {
            backfill.live.retain(|live| live != id);
            self.drop_ended_backfill();
        }
        match ended.outcome {
            run::Outcome::Done => self.failures = 0,
            run::Outcome::Failed => self.failures += 1,
            run::Outcome::Cancelled | run::Outcome::Unknown => {}
        }
        if let Some(action) = ended.denied.clone() {
            self.denied = Some(Box::new(Denied { action, at: ended.at }));
        }
        // Events without a schedule predate reservations; their usage is not an estimate for the next run.
        let spent = ended.spent.as_ref().filter(|spent| spent.schedule.is_some());
        self.usage = spent.and_then(|spent| spent.usage).or(self.usage);
        if !self.waiting.is_empty() && !ended.no_room {
            self.room_since = Some(ended.at);
        }
    }
}

impl NounState for Progress {
    type Id = ScheduleId;

    fn apply(id: &str, progress: Option<Progress>, body: &EventBody) -> Option<Progress> {
        match body {
            EventBody::Schedule(own, Event::Added(added)) if own.as_str() == id => {
                let before = progress.as_ref().map_or(added.at, |before| before.decided_until);
                let new = Progress::new(before.max(added.at), added.next_fire);
                Some(match progress {
                    // Earlier runs of a schedule that is added again still count.
                    Some(Progress { live, today, dependents, .. }) => {
                        Progress { live, today, dependents, ..new }
                    }
                    None => new,
                })
            }
            _ => progress.map(|mut progress| {
                progress.apply(id, body);
                progress
            }),
        }
    }

    /// When the schedule must be ticked next.
    fn due(&self) -> Option<Timestamp> {
        match self.status {
            Status::Active => {
                // A waiting slot that may run is due at once, even if the clock was set back.
                let has_room = self.room_since.map(|_| Timestamp::from_micros(0));
                self.next_fire.due.into_iter().chain(has_room).chain(self.backfill_due()).min()
            }
            Status::Paused(_) | Status::Removed => None,
        }
    }

    /// Index key of the schedule: those paused by Midwatch itself need a human's attention.
    fn index_key(&self) -> Option<String> {
        match &self.status {
            Status::Paused(pause) if pause.by == Principal::System => {
                Some(PAUSED_BY_SYSTEM.to_owned())
            }
            Status::Active | Status::Paused(_) | Status::Removed => None,
        }
    }
}

impl Progress {
    /// Applies an event to existing progress.
    pub(crate) fn apply(&mut self, id: &str, body: &EventBody) {
        match body {
            EventBody::Schedule(other, event) if other.as_str() != id => {
                self.update_dependents(id, other, event)
            }
            EventBody::Schedule(_, event) => self.apply_schedule_event(event),
            EventBody::Run(id, run::Event::Queued(queued)) => self.record_queued(id, queued),
            EventBody::Run(id, run::Event::Requeued(_)) => {
                self.live.push(id.clone());
                self.room_since = None;
            }
            EventBody::Run(id, run::Event::Ended(ended)) => self.record_ended(id, ended),
            _ => {}
        }
    }

    fn apply_schedule_event(&mut self, event: &Event) {
        match event {
            Event::Added(_) => {}
            Event::Changed(changed) => {
                self.revision += 1;
                self.mark_decided(changed.at, changed.next_fire);
                self.waiting.clear();
                self.room_since = None;
            }
            Event::Moved(moved) => {
                self.next_fire = moved.next_fire;
                if moved.why == MovedWhy::ClockCorrected {
                    self.forget_after(moved.at);
                }
            }
            Event::Paused(paused) => self.status = Status::Paused(paused.into()),
            Event::Resumed(resumed) => {
                self.status = Status::Active;
                self.failures = 0;
                self.next_fire = resumed.next_fire;
                let has_room = !self.waiting.is_empty() && self.live.is_empty();
                self.room_since = has_room.then_some(resumed.at).or(self.room_since);
            }
            Event::Removed(removed) => {
                self.status = Status::Removed;
                self.removed_name.clone_from(&removed.name);
                self.next_fire = NextFire::default();
                self.waiting.clear();
                (self.room_since, self.backfill) = (None, None);
            }
            Event::Passed(passed) => self.mark_decided(passed.last, passed.next_fire),
            Event::Buffered(buffered) => {
                self.mark_decided(buffered.slot, buffered.next_fire);
                self.waiting.push(buffered.slot);
            }
            Event::Dropped(dropped) => {
                self.waiting.retain(|slot| *slot != dropped.slot);
                self.room_since = self.room_since.filter(|_| !self.waiting.is_empty());
                self.next_fire = dropped.next_fire;
            }
            Event::BackfillStarted(started) => self.backfill = Some(Box::new(started.into())),
            Event::BackfillMoved(moved) => {
                if let Some(backfill) = &mut self.backfill {
                    backfill.next = moved.next;
                }
                self.drop_ended_backfill();
            }
        }
    }
}

impl Progress {
    fn new(decided_until: Timestamp, next_fire: NextFire) -> Progress {
        Progress {
            status: Status::Active,
            revision: 1,
            decided_until,
            next_fire,
            fires: 0,
            today: None,
            live: Vec::new(),
            waiting: Vec::new(),
            room_since: None,
            failures: 0,
            last_run: None,
            dependents: Vec::new(),
            backfill: None,
            denied: None,
            usage: None,
            removed_name: None,
        }
    }

    /// Updates the list of dependents after an event of another schedule.
    fn update_dependents(&mut self, id: &str, follower: &ScheduleId, event: &Event) {
        let follows = match event {
            Event::Added(added) => added.definition.trigger.upstream(),
            Event::Changed(changed) => changed.definition.trigger.upstream(),
            _ => None,
        };
        self.dependents.retain(|other| other != follower);
        if follows.is_some_and(|(followed, _)| followed.as_str() == id) {
            self.dependents.push(follower.clone());
        }
    }
}

impl From<&BackfillStarted> for Backfill {
    fn from(started: &BackfillStarted) -> Backfill {
        Backfill {
            next: Some(started.first),
            last: started.last,
            at_once: started.at_once,
            gap: started.gap,
            due: started.at,
            live: Vec::new(),
        }
    }
}

impl From<NextFire> for StoredNextFire {
    fn from(NextFire { slot: next, due }: NextFire) -> StoredNextFire {
        StoredNextFire { next, due: due.filter(|_| due != next) }
    }
}

impl From<StoredNextFire> for NextFire {
    fn from(StoredNextFire { next, due }: StoredNextFire) -> NextFire {
        NextFire { slot: next, due: due.or(next) }
    }
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
