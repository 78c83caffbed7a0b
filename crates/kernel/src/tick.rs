//! Decides the due slots of a schedule.
//!
//! A due slot is decided once. Usually there is one and it fires; after a long time without a daemon there
//! may be millions, which become a few ranges. Every decision advances the schedule, so a tick never leaves
//! a schedule due at the same slot.

use calendar::{Calendar, Span, catch_up_window, jitter_us};

use crate::budget::{DAY_US, day, end_of_day};
use crate::noun::NounState;
use crate::progress::{NextFire, Progress, Status};
use crate::run::{self, BackfillSlot, FiredSlot, Occurrence, Origin, Queued, Run};
use crate::schedule::terms::{Missed, Overlap, Resume, Terms};
use crate::schedule::trigger::{Since, Trigger};
use crate::schedule::{BackfillMoved, Buffered, CHAIN_MAX, Definition, Dropped, Event};
use crate::schedule::{Moved, MovedWhy, Passed, Schedule};
use crate::slot::{Disposition, Reason, Slot, SlotOutcome, Source, Timing};
use crate::time::Timestamp;
use crate::{EventBody, RunId, ScheduleId};

/// A slot decided later than this was missed.
pub const GRACE_US: i64 = 60_000_000;
/// How far ahead slots are skipped when a budget is used up. A raised budget takes effect after this time at
/// the latest, and a schedule that fires every second makes one entry in this time instead of hundreds.
pub const OVER_BUDGET_US: i64 = 600_000_000;
/// Slots per day assumed for an event trigger, to derive its default limit of runs.
const EVENTS_PER_DAY: u64 = 1_000;
/// Lowest default limit of runs per day.
pub const PER_DAY_MIN: u32 = 4;

/// The inputs of a tick: a schedule at an instant.
#[derive(Clone, Copy, Debug)]
pub struct Tick<'a> {
    pub id: &'a ScheduleId,
    pub definition: &'a Definition,
    pub revision: u32,
    /// Calendar of the definition.
    pub calendar: &'a Calendar,
    /// Live runs that a due slot may end.
    pub live: &'a [(RunId, Run)],
    /// Wall-clock time of the last decided slot, if the zone's rules may have changed since.
    pub decided_wall: Option<&'a str>,
    /// The row of the backfill's next slot, if it has one.
    pub backfill_slot: Option<&'a Slot>,
    pub now: Timestamp,
}

/// Decides all due slots; returns no events if none is due. `new_run` returns an id for each run.
pub fn tick(
    tick: Tick<'_>,
    progress: &Progress,
    new_run: &mut dyn FnMut() -> RunId,
) -> Vec<EventBody> {
    if progress.due().is_none_or(|due| tick.now < due) {
        return Vec::new();
    }
    let mut decider =
        SlotDecider { tick, progress: progress.clone(), events: Vec::new(), new_run, event: None };
    decider.rebase();
    decider.run_waiting();
    decider.decide_due();
    // A due slot may have ended the run that others waited for.
    decider.run_waiting();
    decider.backfill();
    decider.events
}

/// Recomputes the next slot after a change of the zone's rules. Returns `None` if it stays the same.
pub fn rebase(tick: Tick<'_>, progress: &Progress) -> Option<EventBody> {
    tick.definition.trigger.timed()?;
    let next_fire = tick.rebased(progress);
    let moved = Moved { why: MovedWhy::TzRebased, at: tick.now, next_fire };
    (next_fire.slot != progress.next_fire.slot)
        .then(|| EventBody::Schedule(tick.id.clone(), Event::Moved(moved)))
}

/// Lets a schedule go on from this time, if a clock that was ahead has decided its slots. A maintainer accepted the
/// corrected clock. Slots from now on are due again, also those that were decided already.
pub fn correct_clock(tick: Tick<'_>, progress: &Progress) -> Option<EventBody> {
    if !progress.is_ahead_of(tick.now) {
        return None;
    }
    let after_us = progress.decided_until.min(tick.now).as_micros();
    let next_fire = tick.next_fire(after_us, progress.slots_used(), progress.live.len());
    let moved = Moved { why: MovedWhy::ClockCorrected, at: tick.now, next_fire };
    Some(EventBody::Schedule(tick.id.clone(), Event::Moved(moved)))
}

