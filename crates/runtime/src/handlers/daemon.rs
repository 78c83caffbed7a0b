//! Stops the daemon, and says whether it starts runs.

use std::time::Duration;

use api::{Code, DaemonStop, DaemonStopping, Error, Run, Serve, StartObstacle};
use kernel::run::Run as StoredRun;
use kernel::{RunId, ScheduleId};
use tokio::time::timeout;
use tracing::warn;

use crate::commit::caller::Caller;
use crate::commit::rows::row_key;
use crate::engine::Engine;
use crate::handlers::runs::wire_in;

/// How long the store may take to describe the runs that a stop is about. The stop does not wait for longer.
const DESCRIBE_WITHIN: Duration = Duration::from_secs(1);

/// Takes effect at once; the entry `installation.stopped` names the caller.
impl Serve<DaemonStop> for Engine {
    async fn serve(&self, caller: &Caller, request: DaemonStop) -> Result<DaemonStopping, Error> {
        if self.lifecycle.running().is_none() {
            return Err(Error::new(Code::NotNow, "no daemon is running"));
        }
        let stop = self.shutdown.current();
        stop.request(format!("`midwatch stop` by {}", caller.actor.name()));
        if request.now {
            stop.at_once.cancel();
        }
        if request.wait {
            stop.wait_for_runs().await;
        }
        Ok(DaemonStopping {
            pid: std::process::id(),
            drain_s: self.installation.settings.drain.as_secs(),
            running: self.running_runs().await,
            cut_off: self.runs_cut_off().await,
        })
    }
}

impl Engine {
    /// Asks the daemon to stop: no run starts any more, and running ones have the drain time to finish.
    pub fn request_stop(&self, reason: String) {
        self.shutdown.current().request(reason);
    }

    /// Cuts off running runs; only after [`Engine::request_stop`].
    pub fn stop_at_once(&self) {
        self.shutdown.current().at_once.cancel();
    }

    /// Returns the reason once a stop is requested.
    pub async fn stop_requested(&self) -> String {
        self.shutdown.current().requested().await
    }

    /// Returns when running runs are not waited for any longer.
    pub async fn stops_at_once(&self) {
        self.shutdown.current().at_once.cancelled().await;
    }

    /// Returns when the stopping daemon executes no run any more.
    pub async fn wait_for_runs(&self) {
        self.shutdown.current().wait_for_runs().await;
    }

    /// What keeps every queued run from starting.
    pub(super) async fn start_obstacle(&self) -> Result<Option<StartObstacle>, Error> {
        if self.lifecycle.running().is_none() && !self.store.is_shared() {
            return Ok(Some(StartObstacle::NoDaemon));
        }
        if self.shutdown.current().requested.is_cancelled() {
            return Ok(Some(StartObstacle::Stopping));
        }
        let frozen = self.authority.load().await?.frozen;
        Ok(frozen.map(|_| StartObstacle::Frozen))
    }

    /// The runs that this process executes.
    pub async fn running_runs(&self) -> Vec<Run> {
        self.describe(self.dispatcher.claimed()).await
    }

    /// The runs that the stop cut off, and what became of them.
    pub async fn runs_cut_off(&self) -> Vec<Run> {
        self.describe(self.shutdown.current().runs_cut_off()).await
    }

    /// None if the store does not answer soon.
    async fn describe(&self, runs: Vec<(RunId, ScheduleId)>) -> Vec<Run> {
        let described = async {
            let ids: Vec<_> = runs.iter().map(|(id, _)| row_key::<StoredRun>(id)).collect();
            let rows = self.transactions.load(&ids).await?;
            let mut runs = recorded(runs.iter().map(|(id, _)| wire_in(&rows, id)))?;
            self.name_runs(&mut runs).await?;
            Ok::<_, Error>(runs)
        };
        match timeout(DESCRIBE_WITHIN, described).await {
            Ok(Ok(runs)) => runs,
            Ok(Err(failed)) => {
                warn!(%failed, "failed to describe the running runs");
                Vec::new()
            }
            Err(_) => Vec::new(),
        }
    }
}

/// The runs that were recorded. One that is being started has no row before its start is committed.
fn recorded<T>(found: impl Iterator<Item = Result<T, Error>>) -> Result<Vec<T>, Error> {
    let is_recorded =
        |run: &Result<T, Error>| !matches!(run, Err(error) if error.code == Code::NotFound);
    found.filter(is_recorded).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_that_is_not_recorded_yet_hides_no_other() {
        let missing = || Err(Error::new(Code::NotFound, "run `run_2` does not exist"));
        let found = recorded([Ok(1), missing(), Ok(3)].into_iter());
        assert_eq!(found.unwrap(), [1, 3]);
        let failed =
            recorded([Ok(1), Err(Error::new(Code::Failed, "the store failed"))].into_iter());
        assert_eq!(failed.unwrap_err().code, Code::Failed);
    }
}
