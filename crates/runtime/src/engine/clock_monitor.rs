//! Records that the clock was set, so that a reader of the ledger knows that its times jumped.
//!
//! Only the lease depends on it. Nothing that has expired becomes valid again, because expiry never goes by a time earlier
//! than the last entry (`Time::monotonic_now`).

use std::sync::Arc;
use std::time::Duration;

use api::Error;
use kernel::authority::Authority;
use kernel::installation::{ClockAnomaly, Event as InstallationEvent};
use kernel::{EventBody, Now, Timestamp};
use tracing::{error, warn};

use crate::clock::{Time, micros};
use crate::commit::rows::row_key;
use crate::commit::transaction::Transactions;
use crate::installation::Installation;
use crate::timestamps::rfc3339;

/// How often to check the clock.
const CHECK_EVERY: Duration = Duration::from_secs(60);

/// The time and the steady clock at the last check.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ClockReading {
    shown: Timestamp,
    steady: Option<Duration>,
}

#[derive(Debug)]
pub(crate) struct ClockMonitor {
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
}

impl ClockMonitor {
    /// A clock that is behind the ledger was set back while no daemon ran, or was ahead before.
    pub(crate) async fn check_at_start(&self) -> Result<ClockReading, Error> {
        let steady = self.time.steady();
        let now = self.time.monotonic_now();
        self.record_anomaly(now.latest, now.clock).await?;
        Ok(ClockReading { shown: now.clock, steady })
    }

    /// Records every time the clock is set.
    pub(crate) async fn run(&self, mut last: ClockReading) {
        loop {
            self.time.wait_until(self.time.after(CHECK_EVERY)).await;
            let (shown, steady) = (self.time.now(), self.time.steady());
            let expected = last.expects(shown, steady);
            match self.record_anomaly(expected, shown).await {
                Ok(()) => last = ClockReading { shown, steady },
                // The next check tries again.
                Err(failed) => error!(%failed, "failed to record that the clock was set"),
            }
        }
    }

    async fn record_anomaly(&self, expected: Timestamp, shown: Timestamp) -> Result<(), Error> {
        let instance = &self.installation.instance;
        let rows = vec![row_key::<Authority>(instance)];
        let recorded = self.transactions.commit_own(rows, vec![], |rows, _| {
            let anomaly = ClockAnomaly::detect(expected, shown, &rows.authority_of(instance));
            let body =
                |it| EventBody::Installation(instance.clone(), InstallationEvent::ClockAnomaly(it));
            Ok(anomaly.map(body).into_iter().collect())
        });
        if recorded.await?.is_some() {
            warn!(
                expected_us = expected.as_micros(),
                shown_us = shown.as_micros(),
                "the clock was set"
            );
        }
        Ok(())
    }
}

/// A sentence if the clock is behind the ledger.
pub(crate) fn clock_behind(now: Now) -> Option<String> {
    ClockAnomaly::detect(now.latest, now.clock, &Authority::default()).map(|anomaly| {
        let (shown, last) = (rfc3339(anomaly.to), rfc3339(anomaly.from));
        format!("it shows {shown}, but the last ledger entry is from {last}")
    })
}

impl ClockReading {
    /// The time that the clock should show now. Without a steady clock, only a step back can be noticed.
    fn expects(self, shown: Timestamp, steady: Option<Duration>) -> Timestamp {
        match self.steady.zip(steady) {
            Some((then, now)) => self.shown.after_us(micros(now.saturating_sub(then))),
            None => self.shown.max(shown),
        }
    }
}
