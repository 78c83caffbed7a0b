//! The stored form of a timed trigger. Its serde names are a format: stored events contain triggers.

use serde::{Deserialize, Serialize};

use crate::daily::Daily;
use crate::hint::display_with_hint;
use crate::{Cron, END_US, Hint, START_US, Span, Times, Weekdays, Zone, format_instant};

/// The shortest interval between slots.
pub const EVERY_MIN: Span = Span::from_seconds(1);

/// When a schedule is due. [`crate::Calendar`] evaluates it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Trigger {
    /// One instant.
    Once { at_us: i64 },
    /// At `anchor_us`, and every `every` after it. In UTC, so daylight saving has no effect.
    Interval { every: Span, anchor_us: i64 },
    /// Times of day on weekdays, in the schedule's zone.
    Daily {
        times: Times,
        #[serde(default)]
        weekdays: Weekdays,
        #[serde(default, skip_serializing_if = "Dst::is_default")]
        dst: Dst,
    },
    /// A cron expression, in the schedule's zone.
    Cron {
        expression: Cron,
        #[serde(default, skip_serializing_if = "Dst::is_default")]
        dst: Dst,
    },
}

impl Trigger {
    /// Whether it names fixed wall times rather than distances between slots.
    pub fn is_fixed_time(&self) -> bool {
        match self {
            Trigger::Once { .. } | Trigger::Interval { .. } => false,
            Trigger::Daily { .. } => true,
            Trigger::Cron { expression, .. } => expression.is_fixed_time(),
        }
    }
}

/// What to do when the clock jumps. By default, fixed times run once: after a gap, or in the first
/// pass of a fold. Expressions with a star in a time field follow elapsed time: nothing runs for a
/// gap, and both passes of a fold run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dst {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gap: Option<Gap>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fold: Option<Fold>,
}

/// What runs for wall times that the clock skips, in a gap of at most three hours. A longer gap is
/// a correction of the zone, and nothing runs for it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Gap {
    /// Once, at the first instant after the gap.
    RunAfter,
    Skip,
    /// Each skipped wall time runs later by the length of the gap.
    Shift,
}

/// In which pass a wall time runs that the clock shows twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fold {
    First,
    Second,
    Both,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum InvalidTrigger {
    TooOften(Span),
    OutOfRange(i64),
}

display_with_hint!(InvalidTrigger);

impl Hint for InvalidTrigger {
    fn reason(&self) -> String {
        match self {
            InvalidTrigger::TooOften(every) => format!("an interval of {every} is too short"),
            InvalidTrigger::OutOfRange(at_us) => {
                format!("the timestamp {at_us} µs is out of range")
            }
        }
    }

    fn hint(&self) -> String {
        match self {
            InvalidTrigger::TooOften(_) => format!("the shortest is {EVERY_MIN}"),
            InvalidTrigger::OutOfRange(_) => "timestamps are from 1970 to 2199".to_owned(),
        }
    }
}

impl Trigger {
    /// An English phrase; instants as wall times in `zone`.
    pub fn describe(&self, zone: &Zone) -> String {
        match self {
            Trigger::Once { at_us } => format!("once at {}", zone.wall_time(*at_us)),
            Trigger::Interval { every, anchor_us } => {
                let every = every.describe();
                // `every hour`, but `every 1 hour and 30 minutes`.
                let every =
                    every.strip_prefix("1 ").filter(|unit| !unit.contains(' ')).unwrap_or(&every);
                match *anchor_us {
                    START_US => format!("every {every}"),
                    anchor_us => format!("every {every} from {}", format_instant(anchor_us)),
                }
            }
            Trigger::Daily { times, weekdays, .. } => {
                Daily { times, weekdays: *weekdays }.describe()
            }
            Trigger::Cron { expression, .. } => expression.describe(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), InvalidTrigger> {
        let instant = match self {
            Trigger::Interval { every, .. } if *every < EVERY_MIN => {
                return Err(InvalidTrigger::TooOften(*every));
            }
            Trigger::Interval { anchor_us: at_us, .. } | Trigger::Once { at_us } => *at_us,
            Trigger::Daily { .. } | Trigger::Cron { .. } => START_US,
        };
        match (START_US..=END_US).contains(&instant) {
            true => Ok(()),
            false => Err(InvalidTrigger::OutOfRange(instant)),
        }
    }
}

impl Dst {
    fn is_default(&self) -> bool {
        *self == Dst::default()
    }
}
