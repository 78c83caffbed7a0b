//! A clock that was set: whoever reads the log later shall know that its times jumped.
//!
//! Nothing is decided by it but the lease. That a clock which is set back revives nothing is because
//! whatever runs out goes by the log too (`Watch::by_log`).

use std::time::Duration;

use api::Error;
use kernel::authority::Authority;
use kernel::watch::{ClockAnomaly, Event as WatchEvent};
use kernel::{Body, Now, Timestamp};
use tracing::{error, warn};

use crate::keep::micros;
use crate::times::rfc3339;
use crate::watch::Engine;

/// How often to look, where nothing tells that the clock was set.
const LOOK_EVERY: Duration = Duration::from_secs(60);

/// What the clocks showed when they were last looked at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Looked {
    shown: Timestamp,
    steady: Option<Duration>,
}

impl Engine {
    /// A clock that is behind the log was set back while nobody kept the watch, or was ahead before.
    pub(crate) async fn clock_at_start(&self) -> Result<Looked, Error> {
        let steady = self.clock().steady();
        let now = self.by_log();
        self.note_clock(now.latest, now.clock).await?;
        Ok(Looked { shown: now.clock, steady })
    }

    /// Writes down every time the clock is set.
    pub(crate) async fn follow_clock(&self, mut looked: Looked) {
        loop {
            self.reaches(self.after(LOOK_EVERY)).await;
            let (shown, steady) = (self.now(), self.clock().steady());
            let expected = looked.expects(shown, steady);
            match self.note_clock(expected, shown).await {
                Ok(()) => looked = Looked { shown, steady },
                // It is tried again with the next look.
                Err(failed) => error!(%failed, "that the clock was set could not be written down"),
            }
        }
    }

    async fn note_clock(&self, expected: Timestamp, shown: Timestamp) -> Result<(), Error> {
        let noted = self.act(vec![self.authority_row()], vec![], |rows, _| {
            let anomaly = ClockAnomaly::of(expected, shown, &self.authority_in(rows));
            let body = |it| Body::Watch(self.instance().to_owned(), WatchEvent::ClockAnomaly(it));
            Ok(anomaly.map(body).into_iter().collect())
        });
        if noted.await?.is_some() {
            warn!(
                expected_us = expected.as_micros(),
                shown_us = shown.as_micros(),
                "the clock was set"
            );
        }
        Ok(())
    }
}

/// That the clock is behind the log, in a sentence, if it is.
pub(crate) fn behind(now: Now) -> Option<String> {
    ClockAnomaly::of(now.latest, now.clock, &Authority::default()).map(|anomaly| {
        let (shown, last) = (rfc3339(anomaly.to), rfc3339(anomaly.from));
        format!("it shows {shown}, and the last entry of the log is of {last}")
    })
}

impl Looked {
    /// What a clock should show now. Without a steady one only a step back can be told from time that has
    /// passed.
    fn expects(self, shown: Timestamp, steady: Option<Duration>) -> Timestamp {
        match self.steady.zip(steady) {
            Some((then, now)) => self.shown.after_us(micros(now.saturating_sub(then))),
            None => self.shown.max(shown),
        }
    }
}
