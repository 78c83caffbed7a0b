//! What becomes of the slots of a schedule that are due: the heart of the slot ledger.
//!
//! A slot that is due is decided once. Usually one fires; after a time without a watch there may be
//! millions, and they become a handful of ranges. Every decision moves the schedule on, so a tick of
//! a schedule that is due never leaves it due at the same slot.

use calendar::{Calendar, Span, catch_up_window, jitter_us};

use crate::event::Body;
use crate::id::{RunId, ScheduleId};
use crate::progress::{Ahead, DAY_US, Progress, Status, day};
use crate::run::{self, Fill, Fired, Occurrence, Origin, Queued, Run};
use crate::schedule::terms::{Missed, Overlap, Resume, Terms};
use crate::schedule::trigger::{Since, Trigger};
use crate::schedule::{BackfillMoved, Buffered, CHAIN_MAX, Definition, Dropped, Event};
use crate::schedule::{Moved, MovedWhy, Passed, Schedule};
use crate::slot::{Disposition, Fate, Reason, Slot, Source, Timing};
use crate::time::Timestamp;

/// A slot decided later than this was missed.
pub const GRACE_US: i64 = 60_000_000;
/// Slots in a day of a schedule that waits for something to happen, when nobody says how often.
const HAPPENINGS_PER_DAY: u64 = 1_000;
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
    /// Its live runs, as far as a slot that is due may end them.
    pub live: &'a [(RunId, Run)],
    /// What clocks in the zone showed at the last slot that was decided, if the rules of the zone may
    /// have changed since.
    pub decided_wall: Option<&'a str>,
    /// What is known of the slot that a backfill goes on with.
    pub filled: Option<&'a Slot>,
    pub now: Timestamp,
}

/// Decides all slots that are due. Nothing, if none is. `new_run` gives an id to each run.
pub fn tick(tick: Tick<'_>, progress: &Progress, new_run: &mut dyn FnMut() -> RunId) -> Vec<Body> {
    if progress.due().is_none_or(|due| tick.now < due) {
        return Vec::new();
    }
    let mut deciding =
        Deciding { tick, progress: progress.clone(), bodies: Vec::new(), new_run, what: None };
    deciding.rebase();
    deciding.waiting();
    deciding.due();
    // A slot that was due may have ended the run that others waited for.
    deciding.waiting();
    deciding.backfill();
    deciding.bodies
}

/// Moves a schedule on to the slot that comes next by the rules of its zone as they are now. Nothing,
/// if that is the one it waits for.
pub fn rebase(tick: Tick<'_>, progress: &Progress) -> Option<Body> {
    tick.definition.trigger.timed()?;
    let ahead = tick.rebased(progress);
    let moved = Moved { why: MovedWhy::TzRebased, at: tick.now, ahead };
    (ahead.next != progress.ahead.next)
        .then(|| Body::Schedule(tick.id.clone(), Event::Moved(moved)))
}

/// Decides about something that has happened, which makes a slot of this instant.
pub fn happened(
    tick: Tick<'_>,
    progress: &Progress,
    what: Happened<'_>,
    new_run: &mut dyn FnMut() -> RunId,
) -> Vec<Body> {
    let now = tick.now;
    let terms = tick.terms();
    let is_too_early = terms.start_at.is_some_and(|start| now < start);
    let is_too_late = terms.end_at.is_some_and(|end| end < now);
    if is_too_early || is_too_late || tick.is_used_up(progress.taken()) {
        return Vec::new();
    }
    // Of two things at one instant the second comes after the first.
    let nominal = now.as_micros().max(progress.decided_until.as_micros().saturating_add(1));
    let mut deciding = Deciding {
        tick,
        progress: progress.clone(),
        bodies: Vec::new(),
        new_run,
        what: Some(what),
    };
    match (&progress.status, terms.resume) {
        (Status::Removed, _) => {}
        (Status::Paused(_), Resume::Skip) => {
            deciding.pass(nominal, nominal, Disposition::SkippedPaused, None, None);
        }
        (Status::Paused(_), Resume::AsMissed) => deciding.buffer(nominal),
        (Status::Active, _) if CHAIN_MAX < what.depth as usize => {
            deciding.pass(nominal, nominal, Disposition::SkippedDependency, None, None);
        }
        (Status::Active, _) => deciding.consider(nominal, what.origin),
    }
    deciding.bodies
}

