//! Tracks one schedule through the ledger: S1, S3, S5, S7, S9 and S14.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use kernel::progress::Progress;
use kernel::run::{Event as RunEvent, Occurrence, Origin};
use kernel::schedule::terms::Missed;
use kernel::schedule::{Added, Definition, Event};
use kernel::slot::Disposition;
use kernel::{RunId, Timestamp};

use super::super::naive_calendar::SlotWalker;

/// Slots in a preview.
const PREVIEW: usize = 5;

#[derive(Debug)]
pub(super) struct ScheduleTrack {
    pub(super) definition: Definition,
    pub(super) revision: u32,
    pub(super) added_at: Timestamp,
    /// Walks over the decided slots. `None` if the schedule is not triggered by time.
    walker: Option<SlotWalker>,
    pub(super) is_paused: bool,
    pub(super) is_removed: bool,
    decided: i64,
    next: Option<i64>,
    fires: u64,
    waiting: Vec<i64>,
    /// Buffered slots that an edit dropped: they count as fires until the definition changes.
    superseded: u64,
    pub(super) live: BTreeSet<RunId>,
    /// The last instant of a decision, and the slots that it fired or buffered.
    caught_up: (Timestamp, u64),
    /// The preview that an answer showed for this revision.
    preview: Option<Vec<i64>>,
    /// The first slots decided since the revision was made.
    decided_slots: Vec<i64>,
}

impl ScheduleTrack {
    /// A schedule that is added again continues after its last decision.
    pub(super) fn new(added: &Added, before: Option<ScheduleTrack>) -> Result<ScheduleTrack> {
        let at = added.at.as_micros();
        let decided = before.as_ref().map_or(at, |before| before.decided.max(at));
        let definition = (*added.definition).clone();
        if let Some(before) = &before {
            ensure!(before.is_removed, "it was added twice");
        }
        Ok(ScheduleTrack {
            walker: SlotWalker::new(&definition, decided)?,
            definition,
            revision: 1,
            added_at: added.at,
            is_paused: false,
            is_removed: false,
            decided,
            next: None,
            fires: 0,
            waiting: Vec::new(),
            superseded: 0,
            live: before.map(|before| before.live).unwrap_or_default(),
            caught_up: (added.at, 0),
            preview: None,
            decided_slots: Vec::new(),
        })
    }

    pub(super) fn apply(&mut self, event: &Event) -> Result<()> {
        let micros = |at: Timestamp| at.as_micros();
        match event {
            Event::Added(_) | Event::Moved(_) => {}
            Event::Paused(_) => self.is_paused = true,
            Event::Resumed(_) => self.is_paused = false,
            Event::Removed(removed) => {
                self.check_no_slot_lost(removed.at)?;
                self.is_removed = true;
                self.next = None;
                ensure!(self.waiting.is_empty(), "S1: {:?} wait forever", self.waiting);
            }
            Event::Changed(changed) => {
                self.check_no_slot_lost(changed.at)?;
                ensure!(self.waiting.is_empty(), "S1: {:?} wait forever", self.waiting);
                self.definition = (*changed.definition).clone();
                self.decided = self.decided.max(micros(changed.at));
                self.walker = SlotWalker::new(&self.definition, self.decided)?;
                self.revision += 1;
                (self.next, self.preview, self.decided_slots) = (None, None, Vec::new());
            }
            Event::Passed(it) => {
                ensure!(1 <= it.count && it.first <= it.last, "S1: an empty range");
                self.decide_slots(micros(it.first), micros(it.last), it.count)?;
            }
            Event::Buffered(it) => {
                self.decide_slots(micros(it.slot), micros(it.slot), 1)?;
                self.waiting.push(micros(it.slot));
                if it.source.is_none() {
                    self.catch_up(it.at)?;
                }
            }
            Event::Dropped(it) => {
                self.stop_waiting(micros(it.slot))?;
                self.superseded += u64::from(it.disposition == Disposition::Superseded);
            }
            Event::BackfillStarted(_) | Event::BackfillMoved(_) => {}
        }
        Ok(())
    }

