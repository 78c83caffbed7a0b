//! Chance without an order: what happens to something depends on the seed, on what it is and when, and
//! not on how many others were asked about before. So a look more or less changes nothing else.

use crate::dice::Dice;

/// The dice for one thing at one instant.
pub(super) fn dice(seed: u64, what: &str, at: u64) -> Dice {
    Dice::of(seed, number(what) ^ Dice::of(at, 1).next())
}

/// FNV-1a, which means the same in every version.
fn number(text: &str) -> u64 {
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |sum, byte| {
        (sum ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

impl Dice {
    /// So many times out of a hundred.
    pub(super) fn is_percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    /// One of these.
    pub(super) fn one<T: Copy>(&mut self, first: T, others: &[T]) -> T {
        match self.below(others.len() as u64 + 1) {
            0 => first,
            _ => self.pick(others).copied().unwrap_or(first),
        }
    }
}
