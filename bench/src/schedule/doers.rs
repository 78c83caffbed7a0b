//! Those who do the work of runs, or rather not: what is measured is everything around it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use agents::{AgentBackend, Ended, Outcome, Output, Work};
use futures::future::{BoxFuture, FutureExt};
use runtime::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

/// Does nothing, and notes how late it was asked to.
#[derive(Debug, Default)]
pub(crate) struct Noting {
    /// Slots before this do not count.
    from_us: i64,
    late_us: Mutex<Vec<i64>>,
}

/// Does nothing, and counts how often.
#[derive(Debug, Default)]
pub(crate) struct Counting(AtomicU64);

/// Never ends what it has begun, so that runs are queued and hardly any is worked on.
#[derive(Debug)]
pub(crate) struct Hanging;

impl Noting {
    pub(crate) fn from(from_us: i64) -> Noting {
        Noting { from_us, ..Noting::default() }
    }

    /// Sorted.
    pub(crate) fn late_us(&self) -> Vec<i64> {
        let mut late =
            std::mem::take(&mut *self.late_us.lock().unwrap_or_else(PoisonError::into_inner));
        late.sort_unstable();
        late
    }
}

impl Counting {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl AgentBackend for Noting {
    fn work(&self, work: Work, _: CancellationToken) -> BoxFuture<'_, Ended> {
        async move {
            let now = SystemClock.now().as_micros();
            let slot = work.slot.and_then(|slot| calendar::parse_instant(&slot, None).ok());
            if let Some(slot) = slot.filter(|slot| self.from_us <= *slot) {
                self.late_us.lock().unwrap_or_else(PoisonError::into_inner).push(now - slot);
            }
            ended(Outcome::Done)
        }
        .boxed()
    }
}

impl AgentBackend for Counting {
    fn work(&self, _: Work, _: CancellationToken) -> BoxFuture<'_, Ended> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::ready(ended(Outcome::Done)).boxed()
    }
}

impl AgentBackend for Hanging {
    fn work(&self, _: Work, stop: CancellationToken) -> BoxFuture<'_, Ended> {
        async move {
            stop.cancelled().await;
            ended(Outcome::Cancelled)
        }
        .boxed()
    }
}

fn ended(outcome: Outcome) -> Ended {
    Ended { outcome, output: Output::default(), usage: None }
}