/// Decides the slot that an event creates at this instant.
pub fn decide_event(
    tick: Tick<'_>,
    progress: &Progress,
    event: EventOccurrence<'_>,
    new_run: &mut dyn FnMut() -> RunId,
) -> Vec<EventBody> {
    let now = tick.now;
    let terms = tick.terms();
    let is_too_early = terms.start_at.is_some_and(|start| now < start);
    let is_too_late = terms.end_at.is_some_and(|end| end < now);
    if is_too_early || is_too_late || tick.has_reached_max_fires(progress.slots_used()) {
        return Vec::new();
    }
    // Of two events at one instant, the second gets the next microsecond.
    let nominal = now.as_micros().max(progress.decided_until.as_micros().saturating_add(1));
    let mut decider = SlotDecider {
        tick,
        progress: progress.clone(),
        events: Vec::new(),
        new_run,
        event: Some(event),
    };
    match (&progress.status, terms.resume) {
        (Status::Removed, _) => {}
        (Status::Paused(_), Resume::Skip) => {
            decider.pass(nominal, nominal, Disposition::SkippedPaused, None, None);
        }
        (Status::Paused(_), Resume::AsMissed) => decider.buffer(nominal),
        (Status::Active, _) if CHAIN_MAX < event.depth as usize => {
            decider.pass(nominal, nominal, Disposition::SkippedDependency, None, None);
        }
        (Status::Active, _) => decider.decide_on_time(nominal, event.origin),
    }
    decider.events
}

/// One occurrence of the event that a schedule waits for.
#[derive(Clone, Copy, Debug)]
pub struct EventOccurrence<'a> {
    pub source: &'a Source,
    pub origin: Origin,
    /// Length of the chain of runs that led to it.
    pub depth: u32,
}

