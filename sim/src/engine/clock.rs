//! The simulated clock: it follows tokio's paused time, and the simulation sets it.
//!
//! A waiting task is woken a little early or late now and then, and up to a second late after the clock was set, as on
//! a real machine.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use kernel::Timestamp;
use runtime::Clock;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::keyed_dice;
use crate::dice::Dice;

/// A task sleeps no longer without checking the clock.
const SLEEP_US_MAX: i64 = 400 * 86_400 * 1_000_000;
const LATE_MS_MAX: u64 = 40;
const WAKE_AFTER_SET_MS_MAX: u64 = 1_000;

#[derive(Debug)]
pub(super) struct SimClock {
    seed: u64,
    started: Instant,
    /// The time that it would have shown at the start of the simulation.
    set_us: AtomicI64,
    /// Wakes tasks in the order in which they wait; the order of a `watch` channel is random.
    was_set: Notify,
    random: Mutex<Dice>,
}

impl SimClock {
    pub(super) fn new(seed: u64, now_us: i64) -> SimClock {
        let random = Mutex::new(Dice::of(seed, 2));
        let set_us = AtomicI64::new(now_us);
        SimClock { seed, started: Instant::now(), set_us, was_set: Notify::new(), random }
    }

    pub(super) fn now_us(&self) -> i64 {
        self.set_us.load(Ordering::SeqCst) + self.elapsed_us()
    }

    /// Sets the clock forwards or back.
    pub(super) fn jump(&self, by_us: i64) {
        // The calendar of the product starts in 1970 and ends with 2199.
        let least = 20 * 365 * 86_400_000_000 - self.elapsed_us();
        let set_us = self.set_us.load(Ordering::SeqCst).saturating_add(by_us);
        self.set_us.store(set_us.clamp(least, 10 * least.abs()), Ordering::SeqCst);
        self.was_set.notify_waiters();
    }

    /// Elapsed virtual time since the start of the simulation, whatever the clock shows.
    pub(super) fn elapsed_us(&self) -> i64 {
        i64::try_from(self.started.elapsed().as_micros()).unwrap_or(i64::MAX)
    }
}

impl Clock for SimClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_micros(self.now_us())
    }

    fn reaches(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        async move {
            let was_set = self.was_set.notified();
            let ahead_us = at.as_micros().saturating_sub(self.now_us()).min(SLEEP_US_MAX);
            let Ok(ahead_us @ 1..) = u64::try_from(ahead_us) else { return };
            let elapsed = u64::try_from(self.elapsed_us()).unwrap_or_default();
            let mut dice = keyed_dice::dice(self.seed, "wake", elapsed ^ ahead_us);
            let ahead = Duration::from_micros(ahead_us);
            let wait = match dice.below(8) {
                0 => ahead / 2,
                1 => ahead + Duration::from_millis(dice.below(LATE_MS_MAX)),
                _ => ahead,
            };
            select! {
                biased;
                () = was_set => sleep(Duration::from_millis(dice.below(WAKE_AFTER_SET_MS_MAX))).await,
                () = sleep(wait) => {}
            }
        }
        .boxed()
    }

    fn steady(&self) -> Option<Duration> {
        Some(self.started.elapsed())
    }

    fn random(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}
