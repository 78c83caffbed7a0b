//! The executor's loop: claims runs from the dispatcher, has them executed, and drains them when the daemon stops.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use agents::{AgentBackend, Attempt};
use futures::future::FutureExt;
use store::Store;
use tokio::select;
use tokio::sync::mpsc::UnboundedReceiver;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tracing::{error, warn};

use crate::authorize::approvals::Approvals;
use crate::authorize::authority::AuthorityControl;
use crate::authorize::budgets::Budgets;
use crate::authorize::policy::Policy;
use crate::authorize::stop_switch::StopSwitch;
use crate::clock::Time;
use crate::commit::transaction::Transactions;
use crate::config::Config;
use crate::dispatch::dispatcher::{Claim, Dispatcher};
use crate::execute::fast_start::FastStarted;
use crate::execute::outcome::{AttemptOutcome, panicked, unreadable_text};
use crate::execute::start::{ReadyWork, StartOutcome, StartedAttempt};
use crate::execute::tool_call::{Handles, ToolCalls};
use crate::execute::tool_metrics::ToolMetrics;
use crate::installation::Installation;
use crate::node::NodeId;
use crate::secrets::sealing::Sealing;
use crate::shutdown::Shutdown;

/// How long runs have to stop once the drain time is over.
const STOP: Duration = Duration::from_secs(15);
/// How often to search the store for queued runs that the dispatcher does not know.
const RESCAN_EVERY: Duration = Duration::from_secs(60);
/// Pause before a failed store operation is retried.
pub(super) const RETRY_PAUSE: Duration = Duration::from_secs(1);

/// Starts runs, executes them, and records their outcome.
///
/// The commit that starts a run comes before its effect, and an outcome is recorded only for the attempt it belongs to.
#[derive(Debug)]
pub(crate) struct Executor {
    pub(crate) stop_switch: Arc<StopSwitch>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) config: Arc<Config>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) sealing: Arc<Sealing>,
    pub(crate) backend: Arc<dyn AgentBackend>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) authority: Arc<AuthorityControl>,
    pub(crate) tool_calls: Arc<ToolCalls>,
    pub(crate) tool_metrics: Arc<ToolMetrics>,
    pub(crate) node: NodeId,
    pub(crate) shutdown: Arc<Shutdown>,
}

impl Executor {
    /// Executes runs until it is told to stop. Then it lets running runs finish for the drain time, and cuts off the rest.
    pub(crate) async fn run(
        self: Arc<Self>,
        handles: Arc<dyn Handles>,
        mut fast_started: UnboundedReceiver<FastStarted>,
    ) {
        let stop = self.shutdown.current();
        stop.runs_begin();
        let shutdown = stop.requested.clone();
        let mut running = JoinSet::new();
        let resume = |running: &mut JoinSet<()>, run: FastStarted| {
            running.spawn(Arc::clone(&self).execute_fast_started(
                run,
                handles.clone(),
                shutdown.clone(),
            ));
        };
        let mut rescan_at = self.time.after(RESCAN_EVERY);
        while !shutdown.is_cancelled() {
            self.dispatcher.apply_clock(self.time.untrusted().is_some());
            for claim in self.dispatcher.claim_ready(self.time.now()) {
                let executor = Arc::clone(&self);
                running.spawn(executor.execute_claim(claim, handles.clone(), shutdown.clone()));
            }
            let wake = self.dispatcher.next_ready_at().map_or(rescan_at, |at| at.min(rescan_at));
            select! {
                biased;
                () = shutdown.cancelled() => {}
                Some(run) = fast_started.recv() => resume(&mut running, run),
                () = self.dispatcher.changed() => {}
                Some(_) = running.join_next() => {}
                () = self.time.wait_until(wake) => {}
            }
            // Also when the clock was set back.
            if rescan_at <= self.time.now() || self.time.after(RESCAN_EVERY) < rescan_at {
                rescan_at = self.time.after(RESCAN_EVERY);
                if let Err(failed) = self.rescan_queued().await {
                    error!(%failed, "failed to search for queued runs");
                }
            }
        }
        let mut drain = async |running: &mut JoinSet<()>| {
            // The timer may still be in a commit that starts a run.
            while let Some(run) = fast_started.recv().await {
                resume(running, run);
            }
            while running.join_next().await.is_some() {}
        };
        let drained = stop.at_once.run_until_cancelled(drain(&mut running));
        let drained = timeout(self.installation.settings.drain, drained).await;
        if !matches!(drained, Ok(Some(()))) {
            let cut_off = self.dispatcher.claimed();
            for (run, schedule) in &cut_off {
                warn!(%run, %schedule, "cut off a running run: the daemon stops");
            }
            stop.cut_off(cut_off);
            self.dispatcher.cancel_all();
            // The next start recovers a run whose outcome cannot be recorded now.
            let _ = timeout(STOP, drain(&mut running)).await;
        }
        stop.runs_ended();
    }

    async fn execute_fast_started(
        self: Arc<Self>,
        run: FastStarted,
        handles: Arc<dyn Handles>,
        shutdown: CancellationToken,
    ) {
        let FastStarted { claim, attempt } = run;
        match attempt {
            Some(attempt) => self.execute(&claim, attempt, &*handles).await,
            None => self.requeue(&claim, &shutdown).await,
        }
        self.dispatcher.release(&claim.id);
    }

    async fn execute_claim(
        self: Arc<Self>,
        claim: Claim,
        handles: Arc<dyn Handles>,
        shutdown: CancellationToken,
    ) {
        match self.start(&claim, &shutdown).await {
            Ok(StartOutcome::Started(attempt)) => self.execute(&claim, *attempt, &*handles).await,
            Ok(StartOutcome::Decided) => {}
            Ok(StartOutcome::Short(shortage)) => self.end_for_shortage(&claim, shortage).await,
            Ok(StartOutcome::NotNow) => {
                // Another process may have frozen the installation, and this one does not know it yet.
                if self.authority.load().await.is_ok_and(|authority| authority.frozen.is_some()) {
                    sleep(RETRY_PAUSE).await;
                }
                self.requeue(&claim, &shutdown).await;
            }
            Err(failed) => {
                error!(%failed, run = %claim.id, "failed to start a run");
                sleep(RETRY_PAUSE).await;
                self.requeue(&claim, &shutdown).await;
            }
        }
        self.dispatcher.release(&claim.id);
    }

    /// Executes an attempt that was started, and records its outcome.
    async fn execute(&self, claim: &Claim, attempt: StartedAttempt, handles: &dyn Handles) {
        let StartedAttempt { epoch, work } = attempt;
        let outcome = match work {
            Ok(ReadyWork::Prompt(attempt)) => {
                let is_sensitive = attempt.is_sensitive;
                let outcome = self.run_attempt(*attempt, claim.cancel.clone()).await;
                if is_sensitive { self.seal_output(outcome) } else { outcome }
            }
            // A tool call is short and atomic, so it is not cancelled.
            Ok(ReadyWork::Call(call)) => {
                let outcome = self.tool_calls.execute(&call, &claim.id, handles).await.into();
                if call.is_sensitive { self.seal_output(outcome) } else { outcome }
            }
            Err(unreadable) => unreadable_text(&unreadable),
        };
        self.record_outcome(claim, epoch, outcome).await;
    }

    /// Runs an attempt on the agent's backend.
    async fn run_attempt(&self, attempt: Attempt, cancel: CancellationToken) -> AttemptOutcome {
        match AssertUnwindSafe(self.backend.run(attempt, cancel)).catch_unwind().await {
            Ok(result) => result.into(),
            Err(_) => panicked(),
        }
    }
}
