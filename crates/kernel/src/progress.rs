//! How far a schedule has got: which slots are decided, when the next one is, what runs. The row that
//! every fire writes, so it is kept small.
//!
//! Invariant: every slot up to `decided_until` has its disposition, and none after it; it only grows.
//! A schedule ends with the last slot that may run: what its trigger asks for after that is no slot.

use calendar::Span;
use serde::{Deserialize, Serialize};

use crate::budget::Usage;
use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::run::WATCH;
use crate::run::{self, Occurrence};
use crate::schedule::{BackfillBegun, Event};
use crate::time::Timestamp;

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    pub status: Status,
    /// Of the schedule.
    pub revision: u32,
    pub decided_until: Timestamp,
    pub ahead: Ahead,
    /// Slots that got a run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub fires: u64,
    /// Runs of the day of the last one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub today: Option<Today>,
    /// Runs that have not ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<RunId>,
    /// Slots that wait for a run to end, oldest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<Timestamp>,
    /// When a run made room for what waits, until another run takes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_since: Option<Timestamp>,
    /// Failed runs in a row.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub failures: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_run: Option<LastRun>,
    /// Schedules that fire when a run of this one ends.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub followers: Vec<ScheduleId>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub backfill: Option<Box<Backfill>>,
    /// What a human denied last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub denied: Option<Box<Denied>>,
    /// What the last try used that told.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub usage: Option<Usage>,
}

/// What a human did not let a run do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Denied {
    /// The hash of it.
    pub action: String,
    pub at: Timestamp,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    Active,
    Paused(Pause),
    /// What remains of a schedule that was removed, should it come back.
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Pause {
    pub by: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    pub at: Timestamp,
}

/// Slots of the past that are run after all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Backfill {
    /// Which it goes on with; none when all that is left is for its runs to end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<Timestamp>,
    pub last: Timestamp,
    pub at_once: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Span>,
    /// Not before this.
    pub due: Timestamp,
    /// Those of its runs that have not ended; they are among the live ones.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub live: Vec<RunId>,
}

/// What comes next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "StoredAhead", from = "StoredAhead")]
pub struct Ahead {
    /// The earliest slot that is not decided.
    pub next: Option<Timestamp>,
    /// When it is to be decided: later than the slot by its jitter.
    pub due: Option<Timestamp>,
}

/// Most slots have no jitter: every fire writes this twice.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct StoredAhead {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<Timestamp>,
    /// Unless it is the slot itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    due: Option<Timestamp>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Today {
    /// Since 1970, in UTC.
    pub day: i64,
    pub runs: u32,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct LastRun {
    pub id: RunId,
    pub at: Timestamp,
}

/// What schedules are listed under that the watch has paused.
pub const PAUSED_BY_WATCH: &str = "paused";

pub(crate) const DAY_US: i64 = 86_400_000_000;

impl Progress {
    /// When the schedule is to be looked at.
    pub fn due(&self) -> Option<Timestamp> {
        match self.status {
            Status::Active => {
                // Whatever the clock shows by now: a slot that has room does not wait for a time.
                let has_room = self.room_since.map(|_| Timestamp::from_micros(0));
                self.ahead.due.into_iter().chain(has_room).chain(self.backfill_due()).min()
            }
            Status::Paused(_) | Status::Removed => None,
        }
    }

    /// What it can be listed under: those that the watch itself has paused want a human's attention.
    pub(crate) fn listed_under(&self) -> Option<String> {
        match &self.status {
            Status::Paused(pause) if pause.by == WATCH => Some(PAUSED_BY_WATCH.to_owned()),
            Status::Active | Status::Paused(_) | Status::Removed => None,
        }
    }

    /// When the next slot of a backfill may run: never before slots that wait, and never beside as
    /// many live runs as it may have itself.
    pub(crate) fn backfill_due(&self) -> Option<Timestamp> {
        let backfill = self.backfill.as_ref()?;
        let has_room = self.waiting.is_empty() && self.live.len() < backfill.at_once as usize;
        // Whatever the clock shows by now: without a gap it does not wait for a time.
        let due = backfill.gap.map_or(Timestamp::from_micros(0), |_| backfill.due);
        backfill.next.filter(|_| has_room).map(|_| due)
    }

