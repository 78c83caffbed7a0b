//! The one place where the time of day is read.

use std::fmt::Debug;
use std::time::{SystemTime, UNIX_EPOCH};

use kernel::Timestamp;

pub trait Clock: Debug + Send + Sync + 'static {
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    #[expect(clippy::disallowed_methods, reason = "this is where the clock is read")]
    fn now(&self) -> Timestamp {
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Timestamp::from_micros(i64::try_from(since_1970.as_micros()).unwrap_or(i64::MAX))
    }
}
