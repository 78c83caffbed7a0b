//! How far a schedule has got: which slots are decided, when the next one is, what runs. The row that
//! every fire writes, so it is kept small.
//!
//! Invariant: every slot up to `decided_until` has its disposition, and none after it; it only grows.
//! A schedule ends with the last slot that may run: what its trigger asks for after that is no slot.

use serde::{Deserialize, Serialize};

use crate::event::Body;
use crate::id::RunId;
use crate::run::{self, Occurrence};
use crate::schedule::Event;
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

pub(crate) const DAY_US: i64 = 86_400_000_000;

impl Progress {
    /// When the schedule is to be looked at.
    pub fn due(&self) -> Option<Timestamp> {
        match self.status {
            Status::Active => self.ahead.due.into_iter().chain(self.room_since).min(),
            Status::Paused(_) | Status::Removed => None,
        }
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
        }
        self.room_since = None;
        let day = self.day(queued.at);
        self.today = Some(Today { day, runs: self.runs_on(day).saturating_add(1) });
        self.live.push(id.clone());
        self.last_run = Some(LastRun { id: id.clone(), at: queued.at });
    }

    fn ended(&mut self, id: &RunId, ended: &run::Ended) {
        self.live.retain(|live| live != id);
        match ended.outcome {
            run::Outcome::Done => self.failures = 0,
            run::Outcome::Failed => self.failures += 1,
            run::Outcome::Cancelled | run::Outcome::Unknown => {}
        }
        if !self.waiting.is_empty() {
            self.room_since = Some(ended.at);
        }
    }
}

/// The progress of a schedule after an event.
pub fn apply(progress: Option<Progress>, body: &Body) -> Option<Progress> {
    let mut progress = match (body, progress) {
        (Body::Schedule(_, Event::Added(added)), before) => {
            let at = before.as_ref().map_or(added.at, |before| before.decided_until.max(added.at));
            let (live, today) = before.map(|it| (it.live, it.today)).unwrap_or_default();
            return Some(Progress { live, today, ..Progress::new(at, added.ahead) });
        }
        (_, before) => before?,
    };
    match body {
        Body::Schedule(_, event) => match event {
            Event::Added(_) => {}
            Event::Paused(paused) => progress.status = Status::Paused(paused.into()),
            Event::Resumed(resumed) => {
                progress.status = Status::Active;
                progress.failures = 0;
                progress.ahead = resumed.ahead;
            }
            Event::Removed(_) => {
                progress.status = Status::Removed;
                progress.ahead = Ahead::default();
                progress.waiting.clear();
                progress.room_since = None;
            }
            Event::Passed(passed) => progress.decided(passed.last, passed.ahead),
            Event::Buffered(buffered) => {
                progress.decided(buffered.slot, buffered.ahead);
                progress.waiting.push(buffered.slot);
            }
            Event::Dropped(dropped) => {
                progress.waiting.retain(|slot| *slot != dropped.slot);
                progress.room_since = progress.room_since.filter(|_| !progress.waiting.is_empty());
                progress.ahead = dropped.ahead;
            }
        },
        Body::Run(id, run::Event::Queued(queued)) => progress.began(id, queued),
        Body::Run(id, run::Event::Requeued(_)) => {
            progress.live.push(id.clone());
            progress.room_since = None;
        }
        Body::Run(id, run::Event::Ended(ended)) => progress.ended(id, ended),
        Body::Run(..) | Body::Agent(..) | Body::Watch(..) => {}
    }
    Some(progress)
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
