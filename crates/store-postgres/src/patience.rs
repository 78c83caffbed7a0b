//! How long a database that is away is tried again before its callers are told.

use std::time::Duration;

use store::Error;
use tokio::time::{Instant, sleep};

pub(crate) const AWAY_MAX: Duration = Duration::from_secs(15);
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Patience {
    deadline: Instant,
    pause: Duration,
}

impl Patience {
    pub(crate) fn new() -> Patience {
        Patience { deadline: Instant::now() + AWAY_MAX, pause: PAUSE_MIN }
    }

    /// Waits a little, each time longer; gives the error back when it has lasted too long.
    pub(crate) async fn pause(&mut self, error: Error) -> Result<(), Error> {
        if self.deadline <= Instant::now() {
            return Err(error);
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}