/// Something that makes a schedule fire.
#[derive(Clone, Copy, Debug)]
pub struct Happened<'a> {
    pub source: &'a Source,
    pub origin: Origin,
    /// Runs in a row that led to it.
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
            filled: None,
            now,
        }
    }

    /// What comes after an instant, when so many slots have a run or wait for one, and so many runs
    /// are live.
    pub fn ahead(&self, after_us: i64, taken: u64, live: usize) -> Ahead {
        let next = self.next_slot(after_us, live).filter(|_| !self.is_used_up(taken));
        let due = next.map(|next| Timestamp::from_micros(self.eligible_us(next)));
        Ahead { next: next.map(Timestamp::from_micros), due }
    }

    /// The slots that will come, as far as they can be known now; of a paused schedule, those that would come if
    /// it were resumed now.
    pub fn upcoming(&self, progress: &Progress, count: usize) -> Vec<Timestamp> {
        let terms = &self.definition.terms;
        let left = terms.max_fires.map_or(u64::MAX, |max| max.saturating_sub(progress.taken()));
        let count = count.min(usize::try_from(left).unwrap_or(usize::MAX));
        let first = match progress.status {
            Status::Active => progress.ahead.next,
            Status::Paused(_) => match progress.ahead.next.and_then(|next| self.backlog(next)) {
                Some((_, last)) => self.ahead(last, progress.taken(), progress.live.len()).next,
                None => progress.ahead.next,
            },
            Status::Removed => None,
        };
        let first = first.map(Timestamp::as_micros);
        let slots = std::iter::successors(first, |slot_us| self.next_after(*slot_us));
        slots.take(count).map(Timestamp::from_micros).collect()
    }

    /// How late its next slot may still run, should it be missed; nothing where none is caught up.
    pub fn window(&self, progress: &Progress) -> Option<Span> {
        let next = progress.ahead.next.filter(|_| self.terms().missed != Missed::Skip);
        next.map(|next| self.window_of(next.as_micros()))
    }

    /// Runs that it may have on the day.
    pub fn runs_per_day(&self, progress: &Progress) -> u32 {
        self.per_day(progress.day(self.now))
    }

    /// Runs that the time alone asks for on the day of the next slot, as far as its terms let it.
    pub fn asked_per_day(&self, progress: &Progress) -> u64 {
        let slots = progress.ahead.next.map_or(0, |next| self.slots_of(day(next)));
        let per_day = self.terms().per_day.map_or(u64::MAX, u64::from);
        slots.min(per_day).min(self.terms().max_fires.unwrap_or(u64::MAX))
    }

    /// What comes after all that is decided. A wall time that was decided by other rules of the zone
    /// does not come again.
    fn rebased(&self, progress: &Progress) -> Ahead {
        let ahead_of = |after_us| self.ahead(after_us, progress.taken(), progress.live.len());
        let mut ahead = ahead_of(progress.decided_until.as_micros());
        let decided = self.decided_wall.filter(|_| self.keeps_wall_time()).and_then(local);
        while let (Some(next), Some(decided)) = (ahead.next, decided)
            && local(&self.calendar.wall_time(next.as_micros()).to_string()) <= Some(decided)
        {
            ahead = ahead_of(next.as_micros());
        }
        ahead
    }

    fn keeps_wall_time(&self) -> bool {
        self.definition.trigger.timed().is_some_and(calendar::Trigger::is_fixed_time)
    }

    /// The undecided slots from `first` on that are due by now: the first and the last.
    pub(crate) fn backlog(&self, first: Timestamp) -> Option<(i64, i64)> {
        let last = self.last_due_until(self.now.as_micros())?;
        (first.as_micros() <= last).then_some((first.as_micros(), last))
    }

    /// The same with one that is only kept back by its jitter.
    pub(crate) fn past(&self, first: Timestamp) -> Option<(i64, i64)> {
        let last = self.last_until(self.now.as_micros())?;
        (first.as_micros() <= last).then_some((first.as_micros(), last))
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
            source: None,
            timing: (first != last).then(|| Box::new(Timing::from(self.calendar))),
            at: self.now,
            ahead,
        }
    }

    /// Runs of a day: as given, or twice what the trigger asks for on that day and all that may be
    /// caught up, so that a schedule can neither starve nor run away when nobody says.
    pub(crate) fn per_day(&self, day: i64) -> u32 {
        self.terms().per_day.unwrap_or_else(|| {
            let slots = self.slots_of(day);
            let caught_up = match self.terms().missed {
                Missed::All(max) => max,
                Missed::Latest | Missed::Earliest | Missed::Skip => 0,
            };
            let runs = slots.saturating_mul(2).saturating_add(u64::from(caught_up));
            u32::try_from(runs).unwrap_or(u32::MAX).max(PER_DAY_MIN)
        })
    }

    pub(crate) fn is_out_of_budget(&self, progress: &Progress) -> bool {
        let day = progress.day(self.now);
        let runs = progress.runs_on(day);
        // Most days stay below the least that there is, without a look at the calendar.
        let is_below_least = runs < PER_DAY_MIN && self.terms().per_day.is_none();
        !is_below_least && self.per_day(day) <= runs
    }

    fn slots_of(&self, day: i64) -> u64 {
        let midnight = day.saturating_mul(DAY_US);
        match (&self.definition.trigger, self.definition.again()) {
            (Trigger::Timed(_), _) => {
                let until = midnight.saturating_add(DAY_US - 1);
                self.calendar.count(midnight.saturating_sub(1), until)
            }
            (Trigger::Happens(_), Some((every, _))) => {
                u64::try_from(DAY_US / every.as_micros().max(1)).unwrap_or_default()
            }
            (Trigger::Happens(_), None) => HAPPENINGS_PER_DAY,
        }
    }

    fn terms(&self) -> &'a Terms {
        &self.definition.terms
    }

    fn is_used_up(&self, taken: u64) -> bool {
        self.terms().max_fires.is_some_and(|max| max <= taken)
    }

    fn next_slot(&self, after_us: i64, live: usize) -> Option<i64> {
        let known = self.next_after(after_us);
        let Some((every, since)) = self.definition.again() else { return known };
        // One that goes by its own last run has none while that is live.
        let is_counted = since == Since::Start || live == 0;
        let start = self.terms().start_at.map_or(i64::MIN, Timestamp::as_micros);
        let end = self.terms().end_at.map_or(i64::MAX, Timestamp::as_micros);
        let counted = self.now.as_micros().saturating_add(every.as_micros()).max(start);
        // A clock that went back does not bring back what is decided.
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
        self.calendar.last_until(until_us.min(end))
    }

    /// The last slot that was to be decided by an instant.
    fn last_due_until(&self, until_us: i64) -> Option<i64> {
        let last = self.last_until(until_us)?;
        // Its jitter may keep the newest back, and only that one: it comes before the next slot.
        match self.eligible_us(last) <= until_us {
            true => Some(last),
            false => self.last_until(last - 1),
        }
    }

    /// When a slot is to be decided.
    fn eligible_us(&self, nominal: i64) -> i64 {
        let Some(max) = self.terms().jitter else { return nominal };
        let next = self.calendar.next_after(nominal);
        nominal + jitter_us(self.id.as_str().as_bytes(), nominal, max.as_micros(), next)
    }

    fn window_of(&self, last: i64) -> Span {
        let window = self.terms().window;
        window.unwrap_or_else(|| catch_up_window(last, self.calendar.next_after(last)))
    }
}

