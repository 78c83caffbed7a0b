//! Converts wall times to slots: applies the daylight-saving rules to one period of constant offset
//! at a time.
//!
//! Within a period, an instant is the wall time minus the offset. So a period has two ranges of wall
//! times: those its clock shows (without one pass of a fold, if the rules say so), and those its
//! clock skipped at its start. A search caches its last result, so a rare date is searched once and
//! not once per period.

use std::ops::Range;

use crate::pattern::{
    WallPattern, count_matches, first_match_at_or_after, last_match_at_or_before,
};
use crate::trigger::{Dst, Fold, Gap};
use crate::zone::{OffsetPeriod, Zone};

/// A longer gap is a correction of the zone, not daylight saving.
const GAP_S_MAX: i64 = 3 * 3600;

/// The slots of a wall-time pattern in a zone, in seconds since 1970.
pub(crate) struct WallSlots<'a> {
    pub(crate) pattern: WallPattern<'a>,
    pub(crate) zone: &'a Zone,
    pub(crate) rules: DstRules,
}

/// [`Dst`] with its defaults filled in.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DstRules {
    gap: Gap,
    fold: Fold,
}

impl DstRules {
    pub(crate) fn fixed_time(dst: Dst) -> DstRules {
        DstRules { gap: dst.gap.unwrap_or(Gap::RunAfter), fold: dst.fold.unwrap_or(Fold::First) }
    }

    pub(crate) fn interval_like(dst: Dst) -> DstRules {
        DstRules { gap: dst.gap.unwrap_or(Gap::Skip), fold: dst.fold.unwrap_or(Fold::Both) }
    }

    /// The wall times that the clock shows in a period, without those that the fold rule drops.
    fn shown(self, period: &OffsetPeriod) -> Range<i64> {
        let OffsetPeriod { start_s, end_s, offset_s, offset_before_s, offset_after_s } = *period;
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

    /// The wall times that the clock skipped at the start of a period; empty if the gap rule skips
    /// them too.
    fn skipped(self, period: &OffsetPeriod) -> Range<i64> {
        let gap = period.start_s + period.offset_before_s..period.start_s + period.offset_s;
        match self.gap {
            Gap::RunAfter | Gap::Shift if gap.end - gap.start <= GAP_S_MAX => gap,
            Gap::RunAfter | Gap::Shift | Gap::Skip => 0..0,
        }
    }
}

impl WallSlots<'_> {
    /// The first slot at or after a second.
    pub(crate) fn first_at_or_after(&self, from_s: i64) -> Option<i64> {
        let mut search =
            ForwardSearch { pattern: &self.pattern, from_s: i64::MAX, first_s: i64::MIN };
        let periods = self.zone.period_index_at(from_s)..self.zone.period_count();
        periods.map(|index| self.zone.period(index)).find_map(|period| {
            let from_gap = self.first_gap_slot(&period, from_s, &mut search);
            if from_gap == Some(period.start_s) {
                return from_gap;
            }
            let mut shown = self.rules.shown(&period);
            shown.start = shown.start.max(from_s + period.offset_s);
            let shown = search.first_in(shown).map(|wall_s| wall_s - period.offset_s);
            from_gap.into_iter().chain(shown).min()
        })
    }

    /// The last slot at or before a second.
    pub(crate) fn last_at_or_before(&self, until_s: i64) -> Option<i64> {
        let mut search =
            BackwardSearch { pattern: &self.pattern, until_s: i64::MIN, last_s: i64::MAX };
        let periods = (0..=self.zone.period_index_at(until_s)).rev();
        periods.map(|index| self.zone.period(index)).find_map(|period| {
            let mut shown = self.rules.shown(&period);
            shown.end = shown.end.min(until_s + period.offset_s + 1);
            let shown = search.last_in(shown).map(|wall_s| wall_s - period.offset_s);
            shown.max(self.last_gap_slot(&period, until_s, &mut search))
        })
    }

