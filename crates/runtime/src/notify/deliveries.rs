//! How deliveries went in this process, for `status`.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

use api::Channel;
use kernel::Timestamp;

use crate::timestamps::rfc3339;

#[derive(Debug, Default)]
pub(crate) struct Deliveries {
    channels: Mutex<Vec<Channel>>,
    /// Channels whose failure is recorded.
    reported: Mutex<BTreeSet<String>>,
}

impl Deliveries {
    pub(crate) fn list(&self) -> Vec<Channel> {
        self.lock().clone()
    }

    pub(super) fn open(&self, names: &[&str]) {
        let channel = |name: &&str| Channel {
            channel: (*name).to_owned(),
            last_success: None,
            last_failure: None,
            failing_since: None,
            pending: 0,
        };
        *self.lock() = names.iter().map(channel).collect();
    }

    /// Whether the failure of a channel is to be recorded: it was not since its last success.
    pub(super) fn report_failing(&self, name: &str) -> bool {
        self.lock_reported().insert(name.to_owned())
    }

    fn lock_reported(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.reported.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn succeeded(&self, name: &str, at: Timestamp) {
        self.lock_reported().remove(name);
        self.change(name, |channel| {
            channel.last_success = Some(rfc3339(at));
            channel.failing_since = None;
        });
    }

    pub(super) fn failed(&self, name: &str, at: Timestamp, what: String) {
        let failure = api::DeliveryFailure { at: rfc3339(at), what };
        self.change(name, |channel| {
            channel.failing_since.get_or_insert_with(|| failure.at.clone());
            channel.last_failure = Some(failure);
        });
    }

    /// The number of notices in the delivery under way.
    pub(super) fn set_pending(&self, name: &str, pending: usize) {
        self.change(name, |channel| channel.pending = pending as u64);
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Channel)) {
        if let Some(channel) = self.lock().iter_mut().find(|channel| channel.channel == name) {
            change(channel);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.channels.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
