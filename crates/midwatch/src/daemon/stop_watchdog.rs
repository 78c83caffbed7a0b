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
    /// Sends another limit, counted from then. Dropping it tells the thread that the stop is done.
    limits: Option<mpsc::Sender<Duration>>,
}

impl StopWatchdog {
    pub(super) fn new(limit: Duration) -> StopWatchdog {
        StopWatchdog { limit, limits: None }
    }

    /// From now on the process has `limit` to end. A thread counts, because the runtime may be what hangs.
    pub(super) fn stop_requested(&mut self) {
        let mut limit = self.limit;
        let (limits, wait) = mpsc::channel::<Duration>();
        self.limits = Some(limits);
        let counting = thread::Builder::new().name("stop-watchdog".to_owned()).spawn(move || {
            loop {
                match wait.recv_timeout(limit) {
                    Ok(another) => limit = another,
                    Err(RecvTimeoutError::Disconnected) => return,
                    Err(RecvTimeoutError::Timeout) => {
                        error!(?limit, "the daemon did not stop in time: ended");
                        process::exit(EXIT_CODE);
                    }
                }
            }
        });
        if let Err(error) = counting {
            warn!(%error, "failed to limit the time to stop");
        }
    }

    /// From now on the process has this time to end.
    pub(super) fn set_limit(&self, limit: Duration) {
        if let Some(limits) = &self.limits {
            // The thread ends only with the process.
            let _ = limits.send(limit);
        }
    }
}
