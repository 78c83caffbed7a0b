//! Computes when a trigger fires: its slots (occurrences).
//!
//! Pure: no clock, no file, no randomness; the zone data is compiled in. A [`Trigger`] is the stored
//! form; a [`Calendar`] evaluates a trigger in a [`Zone`]. An instant is an `i64`, microseconds since
//! 1970 in UTC, in names that end in `_us`. The calendar covers the years 1970 to 2199.
//!
//! [`Dst`] says what happens to a wall time that the clock skips (a gap) or shows twice (a fold, or
//! overlap).
//!
//! ```
//! use calendar::{Calendar, Cron, Dst, Trigger, Zone, format_instant, parse_instant};
//!
//! let expression: Cron = "30 9 * * 1-5".parse()?;
//! assert_eq!(expression.describe(), "at 09:30 on Monday to Friday");
//!
//! let zone: Zone = "Europe/Berlin".parse()?;
//! let calendar = Calendar::new(Trigger::Cron { expression, dst: Dst::default() }, zone)?;
//! let friday = parse_instant("2026-03-27T12:00:00Z", None)?;
//! let next = calendar.next_after(friday).map(format_instant);
//! assert_eq!(next.as_deref(), Some("2026-03-30T07:30:00Z"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod calendar;
mod civil;
pub mod cron;
mod daily;
mod distance;
mod hint;
mod jitter;
mod local_times;
mod no_next_slot;
mod pattern;
mod slots;
mod span;
mod text;
mod trigger;
mod wall;
mod zone;

pub use calendar::Calendar;
pub use cron::Cron;
pub use daily::{InvalidTimes, TIMES_MAX, TimeOfDay, Times, Weekdays};
pub use distance::{distance, relative};
pub use hint::Hint;
pub use jitter::{CATCH_UP_MAX, CATCH_UP_MIN, catch_up_window, jitter_us};
pub use local_times::{LocalTimes, replace_instants};
pub use no_next_slot::NoNextSlot;
pub use span::{InvalidSpan, SPAN_MAX, Span};
pub use trigger::{Dst, EVERY_MIN, Fold, Gap, InvalidTrigger, Trigger};
pub use wall::{CivilTime, InvalidInstant, WallTime, format_instant, parse_instant};
pub use zone::{UnknownZone, ZONE_BYTES_MAX, Zone, tzdata_version};

use civil::{DAY_S, SECOND_US};

/// The first instant of the calendar.
pub const START_US: i64 = 0;
/// The last instant of the calendar.
pub const END_US: i64 = END_S * SECOND_US - 1;

/// 2200-01-01.
const END_S: i64 = 84_006 * DAY_S;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calendar_covers_1970_to_2199() {
        assert_eq!(format_instant(START_US), "1970-01-01T00:00:00Z");
        assert_eq!(format_instant(END_US), "2199-12-31T23:59:59.999999Z");
    }
}