/// A tick under way: what is decided so far, and the progress that it leads to.
struct Deciding<'a, 'b> {
    tick: Tick<'a>,
    progress: Progress,
    bodies: Vec<Body>,
    new_run: &'b mut dyn FnMut() -> RunId,
    /// What made the slot that is decided, if that is not the time.
    what: Option<Happened<'b>>,
}

/// What is to become of a slot that would run if nothing were in its way.
#[derive(Clone, Copy)]
enum Verdict {
    Fire,
    Buffer,
    /// Wait instead of one that waits.
    Replace(i64),
    Pass(Disposition),
}

impl Deciding<'_, '_> {
    /// The next slot was computed by other rules of its zone: there is no such slot any more.
    fn rebase(&mut self) {
        let Some(next) = self.progress.ahead.next.map(Timestamp::as_micros) else { return };
        if self.tick.calendar.last_until(next) == Some(next) {
            return;
        }
        let moved = rebase(self.tick, &self.progress);
        moved.into_iter().for_each(|body| self.push(body));
    }

    /// One slot of a backfill, unless it has a run.
    fn backfill(&mut self) {
        if self.progress.backfill_due().is_none_or(|due| self.tick.now < due) {
            return;
        }
        let Some(backfill) = self.progress.backfill.clone() else { return };
        let Some(nominal) = backfill.next else { return };
        let next = self.tick.calendar.next_after(nominal.as_micros());
        let next = next.map(Timestamp::from_micros).filter(|next| *next <= backfill.last);
        if matches!(self.tick.filled.map(|slot| &slot.fate), Some(Fate::Run { .. })) {
            let moved = BackfillMoved { next, at: self.tick.now };
            return self.push_event(Event::BackfillMoved(moved));
        }
        let wall = self.tick.calendar.wall_time(nominal.as_micros()).to_string();
        self.queue(Occurrence::Backfill(Fill { nominal, wall, next }));
    }

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
        if GRACE_US < now - self.tick.eligible_us(last) {
            return self.missed(first, last);
        }
        let last_missed = self.before(last, first);
        match (last_missed, self.tick.terms().missed) {
            // One that is on time stands for those that were missed, as the newest.
            (Some(_), Missed::Latest) => self.latest(first, last, Origin::Slot),
            (Some(last_missed), Missed::Earliest | Missed::All(_) | Missed::Skip) => {
                self.missed(first, last_missed);
                self.consider(last, Origin::Slot);
            }
            (None, _) => self.consider(last, Origin::Slot),
        }
    }

    fn missed(&mut self, first: i64, last: i64) {
        match self.tick.terms().missed {
            Missed::Latest => self.latest(first, last, Origin::CatchUp),
            Missed::Earliest => self.earliest(first, last),
            Missed::All(max) => self.all(first, last, max),
            Missed::Skip => {
                self.pass(first, last, Disposition::SkippedMissed, Some(Reason::Policy), None);
            }
        }
    }

    /// The newest stands for the others; if it may not run, they share its fate.
    fn latest(&mut self, first: i64, last: i64, origin: Origin) {
        match self.verdict() {
            Verdict::Pass(disposition) => self.pass(first, last, disposition, None, None),
            verdict => {
                if let Some(before) = self.before(last, first) {
                    self.pass(first, before, Disposition::Coalesced, None, Some(last));
                }
                self.carry_out(verdict, last, origin);
            }
        }
    }

    /// The oldest stands for the others; if it may not run, they share its fate.
    fn earliest(&mut self, first: i64, last: i64) {
        match self.verdict() {
            Verdict::Pass(disposition) => self.pass(first, last, disposition, None, None),
            verdict => {
                self.carry_out(verdict, first, Origin::CatchUp);
                let second = self.tick.calendar.next_after(first).filter(|slot| *slot <= last);
                if let Some(second) = second {
                    self.pass(second, last, Disposition::Coalesced, None, Some(first));
                }
            }
        }
    }

    /// The newest so many run one after the other, whatever the overlap policy.
    fn all(&mut self, first: i64, last: i64, max: u32) {
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
        while let Some(nominal) = slot.filter(|slot| *slot <= last && !self.is_used_up()) {
            match self.catch_up_verdict(max) {
                // Nothing makes room within a tick.
                Verdict::Pass(disposition) => {
                    return self.pass(nominal, last, disposition, None, None);
                }
                verdict => self.carry_out(verdict, nominal, Origin::CatchUp),
            }
            slot = self.tick.calendar.next_after(nominal);
        }
    }

    /// A slot that is on time.
    fn consider(&mut self, nominal: i64, origin: Origin) {
        // What was caught up may have been the last of all: then this is no slot any more.
        if !self.is_used_up() {
            let verdict = self.verdict();
            self.carry_out(verdict, nominal, origin);
        }
    }

    /// Ends live runs, if that is how the schedule makes room.
    fn make_room(&mut self) {
        let overlap = self.tick.terms().overlap;
        if !overlap.ends_others() || self.has_room() || self.is_out_of_budget() {
            return;
        }
        // Once for all slots that are decided now: what is known of these runs is of before.
        for (id, run) in std::mem::take(&mut self.tick.live) {
            let progress = self.progress.clone();
            let (definition, now) = (Some(self.tick.definition), self.tick.now);
            let ground = run::Ground { id, run, definition, progress: Some(&progress), now };
            let ends = match overlap {
                Overlap::TerminateOther => run::terminate(ground),
                _ => run::replace(ground),
            };
            ends.into_iter().for_each(|body| self.push(body));
        }
    }

    fn verdict(&mut self) -> Verdict {
        self.make_room();
        let waiting = self.progress.waiting.len();
        let wait = || match self.progress.waiting.last() {
            Some(older) => Verdict::Replace(older.as_micros()),
            None => Verdict::Buffer,
        };
        match (self.verdict_if_room(), self.tick.terms().overlap) {
            (Some(verdict), _) => verdict,
            (None, Overlap::BufferOne | Overlap::CancelOther | Overlap::TerminateOther) => wait(),
            // A backfill may keep a slot waiting, but never takes its place.
            (None, Overlap::Skip | Overlap::Allow(_)) if self.is_backfilling() => wait(),
            (None, Overlap::Skip | Overlap::Allow(_)) => Verdict::Pass(Disposition::SkippedOverlap),
            (None, Overlap::BufferAll(max)) if waiting < max as usize => Verdict::Buffer,
            (None, Overlap::BufferAll(_)) => Verdict::Pass(Disposition::SkippedFull),
        }
    }

    /// For one of many that are caught up: as many wait as may be caught up.
    fn catch_up_verdict(&self, max: u32) -> Verdict {
        let max = match self.tick.terms().overlap {
            Overlap::BufferAll(waiting) => max.max(waiting),
            Overlap::Skip | Overlap::BufferOne | Overlap::Allow(_) => max,
            Overlap::CancelOther | Overlap::TerminateOther => max,
        };
        self.verdict_if_room().unwrap_or(match self.progress.waiting.len() < max as usize {
            true => Verdict::Buffer,
            false => Verdict::Pass(Disposition::SkippedFull),
        })
    }

    fn verdict_if_room(&self) -> Option<Verdict> {
        let is_free = self.has_room() && self.progress.waiting.is_empty();
        is_free.then(|| match self.is_out_of_budget() {
            true => Verdict::Pass(Disposition::SkippedBudget),
            false => Verdict::Fire,
        })
    }

    fn carry_out(&mut self, verdict: Verdict, nominal: i64, origin: Origin) {
        match verdict {
            Verdict::Fire => self.fire(nominal, origin),
            Verdict::Buffer => self.buffer(nominal),
            Verdict::Replace(older) => {
                self.drop(older, Disposition::Coalesced, Some(nominal));
                self.buffer(nominal);
            }
            Verdict::Pass(disposition) => self.pass(nominal, nominal, disposition, None, None),
        }
    }

    /// The slot before one, unless that is before the first.
    fn before(&self, slot: i64, first: i64) -> Option<i64> {
        self.tick.calendar.last_until(slot - 1).filter(|before| first <= *before)
    }

    fn is_used_up(&self) -> bool {
        self.tick.is_used_up(self.progress.taken())
    }

    fn is_backfilling(&self) -> bool {
        self.progress.backfill.as_ref().is_some_and(|backfill| !backfill.live.is_empty())
    }

    fn ahead(&self, after_us: i64, taken: u64) -> Ahead {
        self.tick.ahead(after_us, taken, self.progress.live.len())
    }

    fn has_room(&self) -> bool {
        self.progress.live.len() < self.tick.terms().overlap.live_max()
    }

    fn is_out_of_budget(&self) -> bool {
        self.tick.is_out_of_budget(&self.progress)
    }

    fn fire(&mut self, nominal: i64, origin: Origin) {
        let decided = self.progress.decided_until.as_micros().max(nominal);
        let taken = self.progress.taken() + u64::from(origin != Origin::Buffer);
        let live = self.progress.live.len() + 1;
        let late_us = self.tick.now.as_micros().saturating_sub(self.tick.eligible_us(nominal));
        self.queue(Occurrence::Slot(Fired {
            nominal: Timestamp::from_micros(nominal),
            wall: self.tick.calendar.wall_time(nominal).to_string(),
            origin,
            late_us: late_us.max(0),
            source: self.what.map(|what| what.source.clone()),
            ahead: self.tick.ahead(decided, taken, live),
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
            depth: self.what.map_or(0, |what| what.depth),
            by_runner: false,
            at: self.tick.now,
        };
        let id = (self.new_run)();
        self.push(Body::Run(id, run::Event::Queued(queued)));
    }

    fn buffer(&mut self, nominal: i64) {
        self.push_event(Event::Buffered(Buffered {
            revision: self.tick.revision,
            slot: Timestamp::from_micros(nominal),
            wall: self.tick.calendar.wall_time(nominal).to_string(),
            source: self.what.map(|what| what.source.clone()),
            at: self.tick.now,
            ahead: self.ahead(nominal, self.progress.taken() + 1),
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
        let ahead = self.ahead(last, self.progress.taken());
        let into = into.map(Timestamp::from_micros);
        let source = self.what.map(|what| what.source.clone());
        let passed = self.tick.passed(first, last, disposition, ahead);
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
            ahead: self.ahead(decided, self.progress.taken().saturating_sub(1)),
        }));
    }

    fn push_event(&mut self, event: Event) {
        self.push(Body::Schedule(self.tick.id.clone(), event));
    }

    fn push(&mut self, body: Body) {
        self.progress.apply(self.tick.id.as_str(), &body);
        self.bodies.push(body);
    }
}

/// Of a wall time, what does not depend on the offset, to the second.
fn local(wall: &str) -> Option<&str> {
    wall.get(.."YYYY-MM-DDTHH:MM:SS".len())
}
