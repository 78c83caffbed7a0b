//! What becomes of the slots of a schedule that are due: the heart of the slot ledger.
//!
//! A slot that is due is decided once. Usually one fires; after a time without a watch there may be
//! millions, and they become a handful of ranges. Every decision moves the schedule on, so a tick of
//! a schedule that is due never leaves it due at the same slot.

use calendar::{Calendar, catch_up_window, jitter_us};

use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::progress::{self, Ahead, DAY_US, Progress, Status, day};
use crate::run::{self, Fired, Occurrence, Origin, Queued};
use crate::schedule::terms::{Missed, Overlap, Terms};
use crate::schedule::{Buffered, Definition, Dropped, Event, Passed, Schedule};
use crate::slot::{Disposition, Reason};
use crate::time::Timestamp;

/// A slot decided later than this was missed.
pub const GRACE_US: i64 = 60_000_000;
/// The least that a schedule may run in a day when nobody says how often.
pub const PER_DAY_MIN: u32 = 4;

/// A schedule at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    pub id: &'a ScheduleId,
    pub definition: &'a Definition,
    pub revision: u32,
    /// Of the definition.
    pub calendar: &'a Calendar,
    pub now: Timestamp,
}

/// Decides all slots that are due. Nothing, if none is. `new_run` gives an id to each run.
pub fn tick(tick: Tick<'_>, progress: &Progress, new_run: &mut dyn FnMut() -> RunId) -> Vec<Body> {
    if progress.status != Status::Active {
        return Vec::new();
    }
    let mut deciding = Deciding { tick, progress: progress.clone(), bodies: Vec::new(), new_run };
    deciding.waiting();
    deciding.due();
    deciding.bodies
}

impl<'a> Tick<'a> {
    pub fn new(
        id: &'a ScheduleId,
        schedule: &'a Schedule,
        calendar: &'a Calendar,
        now: Timestamp,
    ) -> Tick<'a> {
        Tick { id, definition: &schedule.definition, revision: schedule.revision, calendar, now }
    }

    /// What comes after an instant, for a schedule that has fired so often.
    pub fn ahead(&self, after_us: i64, fires: u64) -> Ahead {
        let next = self.next_after(after_us).filter(|_| !self.is_used_up(fires));
        let due = next.map(|next| Timestamp::from_micros(self.eligible_us(next)));
        Ahead { next: next.map(Timestamp::from_micros), due }
    }

    /// The slots that will come, as far as they can be known now.
    pub fn upcoming(&self, progress: &Progress, count: usize) -> Vec<Timestamp> {
        let terms = &self.definition.terms;
        let left = terms.max_fires.map_or(u64::MAX, |max| max.saturating_sub(progress.fires));
        let count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        let first = progress.ahead.next.map(Timestamp::as_micros);
        let slots = std::iter::successors(first, |slot_us| self.next_after(*slot_us));
        slots.take(count).map(Timestamp::from_micros).collect()
    }

    /// The undecided slots from `first` on that are due by now: the first and the last.
    pub(crate) fn backlog(&self, first: Timestamp) -> Option<(i64, i64)> {
        let (first, now) = (first.as_micros(), self.now.as_micros());
        let end = self.terms().end_at.map_or(now, |end| end.as_micros().min(now));
        let mut last = self.calendar.last_until(end)?;
        // Its jitter may keep the newest back, and only that one: it comes before the next slot.
        if now < self.eligible_us(last) {
            last = self.calendar.last_until(last - 1)?;
        }
        (first <= last).then_some((first, last))
    }

    pub(crate) fn passed(
        &self,
        first: i64,
        last: i64,
        disposition: Disposition,
        ahead: Ahead,
    ) -> Passed {
        Passed {
            revision: self.revision,
            first: Timestamp::from_micros(first),
            last: Timestamp::from_micros(last),
            count: if first == last { 1 } else { self.calendar.count(first - 1, last) },
            wall: self.calendar.wall_time(last).to_string(),
            disposition,
            reason: None,
            into: None,
            at: self.now,
            ahead,
        }
    }

    /// Runs of the day of this tick: as given, or twice what the trigger asks for on that day, so
    /// that a schedule can neither starve nor run away when nobody says.
    pub(crate) fn per_day(&self) -> u32 {
        self.terms().per_day.unwrap_or_else(|| {
            let midnight = day(self.now) * DAY_US;
            let slots = self.calendar.count(midnight - 1, midnight + DAY_US - 1);
            u32::try_from(slots.saturating_mul(2)).unwrap_or(u32::MAX).max(PER_DAY_MIN)
        })
    }

    pub(crate) fn is_out_of_budget(&self, progress: &Progress) -> bool {
        let runs = progress.runs_on(day(self.now));
        // Most days stay below the least that there is, without a look at the calendar.
        let is_below_least = runs < PER_DAY_MIN && self.terms().per_day.is_none();
        !is_below_least && self.per_day() <= runs
    }

    fn terms(&self) -> &'a Terms {
        &self.definition.terms
    }

    fn is_used_up(&self, fires: u64) -> bool {
        self.terms().max_fires.is_some_and(|max| max <= fires)
    }

    fn next_after(&self, after_us: i64) -> Option<i64> {
        let start = self.terms().start_at.map_or(i64::MIN, |start| start.as_micros() - 1);
        let end = self.terms().end_at.map_or(i64::MAX, Timestamp::as_micros);
        self.calendar.next_after(after_us.max(start)).filter(|slot_us| *slot_us <= end)
    }

    /// When a slot is to be decided.
    fn eligible_us(&self, nominal: i64) -> i64 {
        let Some(max) = self.terms().jitter else { return nominal };
        let next = self.calendar.next_after(nominal);
        nominal + jitter_us(self.id.as_str().as_bytes(), nominal, max.as_micros(), next)
    }

    fn window_us(&self, last: i64) -> i64 {
        let window = self.terms().window;
        window.unwrap_or_else(|| catch_up_window(last, self.next_after(last))).as_micros()
    }
}

