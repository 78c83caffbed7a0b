//! How deliveries went in this process, for `status`.

use std::sync::{Mutex, MutexGuard, PoisonError};

use api::Channel;
use kernel::Timestamp;

use crate::timestamps::rfc3339;

#[derive(Debug, Default)]
pub(crate) struct Deliveries(Mutex<Vec<Channel>>);

impl Deliveries {
    pub(crate) fn list(&self) -> Vec<Channel> {
        self.lock().clone()
    }

    pub(super) fn open(&self, names: &[&str]) {
        let channel = |name: &&str| Channel {
            channel: (*name).to_owned(),
            last_success: None,
            last_failure: None,
        };
        *self.lock() = names.iter().map(channel).collect();
    }

    pub(super) fn succeeded(&self, name: &str, at: Timestamp) {
        self.change(name, |channel| channel.last_success = Some(rfc3339(at)));
    }

    pub(super) fn failed(&self, name: &str, at: Timestamp, what: String) {
        let failure = api::DeliveryFailure { at: rfc3339(at), what };
        self.change(name, |channel| channel.last_failure = Some(failure));
    }

    fn change(&self, name: &str, change: impl FnOnce(&mut Channel)) {
        if let Some(channel) = self.lock().iter_mut().find(|channel| channel.channel == name) {
            change(channel);
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Channel>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
