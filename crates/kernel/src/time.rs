//! An instant: microseconds since 1970 in UTC. The kernel only compares and stores instants;
//! reading the clock and printing dates happen at the edge.

use serde::{Deserialize, Serialize};

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Timestamp(i64);

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