impl<'a> Tick<'a> {
    pub fn new(
        id: &'a ScheduleId,
        schedule: &'a Schedule,
        calendar: &'a Calendar,
        now: Timestamp,
    ) -> Tick<'a> {
        let (definition, revision) = (&schedule.definition, schedule.revision);
        Tick {
            id,
            definition,
            revision,
            calendar,
            live: &[],
            decided_wall: None,
            backfill_slot: None,
            now,
        }
    }

    /// The next slot after an instant, given how many slots have a run or wait for one (`taken`) and how
    /// many runs are live.
    pub fn next_fire(&self, after_us: i64, taken: u64, live: usize) -> NextFire {
        let next = self.next_slot(after_us, live).filter(|_| !self.has_reached_max_fires(taken));
        let due = next.map(|next| Timestamp::from_micros(self.due_us(next)));
        NextFire { slot: next.map(Timestamp::from_micros), due }
    }

    /// The next slots, as far as they are known; for a paused schedule, as if it were resumed now.
    pub fn upcoming(&self, progress: &Progress, count: usize) -> Vec<Timestamp> {
        let terms = &self.definition.terms;
        let remaining =
            terms.max_fires.map_or(u64::MAX, |max| max.saturating_sub(progress.slots_used()));
        let count = count.min(usize::try_from(remaining).unwrap_or(usize::MAX));
        let first = match progress.status {
            Status::Active => progress.next_fire.slot,
            Status::Paused(_) => {
                match progress.next_fire.slot.and_then(|next| self.backlog(next)) {
                    Some((_, last)) => {
                        self.next_fire(last, progress.slots_used(), progress.live.len()).slot
                    }
                    None => progress.next_fire.slot,
                }
            }
            Status::Removed => None,
        };
        let first = first.map(Timestamp::as_micros);
        let slots = std::iter::successors(first, |slot_us| self.next_after(*slot_us));
        slots.take(count).map(Timestamp::from_micros).collect()
    }

    /// How late the next slot may still run if it is missed; `None` if missed slots are skipped.
    pub fn window(&self, progress: &Progress) -> Option<Span> {
        let next = progress.next_fire.slot.filter(|_| self.terms().missed != Missed::Skip);
        next.map(|next| self.window_of(next.as_micros()))
    }

    /// Limit of runs on the current day.
    pub fn runs_per_day(&self, progress: &Progress) -> u32 {
        self.per_day(progress.day(self.now))
    }

    /// Runs that the calendar schedules on the day of the next slot, within the limits of the terms.
    pub fn scheduled_runs_per_day(&self, progress: &Progress) -> u64 {
        let slots = progress.next_fire.slot.map_or(0, |next| self.slots_on(day(next)));
        let per_day = self.terms().per_day.map_or(u64::MAX, u64::from);
        slots.min(per_day).min(self.terms().max_fires.unwrap_or(u64::MAX))
    }

    /// The next slot after all decided ones. A wall-clock time that was decided under earlier rules of the
    /// zone is not repeated.
    fn rebased(&self, progress: &Progress) -> NextFire {
        let next_fire_after =
            |after_us| self.next_fire(after_us, progress.slots_used(), progress.live.len());
        let mut next_fire = next_fire_after(progress.decided_until.as_micros());
        let decided = self.decided_wall.filter(|_| self.has_fixed_wall_time()).and_then(local_time);
        while let (Some(next), Some(decided)) = (next_fire.slot, decided)
            && local_time(&self.calendar.wall_time(next.as_micros()).to_string()) <= Some(decided)
        {
            next_fire = next_fire_after(next.as_micros());
        }
        next_fire
    }

    fn has_fixed_wall_time(&self) -> bool {
        self.definition.trigger.timed().is_some_and(calendar::Trigger::is_fixed_time)
    }

    /// The first and the last undecided slot from `first` on that is due by now.
    pub(crate) fn backlog(&self, first: Timestamp) -> Option<(i64, i64)> {
        let last = self.last_due_until(self.now.as_micros())?;
        (first.as_micros() <= last).then_some((first.as_micros(), last))
    }

    /// Like [`Tick::backlog`], including a slot that only its jitter delays.
    pub(crate) fn backlog_ignoring_jitter(&self, first: Timestamp) -> Option<(i64, i64)> {
        let last = self.last_until(self.now.as_micros())?;
        (first.as_micros() <= last).then_some((first.as_micros(), last))
    }

    pub(crate) fn passed_event(
        &self,
        first: i64,
        last: i64,
        disposition: Disposition,
        next_fire: NextFire,
    ) -> Passed {
        Passed {
            revision: self.revision,
            first: Timestamp::from_micros(first),
            last: Timestamp::from_micros(last),
            count: if first == last { 1 } else { self.calendar.count_slots(first - 1, last) },
            wall: self.calendar.wall_time(last).to_string(),
            disposition,
            reason: None,
            into: None,
            source: None,
            timing: (first != last).then(|| Box::new(Timing::from(self.calendar))),
            at: self.now,
            next_fire,
        }
    }

    /// Limit of runs on a day. The default is twice the day's slots plus all that may be caught up: enough
    /// for normal work, and a bound on runaway schedules.
    pub(crate) fn per_day(&self, day: i64) -> u32 {
        self.terms().per_day.unwrap_or_else(|| {
            let slots = self.slots_on(day);
            let caught_up = match self.terms().missed {
                Missed::All(max) => max,
                Missed::Latest | Missed::Earliest | Missed::Skip => 0,
            };
            let runs = slots.saturating_mul(2).saturating_add(u64::from(caught_up));
            u32::try_from(runs).unwrap_or(u32::MAX).max(PER_DAY_MIN)
        })
    }

    pub(crate) fn has_reached_daily_limit(&self, progress: &Progress) -> bool {
        let day = progress.day(self.now);
        let runs = progress.runs_on(day);
        // Usually the runs are below the lowest default, and counting slots is not needed.
        let is_below_minimum = runs < PER_DAY_MIN && self.terms().per_day.is_none();
        !is_below_minimum && self.per_day(day) <= runs
    }

    fn slots_on(&self, day: i64) -> u64 {
        let midnight = day.saturating_mul(DAY_US);
        match (&self.definition.trigger, self.definition.own_run_interval()) {
            (Trigger::Timed(_), _) => {
                let until = midnight.saturating_add(DAY_US - 1);
                self.calendar.count_slots(midnight.saturating_sub(1), until)
            }
            (Trigger::Event(_), Some((every, _))) => {
                u64::try_from(DAY_US / every.as_micros().max(1)).unwrap_or_default()
            }
            (Trigger::Event(_), None) => EVENTS_PER_DAY,
        }
    }

    /// The skipped slots of the next minutes, if a budget is used up now. `None` if there are none.
    pub(crate) fn over_budget(&self, progress: &Progress) -> Option<EventBody> {
        let first = progress.next_fire.slot.filter(|_| progress.status == Status::Active)?;
        let first = first.as_micros();
        let last = self.last_over_budget().filter(|last| first <= *last)?;
        let next_fire = self.next_fire(last, progress.slots_used(), progress.live.len());
        let passed = self.passed_event(first, last, Disposition::SkippedBudget, next_fire);
        Some(EventBody::Schedule(self.id.clone(), Event::Passed(passed)))
    }

    /// The last slot to skip if a budget is used up now: within ten minutes, and on the same day.
    fn last_over_budget(&self) -> Option<i64> {
        self.definition.trigger.timed()?;
        let ten_minutes = self.now.as_micros().saturating_add(OVER_BUDGET_US);
        let until = end_of_day(day(self.now)).as_micros().min(ten_minutes);
        self.last_until(until - 1)
    }

    fn terms(&self) -> &'a Terms {
        &self.definition.terms
    }

    fn has_reached_max_fires(&self, taken: u64) -> bool {
        self.terms().max_fires.is_some_and(|max| max <= taken)
    }

    fn next_slot(&self, after_us: i64, live: usize) -> Option<i64> {
        let known = self.next_after(after_us);
        let Some((every, since)) = self.definition.own_run_interval() else { return known };
        // A schedule that counts from the end of its own last run has no next slot while a run is live.
        let is_counted = since == Since::Start || live == 0;
        let start = self.terms().start_at.map_or(i64::MIN, Timestamp::as_micros);
        let end = self.terms().end_at.map_or(i64::MAX, Timestamp::as_micros);
        let counted = self.now.as_micros().saturating_add(every.as_micros()).max(start);
        // A clock that was set back does not repeat decided slots.
        let counted = counted.max(after_us.saturating_add(1));
        known.or_else(|| Some(counted).filter(|at| is_counted && *at <= end))
    }

    fn next_after(&self, after_us: i64) -> Option<i64> {
        let start =
            self.terms().start_at.map_or(i64::MIN, |start| start.as_micros().saturating_sub(1));
        let end = self.terms().end_at.map_or(i64::MAX, Timestamp::as_micros);
        self.calendar.next_after(after_us.max(start)).filter(|slot_us| *slot_us <= end)
    }

    fn last_until(&self, until_us: i64) -> Option<i64> {
        let end = self.terms().end_at.map_or(i64::MAX, Timestamp::as_micros);
        self.calendar.last_at_or_before(until_us.min(end))
    }

    /// The last slot that was due by an instant.
    fn last_due_until(&self, until_us: i64) -> Option<i64> {
        let last = self.last_until(until_us)?;
        // Jitter can delay only the newest slot, since it never reaches the next one.
        match self.due_us(last) <= until_us {
            true => Some(last),
            false => self.last_until(last - 1),
        }
    }

    /// When a slot is due: its nominal instant plus jitter.
    fn due_us(&self, nominal: i64) -> i64 {
        let Some(max) = self.terms().jitter else { return nominal };
        let next = self.calendar.next_after(nominal);
        nominal + jitter_us(self.id.as_str().as_bytes(), nominal, max.as_micros(), next)
    }

    fn window_of(&self, last: i64) -> Span {
        let window = self.terms().window;
        window.unwrap_or_else(|| catch_up_window(last, self.calendar.next_after(last)))
    }
}

