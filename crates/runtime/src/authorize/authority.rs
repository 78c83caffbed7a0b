//! The authority of the installation: whether it is frozen, and how long the lease lasts that people renew.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use agents::AgentBackend;
use api::Error;
use calendar::Span;
use kernel::approval::{self, Approval, ApprovalContext, Plan};
use kernel::authority::{self, Attribution, Authority, Command, LeaseState};
use kernel::installation::{Event as InstallationEvent, Started};
use kernel::run::{self, State};
use kernel::{Actor, ApprovalId, EventBody, Now, RunId, ScheduleId, Timestamp};
use store::Store;
use tokio::select;
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};
use tracing::{debug, error, warn};

use crate::authorize::approvals::{Approvals, find_approval};
use crate::authorize::stop_markers::StopTarget;
use crate::authorize::stop_switch::{StopSwitch, UnrecordedFreeze};
use crate::clock::Time;
use crate::commit::rows::{RowKey, Rows, row_key};
use crate::commit::run_context::{definition_rows, run_context, run_rows};
use crate::commit::transaction::{Transaction, Transactions};
use crate::config::Config;
use crate::dispatch::dispatcher::Dispatcher;
use crate::errors;
use crate::installation::Installation;
use crate::timestamps::rfc3339;
use crate::wire;

/// How often to check whether another process has frozen the installation: a freeze takes effect within a second.
const CHECK_EVERY: Duration = Duration::from_millis(500);
/// How often to check whether the runs of a frozen installation have ended.
const RECHECK_RUNS_EVERY: Duration = Duration::from_millis(100);
/// How long a person who looks waits for the renewal of the lease.
const LOOK_WITHIN: Duration = Duration::from_millis(500);
/// The longest sleep, because the clock may be set.
const SLEEP_MAX: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct AuthorityControl {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) config: Arc<Config>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
    pub(crate) dispatcher: Arc<Dispatcher>,
    pub(crate) backend: Arc<dyn AgentBackend>,
    pub(crate) stop_switch: Arc<StopSwitch>,
    /// The authority when it was last read.
    pub(crate) last_known: Mutex<Authority>,
    /// Signals every change.
    pub(crate) changed: Arc<Notify>,
    pub(crate) approvals: Arc<Approvals>,
    /// The renewal of the lease after which what it had parked was released.
    pub(crate) released_after: Mutex<Option<Attribution>>,
}

impl AuthorityControl {
    /// Applies freezes of this and other processes, and warns people before the lease runs out.
    pub(crate) async fn run(&self) {
        loop {
            let wake = match self.check().await {
                Ok(wake) => wake,
                Err(failed) => {
                    error!(%failed, "failed to read the authority of the installation");
                    self.time.after(CHECK_EVERY)
                }
            };
            select! {
                biased;
                () = self.time.wait_until(wake) => {}
                () = self.changed.notified() => {}
            }
        }
    }

    /// Returns when to check again.
    async fn check(&self) -> Result<Timestamp, Error> {
        self.record_freeze().await?;
        let authority = self.load().await?;
        self.dispatcher.apply_freeze(&authority);
        if let Some(frozen) = &authority.frozen {
            // Some leftover processes are found only once their parent has ended.
            self.backend.end_leftover_processes();
            if self.cancel_runs(&frozen.by).await {
                return Ok(self.time.after(RECHECK_RUNS_EVERY));
            }
        }
        let lease = self.config.active().lease;
        let warned = self.transactions.commit_own(vec![self.row()], vec![], |rows, now| {
            let now = Now { clock: self.time.now(), latest: now };
            Ok(self.events(authority::decide_warning(&self.in_rows(rows), lease, now)))
        });
        warned.await?;
        self.release_once_renewed(&authority).await?;
        let is_soon = authority.frozen.is_some() || self.store.is_shared();
        let latest = self.time.after(if is_soon { CHECK_EVERY } else { SLEEP_MAX });
        let warning = authority.next_warning(lease).map(|(at, _)| at);
        // A warning that was due has just been recorded.
        let warning = warning.filter(|at| self.time.now() < *at);
        Ok(warning.map_or(latest, |at| at.min(latest)))
    }

    /// Releases what only the lease had parked, once per renewal. A renewal by another process, or by one that was killed
    /// meanwhile, is found here too.
    async fn release_once_renewed(&self, authority: &Authority) -> Result<(), Error> {
        let last = || self.released_after.lock().unwrap_or_else(PoisonError::into_inner);
        if *last() == authority.renewed {
            return Ok(());
        }
        self.release_parked().await?;
        *last() = authority.renewed.clone();
        Ok(())
    }