    pub(super) fn apply_run_event(&mut self, id: &RunId, event: &RunEvent) -> Result<()> {
        match event {
            RunEvent::Queued(queued) => {
                self.add_live_run(id)?;
                let is_manual = matches!(queued.occurrence, Occurrence::Manual { .. });
                ensure!(is_manual || !self.is_paused, "S9: a run is queued during a pause");
                ensure!(!self.is_removed, "S9: a run is queued after the schedule was removed");
                let Occurrence::Slot(fired) = &queued.occurrence else { return Ok(()) };
                let nominal = fired.nominal.as_micros();
                self.fires += 1;
                match fired.origin {
                    Origin::Buffer => self.stop_waiting(nominal)?,
                    Origin::Slot | Origin::CatchUp => {
                        self.decide_slots(nominal, nominal, 1)?;
                        self.catch_up(queued.at)?;
                        self.check_window(nominal, queued.at)?;
                    }
                    Origin::After | Origin::Event => self.decide_slots(nominal, nominal, 1)?,
                    Origin::Manual | Origin::Backfill => {}
                }
                let max = self.definition.terms.max_fires.unwrap_or(u64::MAX);
                let taken = self.fires + self.waiting.len() as u64;
                ensure!(taken <= max, "S1: {taken} runs of {max}");
            }
            RunEvent::Requeued(_) => self.add_live_run(id)?,
            RunEvent::Ended(_) => ensure!(self.live.remove(id), "S5: it was not live"),
            RunEvent::Started(_) | RunEvent::Retried(_) => {}
            RunEvent::CancelRequested(_) | RunEvent::Settled(_) => {}
        }
        Ok(())
    }

    /// Compares with the engine's row after an event.
    pub(super) fn check_progress(&mut self, progress: &Progress) -> Result<()> {
        let decided = progress.decided_until.as_micros();
        ensure!(decided == self.decided, "S3: decided until {decided}, counted {}", self.decided);
        let Some(next) = progress.next_fire.slot.map(Timestamp::as_micros) else { return Ok(()) };
        ensure!(decided < next, "S3: the next slot {next} is not after the decided {decided}");
        let before = self.next.replace(next);
        // A schedule that repeats after its own runs gets a new next slot with each run.
        let is_timed = self.walker.is_some();
        let has_grown = before.is_none_or(|before| before <= next);
        ensure!(!is_timed || has_grown, "S3: the next slot goes back from {before:?} to {next}");
        let due = progress.next_fire.due.map(Timestamp::as_micros);
        ensure!(due.is_some_and(|due| next <= due), "S3: {next} is due before its time: {due:?}");
        Ok(())
    }

    /// Compares with the engine's row after a commit.
    pub(super) fn check_committed(&mut self, progress: Option<&Progress>) -> Result<()> {
        let progress = progress.context("it has no progress row")?;
        let live: BTreeSet<RunId> = progress.live.iter().cloned().collect();
        ensure!(live == self.live, "S5: {live:?} are live, and {:?} in the ledger", self.live);
        let waiting: Vec<i64> = progress.waiting.iter().map(|slot| slot.as_micros()).collect();
        ensure!(
            waiting == self.waiting,
            "S1: {waiting:?} wait, and {:?} in the ledger",
            self.waiting
        );
        let next = progress.next_fire.slot.map(Timestamp::as_micros);
        let is_used_up = self.is_used_up();
        let Some(walker) = self.walker.as_mut().filter(|_| !self.is_removed) else { return Ok(()) };
        let limit = next.unwrap_or(i64::MAX);
        let expected = if is_used_up { None } else { walker.peek(limit) };
        ensure!(next == expected, "S1: the next slot is {next:?}, expected {expected:?}");
        Ok(())
    }

    /// Records the preview that was shown when this revision was made.
    pub(super) fn record_preview(&mut self, preview: Vec<i64>) -> Result<()> {
        self.preview = Some(preview);
        self.check_preview()
    }

    pub(super) fn is_timed(&self) -> bool {
        self.walker.is_some()
    }