/// Collects the events of a tick, and the progress that they lead to.
struct SlotDecider<'a, 'b> {
    tick: Tick<'a>,
    progress: Progress,
    events: Vec<EventBody>,
    new_run: &'b mut dyn FnMut() -> RunId,
    /// The event that created the slot, if it was not the calendar.
    event: Option<EventOccurrence<'b>>,
}

/// What to do with a slot, given live runs and limits.
#[derive(Clone, Copy)]
enum SlotAction {
    Fire,
    Buffer,
    /// Buffer the slot in place of this waiting one.
    Replace(i64),
    Pass(Disposition),
}

impl SlotDecider<'_, '_> {
    /// Moves to another next slot if the zone's rules have changed and the stored one no longer exists.
    fn rebase(&mut self) {
        let Some(next) = self.progress.next_fire.slot.map(Timestamp::as_micros) else { return };
        if self.tick.calendar.last_at_or_before(next) == Some(next) {
            return;
        }
        let moved = rebase(self.tick, &self.progress);
        moved.into_iter().for_each(|body| self.push(body));
    }

    /// Runs the next slot of a backfill, or skips it if it has a run.
    fn backfill(&mut self) {
        if self.progress.backfill_due().is_none_or(|due| self.tick.now < due) {
            return;
        }
        let Some(backfill) = self.progress.backfill.clone() else { return };
        let Some(nominal) = backfill.next else { return };
        let next = self.tick.calendar.next_after(nominal.as_micros());
        let next = next.map(Timestamp::from_micros).filter(|next| *next <= backfill.last);
        if matches!(
            self.tick.backfill_slot.map(|slot| &slot.outcome),
            Some(SlotOutcome::Run { .. })
        ) {
            let moved = BackfillMoved { next, at: self.tick.now };
            return self.push_event(Event::BackfillMoved(moved));
        }
        let wall = self.tick.calendar.wall_time(nominal.as_micros()).to_string();
        self.queue(Occurrence::Backfill(BackfillSlot { nominal, wall, next }));
    }