    /// The approvals that only the expired lease required, in the order in which they expire.
    pub(crate) async fn parked_by_lease(&self) -> Result<Vec<(ApprovalId, Approval)>, Error> {
        let open = self.approvals.open().await?;
        Ok(open.into_iter().filter(|(_, approval)| approval.is_asked_only_by_lease()).collect())
    }

    /// Withdraws the approvals that only the lease required, if it is renewed, and queues their runs again.
    pub(crate) async fn release_parked(&self) -> Result<(), Error> {
        for (id, _) in self.parked_by_lease().await? {
            let (rows, mut reads) = self.approvals.rows_of(&id).await?;
            reads.push(self.row());
            let released = self.transactions.commit_own(rows, reads, |rows, now| {
                let approval = find_approval(rows, &id)?;
                let Plan { run, schedule, policy, .. } = &*approval.plan;
                let Some(run_context) = run_context(rows, run, schedule, now) else {
                    return Ok(vec![]);
                };
                let context = ApprovalContext {
                    id: &id,
                    approval,
                    run_context,
                    agent: None,
                    active_policy: policy,
                };
                let lease = self.config.active().lease;
                Ok(approval::release(context, &self.in_rows(rows), lease, self.time.now()))
            });
            released.await?;
        }
        Ok(())
    }

    /// Freezes this process at once, before anything is recorded.
    pub(crate) fn freeze_now(&self, by: &Actor, note: Option<String>) -> Result<(), Error> {
        let now = self.time.monotonic_now();
        let command = Command::Freeze { note: note.clone() };
        // Who may freeze does not depend on the stored authority.
        authority::decide(&Authority::default(), by, command, now).map_err(errors::refused)?;
        self.stop_switch.freeze(UnrecordedFreeze { by: by.clone(), note, at: now.latest });
        Ok(())
    }

    /// Records a freeze that is in effect in this process and not in the ledger yet.
    pub(crate) async fn record_freeze(&self) -> Result<(), Error> {
        let Some(UnrecordedFreeze { by, note, .. }) = self.stop_switch.unrecorded() else {
            return Ok(());
        };
        let transaction = Transaction { rows: vec![self.row()], ..Transaction::by(&by) };
        let command = Command::Freeze { note };
        let decide = |rows: &Rows, now| self.decide(rows, &by, &command, now);
        self.transactions.commit(transaction, decide).await?;
        self.stop_switch.freeze_recorded();
        Ok(())
    }

    /// Keeps a freeze that could not be recorded, and goes on trying to record it.
    pub(crate) fn keep_unrecorded_freeze(&self) {
        let Some(freeze) = self.stop_switch.unrecorded() else { return };
        self.stop_switch.leave_marker(StopTarget::Installation, freeze.note.as_deref());
        self.changed.notify_one();
    }

    /// Cancels the runs of this process. Returns whether there were any.
    async fn cancel_runs(&self, by: &str) -> bool {
        let claimed = self.dispatcher.claimed();
        for (id, schedule) in &claimed {
            if let Err(failed) = self.cancel_run(id, schedule, by).await {
                error!(%failed, run = %id, "failed to cancel a run of a frozen installation");
            }
        }
        !claimed.is_empty()
    }

    async fn cancel_run(&self, id: &RunId, schedule: &ScheduleId, by: &str) -> Result<(), Error> {
        let system = Actor::system();
        let (rows, reads) = (run_rows(id, schedule), definition_rows(schedule, None));
        let cancelled = self.transactions.commit_own(rows, reads, |rows, now| {
            let Some(context) = run_context(rows, id, schedule, now) else { return Ok(vec![]) };
            // A run that is only about to start will not.
            if !matches!(context.run.state, State::Running { .. }) {
                return Ok(vec![]);
            }
            let note = Some(format!("frozen by {by}"));
            run::decide(context, &system, run::Command::Cancel { note }).map_err(errors::refused)
        });
        cancelled.await.map(drop)
    }

    /// Records that the daemon has started.
    pub(crate) async fn record_start(&self, started: Started) -> Result<(), Error> {
        let recorded = self.transactions.commit_own(vec![self.row()], vec![], |rows, now| {
            let Authority { renewed, posture, .. } = self.in_rows(rows);
            let started = Started {
                lease_from: renewed.is_none().then_some(now),
                is_other_posture: posture != Some(self.installation.posture),
                ..started.clone()
            };
            let event = InstallationEvent::Started(started);
            Ok(vec![EventBody::Installation(self.installation.instance.clone(), event)])
        });
        recorded.await.map(drop)
    }

