//! An instant: microseconds since 1970 in UTC. The kernel only compares and stores instants;
//! reading the clock and printing dates happen at the edge.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// What time it is, told twice: a clock can be set, the time of the log never goes back. Whatever runs out
/// has run out when one of the two says so.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// What the clock shows.
    pub clock: Timestamp,
    /// The same, or the time of the last entry of the log if that is later.
    pub latest: Timestamp,
}

impl Now {
    /// By a clock that is not behind the log.
    pub const fn by_clock(clock: Timestamp) -> Now {
        Now { clock, latest: clock }
    }
}

impl Timestamp {
    pub const fn from_micros(micros: i64) -> Timestamp {
        Timestamp(micros)
    }

    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// So much later, or as late as can be told.
    pub const fn after_us(self, span_us: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(span_us))
    }
}
