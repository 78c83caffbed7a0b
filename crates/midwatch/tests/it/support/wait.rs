//! Waiting for a condition that no command reports by itself.
#![expect(clippy::disallowed_methods, reason = "a wait has a deadline")]

use std::process::Child;
use std::thread;
use std::time::{Duration, Instant};

/// Deadline of every wait: long enough for a busy machine, short enough to end.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Polls until there is a value. To wait for a run, use `World::wait_for_run`, which starts one process.
pub(crate) fn wait_for<T>(mut poll: impl FnMut() -> Option<T>) -> T {
    let started = Instant::now();
    loop {
        if let Some(found) = poll() {
            return found;
        }
        assert!(started.elapsed() < TIMEOUT, "the condition did not hold within {TIMEOUT:?}");
        thread::sleep(POLL_INTERVAL);
    }
}

/// Polls until the condition holds.
pub(crate) fn wait_until(mut condition: impl FnMut() -> bool) {
    wait_for(|| condition().then_some(()));
}

/// Whether a process ends within this time.
pub(crate) fn ends_within(child: &mut Child, time_max: Duration) -> bool {
    let started = Instant::now();
    while started.elapsed() < time_max {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        thread::sleep(POLL_INTERVAL);
    }
    false
}
