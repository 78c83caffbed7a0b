//! The id of a schedule.

use std::str::FromStr;

use crate::id::{InvalidId, id, is_hex};

/// Digits of a schedule's id, unless another schedule already has that id.
pub const SCHEDULE_DIGITS: usize = 8;
const SCHEDULE_DIGITS_MAX: usize = 64;

id! {
    /// Invariant: `sch_` and 8 to 64 hexadecimal digits, a prefix of the hash of the first definition.
    ScheduleId
}

impl ScheduleId {
    /// The id for a definition with this hash, using its first `digits` digits.
    ///
    /// ```
    /// assert_eq!(kernel::ScheduleId::of(&[0xab; 32], 8).as_str(), "sch_abababab");
    /// ```
    pub fn of(hash: &[u8; 32], digits: usize) -> ScheduleId {
        let digits = digits.clamp(SCHEDULE_DIGITS, SCHEDULE_DIGITS_MAX);
        let halves = hash.iter().flat_map(|byte| [byte >> 4, byte & 15]);
        let hex = halves.filter_map(|half| char::from_digit(u32::from(half), 16));
        ScheduleId("sch_".chars().chain(hex.take(digits)).collect())
    }
}

impl FromStr for ScheduleId {
    type Err = InvalidId;

    fn from_str(text: &str) -> Result<ScheduleId, InvalidId> {
        let digits = SCHEDULE_DIGITS..=SCHEDULE_DIGITS_MAX;
        match text
            .strip_prefix("sch_")
            .is_some_and(|hex| digits.contains(&hex.len()) && is_hex(hex))
        {
            true => Ok(ScheduleId(text.to_owned())),
            false => Err(InvalidId::new("schedule", text)),
        }
    }
}
