//! One schedule, followed through the log: S1, S3, S5, S7, S9 and S14.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use kernel::progress::Progress;
use kernel::run::{Event as RunEvent, Occurrence, Origin};
use kernel::schedule::terms::Missed;
use kernel::schedule::{Added, Definition, Event};
use kernel::slot::Disposition;
use kernel::{RunId, Timestamp};

use super::super::slow::Walker;

/// Slots that a preview shows.
const PREVIEW: usize = 5;

#[derive(Debug)]
pub(super) struct Track {
    pub(super) definition: Definition,
    pub(super) revision: u32,
    pub(super) added_at: Timestamp,
    /// Where the slots that are decided end, by a slow walk.
    walker: Option<Walker>,
    pub(super) is_paused: bool,
    pub(super) is_removed: bool,
    decided: i64,
    next: Option<i64>,
    fires: u64,
    waiting: Vec<i64>,
    /// Slots that waited and went with their definition: until then they counted among its runs.
    overtaken: u64,
    pub(super) live: BTreeSet<RunId>,
    /// Slots that got a run or wait for one in the decision of an instant.
    caught_up: (Timestamp, u64),
    /// What people were shown of this revision, and what was decided since it came to be.
    preview: Option<Vec<i64>>,
    came: Vec<i64>,
}

impl Track {
    /// One that comes back goes on after what it decided before.
    pub(super) fn new(added: &Added, before: Option<Track>) -> Result<Track> {
        let at = added.at.as_micros();
        let decided = before.as_ref().map_or(at, |before| before.decided.max(at));
        let definition = (*added.definition).clone();
        if let Some(before) = &before {
            ensure!(before.is_removed, "it was added twice");
        }
        Ok(Track {
            walker: Walker::new(&definition, decided)?,
            definition,
            revision: 1,
            added_at: added.at,
            is_paused: false,
            is_removed: false,
            decided,
            next: None,
            fires: 0,
            waiting: Vec::new(),
            overtaken: 0,
            live: before.map(|before| before.live).unwrap_or_default(),
            caught_up: (added.at, 0),
            preview: None,
            came: Vec::new(),
        })
    }

    pub(super) fn happened(&mut self, event: &Event) -> Result<()> {
        let micros = |at: Timestamp| at.as_micros();
        match event {
            Event::Added(_) | Event::Moved(_) => {}
            Event::Paused(_) => self.is_paused = true,
            Event::Resumed(_) => self.is_paused = false,
            Event::Removed(removed) => {
                self.check_nothing_left(removed.at)?;
                self.is_removed = true;
                self.next = None;
                ensure!(self.waiting.is_empty(), "S1: {:?} wait for ever", self.waiting);
            }
            Event::Changed(changed) => {
                self.check_nothing_left(changed.at)?;
                ensure!(self.waiting.is_empty(), "S1: {:?} wait for ever", self.waiting);
                self.definition = (*changed.definition).clone();
                self.decided = self.decided.max(micros(changed.at));
                self.walker = Walker::new(&self.definition, self.decided)?;
                self.revision += 1;
                (self.next, self.preview, self.came) = (None, None, Vec::new());
            }
            Event::Passed(it) => {
                ensure!(1 <= it.count && it.first <= it.last, "S1: a range of nothing");
                self.decide(micros(it.first), micros(it.last), it.count)?;
            }
            Event::Buffered(it) => {
                self.decide(micros(it.slot), micros(it.slot), 1)?;
                self.waiting.push(micros(it.slot));
                if it.source.is_none() {
                    self.catch_up(it.at)?;
                }
            }
            Event::Dropped(it) => {
                self.stop_waiting(micros(it.slot))?;
                self.overtaken += u64::from(it.disposition == Disposition::Superseded);
            }
            Event::BackfillBegun(_) | Event::BackfillMoved(_) => {}
        }
        Ok(())
    }

    pub(super) fn run_happened(&mut self, id: &RunId, event: &RunEvent) -> Result<()> {
        match event {
            RunEvent::Queued(queued) => {
                self.begin(id)?;
                let is_asked_for = matches!(queued.occurrence, Occurrence::Manual { .. });
                ensure!(is_asked_for || !self.is_paused, "S9: a run is made in a pause");
                ensure!(!self.is_removed, "S9: a run is made after the schedule was removed");
                let Occurrence::Slot(fired) = &queued.occurrence else { return Ok(()) };
                let nominal = fired.nominal.as_micros();
                self.fires += 1;
                match fired.origin {
                    Origin::Buffer => self.stop_waiting(nominal)?,
                    Origin::Slot | Origin::CatchUp => {
                        self.decide(nominal, nominal, 1)?;
                        self.catch_up(queued.at)?;
                        self.check_window(nominal, queued.at)?;
                    }
                    Origin::After | Origin::Event => self.decide(nominal, nominal, 1)?,
                    Origin::Manual | Origin::Backfill => {}
                }
                let max = self.definition.terms.max_fires.unwrap_or(u64::MAX);
                let taken = self.fires + self.waiting.len() as u64;
                ensure!(taken <= max, "S1: {taken} runs of {max}");
            }
            RunEvent::Requeued(_) => self.begin(id)?,
            RunEvent::Ended(_) => ensure!(self.live.remove(id), "S5: it was not live"),
            RunEvent::Started(_) | RunEvent::Retried(_) => {}
            RunEvent::CancelAsked(_) | RunEvent::Settled(_) => {}
        }
        Ok(())
    }

