//! The stop of the daemon: why it stops, whether running runs may still finish, and which runs it cut off.
//!
//! A stop goes through three steps, each of which happens once: it is requested, runs end, and serving ends. The engine writes
//! its last entries after that.

use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use kernel::{RunId, ScheduleId};
use tokio::sync::watch;
use tokio_util::sync::CancellationToken;

/// The stop of the current run of the engine.
#[derive(Debug, Default)]
pub(crate) struct Shutdown(Mutex<Arc<Stop>>);

impl Shutdown {
    /// The engine runs from now on, and no stop is requested.
    pub(crate) fn begin(&self) {
        *self.lock() = Arc::default();
    }

    pub(crate) fn current(&self) -> Arc<Stop> {
        Arc::clone(&self.lock())
    }

    fn lock(&self) -> MutexGuard<'_, Arc<Stop>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Debug)]
pub(crate) struct Stop {
    /// Why the daemon stops; the first reason counts.
    reason: OnceLock<String>,
    /// Cancelled by the first request: from then on no run starts.
    pub(crate) requested: CancellationToken,
    /// Cancelled when running runs are not waited for any longer.
    pub(crate) at_once: CancellationToken,
    is_executing: watch::Sender<bool>,
    cut_off: Mutex<Vec<(RunId, ScheduleId)>>,
}

impl Default for Stop {
    fn default() -> Stop {
        Stop {
            reason: OnceLock::new(),
            requested: CancellationToken::new(),
            at_once: CancellationToken::new(),
            is_executing: watch::Sender::new(false),
            cut_off: Mutex::default(),
        }
    }
}

impl Stop {
    pub(crate) fn request(&self, reason: String) {
        // The first reason counts.
        let _ = self.reason.set(reason);
        self.requested.cancel();
    }

    /// Returns the reason once a stop is requested.
    pub(crate) async fn requested(&self) -> String {
        self.requested.cancelled().await;
        self.reason.get().cloned().unwrap_or_default()
    }

    pub(crate) fn runs_begin(&self) {
        self.is_executing.send_replace(true);
    }

    pub(crate) fn runs_ended(&self) {
        self.is_executing.send_replace(false);
    }

    /// Returns when no run is executed, or will be.
    pub(crate) async fn wait_for_runs(&self) {
        // The sender is a field, so it is not dropped meanwhile.
        let _ = self.is_executing.subscribe().wait_for(|is_executing| !is_executing).await;
    }

    pub(crate) fn cut_off(&self, runs: Vec<(RunId, ScheduleId)>) {
        *self.lock() = runs;
    }

    /// The runs that were still running when their time was over.
    pub(crate) fn runs_cut_off(&self) -> Vec<(RunId, ScheduleId)> {
        self.lock().clone()
    }

    fn lock(&self) -> MutexGuard<'_, Vec<(RunId, ScheduleId)>> {
        self.cut_off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
