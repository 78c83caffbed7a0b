//! Seeded random numbers: SplitMix64 and not a library, so that a seed gives the same numbers in every version.

use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Dice(u64);

impl Dice {
    /// The dice of one part of a campaign, independent of those of the other parts.
    pub(crate) fn of(seed: u64, part: u64) -> Dice {
        let mut dice = Dice(seed);
        Dice(dice.next() ^ Dice(part).next())
    }

    /// A number below `end`, which must not be zero.
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.next().checked_rem(end).unwrap_or_default()
    }

    /// A span below `end` microseconds.
    pub(crate) fn span_us(&mut self, end: u64) -> Duration {
        Duration::from_micros(self.below(end))
    }

    /// A span of at least `least` and below `end` microseconds.
    pub(crate) fn between_us(&mut self, least: u64, end: u64) -> Duration {
        Duration::from_micros(least) + self.span_us(end.saturating_sub(least))
    }

    pub(crate) fn is_one_in(&mut self, many: u64) -> bool {
        self.below(many) == 0
    }

    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(usize::try_from(self.below(items.len() as u64)).ok()?)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_the_same_numbers_in_every_version() {
        let mut dice = Dice(1_234_567);
        assert_eq!(
            [dice.next(), dice.next()],
            [6_457_827_717_110_365_317, 3_203_168_211_198_807_973]
        );
    }
}
