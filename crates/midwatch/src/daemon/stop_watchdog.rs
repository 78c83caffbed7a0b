//! Ends the process if an orderly stop takes too long, whatever hangs: a disk, a database, a program.

use std::process;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::Duration;

use tracing::{error, warn};

/// As after a failed command.
const EXIT_CODE: i32 = 1;

/// Dropped when the daemon has stopped.
#[derive(Debug)]
pub(super) struct StopWatchdog {
    limit: Duration,
    /// Dropping it tells the thread that the stop is done.
    done: Option<mpsc::Sender<()>>,
}

impl StopWatchdog {
    pub(super) fn new(limit: Duration) -> StopWatchdog {
        StopWatchdog { limit, done: None }
    }

    /// From now on the process has `limit` to end. A thread counts, because the runtime may be what hangs.
    pub(super) fn stop_requested(&mut self) {
        let limit = self.limit;
        let (done, wait) = mpsc::channel::<()>();
        self.done = Some(done);
        let counting = thread::Builder::new().name("stop-watchdog".to_owned()).spawn(move || {
            if wait.recv_timeout(limit) == Err(RecvTimeoutError::Timeout) {
                error!(?limit, "the daemon did not stop in time: ended");
                process::exit(EXIT_CODE);
            }
        });
        if let Err(error) = counting {
            warn!(%error, "failed to limit the time to stop");
        }
    }
}
