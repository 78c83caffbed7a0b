//! How often the store fails, for a while.

use crate::dice::Dice;

/// Rates in percent of the calls.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FaultRates {
    /// Commits that are not made: the disk is full, or the store fails.
    pub(super) refused: u64,
    /// Commits that are made, and whose answer is lost.
    pub(super) in_doubt: u64,
    /// Reads that fail.
    pub(super) unreadable: u64,
    /// Calls that take seconds.
    pub(super) slow: u64,
}

impl FaultRates {
    pub(super) fn draw(dice: &mut Dice) -> FaultRates {
        let calm = FaultRates::default();
        match dice.below(20) {
            0..8 => calm,
            8..10 => FaultRates { refused: 35, ..calm },
            10..14 => FaultRates { in_doubt: 35, ..calm },
            14..16 => FaultRates { unreadable: 20, ..calm },
            16..18 => FaultRates { slow: 25, ..calm },
            18 => FaultRates { refused: 10, in_doubt: 10, unreadable: 5, slow: 5 },
            _ => FaultRates { refused: 30, in_doubt: 30, unreadable: 15, slow: 15 },
        }
    }
}
