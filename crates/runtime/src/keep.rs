//! Keeping the watch: what goes on while nobody asks for anything.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use agents::AgentBackend;
use api::Error;
use futures::future::{Either, FutureExt, join, join5, pending, select};
use kernel::watch::{Event as WatchEvent, Heartbeat, Started, Stopped};
use tokio::sync::mpsc::unbounded_channel;
use tokio::time::{MissedTickBehavior, interval, sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, info, warn};

use crate::at_once::AtOnce;
use crate::errors;
use crate::notices::Messenger;
use crate::watch::Engine;

/// A checkpoint is made after this many entries …
pub(crate) const CHECKPOINT_ENTRIES: u64 = 1_000;
/// … or this long after the first that has none …
pub(crate) const CHECKPOINT_AFTER: Duration = Duration::from_secs(60);
/// … but not more often than this, however fast the log grows.
const CHECKPOINT_PAUSE: Duration = Duration::from_millis(200);
/// How often to look for a month that has ended and is not exported, and for answers to forget.
const HOUSEKEEPING_EVERY: Duration = Duration::from_secs(3_600);
/// How long the answer to a key is kept.
const ANSWERS_KEPT: Duration = Duration::from_secs(7 * 86_400);

impl Engine {
    /// Keeps the watch until `stop` gives the reason to end, or the disk fails. A damaged log is
    /// still served for reading.
    pub async fn keep(
        &self,
        doer: Arc<dyn AgentBackend>,
        messengers: Vec<Arc<dyn Messenger>>,
        stop: impl Future<Output = String>,
    ) -> Result<(), Error> {
        let _ = self.kept_since().set(self.now());
        self.set_doer(Arc::clone(&doer));
        let mut stop = Box::pin(stop);
        if let Either::Right(_) = select(Box::pin(self.review()), &mut stop).await {
            return Ok(());
        }
        if let Some(reason) = self.stopped_writing() {
            warn!(%reason, "nothing is written: the watch only reads");
            self.set_check_found(reason.to_string());
            stop.await;
            return Ok(());
        }
        let callers = self.callers(messengers).await?;
        self.note_start(self.started().await?).await?;
        let looked = self.clock_at_start().await?;
        self.take_up().await?;
        let told = CancellationToken::new();
        let (to, handed) = unbounded_channel();
        let runs = self.work(Arc::clone(&doer), handed, told.clone());
        // Runs end before the log does.
        let stop = async {
            let reason = stop.await;
            told.cancel();
            reason
        };
        let stop = Box::pin(join(stop, runs).map(|(reason, ())| reason));
        let upkeep = join5(
            self.timer(AtOnce { to, stop: told.clone() }),
            self.lapse_approvals(),
            self.follow_authority(&*doer),
            join(self.follow_zones(), self.follow_clock(looked)),
            join5(
                self.checkpoints(),
                join(self.heartbeats(), self.tell_tools()),
                self.housekeeping(),
                self.check(),
                self.call_humans(callers),
            ),
        );
        let failed = select(Box::pin(self.disk_failed()), Box::pin(upkeep));
        let reason = match select(stop, failed).await {
            Either::Left((reason, _)) => reason,
            Either::Right((Either::Left((failure, _)), _)) => return Err(failure),
            Either::Right((Either::Right(_), _)) => "the upkeep ended".to_owned(),
        };
        if self.stopped_writing().is_none() {
            self.write_tallies().await;
            self.note(WatchEvent::Stopped(Stopped { reason })).await?;
            self.checkpoint().await?;
        }
        Ok(())
    }

    /// What an earlier process found damaged must be found sound before anything is written.
    async fn review(&self) {
        if self.store().stopped_writing().is_some() || self.stopped_writing().is_none() {
            return;
        }
        self.set_check_found("running");
        if let Err(failed) = self.verify_all().await {
            error!(%failed, "the check of the log did not finish");
        }
    }

    async fn started(&self) -> Result<Started, Error> {
        let checkpoint = self.store().last_checkpoint().await.map_err(errors::store)?;
        let settings = self.settings();
        let in_force = self.in_force();
        Ok(Started {
            version: settings.version.clone(),
            posture: self.posture().name().to_owned(),
            is_other_posture: false,
            config_hash: in_force.config_hash.clone(),
            checkpoint: checkpoint.map_or(0, |checkpoint| checkpoint.chain.size()),
            lease_from: None,
            policy: Some(in_force.rules.version().to_owned()),
            warnings: self.warnings(),
        })
    }

    async fn checkpoints(&self) {
        let mut signed = 0;
        loop {
            self.store().grown_past(signed).await;
            // The first of both: many entries, or enough time.
            let many = self.store().grown_past(signed + CHECKPOINT_ENTRIES - 1);
            let _ = timeout(CHECKPOINT_AFTER, many).await;
            match self.checkpoint().await {
                Ok(made) => signed = made.checkpoint.size,
                Err(failed) => warn!(%failed, "a checkpoint could not be made"),
            }
            sleep(CHECKPOINT_PAUSE).await;
        }
    }

    async fn heartbeats(&self) {
        if self.settings().heartbeat.is_zero() {
            return pending().await;
        }
        let mut beat = interval(self.settings().heartbeat);
        beat.set_missed_tick_behavior(MissedTickBehavior::Delay);
        beat.tick().await;
        loop {
            beat.tick().await;
            if let Err(failed) = self.note(WatchEvent::Heartbeat(Heartbeat {})).await {
                warn!(%failed, "a heartbeat could not be written");
            }
        }
    }

    async fn housekeeping(&self) {
        let mut every = interval(HOUSEKEEPING_EVERY);
        loop {
            every.tick().await;
            match self.export_ended().await {
                Ok(done) if done.exports.iter().any(|export| export.written) => {
                    info!(dir = done.dir, "exported the log of past months");
                }
                Ok(_) => {}
                Err(failed) => warn!(%failed, "the log could not be exported"),
            }
            if let Err(failed) = self.forget_old_answers().await {
                warn!(%failed, "old answers could not be dropped");
            }
        }
    }

    pub(crate) async fn forget_old_answers(&self) -> Result<(), Error> {
        let before = self.now().as_micros().saturating_sub(micros(ANSWERS_KEPT));
        self.store().forget_answers(before).await.map_err(errors::store)
    }

    /// Returns when the disk does not keep what is written. A damaged log is no reason to return: it
    /// is still served for reading.
    async fn disk_failed(&self) -> Error {
        match self.store().until_stopped().await {
            reason @ store::Error::Stopped(_) => errors::store(reason),
            reason => {
                error!(%reason, "nothing is written any more");
                self.remember_damage();
                pending().await
            }
        }
    }
}

pub(crate) fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}
