//! The clock of a life: it goes with tokio's paused time, and the simulation sets it.
//!
//! Whoever waits for an instant is woken a little early or late now and then, and up to a second late
//! when the clock was set: more a machine does not promise.

use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::future::{BoxFuture, FutureExt};
use kernel::Timestamp;
use runtime::Clock;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep};

use super::chance;
use crate::dice::Dice;

/// Nobody sleeps longer without a look at the clock.
const SLEEP_US_MAX: i64 = 400 * 86_400 * 1_000_000;
const LATE_MS_MAX: u64 = 40;
const NOTICED_MS_MAX: u64 = 1_000;

#[derive(Debug)]
pub(super) struct SimClock {
    seed: u64,
    begun: Instant,
    /// What it would show at the beginning of the life.
    set_us: AtomicI64,
    /// Wakes in the order in which they wait; a `watch` channel leaves that to chance.
    was_set: Notify,
    random: Mutex<Dice>,
}

impl SimClock {
    pub(super) fn new(seed: u64, now_us: i64) -> SimClock {
        let random = Mutex::new(Dice::of(seed, 2));
        let set_us = AtomicI64::new(now_us);
        SimClock { seed, begun: Instant::now(), set_us, was_set: Notify::new(), random }
    }

    pub(super) fn now_us(&self) -> i64 {
        self.set_us.load(Ordering::SeqCst) + self.passed_us()
    }

    /// Sets it forwards or back.
    pub(super) fn jump(&self, by_us: i64) {
        // The calendar of the product begins in 1970 and ends with 2199.
        let least = 20 * 365 * 86_400_000_000 - self.passed_us();
        let set_us = self.set_us.load(Ordering::SeqCst).saturating_add(by_us);
        self.set_us.store(set_us.clamp(least, 10 * least.abs()), Ordering::SeqCst);
        self.was_set.notify_waiters();
    }

    /// Real time since the life began, whatever the clock shows.
    pub(super) fn passed_us(&self) -> i64 {
        i64::try_from(self.begun.elapsed().as_micros()).unwrap_or(i64::MAX)
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
            let passed = u64::try_from(self.passed_us()).unwrap_or_default();
            let mut dice = chance::dice(self.seed, "wake", passed ^ ahead_us);
            let ahead = Duration::from_micros(ahead_us);
            let wait = match dice.below(8) {
                0 => ahead / 2,
                1 => ahead + Duration::from_millis(dice.below(LATE_MS_MAX)),
                _ => ahead,
            };
            select! {
                biased;
                () = was_set => sleep(Duration::from_millis(dice.below(NOTICED_MS_MAX))).await,
                () = sleep(wait) => {}
            }
        }
        .boxed()
    }

    fn steady(&self) -> Option<Duration> {
        Some(self.begun.elapsed())
    }

    fn random(&self) -> u64 {
        self.random.lock().unwrap_or_else(PoisonError::into_inner).next()
    }
}