/// A tick under way: what is decided so far, and the progress that it leads to.
struct Deciding<'a, 'b> {
    tick: Tick<'a>,
    progress: Progress,
    bodies: Vec<Body>,
    new_run: &'b mut dyn FnMut() -> RunId,
}

impl Deciding<'_, '_> {
    /// Slots that waited for a run to end go first.
    fn waiting(&mut self) {
        while let Some(slot) = self.progress.waiting.first().map(|slot| slot.as_micros())
            && self.has_room()
        {
            match self.is_out_of_budget() {
                true => self.drop(slot, Disposition::SkippedBudget, None),
                false => self.fire(slot, Origin::Buffer),
            }
        }
    }

    fn due(&mut self) {
        let Some((mut first, last)) =
            self.progress.ahead.next.and_then(|first| self.tick.backlog(first))
        else {
            return;
        };
        let now = self.tick.now.as_micros();
        let oldest = now.saturating_sub(self.tick.window_us(last));
        if first < oldest {
            let too_old = self.tick.calendar.last_until(oldest - 1).unwrap_or(first).min(last);
            self.pass(first, too_old, Disposition::SkippedMissed, Some(Reason::Window), None);
            if too_old == last {
                return;
            }
            first = self.tick.calendar.next_after(too_old).unwrap_or(last);
        }
        let is_last_missed = GRACE_US < now - self.tick.eligible_us(last);
        // The missed ones, and the newest if it is on time.
        let on_time = (!is_last_missed).then_some(last);
        let last_missed = match is_last_missed {
            true => Some(last),
            false => self.tick.calendar.last_until(last - 1).filter(|slot| first <= *slot),
        };
        if let Some(last_missed) = last_missed {
            self.missed(first, last_missed, on_time);
        }
        if let Some(slot) = on_time {
            self.consider(slot, Origin::Slot);
        }
    }

    fn missed(&mut self, first: i64, last: i64, on_time: Option<i64>) {
        let before_last = |slots: &Self| slots.tick.calendar.last_until(last - 1);
        match self.tick.terms().missed {
            // One that is on time stands for those that were missed, as the newest.
            Missed::Latest if on_time.is_some() => {
                self.pass(first, last, Disposition::Coalesced, None, on_time);
            }
            Missed::Latest => {
                if let Some(before) = before_last(self).filter(|slot| first <= *slot) {
                    self.pass(first, before, Disposition::Coalesced, None, Some(last));
                }
                self.consider(last, Origin::CatchUp);
            }
            Missed::Earliest => {
                self.consider(first, Origin::CatchUp);
                if first < last
                    && let Some(second) = self.tick.calendar.next_after(first)
                {
                    self.pass(second, last, Disposition::Coalesced, None, Some(first));
                }
            }
            Missed::All(max) => {
                let mut from = last;
                for _ in 1..max {
                    match self.tick.calendar.last_until(from - 1).filter(|slot| first <= *slot) {
                        Some(slot) => from = slot,
                        None => break,
                    }
                }
                if let Some(before) = self.tick.calendar.last_until(from - 1)
                    && first <= before
                {
                    let reason = Some(Reason::Cap);
                    self.pass(first, before, Disposition::SkippedMissed, reason, None);
                }
                let mut slot = Some(from);
                while let Some(nominal) = slot.filter(|slot| *slot <= last) {
                    self.catch_up(nominal);
                    slot = self.tick.calendar.next_after(nominal);
                }
            }
            Missed::Skip => {
                self.pass(first, last, Disposition::SkippedMissed, Some(Reason::Policy), None);
            }
        }
    }