    /// Renews the lease after a person has decided something, which shows that they are there.
    pub(crate) async fn renew_lease_on_activity(&self, actor: &Actor) {
        let lease = self.config.active().lease;
        if let Err(failed) = self.renew_by(actor, Command::RenewOnActivity { lease }).await {
            warn!(%failed, "failed to renew the lease");
        }
    }

    /// Renews the lease because a person looks at the installation. Their request is served whether or not this
    /// works, so it is given up after a short time.
    pub(crate) async fn renew_lease_on_look(&self, actor: &Actor) {
        let lease = self.config.active().lease;
        let renewed = timeout(LOOK_WITHIN, self.renew_by(actor, Command::Look { lease })).await;
        if !matches!(renewed, Ok(Ok(()))) {
            debug!(?renewed, "failed to renew the lease for a person who looks");
        }
    }

    async fn renew_by(&self, actor: &Actor, command: Command) -> Result<(), Error> {
        let transaction = Transaction { rows: vec![self.row()], ..Transaction::by(actor) };
        let decide = |rows: &Rows, now| self.decide(rows, actor, &command, now);
        self.transactions.commit(transaction, decide).await.map(drop)
    }

    pub(crate) fn decide(
        &self,
        rows: &Rows,
        actor: &Actor,
        command: &Command,
        now: Timestamp,
    ) -> Result<Vec<EventBody>, Error> {
        let now = Now { clock: self.time.now(), latest: now };
        let events = authority::decide(&self.in_rows(rows), actor, command.clone(), now);
        Ok(self.events(events.map_err(errors::refused)?))
    }

    /// Returns when the installation is frozen, by this or another process.
    pub(crate) async fn wait_until_frozen(&self) {
        let by_the_ledger = async {
            while !self.load().await.is_ok_and(|authority| authority.frozen.is_some()) {
                sleep(CHECK_EVERY).await;
            }
        };
        select! {
            biased;
            () = self.stop_switch.wait_until_frozen() => {}
            () = by_the_ledger => {}
        }
    }

    /// The authority as the ledger has it, and frozen if this process is.
    pub(crate) async fn load(&self) -> Result<Authority, Error> {
        let authority = self.in_rows(&self.transactions.load(&[self.row()]).await?);
        *self.last_known.lock().unwrap_or_else(PoisonError::into_inner) = authority.clone();
        Ok(self.with_unrecorded_freeze(authority))
    }

    /// The authority when it was last read, and frozen if this process is.
    pub(crate) fn last_known(&self) -> Authority {
        let known = self.last_known.lock().unwrap_or_else(PoisonError::into_inner).clone();
        self.with_unrecorded_freeze(known)
    }

    fn with_unrecorded_freeze(&self, authority: Authority) -> Authority {
        let unrecorded = self.stop_switch.unrecorded().map(|UnrecordedFreeze { by, note, at }| {
            Attribution { by: by.name().to_owned(), note, at, clock: None }
        });
        Authority { frozen: authority.frozen.or(unrecorded), ..authority }
    }

    pub(crate) fn row(&self) -> RowKey {
        row_key::<Authority>(&self.installation.instance)
    }

    pub(crate) fn in_rows(&self, rows: &Rows) -> Authority {
        rows.authority_of(&self.installation.instance)
    }

    pub(crate) fn to_wire(&self, authority: &Authority) -> api::Authority {
        let (lease, now) = (self.config.active().lease, self.time.monotonic_now());
        let at = |state| authority.lease_state_starts_at(lease, state).map(rfc3339);
        let span = |us: i64| Span::from_millis(us / 1_000).map(|span| span.to_string());
        api::Authority {
            frozen: authority.frozen.as_ref().map(attribution),
            lease: api::Lease {
                state: wire::lease_state(authority.lease_state(lease, now)),
                renewed: authority.renewed.as_ref().map(attribution),
                asks_from: at(LeaseState::Ask),
                pauses_from: at(LeaseState::Paused),
                ask_after: span(lease.ask_after_us),
                pause_after: span(lease.pause_after_us),
            },
        }
    }

    fn events(&self, events: impl IntoIterator<Item = authority::Event>) -> Vec<EventBody> {
        let body = |event| EventBody::Authority(self.installation.instance.clone(), event);
        events.into_iter().map(body).collect()
    }
}

fn attribution(attribution: &Attribution) -> api::Attribution {
    let Attribution { by, note, at, clock: _ } = attribution;
    api::Attribution { by: by.clone(), at: rfc3339(*at), note: note.clone() }
}