    /// The slots that a preview must show. For a paused schedule: those after a resume now.
    pub(super) fn upcoming(&self, now_us: i64) -> Option<Vec<i64>> {
        let taken = self.fires + self.waiting.len() as u64;
        let left =
            self.definition.terms.max_fires.map_or(u64::MAX, |max| max.saturating_sub(taken));
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(PREVIEW);
        let walker = self.walker.as_ref()?;
        // A slot that jitter delays is still to come, and the walker does not know jitter.
        let is_known = !self.is_paused || self.definition.terms.jitter.is_none();
        let resumed = SlotWalker::new(&self.definition, self.decided.max(now_us));
        let resumed = resumed.ok().flatten().filter(|_| self.is_paused);
        is_known.then(|| resumed.as_ref().unwrap_or(walker).upcoming(count, i64::MAX))
    }

    fn add_live_run(&mut self, id: &RunId) -> Result<()> {
        let max = self.definition.terms.overlap.live_max();
        let live = self.live.len();
        ensure!(live < max, "S5: a run is queued while {live} of at most {max} are live");
        ensure!(self.live.insert(id.clone()), "S5: it is live already");
        Ok(())
    }

    fn decide_slots(&mut self, first: i64, last: i64, count: u64) -> Result<()> {
        let before = self.decided;
        match &mut self.walker {
            Some(walker) => {
                let missing = PREVIEW.saturating_sub(self.decided_slots.len());
                self.decided_slots.extend(walker.upcoming(missing, last));
                walker.take(first, last, count).context("S1")?;
            }
            None => ensure!(
                before < first && first == last && count == 1,
                "S1: {first} to {last} is not one slot after {before}"
            ),
        }
        self.decided = before.max(last);
        self.check_preview()
    }

    fn check_preview(&self) -> Result<()> {
        let Some(preview) = &self.preview else { return Ok(()) };
        let is_same =
            preview.iter().zip(&self.decided_slots).all(|(shown, decided)| shown == decided);
        ensure!(is_same, "S14: {preview:?} was shown, and {:?} was decided", self.decided_slots);
        Ok(())
    }

    fn stop_waiting(&mut self, slot: i64) -> Result<()> {
        let index = self.waiting.iter().position(|waiting| *waiting == slot);
        let index = index.with_context(|| format!("S1: {slot} was not waiting"))?;
        self.waiting.remove(index);
        Ok(())
    }

    /// Counts a slot that fires or waits after downtime, and checks the limit of the `missed` term.
    fn catch_up(&mut self, at: Timestamp) -> Result<()> {
        if self.caught_up.0 != at {
            self.caught_up = (at, 0);
        }
        self.caught_up.1 += 1;
        let most = match self.definition.terms.missed {
            Missed::Latest | Missed::Skip => 1,
            Missed::Earliest => 2,
            Missed::All(max) => u64::from(max) + 1,
        };
        ensure!(self.caught_up.1 <= most, "S7: more than {most} slots are caught up at once");
        Ok(())
    }

    /// Checks that no slot fires that is older than the window.
    fn check_window(&self, nominal: i64, at: Timestamp) -> Result<()> {
        let terms = &self.definition.terms;
        let Some(window) = terms.window else { return Ok(()) };
        let jitter_us = terms.jitter.map_or(0, |jitter| jitter.as_micros());
        let late_us = at.as_micros() - nominal - jitter_us;
        ensure!(
            late_us <= window.as_micros(),
            "S7: {nominal} is {late_us} µs late, window {window}"
        );
        Ok(())
    }

    fn is_used_up(&self) -> bool {
        let taken = self.fires + self.waiting.len() as u64 + self.superseded;
        self.definition.terms.max_fires.is_some_and(|max| max <= taken)
    }

    /// Checks that every past slot is decided before the definition changes.
    fn check_no_slot_lost(&mut self, at: Timestamp) -> Result<()> {
        let is_used_up = self.is_used_up();
        self.superseded = 0;
        if is_used_up {
            return Ok(());
        }
        let left = self.walker.as_mut().and_then(|walker| walker.peek(at.as_micros()));
        ensure!(left.is_none(), "S1: the slot {left:?} is lost with the definition");
        Ok(())
    }
}
