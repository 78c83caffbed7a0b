//! Backends that do nothing: the benchmarks measure everything around an attempt.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use agents::{AgentBackend, Attempt, AttemptResult, Outcome, Output};
use futures::future::{BoxFuture, FutureExt};
use runtime::{Clock, SystemClock};
use tokio_util::sync::CancellationToken;

/// Records how late each attempt starts.
#[derive(Debug, Default)]
pub(crate) struct LatenessBackend {
    /// Earlier slots do not count.
    from_us: i64,
    late_us: Mutex<Vec<i64>>,
}

/// Counts attempts.
#[derive(Debug, Default)]
pub(crate) struct CountingBackend(AtomicU64);

/// Never ends an attempt, so that runs are queued and hardly any starts.
#[derive(Debug)]
pub(crate) struct HangingBackend;

impl LatenessBackend {
    pub(crate) fn from(from_us: i64) -> LatenessBackend {
        LatenessBackend { from_us, ..LatenessBackend::default() }
    }

    /// Returns the recorded values, sorted.
    pub(crate) fn take_late_us(&self) -> Vec<i64> {
        let mut late =
            std::mem::take(&mut *self.late_us.lock().unwrap_or_else(PoisonError::into_inner));
        late.sort_unstable();
        late
    }
}

impl CountingBackend {
    pub(crate) fn count(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

impl AgentBackend for LatenessBackend {
    fn run(&self, attempt: Attempt, _: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        async move {
            let now = SystemClock.now().as_micros();
            let slot = attempt.slot.and_then(|slot| calendar::parse_instant(&slot, None).ok());
            if let Some(slot) = slot.filter(|slot| self.from_us <= *slot) {
                self.late_us.lock().unwrap_or_else(PoisonError::into_inner).push(now - slot);
            }
            result(Outcome::Done)
        }
        .boxed()
    }
}

impl AgentBackend for CountingBackend {
    fn run(&self, _: Attempt, _: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        self.0.fetch_add(1, Ordering::Relaxed);
        std::future::ready(result(Outcome::Done)).boxed()
    }
}

impl AgentBackend for HangingBackend {
    fn run(&self, _: Attempt, stop: CancellationToken) -> BoxFuture<'_, AttemptResult> {
        async move {
            stop.cancelled().await;
            result(Outcome::Cancelled)
        }
        .boxed()
    }
}

fn result(outcome: Outcome) -> AttemptResult {
    AttemptResult { outcome, output: Output::default(), usage: None }
}
