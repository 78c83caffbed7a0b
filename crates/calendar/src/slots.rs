//! From wall times to instants: the rules of daylight saving, applied to one stretch of constant
//! offset at a time.
//!
//! Within a stretch a wall time is an instant by subtraction, so a stretch has two windows of wall
//! times: those its clock shows, less one pass of a fold, and those its clock skipped at its start.
//! Both sides of the search remember how far they have looked, so a rare date is searched once and
//! not once per stretch.

use std::ops::Range;

use crate::pattern::{Walls, count, first_from, last_until};
use crate::trigger::{Dst, Fold, Gap};
use crate::zone::{Stretch, Zone};

/// A longer gap is a correction of the zone and not daylight saving.
const GAP_S_MAX: i64 = 3 * 3600;

/// The slots of some wall times in a zone, in seconds since 1970.
pub(crate) struct Slots<'a> {
    pub(crate) walls: Walls<'a>,
    pub(crate) zone: &'a Zone,
    pub(crate) rules: Rules,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Rules {
    gap: Gap,
    fold: Fold,
}

impl Rules {
    pub(crate) fn fixed_time(dst: Dst) -> Rules {
        Rules { gap: dst.gap.unwrap_or(Gap::RunAfter), fold: dst.fold.unwrap_or(Fold::First) }
    }

    pub(crate) fn interval_like(dst: Dst) -> Rules {
        Rules { gap: dst.gap.unwrap_or(Gap::Skip), fold: dst.fold.unwrap_or(Fold::Both) }
    }

    /// The wall times that a stretch shows and that count.
    fn shown(self, stretch: &Stretch) -> Range<i64> {
        let Stretch { start_s, end_s, offset_s, offset_before_s, offset_after_s } = *stretch;
        let start_s = match self.fold {
            Fold::First => (start_s + offset_s).max(start_s + offset_before_s),
            Fold::Second | Fold::Both => start_s + offset_s,
        };
        let end_s = match self.fold {
            Fold::Second => (end_s + offset_s).min(end_s + offset_after_s),
            Fold::First | Fold::Both => end_s + offset_s,
        };
        start_s..end_s
    }

    /// The wall times that the clock skipped when a stretch began, if they are made up for.
    fn skipped(self, stretch: &Stretch) -> Range<i64> {
        let gap = stretch.start_s + stretch.offset_before_s..stretch.start_s + stretch.offset_s;
        match self.gap {
            Gap::RunAfter | Gap::Shift if gap.end - gap.start <= GAP_S_MAX => gap,
            Gap::RunAfter | Gap::Shift | Gap::Skip => 0..0,
        }
    }
}