    /// Runs waiting slots; they go before due ones.
    fn run_waiting(&mut self) {
        while let Some(slot) = self.progress.waiting.first().map(|slot| slot.as_micros())
            && self.has_room()
        {
            match self.has_reached_daily_limit() {
                true => self.drop(slot, Disposition::SkippedBudget, None),
                false => self.fire(slot, Origin::Buffer),
            }
        }
    }

    fn decide_due(&mut self) {
        let Some((mut first, last)) =
            self.progress.next_fire.slot.and_then(|first| self.tick.backlog(first))
        else {
            return;
        };
        let now = self.tick.now.as_micros();
        let oldest = now.saturating_sub(self.tick.window_of(last).as_micros());
        if let Some(too_old) = self.tick.last_due_until(oldest.saturating_sub(1))
            && first <= too_old
        {
            let too_old = too_old.min(last);
            self.pass(first, too_old, Disposition::SkippedMissed, Some(Reason::Window), None);
            match self.tick.calendar.next_after(too_old).filter(|slot| *slot <= last) {
                Some(slot) => first = slot,
                None => return,
            }
        }
        if GRACE_US < now - self.tick.due_us(last) {
            return self.decide_missed(first, last);
        }
        let last_missed = self.before(last, first);
        match (last_missed, self.tick.terms().missed) {
            // The slot that is on time is the newest, so its run covers the missed ones.
            (Some(_), Missed::Latest) => self.run_latest(first, last, Origin::Slot),
            (Some(last_missed), Missed::Earliest | Missed::All(_) | Missed::Skip) => {
                self.decide_missed(first, last_missed);
                self.decide_on_time(last, Origin::Slot);
            }
            (None, _) => self.decide_on_time(last, Origin::Slot),
        }
    }

    fn decide_missed(&mut self, first: i64, last: i64) {
        match self.tick.terms().missed {
            Missed::Latest => self.run_latest(first, last, Origin::CatchUp),
            Missed::Earliest => self.run_earliest(first, last),
            Missed::All(max) => self.run_all(first, last, max),
            Missed::Skip => {
                self.pass(first, last, Disposition::SkippedMissed, Some(Reason::Policy), None);
            }
        }
    }

    /// Runs the newest slot for all; if it may not run, all are passed over for the same reason.
    fn run_latest(&mut self, first: i64, last: i64, origin: Origin) {
        match self.choose_action() {
            SlotAction::Pass(disposition) => self.pass_blocked(first, last, disposition),
            action => {
                if let Some(before) = self.before(last, first) {
                    self.pass(first, before, Disposition::Coalesced, None, Some(last));
                }
                self.apply_action(action, last, origin);
            }
        }
    }

    /// Runs the oldest slot for all; if it may not run, all are passed over for the same reason.
    fn run_earliest(&mut self, first: i64, last: i64) {
        match self.choose_action() {
            SlotAction::Pass(disposition) => self.pass_blocked(first, last, disposition),
            action => {
                self.apply_action(action, first, Origin::CatchUp);
                let second = self.tick.calendar.next_after(first).filter(|slot| *slot <= last);
                if let Some(second) = second {
                    self.pass(second, last, Disposition::Coalesced, None, Some(first));
                }
            }
        }
    }

