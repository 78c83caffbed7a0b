//! Recovery after a restart: runs that a previous process had started, and runs that wait in the store.

use api::Error;
use kernel::agent::Agent;
use kernel::run::{self, Run, State};
use kernel::{Noun, NounState, RunId, ScheduleId};
use store::{BEFORE_ALL_DUE, Due, Store};
use tracing::{error, info};

use crate::authorize::stop_markers::{StopRequest, StopTarget};
use crate::commit::codec;
use crate::commit::run_context::{definition_rows, run_context, run_rows};
use crate::dispatch::dispatcher::Cancellation;
use crate::errors;
use crate::execute::executor::Executor;

/// Live runs read at a time.
const LIVE_PAGE: usize = 1_000;

/// A scan of all live runs, page by page.
#[derive(Default)]
struct LiveRuns {
    /// Due time and id of the last run that was read.
    last: Option<(i64, String)>,
}

impl LiveRuns {
    /// The next page; `None` at the end.
    async fn next_page(&mut self, store: &dyn Store) -> Result<Option<Vec<(RunId, Run)>>, Error> {
        let after = self.last.as_ref().map_or(BEFORE_ALL_DUE, |(due_us, id)| (*due_us, id));
        let live = store
            .list_due(Due { noun: Noun::Run.name(), after, until_us: i64::MAX, limit: LIVE_PAGE })
            .await;
        let live = live.map_err(errors::store)?;
        let Some(last) = live.last() else { return Ok(None) };
        self.last = Some((last.due_us.unwrap_or(i64::MAX), last.id.clone()));
        // A run that cannot be read must not hold up the others.
        let readable = live.iter().filter_map(|item| match codec::decode_listed::<Run>(item) {
            Ok(run) => Some(run),
            Err(failed) => {
                error!(%failed, run = item.id, "failed to read a run");
                None
            }
        });
        Ok(Some(readable.collect()))
    }
}

impl Executor {
    /// Queues the runs that wait in the store, and recovers those that a previous process had started. The process holds
    /// the lock of the data directory, so the previous one has ended.
    pub(crate) async fn recover_runs(&self) -> Result<(), Error> {
        self.dispatcher.open();
        self.dispatcher.apply_freeze(&self.authority.load().await?);
        self.node.save()?;
        self.load_agents().await?;
        let mut live = LiveRuns::default();
        while let Some(page) = live.next_page(&*self.store).await? {
            for (id, run) in page {
                self.obey_marker(&id, &run).await?;
                match &run.state {
                    // On a store that no other process can write, every running run is left over.
                    State::Running { holder, .. }
                        if self.node.is_previous_process(holder) || !self.store.is_shared() =>
                    {
                        self.recover_run(&id, &run.schedule).await?;
                    }
                    State::Running { .. }
                    | State::Queued { .. }
                    | State::Parked
                    | State::Ended(_) => self.dispatcher.update(&id, &run),
                }
            }
        }
        Ok(())
    }

    /// Records a cancellation that the ledger did not have when the previous process ended.
    async fn obey_marker(&self, id: &RunId, run: &Run) -> Result<(), Error> {
        match self.stop_switch.markers.find(StopTarget::Run(id)) {
            Some(StopRequest { by, note }) => {
                self.record_cancel(id, &run.schedule, &Cancellation { by, note }).await
            }
            None => Ok(()),
        }
    }

    /// Queues runs that wait in the store and that the dispatcher does not know, because the reply to the commit that
    /// queued them was lost.
    pub(super) async fn rescan_queued(&self) -> Result<(), Error> {
        let mut live = LiveRuns::default();
        while let Some(page) = live.next_page(&*self.store).await? {
            for (id, run) in page {
                if matches!(run.state, State::Queued { .. }) {
                    self.dispatcher.update(&id, &run);
                }
            }
        }
        Ok(())
    }

    /// Tells the dispatcher the concurrency limits of all agents before their first run starts.
    async fn load_agents(&self) -> Result<(), Error> {
        let most = usize::try_from(Agent::OBJECTS_MAX).map_err(errors::internal)?;
        let items = self.store.list(Noun::Agent.name(), "", most).await.map_err(errors::store)?;
        for item in items {
            // An agent that cannot be read must not hold up the others.
            match codec::decode_item(&item) {
                Ok(agent) => agent.iter().for_each(|agent| self.dispatcher.set_agent(agent)),
                Err(failed) => error!(%failed, agent = item.id, "failed to read an agent"),
            }
        }
        Ok(())
    }

    /// Queues the run again or ends it, as [`run::recover`] decides.
    async fn recover_run(&self, id: &RunId, schedule: &ScheduleId) -> Result<(), Error> {
        let (rows, reads) = (run_rows(id, schedule), definition_rows(schedule, None));
        let recovered = self.transactions.commit_own(rows, reads, |rows, now| {
            Ok(run_context(rows, id, schedule, now).map(run::recover).unwrap_or_default())
        });
        if let Some(run) =
            recovered.await?.as_ref().and_then(|committed| committed.after.get::<Run>(id))
        {
            info!(run = %id, state = run.state.name(), "recovered a run of a previous process");
        }
        Ok(())
    }
}