    /// The number of slots from `from_s` to before `end_s`.
    pub(crate) fn count(&self, from_s: i64, end_s: i64) -> u64 {
        if end_s <= from_s {
            return 0;
        }
        let periods = self.zone.period_index_at(from_s)..=self.zone.period_index_at(end_s - 1);
        periods.map(|index| self.count_in_period(&self.zone.period(index), from_s, end_s)).sum()
    }

    fn first_gap_slot(
        &self,
        period: &OffsetPeriod,
        from_s: i64,
        search: &mut ForwardSearch<'_>,
    ) -> Option<i64> {
        let mut skipped = self.rules.skipped(period);
        if self.rules.gap == Gap::RunAfter {
            let skipped = if from_s <= period.start_s { skipped } else { 0..0 };
            return search.first_in(skipped).map(|_| period.start_s);
        }
        skipped.start = skipped.start.max(from_s + period.offset_before_s);
        skipped.end = skipped.end.min(period.end_s + period.offset_before_s);
        search.first_in(skipped).map(|wall_s| wall_s - period.offset_before_s)
    }

    fn last_gap_slot(
        &self,
        period: &OffsetPeriod,
        until_s: i64,
        search: &mut BackwardSearch<'_>,
    ) -> Option<i64> {
        let mut skipped = self.rules.skipped(period);
        if self.rules.gap == Gap::RunAfter {
            return search.last_in(skipped).map(|_| period.start_s);
        }
        skipped.end = skipped.end.min(until_s + period.offset_before_s + 1);
        skipped.end = skipped.end.min(period.end_s + period.offset_before_s);
        search.last_in(skipped).map(|wall_s| wall_s - period.offset_before_s)
    }

    /// Iterates over the slots that the gap may have moved, and computes the number of the others.
    fn count_in_period(&self, period: &OffsetPeriod, from_s: i64, end_s: i64) -> u64 {
        let skipped = self.rules.skipped(period);
        let from_s = from_s.max(period.start_s);
        let end_s = end_s.min(period.end_s);
        let after_gap_s =
            from_s.max(period.start_s + (skipped.end - skipped.start).max(0)).min(end_s);
        let mut gap_slots = 0_u64;
        let mut at_s = from_s;
        while at_s < after_gap_s
            && let Some(slot_s) =
                self.first_at_or_after(at_s).filter(|slot_s| *slot_s < after_gap_s)
        {
            gap_slots += 1;
            at_s = slot_s + 1;
        }
        let shown = self.rules.shown(period);
        let start_s = shown.start.max(after_gap_s + period.offset_s);
        let end_s = shown.end.min(end_s + period.offset_s);
        gap_slots + if start_s < end_s { count_matches(&self.pattern, start_s, end_s) } else { 0 }
    }
}

/// Finds the first match. Cache: nothing matches from `from_s` to before `first_s`.
struct ForwardSearch<'a> {
    pattern: &'a WallPattern<'a>,
    from_s: i64,
    first_s: i64,
}

impl ForwardSearch<'_> {
    fn first_in(&mut self, wall: Range<i64>) -> Option<i64> {
        if wall.is_empty() {
            return None;
        }
        if wall.start < self.from_s || self.first_s < wall.start {
            self.from_s = wall.start;
            self.first_s = first_match_at_or_after(self.pattern, wall.start).unwrap_or(i64::MAX);
        }
        Some(self.first_s).filter(|first_s| *first_s < wall.end)
    }
}

/// Finds the last match. Cache: nothing matches after `last_s` up to `until_s`.
struct BackwardSearch<'a> {
    pattern: &'a WallPattern<'a>,
    until_s: i64,
    last_s: i64,
}

impl BackwardSearch<'_> {
    fn last_in(&mut self, wall: Range<i64>) -> Option<i64> {
        if wall.is_empty() {
            return None;
        }
        let until_s = wall.end - 1;
        if self.until_s < until_s || until_s < self.last_s {
            self.until_s = until_s;
            self.last_s = last_match_at_or_before(self.pattern, until_s).unwrap_or(i64::MIN);
        }
        Some(self.last_s).filter(|last_s| wall.start <= *last_s)
    }
}
