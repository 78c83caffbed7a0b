//! The running instance. It owns the parts and has no rules of its own.

pub(crate) mod after_commit;
pub(crate) mod approvers;
mod cleanup;
pub(crate) mod clock_monitor;
mod event_metrics;
pub(crate) mod handle;
pub(crate) mod lifecycle;
pub(crate) mod open;
pub(crate) mod reload;
pub(crate) mod run;
mod scrape;
pub(crate) mod startup_checks;
mod working_directories;

use std::convert::Infallible;
use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use agents::AgentBackend;
use api::Error;
use api::wire::Secret;
use kernel::posture::Finding;
use kernel::{Actor, Role};
use ledger::Chain;
use metrics::Registry;
use store::Store;
use tokio::task::spawn_blocking;
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use crate::authorize::approval_files::ApprovalFiles;
use crate::authorize::approvals::Approvals;
use crate::authorize::audit::Audit;
use crate::authorize::authenticate::{Authenticator, Credentials};
use crate::authorize::authority::AuthorityControl;
use crate::authorize::budgets::Budgets;
use crate::authorize::devices::{DeviceUse, Devices, SignIn, SignedIn};
use crate::authorize::policy::Policy;
use crate::authorize::references::References;
use crate::authorize::scope::Scope;
use crate::authorize::stop_switch::StopSwitch;
use crate::authorize::tokens::Tokens;
use crate::authorize::tool_catalog::ToolCatalog;
use crate::clock::{Time, micros};
use crate::commit::transaction::Transactions;
use crate::config::Config;
use crate::damage::WriteGuard;
use crate::dispatch::dispatcher::Dispatcher;
use crate::engine::clock_monitor::ClockMonitor;
use crate::engine::handle::LocalHandle;
use crate::engine::lifecycle::Lifecycle;
use crate::engine::reload::Reloader;
use crate::engine::startup_checks::ConfiguredSecrets;
use crate::errors;
use crate::execute::executor::Executor;
use crate::execute::tool_call::ToolCalls;
use crate::execute::tool_metrics::ToolMetrics;
use crate::installation::Installation;
use crate::ledger::checkpoints::{CHECKPOINT_AFTER, CHECKPOINT_ENTRIES, Checkpoints};
use crate::ledger::export::Exports;
use crate::ledger::feed::Feed;
use crate::ledger::integrity_check::IntegrityCheck;
use crate::notify::Notifier;
use crate::schedule::dependents::Dependents;
use crate::schedule::timer::Timer;
use crate::schedule::zones::Zones;
use crate::secrets::sealing::Sealing;
use crate::shutdown::Shutdown;

/// How often to look for marker files.
const MARKERS_EVERY: Duration = Duration::from_millis(250);

/// An open data directory. Cheap to clone; clones share all parts.
#[derive(Clone, Debug)]
pub struct Engine(Arc<Parts>);

/// The parts of an engine, in the order in which they are built.
#[derive(Debug)]
pub struct Parts {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) write_guard: Arc<WriteGuard>,
    pub(crate) config: Arc<Config>,
    pub(crate) sealing: Arc<Sealing>,
    pub(crate) backend: Arc<dyn AgentBackend>,
    pub(crate) secrets: Option<ConfiguredSecrets>,
    pub(crate) dependents: Arc<Dependents>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) integrity: Arc<IntegrityCheck>,
    pub(crate) checkpoints: Arc<Checkpoints>,
    pub(crate) exports: Arc<Exports>,
    pub(crate) feed: Arc<Feed>,
    pub(crate) tools: Arc<ToolCatalog>,
    pub(crate) tokens: Arc<Tokens>,
    pub(crate) audit: Arc<Audit>,
    pub(crate) authenticator: Arc<Authenticator>,
    pub(crate) devices: Arc<Devices>,
    pub(crate) policy: Arc<Policy>,
    pub(crate) references: References,
    pub(crate) scope: Arc<Scope>,
    pub(crate) budgets: Arc<Budgets>,
    pub(crate) approvals: Arc<Approvals>,
    pub(crate) stop_switch: Arc<StopSwitch>,
    pub(crate) authority: Arc<AuthorityControl>,
    pub(crate) approval_files: Arc<ApprovalFiles>,
    pub(crate) tool_calls: Arc<ToolCalls>,
    pub(crate) tool_metrics: Arc<ToolMetrics>,
    pub(crate) executor: Arc<Executor>,
    pub(crate) timer: Arc<Timer>,
    pub(crate) zones: Arc<Zones>,
    pub(crate) notifier: Arc<Notifier>,
    pub(crate) clock_monitor: ClockMonitor,
    pub(crate) lifecycle: Lifecycle,
    pub(crate) shutdown: Arc<Shutdown>,
    pub(crate) reloader: Reloader,
    /// Cancels tests of agents.
    pub(crate) agent_tests: CancellationToken,
    /// What was counted since the start of this process.
    pub(crate) metrics: Arc<Registry>,
}