    /// Slots that have a run or wait for one.
    pub(crate) fn taken(&self) -> u64 {
        self.fires.saturating_add(self.waiting.len() as u64)
    }

    /// The day that a run at this instant counts for. A clock that goes back does not give the budget
    /// of a day a second time.
    pub(crate) fn day(&self, at: Timestamp) -> i64 {
        self.today.map_or(i64::MIN, |today| today.day).max(day(at))
    }

    /// Runs of the day.
    pub(crate) fn runs_on(&self, day: i64) -> u32 {
        self.today.filter(|today| today.day == day).map_or(0, |today| today.runs)
    }

    fn decided(&mut self, until: Timestamp, ahead: Ahead) {
        self.decided_until = self.decided_until.max(until);
        self.ahead = ahead;
    }

    fn began(&mut self, id: &RunId, queued: &run::Queued) {
        match &queued.occurrence {
            Occurrence::Slot(slot) => {
                self.fires += 1;
                self.waiting.retain(|waiting| *waiting != slot.nominal);
                self.decided(slot.nominal, slot.ahead);
            }
            Occurrence::Manual { .. } => {}
            Occurrence::Backfill(fill) => self.backfilled(id, fill, queued.at),
        }
        self.room_since = None;
        // Whoever asked for a backfill knows how many runs it has.
        if !matches!(queued.occurrence, Occurrence::Backfill(_)) {
            let day = self.day(queued.at);
            self.today = Some(Today { day, runs: self.runs_on(day).saturating_add(1) });
        }
        self.live.push(id.clone());
        self.last_run = Some(LastRun { id: id.clone(), at: queued.at });
    }

    fn backfilled(&mut self, id: &RunId, fill: &run::Fill, at: Timestamp) {
        let Some(backfill) = &mut self.backfill else { return };
        let gap_us = backfill.gap.map_or(0, Span::as_micros);
        backfill.next = fill.next;
        backfill.due = Timestamp::from_micros(at.as_micros().saturating_add(gap_us));
        backfill.live.push(id.clone());
    }

    /// A backfill is over when its last run is.
    fn end_backfill(&mut self) {
        self.backfill = self.backfill.take().filter(|it| it.next.is_some() || !it.live.is_empty());
    }

    fn ended(&mut self, id: &RunId, ended: &run::Ended) {
        self.live.retain(|live| live != id);
        if let Some(backfill) = &mut self.backfill {
            backfill.live.retain(|live| live != id);
            self.end_backfill();
        }
        match ended.outcome {
            run::Outcome::Done => self.failures = 0,
            run::Outcome::Failed => self.failures += 1,
            run::Outcome::Cancelled | run::Outcome::Unknown => {}
        }
        if let Some(action) = ended.denied.clone() {
            self.denied = Some(Box::new(Denied { action, at: ended.at }));
        }
        // What was stored before nothing was held back is no measure.
        let spent = ended.spent.as_ref().filter(|spent| spent.schedule.is_some());
        self.usage = spent.and_then(|spent| spent.usage).or(self.usage);
        if !self.waiting.is_empty() && !ended.no_room {
            self.room_since = Some(ended.at);
        }
    }
}

