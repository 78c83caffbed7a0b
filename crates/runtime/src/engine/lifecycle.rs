//! Whether this process runs the daemon's loops, and since when.

use std::sync::{Mutex, MutexGuard, PoisonError};

use api::DiskUse;
use kernel::Timestamp;

#[derive(Debug, Default)]
pub(crate) struct Lifecycle(Mutex<Option<Running>>);

#[derive(Clone, Debug)]
pub(crate) struct Running {
    pub since: Timestamp,
    /// The startup checks that found something and did not refuse the start.
    pub warnings: Vec<String>,
    /// What used the disk when it was last measured.
    pub disk: Option<DiskUse>,
}

impl Lifecycle {
    pub(crate) fn started(&self, running: Running) {
        *self.state() = Some(running);
    }

    pub(crate) fn measured_disk(&self, disk: DiskUse) {
        if let Some(running) = &mut *self.state() {
            running.disk = Some(disk);
        }
    }

    /// `None` if no loops were started, as in a command without a daemon.
    pub(crate) fn running(&self) -> Option<Running> {
        self.state().clone()
    }

    fn state(&self) -> MutexGuard<'_, Option<Running>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
