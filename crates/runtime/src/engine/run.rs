//! Running the daemon: starts every loop, waits for the reason to stop, and stops them in order.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use api::Error;
use futures::future::{Either, FutureExt, join, join3, join5, pending, select};
use kernel::Actor;
use kernel::installation::{Event as InstallationEvent, Heartbeat, Started, Stopped};
use kernel::posture::Finding;
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{MissedTickBehavior, interval};
use tracing::{error, info, warn};

use crate::engine::Engine;
use crate::engine::lifecycle::Running;
use crate::errors;
use crate::execute::fast_start::FastStarts;
use crate::ledger::export::MissingLines;
use crate::notify::Channel;

/// How often to export finished months and to drop old responses.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(3_600);
/// How often to remove files that are older or larger than the configuration allows.
const CLEANUP_EVERY: Duration = Duration::from_secs(24 * 3_600);
const MEASURE_DISK_EVERY: Duration = Duration::from_secs(600);

impl Engine {
    /// Runs the daemon's loops until `stop` returns the reason to end, or the disk fails. A damaged ledger is still served
    /// for reading.
    ///
    /// `findings` are those of the startup checks, none of which refused the start.
    pub async fn run(
        &self,
        findings: &[Finding],
        channels: Vec<Arc<dyn Channel>>,
        stop: impl Future<Output = String>,
    ) -> Result<(), Error> {
        self.time.start();
        self.shutdown.begin();
        let warnings: Vec<String> = findings.iter().map(|it| it.check.name().to_owned()).collect();
        self.lifecycle.started(Running {
            since: self.time.now(),
            warnings: warnings.clone(),
            disk: None,
        });
        let mut stop = Box::pin(stop);
        if let Either::Right(_) = select(Box::pin(self.review_damage()), &mut stop).await {
            return Ok(());
        }
        if let Some(reason) = self.write_guard.stopped_writing() {
            warn!(%reason, "the ledger is damaged: serving read-only");
            self.integrity.set_result(reason.to_string());
            stop.await;
            return Ok(());
        }
        self.notifier.channels.send_replace(channels.clone());
        let channels = self.notifier.open_channels(channels).await?;
        self.authority.record_start(self.start_event(warnings).await?).await?;
        let clock_reading = self.clock_monitor.check_at_start().await?;
        if self.time.accepted_behind().is_some() {
            self.zones.correct_clock().await?;
            self.approvals.expire_all().await?;
        }
        if let Err(error) = self.stop_switch.markers.prepare() {
            warn!(%error, "failed to create the directory of stop markers");
        }
        self.executor.recover_runs().await?;
        let shutdown = self.shutdown.current();
        let (sender, fast_started) = unbounded_channel();
        let runs = Arc::clone(&self.executor).run(Arc::new(self.clone()), fast_started);
        // Runs end before the last entry is written.
        let stop = async {
            let reason = stop.await;
            shutdown.request(reason);
            shutdown.requested().await
        };
        let stop = Box::pin(join(stop, runs).map(|(reason, ())| reason));
        let loops = join5(
            self.timer.run(FastStarts { sender, shutdown: shutdown.requested.clone() }),
            self.approvals.run(),
            self.authority.run(),
            join(self.zones.run(), self.clock_monitor.run(clock_reading)),
            join5(
                self.checkpoints.run(),
                join(self.heartbeats(), self.tool_metrics.run()),
                join3(self.housekeeping(), self.cleanups(), self.measure_disk()),
                self.integrity.run(),
                self.notifier.run(channels),
            ),
        );
        let failed = select(Box::pin(self.disk_failed()), Box::pin(loops));
        let reason = match select(stop, failed).await {
            Either::Left((reason, _)) => reason,
            Either::Right((Either::Left((failure, _)), _)) => return Err(failure),
            Either::Right((Either::Right(_), _)) => "a loop ended".to_owned(),
        };
        if self.write_guard.stopped_writing().is_none() {
            self.tool_metrics.flush().await;
            // If it fails, the marker keeps the freeze for the next daemon.
            if let Err(failed) = self.authority.record_freeze().await {
                warn!(%failed, "failed to record a freeze");
            }
            self.transactions.record(InstallationEvent::Stopped(Stopped { reason })).await?;
            self.checkpoints.create().await?;
        }
        Ok(())
    }

