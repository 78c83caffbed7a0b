//! Dice that do not depend on the order of calls: a throw depends on the seed, a key and a time. So an additional call
//! changes nothing else.

use crate::dice::Dice;

/// The dice for `key` at one instant.
pub(super) fn dice(seed: u64, key: &str, at: u64) -> Dice {
    Dice::of(seed, hash(key) ^ Dice::of(at, 1).next())
}

/// FNV-1a, which gives the same hash in every version.
fn hash(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Dice {
    /// True in `percent` of a hundred throws.
    pub(super) fn is_percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of `first` and `others`.
    pub(super) fn one<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        match self.below(others.len() as u64 + 1) {
            0 => first,
            _ => self.pick(others).copied().unwrap_or(first),
        }
    }
}