    /// One of many that are caught up: they run one after the other, whatever the overlap policy.
    fn catch_up(&mut self, nominal: i64) {
        match self.has_room() && self.progress.waiting.is_empty() {
            true => self.consider(nominal, Origin::CatchUp),
            false => self.buffer(nominal),
        }
    }

    /// A slot that would run if nothing is in its way.
    fn consider(&mut self, nominal: i64, origin: Origin) {
        if self.tick.is_used_up(self.progress.fires) {
            // The last run was the last of all: this is no slot any more.
            return;
        }
        if self.has_room() && self.progress.waiting.is_empty() {
            return match self.is_out_of_budget() {
                true => self.pass(nominal, nominal, Disposition::SkippedBudget, None, None),
                false => self.fire(nominal, origin),
            };
        }
        match self.tick.terms().overlap {
            Overlap::Skip | Overlap::Allow(_) => {
                self.pass(nominal, nominal, Disposition::SkippedOverlap, None, None);
            }
            Overlap::BufferOne => {
                if let Some(older) = self.progress.waiting.first().map(|slot| slot.as_micros()) {
                    self.drop(older, Disposition::Coalesced, Some(nominal));
                }
                self.buffer(nominal);
            }
            Overlap::BufferAll(max) if self.progress.waiting.len() < max as usize => {
                self.buffer(nominal);
            }
            Overlap::BufferAll(_) => {
                self.pass(nominal, nominal, Disposition::SkippedFull, None, None);
            }
        }
    }

    fn has_room(&self) -> bool {
        self.progress.live.len() < self.tick.terms().overlap.live_max()
    }

    fn is_out_of_budget(&self) -> bool {
        self.tick.is_out_of_budget(&self.progress)
    }

    fn fire(&mut self, nominal: i64, origin: Origin) {
        let decided = self.progress.decided_until.as_micros().max(nominal);
        let now = self.tick.now;
        let queued = Queued {
            schedule: self.tick.id.clone(),
            revision: self.tick.revision,
            occurrence: Occurrence::Slot(Fired {
                nominal: Timestamp::from_micros(nominal),
                wall: self.tick.calendar.wall_time(nominal).to_string(),
                origin,
                late_us: (now.as_micros() - self.tick.eligible_us(nominal)).max(0),
                ahead: self.tick.ahead(decided, self.progress.fires + 1),
            }),
            agent: self.tick.definition.action.agent().cloned(),
            priority: self.tick.terms().priority,
            at: now,
        };
        let id = (self.new_run)();
        self.push(Body::Run(id, run::Event::Queued(queued)));
    }

    fn buffer(&mut self, nominal: i64) {
        self.push_event(Event::Buffered(Buffered {
            revision: self.tick.revision,
            slot: Timestamp::from_micros(nominal),
            wall: self.tick.calendar.wall_time(nominal).to_string(),
            at: self.tick.now,
            ahead: self.tick.ahead(nominal, self.progress.fires),
        }));
    }

    fn pass(
        &mut self,
        first: i64,
        last: i64,
        disposition: Disposition,
        reason: Option<Reason>,
        into: Option<i64>,
    ) {
        let ahead = self.tick.ahead(last, self.progress.fires);
        let into = into.map(Timestamp::from_micros);
        let passed = self.tick.passed(first, last, disposition, ahead);
        self.push_event(Event::Passed(Passed { reason, into, ..passed }));
    }

    fn drop(&mut self, waiting: i64, disposition: Disposition, into: Option<i64>) {
        let decided = self.progress.decided_until.as_micros();
        self.push_event(Event::Dropped(Dropped {
            slot: Timestamp::from_micros(waiting),
            disposition,
            reason: None,
            into: into.map(Timestamp::from_micros),
            at: self.tick.now,
            ahead: self.tick.ahead(decided, self.progress.fires),
        }));
    }

    fn push_event(&mut self, event: Event) {
        self.push(Body::Schedule(self.tick.id.clone(), event));
    }

    fn push(&mut self, body: Body) {
        if let Some(after) = progress::apply(Some(self.progress.clone()), &body) {
            self.progress = after;
        }
        self.bodies.push(body);
    }
}