impl Deref for Engine {
    type Target = Parts;

    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Engine {
    /// A handle that acts for a caller.
    pub fn handle(&self, actor: Actor) -> LocalHandle {
        LocalHandle::new(self.clone(), actor)
    }

    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    pub fn instance(&self) -> &str {
        &self.installation.instance
    }

    /// The caller behind some credentials.
    pub async fn authenticate(&self, credentials: Credentials<'_>) -> Result<Actor, Error> {
        self.authenticator.authenticate(credentials).await
    }

    /// The caller behind some credentials, for a request that stops something. It does not depend on the store.
    pub async fn authenticate_to_stop(&self, credentials: Credentials<'_>) -> Result<Actor, Error> {
        self.authenticator.authenticate_to_stop(credentials).await
    }

    /// The person who visits a page for people. Agents and runs are refused.
    pub async fn authenticate_person(&self, credentials: Credentials<'_>) -> Result<Actor, Error> {
        self.authenticator.authenticate_person(credentials).await
    }

    /// The client of the HTTP API with the token of a person. A process of a run is refused.
    pub async fn authenticate_api_client(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Actor, Error> {
        self.authenticator.authenticate_api_client(credentials).await
    }

    /// Number of entries in the ledger.
    pub async fn ledger_size(&self) -> Result<u64, Error> {
        Ok(self.store.head().await.map_err(errors::store)?.size())
    }

    /// Fails if the ledger cannot be read, or nothing may be written to it.
    pub async fn check_ready(&self) -> Result<(), Error> {
        self.write_guard.check()?;
        self.ledger_size().await.map(drop)
    }

    /// The caller of a network request, by its token alone: an assistant, unless the token is an agent's or observer's own.
    pub async fn authenticate_token(&self, token: &Secret) -> Result<Actor, Error> {
        self.authenticator.authenticate_token(token).await
    }

    /// The reader of the metrics behind some credentials. Agents, assistants and runs are refused.
    pub async fn authenticate_metrics_reader(
        &self,
        credentials: Credentials<'_>,
    ) -> Result<Actor, Error> {
        self.authenticator.authenticate_metrics_reader(credentials).await
    }

    /// Signs a browser in by the code of a link. Returns its session secret.
    pub async fn sign_in(&self, sign_in: SignIn) -> Result<Secret, Error> {
        self.devices.sign_in(sign_in).await
    }

    /// The person behind the session secret of a browser.
    pub async fn authenticate_device(
        &self,
        session: &Secret,
        usage: DeviceUse,
    ) -> Result<SignedIn, Error> {
        self.devices.authenticate(session, usage).await
    }

    /// A person looks at the installation, which keeps the lease from expiring. Whoever is no operator, such as a run, an
    /// assistant or an observer, renews nothing.
    pub async fn record_look(&self, actor: &Actor) {
        if Role::Operator <= actor.role && self.time.untrusted().is_none() {
            self.authority.renew_lease_on_look(actor).await;
        }
    }

    /// The person who starts the daemon accepts a clock behind the ledger. Call it before [`Engine::run`], which records it.
    pub fn accept_clock(&self) {
        self.clock_monitor.accepts_clock.store(true, Ordering::Relaxed);
    }

    /// A clock that is so far ahead of the ledger that nothing may be changed by it.
    pub fn untrusted_clock(&self) -> Option<Finding> {
        self.time.untrusted()
    }

    /// Approves runs by the files that an operator puts into the data directory. Never returns.
    pub async fn follow_approval_files(&self) -> Infallible {
        self.approval_files.run().await
    }

    /// Obeys stops that were left as marker files in the data directory. Never returns.
    pub async fn watch_stop_markers(&self) -> Infallible {
        loop {
            let (stop, now) = (Arc::clone(&self.stop_switch), self.time.now());
            // The disk may hang, and nothing else must wait for it.
            let _ = spawn_blocking(move || stop.obey_markers(now)).await;
            if self.stop_switch.unrecorded().is_some() {
                self.authority.changed.notify_one();
            }
            sleep(MARKERS_EVERY).await;
        }
    }

    /// Cancels running tests of agents and refuses new ones, so that they do not delay the end of the daemon.
    pub fn stop_agent_tests(&self) {
        self.agent_tests.cancel();
    }

    /// Does the upkeep that is due when a command without a daemon is done: signs a ledger that has grown long, or whose
    /// last checkpoint is old.
    pub async fn close(&self) -> Result<(), Error> {
        self.write_guard.persist_damage();
        self.tool_metrics.flush_changes().await;
        let size = self.store.head().await.map_err(errors::store)?.size();
        let last = self.store.last_checkpoint().await.map_err(errors::store)?;
        let signed = last.map_or_else(Chain::empty, |last| last.chain);
        let is_long = signed.size() + CHECKPOINT_ENTRIES <= size;
        let is_old = signed.ts_us() + micros(CHECKPOINT_AFTER) <= self.time.now().as_micros();
        let is_due = signed.size() < size && (is_long || is_old);
        if is_due && self.write_guard.stopped_writing().is_none() {
            self.checkpoints.create().await?;
            self.drop_old_responses().await?;
        }
        Ok(())
    }
}