impl Slots<'_> {
    /// The first slot at or after a second.
    pub(crate) fn first_from(&self, from_s: i64) -> Option<i64> {
        let mut ahead = Ahead { walls: &self.walls, from_s: i64::MAX, first_s: i64::MIN };
        let stretches = self.zone.index_at(from_s)..self.zone.stretches();
        stretches.map(|index| self.zone.stretch(index)).find_map(|stretch| {
            let made_up = self.first_made_up(&stretch, from_s, &mut ahead);
            if made_up == Some(stretch.start_s) {
                return made_up;
            }
            let mut shown = self.rules.shown(&stretch);
            shown.start = shown.start.max(from_s + stretch.offset_s);
            let shown = ahead.first_in(shown).map(|wall_s| wall_s - stretch.offset_s);
            made_up.into_iter().chain(shown).min()
        })
    }

    /// The last slot at or before a second.
    pub(crate) fn last_until(&self, until_s: i64) -> Option<i64> {
        let mut behind = Behind { walls: &self.walls, until_s: i64::MIN, last_s: i64::MAX };
        let stretches = (0..=self.zone.index_at(until_s)).rev();
        stretches.map(|index| self.zone.stretch(index)).find_map(|stretch| {
            let mut shown = self.rules.shown(&stretch);
            shown.end = shown.end.min(until_s + stretch.offset_s + 1);
            let shown = behind.last_in(shown).map(|wall_s| wall_s - stretch.offset_s);
            shown.max(self.last_made_up(&stretch, until_s, &mut behind))
        })
    }

    /// How many slots there are from a second to before another.
    pub(crate) fn count(&self, from_s: i64, end_s: i64) -> u64 {
        if end_s <= from_s {
            return 0;
        }
        let stretches = self.zone.index_at(from_s)..=self.zone.index_at(end_s - 1);
        stretches.map(|index| self.count_in(&self.zone.stretch(index), from_s, end_s)).sum()
    }

    fn first_made_up(&self, stretch: &Stretch, from_s: i64, ahead: &mut Ahead<'_>) -> Option<i64> {
        let mut skipped = self.rules.skipped(stretch);
        if self.rules.gap == Gap::RunAfter {
            let skipped = if from_s <= stretch.start_s { skipped } else { 0..0 };
            return ahead.first_in(skipped).map(|_| stretch.start_s);
        }
        skipped.start = skipped.start.max(from_s + stretch.offset_before_s);
        skipped.end = skipped.end.min(stretch.end_s + stretch.offset_before_s);
        ahead.first_in(skipped).map(|wall_s| wall_s - stretch.offset_before_s)
    }

    fn last_made_up(
        &self,
        stretch: &Stretch,
        until_s: i64,
        behind: &mut Behind<'_>,
    ) -> Option<i64> {
        let mut skipped = self.rules.skipped(stretch);
        if self.rules.gap == Gap::RunAfter {
            return behind.last_in(skipped).map(|_| stretch.start_s);
        }
        skipped.end = skipped.end.min(until_s + stretch.offset_before_s + 1);
        skipped.end = skipped.end.min(stretch.end_s + stretch.offset_before_s);
        behind.last_in(skipped).map(|wall_s| wall_s - stretch.offset_before_s)
    }

    /// One by one where something may be made up, and by arithmetic after that.
    fn count_in(&self, stretch: &Stretch, from_s: i64, end_s: i64) -> u64 {
        let skipped = self.rules.skipped(stretch);
        let from_s = from_s.max(stretch.start_s);
        let end_s = end_s.min(stretch.end_s);
        let plain_s = from_s.max(stretch.start_s + (skipped.end - skipped.start).max(0)).min(end_s);
        let mut walked = 0_u64;
        let mut at_s = from_s;
        while at_s < plain_s
            && let Some(slot_s) = self.first_from(at_s).filter(|slot_s| *slot_s < plain_s)
        {
            walked += 1;
            at_s = slot_s + 1;
        }
        let shown = self.rules.shown(stretch);
        let start_s = shown.start.max(plain_s + stretch.offset_s);
        let end_s = shown.end.min(end_s + stretch.offset_s);
        walked + if start_s < end_s { count(&self.walls, start_s, end_s) } else { 0 }
    }
}

/// Looks for the first match, and remembers that there is none from `from_s` to before `first_s`.
struct Ahead<'a> {
    walls: &'a Walls<'a>,
    from_s: i64,
    first_s: i64,
}

impl Ahead<'_> {
    fn first_in(&mut self, wall: Range<i64>) -> Option<i64> {
        if wall.is_empty() {
            return None;
        }
        if wall.start < self.from_s || self.first_s < wall.start {
            self.from_s = wall.start;
            self.first_s = first_from(self.walls, wall.start).unwrap_or(i64::MAX);
        }
        Some(self.first_s).filter(|first_s| *first_s < wall.end)
    }
}

/// Looks for the last match, and remembers that there is none after `last_s` up to `until_s`.
struct Behind<'a> {
    walls: &'a Walls<'a>,
    until_s: i64,
    last_s: i64,
}

impl Behind<'_> {
    fn last_in(&mut self, wall: Range<i64>) -> Option<i64> {
        if wall.is_empty() {
            return None;
        }
        let until_s = wall.end - 1;
        if self.until_s < until_s || until_s < self.last_s {
            self.until_s = until_s;
            self.last_s = last_until(self.walls, until_s).unwrap_or(i64::MIN);
        }
        Some(self.last_s).filter(|last_s| wall.start <= *last_s)
    }
}
