//! How the store behaves for a while.

use crate::dice::Dice;

/// Each is so many times out of a hundred.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mood {
    /// Commits that are not made: the disk is full, or the store fails.
    pub(super) refused: u64,
    /// Commits that are made, and nobody hears of it.
    pub(super) in_doubt: u64,
    pub(super) unreadable: u64,
    /// Calls that take seconds.
    pub(super) slow: u64,
}

impl Mood {
    pub(super) fn draw(dice: &mut Dice) -> Mood {
        let calm = Mood::default();
        match dice.below(20) {
            0..8 => calm,
            8..10 => Mood { refused: 35, ..calm },
            10..14 => Mood { in_doubt: 35, ..calm },
            14..16 => Mood { unreadable: 20, ..calm },
            16..18 => Mood { slow: 25, ..calm },
            18 => Mood { refused: 10, in_doubt: 10, unreadable: 5, slow: 5 },
            _ => Mood { refused: 30, in_doubt: 30, unreadable: 15, slow: 15 },
        }
    }
}