    /// What the watch itself says after an event.
    pub(super) fn check_progress(&mut self, progress: &Progress) -> Result<()> {
        let decided = progress.decided_until.as_micros();
        ensure!(decided == self.decided, "S3: decided until {decided}, counted {}", self.decided);
        let Some(next) = progress.ahead.next.map(Timestamp::as_micros) else { return Ok(()) };
        ensure!(
            decided < next,
            "S3: the next slot {next} is not after {decided}, which is decided"
        );
        let before = self.next.replace(next);
        // One that goes by its own runs has its next slot anew with each of them.
        let is_timed = self.walker.is_some();
        let has_grown = before.is_none_or(|before| before <= next);
        ensure!(!is_timed || has_grown, "S3: the next slot goes back from {before:?} to {next}");
        let due = progress.ahead.due.map(Timestamp::as_micros);
        ensure!(due.is_some_and(|due| next <= due), "S3: {next} is due before its time: {due:?}");
        Ok(())
    }

    /// What the watch itself says at the end of a commit.
    pub(super) fn check_now(&mut self, progress: Option<&Progress>) -> Result<()> {
        let progress = progress.context("it has no row")?;
        let live: BTreeSet<RunId> = progress.live.iter().cloned().collect();
        ensure!(live == self.live, "S5: {live:?} are live, and {:?} by the log", self.live);
        let waiting: Vec<i64> = progress.waiting.iter().map(|slot| slot.as_micros()).collect();
        ensure!(waiting == self.waiting, "S1: {waiting:?} wait, and {:?} by the log", self.waiting);
        let next = progress.ahead.next.map(Timestamp::as_micros);
        let is_used_up = self.is_used_up();
        let Some(walker) = self.walker.as_mut().filter(|_| !self.is_removed) else { return Ok(()) };
        let limit = next.unwrap_or(i64::MAX);
        let expected = if is_used_up { None } else { walker.peek(limit) };
        ensure!(next == expected, "S1: the next slot is {next:?}, and {expected:?} by a slow walk");
        Ok(())
    }

    /// People were shown what comes next, when the schedule came to be as it is.
    pub(super) fn shown(&mut self, preview: Vec<i64>) -> Result<()> {
        self.preview = Some(preview);
        self.check_preview()
    }

    pub(super) fn is_timed(&self) -> bool {
        self.walker.is_some()
    }

    /// What comes next by a slow walk, as many as a preview shows; of one that is paused, if it were resumed now.
    pub(super) fn upcoming(&self, now_us: i64) -> Option<Vec<i64>> {
        let taken = self.fires + self.waiting.len() as u64;
        let left =
            self.definition.terms.max_fires.map_or(u64::MAX, |max| max.saturating_sub(taken));
        let count = usize::try_from(left).unwrap_or(usize::MAX).min(PREVIEW);
        let walker = self.walker.as_ref()?;
        // What a jitter keeps back is still to come, and a walk knows nothing of that.
        let is_known = !self.is_paused || self.definition.terms.jitter.is_none();
        let resumed = Walker::new(&self.definition, self.decided.max(now_us));
        let resumed = resumed.ok().flatten().filter(|_| self.is_paused);
        is_known.then(|| resumed.as_ref().unwrap_or(walker).upcoming(count, i64::MAX))
    }

    fn begin(&mut self, id: &RunId) -> Result<()> {
        let most = self.definition.terms.overlap.live_max();
        let live = self.live.len();
        ensure!(live < most, "S5: a run begins beside {live} live ones, and {most} may be");
        ensure!(self.live.insert(id.clone()), "S5: it is live already");
        Ok(())
    }

    fn decide(&mut self, first: i64, last: i64, count: u64) -> Result<()> {
        let before = self.decided;
        match &mut self.walker {
            Some(walker) => {
                let known = self.came.len();
                let fresh = walker.upcoming(PREVIEW.saturating_sub(known), last);
                self.came.extend(fresh);
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
        let is_same = preview.iter().zip(&self.came).all(|(shown, came)| shown == came);
        ensure!(is_same, "S14: {preview:?} was shown, and {:?} came", self.came);
        Ok(())
    }

    fn stop_waiting(&mut self, slot: i64) -> Result<()> {
        let place = self.waiting.iter().position(|waiting| *waiting == slot);
        let place = place.with_context(|| format!("S1: {slot} did not wait"))?;
        self.waiting.remove(place);
        Ok(())
    }

    /// After any time without a watch, so many run or wait and no more.
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

    /// Nothing is caught up that is older than the window.
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
        let taken = self.fires + self.waiting.len() as u64 + self.overtaken;
        self.definition.terms.max_fires.is_some_and(|max| max <= taken)
    }

    /// Slots of the past are decided before the definition goes.
    fn check_nothing_left(&mut self, at: Timestamp) -> Result<()> {
        let is_used_up = self.is_used_up();
        self.overtaken = 0;
        if is_used_up {
            return Ok(());
        }
        let left = self.walker.as_mut().and_then(|walker| walker.peek(at.as_micros()));
        ensure!(left.is_none(), "S1: the slot of {left:?} is lost with the definition");
        Ok(())
    }
}
