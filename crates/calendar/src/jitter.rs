//! How much later than its nominal instant a slot may run: its jitter, and the catch-up window for a
//! missed slot.

use sha2::{Digest, Sha256};

use crate::Span;

pub const CATCH_UP_MIN: Span = Span::from_seconds(60);
pub const CATCH_UP_MAX: Span = Span::from_days(1);

const CATCH_UP_SLOTS: i64 = 3;

/// The delay of a slot: from 0 to `max_us`, the same on every machine and after every restart, and
/// shorter than the time to the next slot. Never negative, because an early slot would fire twice.
pub fn jitter_us(schedule_id: &[u8], nominal_us: i64, max_us: i64, next_us: Option<i64>) -> i64 {
    let room_us = next_us.map_or(i64::MAX, |next_us| next_us.saturating_sub(nominal_us) - 1);
    let Ok(max) = u64::try_from(max_us.min(room_us)) else { return 0 };
    let hash = Sha256::new().chain_update(schedule_id).chain_update(nominal_us.to_be_bytes());
    let hash = hash.finalize().iter().take(8).fold(0, |sum, byte| sum << 8 | u64::from(*byte));
    // Not above `max`, so it fits.
    (hash % (max + 1)) as i64
}

/// How late a missed slot may still run by default: three times the distance to the next slot, at
/// least a minute and at most a day. Without a next slot, a day.
pub fn catch_up_window(nominal_us: i64, next_us: Option<i64>) -> Span {
    let Some(next_us) = next_us else { return CATCH_UP_MAX };
    let distance_us = next_us.saturating_sub(nominal_us).saturating_mul(CATCH_UP_SLOTS);
    let window = Span::from_millis((distance_us / 1000).min(CATCH_UP_MAX.as_millis()));
    window.map_or(CATCH_UP_MIN, |window| window.max(CATCH_UP_MIN))
}