    /// Runs the newest `max` slots one after the other, whatever the overlap policy.
    fn run_all(&mut self, first: i64, last: i64, max: u32) {
        let mut from = last;
        for _ in 1..max {
            match self.before(from, first) {
                Some(slot) => from = slot,
                None => break,
            }
        }
        if let Some(before) = self.before(from, first) {
            self.pass(first, before, Disposition::SkippedMissed, Some(Reason::Cap), None);
        }
        let mut slot = Some(from);
        while let Some(nominal) = slot.filter(|slot| *slot <= last && !self.has_reached_max_fires())
        {
            match self.choose_catch_up_action(max) {
                // The later ones cannot run either: no run ends within a tick.
                SlotAction::Pass(disposition) => {
                    return self.pass_blocked(nominal, last, disposition);
                }
                action => self.apply_action(action, nominal, Origin::CatchUp),
            }
            slot = self.tick.calendar.next_after(nominal);
        }
    }

    /// Decides a slot that is on time.
    fn decide_on_time(&mut self, nominal: i64, origin: Origin) {
        // It may have been skipped with the missed ones, because a budget is used up.
        let is_decided = nominal <= self.progress.decided_until.as_micros();
        // A caught-up slot may have been the last allowed fire; then this instant is not a slot.
        if !is_decided && !self.has_reached_max_fires() {
            let action = self.choose_action();
            self.apply_action(action, nominal, origin);
        }
    }

    /// Ends live runs, if the overlap policy says so.
    fn end_live_runs(&mut self) {
        let overlap = self.tick.terms().overlap;
        if !overlap.ends_others() || self.has_room() || self.has_reached_daily_limit() {
            return;
        }
        // Only once per tick: the rows of these runs are from before the tick.
        for (id, run) in std::mem::take(&mut self.tick.live) {
            let progress = self.progress.clone();
            let (definition, now) = (Some(self.tick.definition), self.tick.now);
            let context = run::RunContext { id, run, definition, progress: Some(&progress), now };
            let ends = match overlap {
                Overlap::TerminateOther => run::terminate(context),
                _ => run::replace(context),
            };
            ends.into_iter().for_each(|body| self.push(body));
        }
    }

    fn choose_action(&mut self) -> SlotAction {
        self.end_live_runs();
        let waiting = self.progress.waiting.len();
        let wait = || match self.progress.waiting.last() {
            Some(older) => SlotAction::Replace(older.as_micros()),
            None => SlotAction::Buffer,
        };
        match (self.action_if_free(), self.tick.terms().overlap) {
            (Some(action), _) => action,
            (None, Overlap::BufferOne | Overlap::CancelOther | Overlap::TerminateOther) => wait(),
            // A backfill may delay a slot, but must not cause it to be skipped.
            (None, Overlap::Skip | Overlap::Allow(_)) if self.is_backfilling() => wait(),
            (None, Overlap::Skip | Overlap::Allow(_)) => {
                SlotAction::Pass(Disposition::SkippedOverlap)
            }
            (None, Overlap::BufferAll(max)) if waiting < max as usize => SlotAction::Buffer,
            (None, Overlap::BufferAll(_)) => SlotAction::Pass(Disposition::SkippedFull),
        }
    }

    /// The action for one of several caught-up slots: as many may wait as may be caught up.
    fn choose_catch_up_action(&self, max: u32) -> SlotAction {
        let max = match self.tick.terms().overlap {
            Overlap::BufferAll(waiting) => max.max(waiting),
            Overlap::Skip | Overlap::BufferOne | Overlap::Allow(_) => max,
            Overlap::CancelOther | Overlap::TerminateOther => max,
        };
        self.action_if_free().unwrap_or(match self.progress.waiting.len() < max as usize {
            true => SlotAction::Buffer,
            false => SlotAction::Pass(Disposition::SkippedFull),
        })
    }

    fn action_if_free(&self) -> Option<SlotAction> {
        let is_free = self.has_room() && self.progress.waiting.is_empty();
        is_free.then(|| match self.has_reached_daily_limit() {
            true => SlotAction::Pass(Disposition::SkippedBudget),
            false => SlotAction::Fire,
        })
    }

    fn apply_action(&mut self, action: SlotAction, nominal: i64, origin: Origin) {
        match action {
            SlotAction::Fire => self.fire(nominal, origin),
            SlotAction::Buffer => self.buffer(nominal),
            SlotAction::Replace(older) => {
                self.drop(older, Disposition::Coalesced, Some(nominal));
                self.buffer(nominal);
            }
            SlotAction::Pass(disposition) => self.pass_blocked(nominal, nominal, disposition),
        }
    }

