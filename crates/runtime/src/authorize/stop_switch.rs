//! The stop switch: what a freeze or a cancellation does in this process before it is recorded, and even if it cannot
//! be. Nothing here waits for the store.

use std::io;
use std::sync::Arc;

use agents::AgentBackend;
use kernel::{Actor, RunId, Timestamp};
use tokio::sync::watch;
use tracing::{error, warn};

use crate::authorize::stop_markers::{StopMarkers, StopRequest, StopTarget};
use crate::dispatch::dispatcher::{Cancellation, Dispatcher};

#[derive(Debug)]
pub(crate) struct StopSwitch {
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) backend: Arc<dyn AgentBackend>,
    pub(crate) markers: StopMarkers,
    pub(crate) unrecorded: watch::Sender<Option<UnrecordedFreeze>>,
}

/// A freeze that is in effect in this process and not in the ledger yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct UnrecordedFreeze {
    pub(crate) by: Actor,
    pub(crate) note: Option<String>,
    pub(crate) at: Timestamp,
}

impl StopSwitch {
    /// Freezes this process at once: claims no run, cancels the running ones and ends the processes they left behind.
    pub(crate) fn freeze(&self, freeze: UnrecordedFreeze) {
        let note = Some(format!("frozen by {}", freeze.by.name()));
        self.dispatcher.stop();
        self.dispatcher.cancel_all_unrecorded(&Cancellation { by: Actor::system(), note });
        self.backend.end_leftover_processes();
        // The first one counts.
        self.unrecorded.send_if_modified(|unrecorded| {
            let is_first = unrecorded.is_none();
            unrecorded.get_or_insert(freeze);
            is_first
        });
    }

    /// Cancels a run that is running in this process. Returns whether there is one.
    pub(crate) fn cancel(&self, id: &RunId, by: &Actor, note: Option<&str>) -> bool {
        let cancellation = Cancellation { by: by.clone(), note: note.map(str::to_owned) };
        self.dispatcher.cancel_unrecorded(id, cancellation)
    }

    /// Keeps a stop across a restart of the daemon, because the ledger could not record it.
    pub(crate) fn leave_marker(&self, target: StopTarget<'_>, note: Option<&str>) {
        if let Err(error) = self.markers.leave(target, note) {
            error!(%error, ?target, "failed to leave a marker; a restart of the daemon forgets this stop");
        }
    }

    /// Obeys the markers that were left since the last call.
    pub(crate) fn obey_markers(&self, now: Timestamp) {
        if self.unrecorded().is_none()
            && let Some(StopRequest { by, note }) = self.markers.find(StopTarget::Installation)
        {
            warn!(by = by.name(), "a marker freezes the installation");
            self.freeze(UnrecordedFreeze { by, note, at: now });
        }
        for (id, _) in self.dispatcher.claimed() {
            if let Some(StopRequest { by, note }) = self.markers.find(StopTarget::Run(&id)) {
                self.cancel(&id, &by, note.as_deref());
            }
        }
    }

    /// The freeze that is not in the ledger yet.
    pub(crate) fn unrecorded(&self) -> Option<UnrecordedFreeze> {
        self.unrecorded.borrow().clone()
    }

    /// Returns when this process is frozen and the ledger does not have it yet.
    pub(crate) async fn wait_until_frozen(&self) {
        // The sender lives as long as this value.
        let _ = self.unrecorded.subscribe().wait_for(Option::is_some).await;
    }

    /// The ledger has the freeze now, and decides when it ends.
    pub(crate) fn freeze_recorded(&self) {
        self.unrecorded.send_replace(None);
        self.dispatcher.end_stop();
        log_failure(self.markers.remove(StopTarget::Installation));
    }

    /// The ledger has the cancellation of a run now.
    pub(crate) fn cancel_recorded(&self, id: &RunId) {
        log_failure(self.markers.remove(StopTarget::Run(id)));
    }
}

fn log_failure(removed: io::Result<()>) {
    if let Err(error) = removed {
        warn!(%error, "failed to remove a marker");
    }
}
