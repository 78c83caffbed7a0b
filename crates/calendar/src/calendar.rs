//! The slots of a trigger in a zone.

use crate::civil::SECOND_US;
use crate::daily::Daily;
use crate::pattern::WallPattern;
use crate::slots::{DstRules, WallSlots};
use crate::trigger::InvalidTrigger;
use crate::{END_US, Trigger, WallTime, Zone};

/// A valid trigger and its zone. Instants are microseconds since 1970 in UTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Calendar {
    trigger: Trigger,
    zone: Zone,
}

impl Calendar {
    pub fn new(trigger: Trigger, zone: Zone) -> Result<Calendar, InvalidTrigger> {
        trigger.check()?;
        Ok(Calendar { trigger, zone })
    }

    pub fn trigger(&self) -> &Trigger {
        &self.trigger
    }

    pub fn zone(&self) -> &Zone {
        &self.zone
    }

    /// The trigger as an English phrase.
    pub fn describe(&self) -> String {
        self.trigger.describe(&self.zone)
    }

    /// The wall time in the zone at an instant.
    pub fn wall_time(&self, at_us: i64) -> WallTime {
        self.zone.wall_time(at_us)
    }

    /// The first slot after an instant. Slots are strictly increasing.
    pub fn next_after(&self, after_us: i64) -> Option<i64> {
        match self.source() {
            Source::Once(at_us) => Some(at_us).filter(|at_us| after_us < *at_us),
            Source::Interval(interval) => interval.next_after(after_us),
            Source::Wall(slots) => {
                slots.first_at_or_after(after_us.div_euclid(SECOND_US) + 1).map(micros)
            }
        }
    }

    /// All slots after an instant, in order.
    pub fn slots_after(&self, after_us: i64) -> impl Iterator<Item = i64> {
        std::iter::successors(self.next_after(after_us), |slot_us| self.next_after(*slot_us))
    }

    /// The last slot at or before an instant.
    pub fn last_at_or_before(&self, until_us: i64) -> Option<i64> {
        match self.source() {
            Source::Once(at_us) => Some(at_us).filter(|at_us| *at_us <= until_us),
            Source::Interval(interval) => interval.last_until(until_us),
            Source::Wall(slots) => {
                slots.last_at_or_before(until_us.div_euclid(SECOND_US)).map(micros)
            }
        }
    }

    /// The number of slots after `after_us`, up to and including `until_us`. Computed, not iterated: a
    /// month of seconds costs little more than a day of hours.
    pub fn count_slots(&self, after_us: i64, until_us: i64) -> u64 {
        if until_us <= after_us {
            return 0;
        }
        match self.source() {
            Source::Once(at_us) => u64::from(after_us < at_us && at_us <= until_us),
            Source::Interval(interval) => {
                interval.count_until(until_us) - interval.count_until(after_us)
            }
            Source::Wall(slots) => {
                let [from_s, end_s] = [after_us, until_us].map(|us| us.div_euclid(SECOND_US) + 1);
                slots.count(from_s, end_s)
            }
        }
    }

    fn source(&self) -> Source<'_> {
        let zone = &self.zone;
        match &self.trigger {
            Trigger::Once { at_us } => Source::Once(*at_us),
            Trigger::Interval { every, anchor_us } => {
                Source::Interval(Interval { every_us: every.as_micros(), anchor_us: *anchor_us })
            }
            Trigger::Daily { times, weekdays, dst } => {
                let pattern = WallPattern::Daily(Daily { times, weekdays: *weekdays });
                Source::Wall(WallSlots { pattern, zone, rules: DstRules::fixed_time(*dst) })
            }
            Trigger::Cron { expression, dst } => {
                let rules = match expression.is_fixed_time() {
                    true => DstRules::fixed_time(*dst),
                    false => DstRules::interval_like(*dst),
                };
                Source::Wall(WallSlots { pattern: WallPattern::Cron(expression), zone, rules })
            }
        }
    }
}

fn micros(second: i64) -> i64 {
    second * SECOND_US
}

enum Source<'a> {
    Once(i64),
    Interval(Interval),
    Wall(WallSlots<'a>),
}

/// Slots at the anchor and every `every_us` after it, to the end of the calendar.
#[derive(Clone, Copy)]
struct Interval {
    every_us: i64,
    anchor_us: i64,
}

impl Interval {
    fn next_after(self, after_us: i64) -> Option<i64> {
        if after_us < self.anchor_us {
            return Some(self.anchor_us);
        }
        let steps = (after_us.min(END_US) - self.anchor_us) / self.every_us + 1;
        Some(self.anchor_us + steps * self.every_us).filter(|at_us| *at_us <= END_US)
    }

    fn last_until(self, until_us: i64) -> Option<i64> {
        let until_us = until_us.clamp(self.anchor_us - 1, END_US);
        let steps = (until_us - self.anchor_us).div_euclid(self.every_us);
        (0 <= steps).then(|| self.anchor_us + steps * self.every_us)
    }

    /// The number of slots up to and including an instant.
    fn count_until(self, until_us: i64) -> u64 {
        self.last_until(until_us)
            .map_or(0, |last_us| ((last_us - self.anchor_us) / self.every_us) as u64 + 1)
    }
}