/// The progress of a schedule after an event.
pub fn apply(id: &str, progress: Option<Progress>, body: &Body) -> Option<Progress> {
    match body {
        Body::Schedule(own, Event::Added(added)) if own.as_str() == id => {
            let before = progress.as_ref().map_or(added.at, |before| before.decided_until);
            let new = Progress::new(before.max(added.at), added.ahead);
            Some(match progress {
                // Of one that comes back, what ran before still counts.
                Some(Progress { live, today, followers, .. }) => {
                    Progress { live, today, followers, ..new }
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

impl Progress {
    /// After an event that did not make it.
    pub(crate) fn apply(&mut self, id: &str, body: &Body) {
        match body {
            Body::Schedule(other, event) if other.as_str() != id => self.followed(id, other, event),
            Body::Schedule(_, event) => self.happened(event),
            Body::Run(id, run::Event::Queued(queued)) => self.began(id, queued),
            Body::Run(id, run::Event::Requeued(_)) => {
                self.live.push(id.clone());
                self.room_since = None;
            }
            Body::Run(id, run::Event::Ended(ended)) => self.ended(id, ended),
            Body::Run(..) | Body::Approval(..) | Body::Authority(..) => {}
            Body::Agent(..) | Body::Token(..) | Body::Tool(..) | Body::Watch(..) => {}
        }
    }

    fn happened(&mut self, event: &Event) {
        match event {
            Event::Added(_) => {}
            Event::Changed(changed) => {
                self.revision += 1;
                self.decided(changed.at, changed.ahead);
                self.waiting.clear();
                self.room_since = None;
            }
            Event::Moved(moved) => self.ahead = moved.ahead,
            Event::Paused(paused) => self.status = Status::Paused(paused.into()),
            Event::Resumed(resumed) => {
                self.status = Status::Active;
                self.failures = 0;
                self.ahead = resumed.ahead;
                let has_room = !self.waiting.is_empty() && self.live.is_empty();
                self.room_since = has_room.then_some(resumed.at).or(self.room_since);
            }
            Event::Removed(_) => {
                self.status = Status::Removed;
                self.ahead = Ahead::default();
                self.waiting.clear();
                (self.room_since, self.backfill) = (None, None);
            }
            Event::Passed(passed) => self.decided(passed.last, passed.ahead),
            Event::Buffered(buffered) => {
                self.decided(buffered.slot, buffered.ahead);
                self.waiting.push(buffered.slot);
            }
            Event::Dropped(dropped) => {
                self.waiting.retain(|slot| *slot != dropped.slot);
                self.room_since = self.room_since.filter(|_| !self.waiting.is_empty());
                self.ahead = dropped.ahead;
            }
            Event::BackfillBegun(begun) => self.backfill = Some(Box::new(begun.into())),
            Event::BackfillMoved(moved) => {
                if let Some(backfill) = &mut self.backfill {
                    backfill.next = moved.next;
                }
                self.end_backfill();
            }
        }
    }
}

impl Progress {
    fn new(decided_until: Timestamp, ahead: Ahead) -> Progress {
        Progress {
            status: Status::Active,
            revision: 1,
            decided_until,
            ahead,
            fires: 0,
            today: None,
            live: Vec::new(),
            waiting: Vec::new(),
            room_since: None,
            failures: 0,
            last_run: None,
            followers: Vec::new(),
            backfill: None,
            denied: None,
            usage: None,
        }
    }

    /// What another schedule's event means for one that it follows, or followed.
    fn followed(&mut self, id: &str, follower: &ScheduleId, event: &Event) {
        let follows = match event {
            Event::Added(added) => added.definition.trigger.follows(),
            Event::Changed(changed) => changed.definition.trigger.follows(),
            _ => None,
        };
        self.followers.retain(|other| other != follower);
        if follows.is_some_and(|(followed, _)| followed.as_str() == id) {
            self.followers.push(follower.clone());
        }
    }
}

impl From<&BackfillBegun> for Backfill {
    fn from(begun: &BackfillBegun) -> Backfill {
        Backfill {
            next: Some(begun.first),
            last: begun.last,
            at_once: begun.at_once,
            gap: begun.gap,
            due: begun.at,
            live: Vec::new(),
        }
    }
}

impl From<Ahead> for StoredAhead {
    fn from(Ahead { next, due }: Ahead) -> StoredAhead {
        StoredAhead { next, due: due.filter(|_| due != next) }
    }
}

impl From<StoredAhead> for Ahead {
    fn from(StoredAhead { next, due }: StoredAhead) -> Ahead {
        Ahead { next, due: due.or(next) }
    }
}

/// Days since 1970 in UTC.
pub(crate) fn day(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(DAY_US)
}

fn is_zero<T: Default + PartialEq>(number: &T) -> bool {
    *number == T::default()
}
