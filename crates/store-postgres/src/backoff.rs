//! Exponential backoff while the database is unreachable, with a limit on the total time.

use std::time::Duration;

use store::Error;
use tokio::time::{Instant, sleep};

/// After this time, callers get an error.
pub(crate) const RETRY_TIME_MAX: Duration = Duration::from_secs(15);
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);

#[derive(Debug)]
pub(crate) struct Backoff {
    deadline: Instant,
    pause: Duration,
}

impl Backoff {
    pub(crate) fn new() -> Backoff {
        Backoff { deadline: Instant::now() + RETRY_TIME_MAX, pause: PAUSE_MIN }
    }

    /// Waits, each time longer. Returns the error after [`RETRY_TIME_MAX`].
    pub(crate) async fn wait(&mut self, error: Error) -> Result<(), Error> {
        if self.deadline <= Instant::now() {
            return Err(error);
        }
        sleep(self.pause).await;
        self.pause = (self.pause * 2).min(PAUSE_MAX);
        Ok(())
    }
}
