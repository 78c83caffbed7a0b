//! Records that the clock was set, so that a reader of the ledger knows that its times jumped.
//!
//! Nothing that has expired becomes valid again, because expiry never goes by a time earlier than the ledger's
//! (`Time::monotonic_now`), unless the person who starts the daemon accepts a clock behind it. That is recorded, too, and is
//! the way back after a clock that was ahead.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::Error;
use kernel::authority::Authority;
use kernel::installation::{ClockAnomaly, Event as InstallationEvent, Heartbeat};
use kernel::posture::Finding;
use kernel::{EventBody, Now, Timestamp};
use store::Store;
use tracing::{error, warn};

use crate::clock::{Time, micros};
use crate::commit::identity::identity;
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
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
    /// Whether the person who starts the daemon accepts a clock behind the ledger.
    pub(crate) accepts_clock: AtomicBool,
}

impl ClockMonitor {
    /// A clock that is behind the ledger was set back while no daemon ran, or was ahead before. If it is accepted, expiry
    /// goes by it from now on.
    pub(crate) async fn check_at_start(&self) -> Result<ClockReading, Error> {
        let steady = self.time.steady();
        let now = self.time.monotonic_now();
        let is_accepted = self.accepts_clock.load(Ordering::Relaxed) && now.clock < now.latest;
        // Entries have that time until the clock has passed it.
        let last = Timestamp::from_micros(self.store.last_entry_us());
        let expected = if is_accepted { last.max(now.latest) } else { now.latest };
        self.record_anomaly(expected, now.clock, is_accepted).await?;
        self.follow_accepted_clock().await?;
        Ok(ClockReading { shown: now.clock, steady })
    }

    /// Records every time the clock is set, and the time while an accepted clock is behind the ledger.
    pub(crate) async fn run(&self, mut last: ClockReading) {
        loop {
            self.time.wait_until(self.time.after(CHECK_EVERY)).await;
            let (shown, steady) = (self.time.shown(), self.time.steady());
            let expected = last.expects(shown, steady);
            match self.record_anomaly(expected, shown, false).await {
                Ok(()) => last = ClockReading { shown, steady },
                // The next check tries again.
                Err(failed) => error!(%failed, "failed to record that the clock was set"),
            }
            if let Err(failed) = self.record_accepted_clock().await {
                error!(%failed, "failed to record the time of the accepted clock");
            }
        }
    }

    async fn record_anomaly(
        &self,
        expected: Timestamp,
        shown: Timestamp,
        is_accepted: bool,
    ) -> Result<(), Error> {
        let instance = &self.installation.instance;
        let rows = vec![row_key::<Authority>(instance)];
        let recorded = self.transactions.commit_own(rows, vec![], |rows, _| {
            let anomaly = ClockAnomaly::detect(expected, shown, &rows.authority_of(instance));
            let body = |it| {
                let anomaly = InstallationEvent::ClockAnomaly(ClockAnomaly { is_accepted, ..it });
                EventBody::Installation(instance.clone(), anomaly)
            };
            Ok(anomaly.map(body).into_iter().collect())
        });
        if recorded.await?.is_some() {
            warn!(
                expected_us = expected.as_micros(),
                shown_us = shown.as_micros(),
                "the clock was set"
            );
            if let Some(Finding { problem, fix, .. }) = self.time.untrusted() {
                error!(fix, "{problem}: nothing starts until it is set");
            }
        }
        Ok(())
    }

    /// While an accepted clock is behind the ledger, the times of entries do not show how far it has come.
    async fn record_accepted_clock(&self) -> Result<(), Error> {
        if self.time.accepted_behind().is_none() {
            return self.follow_accepted_clock().await;
        }
        let heartbeat = Heartbeat { clock: Some(self.time.now()) };
        let event = InstallationEvent::Heartbeat(heartbeat);
        let body = EventBody::Installation(self.installation.instance.clone(), event);
        let recorded = self.transactions.commit_own(vec![], vec![], |_, _| Ok(vec![body.clone()]));
        recorded.await.map(drop)
    }

    /// Another process on the same database may have accepted a clock.
    async fn follow_accepted_clock(&self) -> Result<(), Error> {
        let stored = identity(&*self.store).await?;
        self.time.set_accepted(stored.and_then(|identity| identity.clock));
        Ok(())
    }
}

/// A sentence if the clock is behind the ledger, or not trusted.
pub(crate) fn clock_problem(time: &Time) -> Option<String> {
    match time.untrusted() {
        Some(Finding { problem, fix, .. }) => Some(format!("{problem}, so nothing starts; {fix}")),
        None => clock_behind(time.monotonic_now()),
    }
}

fn clock_behind(now: Now) -> Option<String> {
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
