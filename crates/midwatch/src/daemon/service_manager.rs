//! Notifies the service manager that started the daemon, if one did.

use std::convert::Infallible;
use std::time::Duration;

use futures::future::pending;
use sd_notify::NotifyState;
use tokio::time::interval;

/// The shortest time between two watchdog notifications.
const WATCHDOG_MIN: Duration = Duration::from_millis(100);

pub(super) fn ready() {
    // Without a service manager this fails, and is not needed.
    let _ = sd_notify::notify(&[NotifyState::Ready]);
}

pub(super) fn stopping() {
    let _ = sd_notify::notify(&[NotifyState::Stopping]);
}

/// Notifies the watchdog from the daemon's event loop, twice as often as required.
pub(super) async fn feed_watchdog() -> Infallible {
    let Some(limit) = sd_notify::watchdog_enabled() else { return pending().await };
    let mut beat = interval((limit / 2).max(WATCHDOG_MIN));
    loop {
        beat.tick().await;
        let _ = sd_notify::notify(&[NotifyState::Watchdog]);
    }
}
