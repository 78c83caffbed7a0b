//! An instant: microseconds since 1970 in UTC. The kernel only compares and stores instants;
//! reading the clock and printing dates happen at the edge.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

/// The current time by two sources: the system clock, which can be set back, and the ledger, which cannot.
/// A deadline has passed when it has passed by either.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// The system clock.
    pub clock: Timestamp,
    /// The system clock or the time of the last ledger entry, whichever is later.
    pub latest: Timestamp,
}

impl Now {
    /// From a clock that is not behind the ledger.
    pub const fn from_clock(clock: Timestamp) -> Now {
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

    /// This instant plus a span; saturates.
    pub const fn after_us(self, span_us: i64) -> Timestamp {
        Timestamp(self.0.saturating_add(span_us))
    }
}