    /// Verifies a ledger that an earlier process found damaged. Nothing is written before it is found sound.
    async fn review_damage(&self) {
        if self.store.write_stop_reason().is_some() || self.write_guard.stopped_writing().is_none()
        {
            return;
        }
        self.integrity.set_result("running");
        if let Err(failed) = self.integrity.verify().await {
            error!(%failed, "failed to verify the ledger");
        }
    }

    async fn start_event(&self, warnings: Vec<String>) -> Result<Started, Error> {
        let checkpoint = self.store.last_checkpoint().await.map_err(errors::store)?;
        let config = self.config.active();
        Ok(Started {
            version: self.installation.settings.version.clone(),
            posture: self.installation.posture.name().to_owned(),
            is_other_posture: false,
            config_hash: config.config_hash.clone(),
            checkpoint: checkpoint.map_or(0, |checkpoint| checkpoint.chain.size()),
            lease_from: None,
            policy: Some(config.rules.version().to_owned()),
            warnings,
        })
    }

    async fn heartbeats(&self) {
        let every = self.installation.settings.heartbeat;
        if every.is_zero() {
            return pending().await;
        }
        let mut beat = interval(every);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.tick().await;
        loop {
            beat.tick().await;
            let heartbeat = InstallationEvent::Heartbeat(Heartbeat::default());
            if let Err(failed) = self.transactions.record(heartbeat).await {
                warn!(%failed, "failed to record a heartbeat");
            }
        }
    }

    /// Measures what uses the disk. Reading folders takes time, for which no request should wait.
    async fn measure_disk(&self) {
        let mut every = interval(MEASURE_DISK_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            match self.disk_use().await {
                Ok(disk) => self.lifecycle.measured_disk(disk),
                Err(failed) => warn!(%failed, "failed to measure what uses the disk"),
            }
        }
    }

    /// Applies the limits of `[retention]` at the start and then once a day.
    async fn cleanups(&self) {
        let mut every = interval(CLEANUP_EVERY);
        every.set_missed_tick_behavior(MissedTickBehavior::Delay);
        loop {
            every.tick().await;
            match self.clean_up(&Actor::system(), false).await {
                Ok(done) if !done.removed.is_empty() => {
                    info!(removed = ?done.removed, "cleaned up")
                }
                Ok(_) => {}
                Err(failed) => warn!(%failed, "failed to clean up"),
            }
        }
    }

    async fn housekeeping(&self) {
        let mut every = interval(HOUSEKEEPING_EVERY);
        loop {
            every.tick().await;
            let missing = match self.config.active().retention.limits_exports() {
                true => MissingLines::Leave,
                false => MissingLines::Restore,
            };
            match self.exports.export_finished_months(missing).await {
                Ok(done) if done.exports.iter().any(|export| export.written) => {
                    info!(dir = done.dir, "exported the ledger of finished months");
                }
                Ok(_) => {}
                Err(failed) => warn!(%failed, "failed to export the ledger"),
            }
            if let Err(failed) = self.drop_old_responses().await {
                warn!(%failed, "failed to drop old responses");
            }
        }
    }

    /// Returns when the disk does not keep what is written. A damaged ledger is no reason to return, because it is still
    /// served for reading.
    async fn disk_failed(&self) -> Error {
        match self.store.wait_until_stopped().await {
            reason @ store::Error::WriteFailed(_) => errors::store(reason),
            reason => {
                error!(%reason, "stopped writing to the ledger");
                self.write_guard.persist_damage();
                pending().await
            }
        }
    }
}