    /// Passes over slots that may not run now, and over those of the next minutes if a budget is used up.
    fn pass_blocked(&mut self, first: i64, last: i64, disposition: Disposition) {
        let further = match (disposition, self.event) {
            (Disposition::SkippedBudget, None) => self.tick.last_over_budget(),
            _ => None,
        };
        let last = further.map_or(last, |further| further.max(last));
        self.pass(first, last, disposition, None, None);
    }

    /// The slot before `slot`, unless it is before `first`.
    fn before(&self, slot: i64, first: i64) -> Option<i64> {
        self.tick.calendar.last_at_or_before(slot - 1).filter(|before| first <= *before)
    }

    fn has_reached_max_fires(&self) -> bool {
        self.tick.has_reached_max_fires(self.progress.slots_used())
    }

    fn is_backfilling(&self) -> bool {
        self.progress.backfill.as_ref().is_some_and(|backfill| !backfill.live.is_empty())
    }

    fn next_fire(&self, after_us: i64, taken: u64) -> NextFire {
        self.tick.next_fire(after_us, taken, self.progress.live.len())
    }

    fn has_room(&self) -> bool {
        self.progress.live.len() < self.tick.terms().overlap.live_max()
    }

    fn has_reached_daily_limit(&self) -> bool {
        self.tick.has_reached_daily_limit(&self.progress)
    }

    fn fire(&mut self, nominal: i64, origin: Origin) {
        let decided = self.progress.decided_until.as_micros().max(nominal);
        let taken = self.progress.slots_used() + u64::from(origin != Origin::Buffer);
        let live = self.progress.live.len() + 1;
        let late_us = self.tick.now.as_micros().saturating_sub(self.tick.due_us(nominal));
        self.queue(Occurrence::Slot(FiredSlot {
            nominal: Timestamp::from_micros(nominal),
            wall: self.tick.calendar.wall_time(nominal).to_string(),
            origin,
            late_us: late_us.max(0),
            source: self.event.map(|event| event.source.clone()),
            next_fire: self.tick.next_fire(decided, taken, live),
        }));
    }

    fn queue(&mut self, occurrence: Occurrence) {
        let terms = self.tick.terms();
        let queued = Queued {
            schedule: self.tick.id.clone(),
            revision: self.tick.revision,
            occurrence,
            agent: self.tick.definition.action.agent().cloned(),
            priority: terms.priority,
            keys: terms.keys.clone(),
            depth: self.event.map_or(0, |event| event.depth),
            by_runner: false,
            at: self.tick.now,
        };
        let id = (self.new_run)();
        self.push(EventBody::Run(id, run::Event::Queued(queued)));
    }

    fn buffer(&mut self, nominal: i64) {
        self.push_event(Event::Buffered(Buffered {
            revision: self.tick.revision,
            slot: Timestamp::from_micros(nominal),
            wall: self.tick.calendar.wall_time(nominal).to_string(),
            source: self.event.map(|event| event.source.clone()),
            at: self.tick.now,
            next_fire: self.next_fire(nominal, self.progress.slots_used() + 1),
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
        let next_fire = self.next_fire(last, self.progress.slots_used());
        let into = into.map(Timestamp::from_micros);
        let source = self.event.map(|event| event.source.clone());
        let passed = self.tick.passed_event(first, last, disposition, next_fire);
        self.push_event(Event::Passed(Passed { reason, into, source, ..passed }));
    }

    fn drop(&mut self, waiting: i64, disposition: Disposition, into: Option<i64>) {
        let decided = self.progress.decided_until.as_micros();
        self.push_event(Event::Dropped(Dropped {
            slot: Timestamp::from_micros(waiting),
            disposition,
            reason: None,
            into: into.map(Timestamp::from_micros),
            at: self.tick.now,
            next_fire: self.next_fire(decided, self.progress.slots_used().saturating_sub(1)),
        }));
    }

    fn push_event(&mut self, event: Event) {
        self.push(EventBody::Schedule(self.tick.id.clone(), event));
    }

    fn push(&mut self, body: EventBody) {
        self.progress.apply(self.tick.id.as_str(), &body);
        self.events.push(body);
    }
}

/// The local part of a wall-clock time, without its UTC offset, to the second.
fn local_time(wall: &str) -> Option<&str> {
    wall.get(.."YYYY-MM-DDTHH:MM:SS".len())
}
