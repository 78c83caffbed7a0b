//! A trigger in a zone: the one place that answers which instants it asks for.

use crate::civil::SECOND_US;
use crate::daily::Daily;
use crate::pattern::Walls;
use crate::slots::{Rules, Slots};
use crate::trigger::InvalidTrigger;
use crate::{END_US, Trigger, WallTime, Zone};

/// A trigger that was checked, and its zone. Instants are microseconds since 1970 in UTC.
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

    /// In words.
    pub fn describe(&self) -> String {
        self.trigger.describe(&self.zone)
    }

    /// What clocks in the zone show at an instant.
    pub fn wall_time(&self, at_us: i64) -> WallTime {
        self.zone.wall_time(at_us)
    }

    /// The first slot after an instant. Slots are strictly increasing.
    pub fn next_after(&self, after_us: i64) -> Option<i64> {
        match self.source() {
            Source::Once(at_us) => Some(at_us).filter(|at_us| after_us < *at_us),
            Source::Interval(interval) => interval.next_after(after_us),
            Source::Walls(slots) => {
                slots.first_from(after_us.div_euclid(SECOND_US) + 1).map(micros)
            }
        }
    }

    /// All slots after an instant, in order.
    pub fn slots_after(&self, after_us: i64) -> impl Iterator<Item = i64> {
        std::iter::successors(self.next_after(after_us), |slot_us| self.next_after(*slot_us))
    }

    /// The last slot at or before an instant.
    pub fn last_until(&self, until_us: i64) -> Option<i64> {
        match self.source() {
            Source::Once(at_us) => Some(at_us).filter(|at_us| *at_us <= until_us),
            Source::Interval(interval) => interval.last_until(until_us),
            Source::Walls(slots) => slots.last_until(until_us.div_euclid(SECOND_US)).map(micros),
        }
    }

    /// How many slots there are after an instant, up to and with another. Not by walking them: a
    /// month of seconds costs little more than a day of hours.
    pub fn count(&self, after_us: i64, until_us: i64) -> u64 {
        if until_us <= after_us {
            return 0;
        }
        match self.source() {
            Source::Once(at_us) => u64::from(after_us < at_us && at_us <= until_us),
            Source::Interval(interval) => interval.until(until_us) - interval.until(after_us),
            Source::Walls(slots) => {
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
                let walls = Walls::Daily(Daily { times, weekdays: *weekdays });
                Source::Walls(Slots { walls, zone, rules: Rules::fixed_time(*dst) })
            }
            Trigger::Cron { expression, dst } => {
                let rules = match expression.is_fixed_time() {
                    true => Rules::fixed_time(*dst),
                    false => Rules::interval_like(*dst),
                };
                Source::Walls(Slots { walls: Walls::Cron(expression), zone, rules })
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
    Walls(Slots<'a>),
}

/// The anchor and every so many microseconds after it, to the end of the calendar.
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

    /// How many slots there are up to and with an instant.
    fn until(self, until_us: i64) -> u64 {
        self.last_until(until_us)
            .map_or(0, |last_us| ((last_us - self.anchor_us) / self.every_us) as u64 + 1)
    }
}
