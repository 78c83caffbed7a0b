//! Freezes and thaws the installation, and renews the lease.

use std::time::Duration;

use api::{ApiRequest, AuthorityChanged, Error, Freeze, LeaseRenew, Run, Serve, Thaw};
use kernel::authority::Command;
use kernel::run::Run as StoredRun;
use tokio::time::timeout;
use tracing::warn;

use crate::commit::caller::Caller;
use crate::commit::rows::{Rows, row_key};
use crate::commit::transaction::Transaction;
use crate::engine::Engine;
use crate::handlers::runs::wire_in;

/// How long a stop may wait for the ledger. It is in effect before that.
pub(super) const RECORD_WITHIN: Duration = Duration::from_secs(1);

/// Takes effect at once. The response does not wait for a ledger that cannot record it.
impl Serve<Freeze> for Engine {
    async fn serve(&self, caller: &Caller, request: Freeze) -> Result<AuthorityChanged, Error> {
        self.authority.freeze_now(&caller.actor, request.note.clone())?;
        let command = Command::Freeze { note: request.note };
        let recorded = self.change_authority::<Freeze>(caller, command, Vec::new());
        match timeout(RECORD_WITHIN, recorded).await {
            Ok(Ok(response)) => {
                self.stop_switch.freeze_recorded();
                return Ok(response);
            }
            Ok(Err(error)) => warn!(%error, "frozen, but failed to record it"),
            Err(_) => warn!("frozen, but the store does not answer"),
        }
        self.authority.keep_unrecorded_freeze();
        let authority = self.authority.to_wire(&self.authority.last_known());
        Ok(AuthorityChanged { authority, changed: true, recorded: false, released: Vec::new() })
    }
}

/// Ends only a freeze that is in the ledger.
impl Serve<Thaw> for Engine {
    async fn serve(&self, caller: &Caller, request: Thaw) -> Result<AuthorityChanged, Error> {
        self.authority.record_freeze().await?;
        let command = Command::Thaw { note: request.note };
        self.change_authority::<Thaw>(caller, command, Vec::new()).await
    }
}

impl Serve<LeaseRenew> for Engine {
    async fn serve(&self, caller: &Caller, request: LeaseRenew) -> Result<AuthorityChanged, Error> {
        let command = Command::Renew { note: request.note };
        let parked = self.runs_parked_by_lease().await?;
        let renewed = self.change_authority::<LeaseRenew>(caller, command, parked).await?;
        // If it fails, the daemon releases them.
        if let Err(failed) = self.authority.release_parked().await {
            warn!(%failed, "failed to release what the lease had parked");
        }
        Ok(renewed)
    }
}

impl Engine {
    /// The runs that wait for approval only because the lease has expired.
    async fn runs_parked_by_lease(&self) -> Result<Vec<Run>, Error> {
        let parked = self.authority.parked_by_lease().await?;
        let runs: Vec<_> = parked.iter().map(|(_, approval)| &approval.plan.run).collect();
        let keys: Vec<_> = runs.iter().map(|id| row_key::<StoredRun>(*id)).collect();
        let rows = self.transactions.load(&keys).await?;
        let mut runs =
            runs.into_iter().map(|id| wire_in(&rows, id)).collect::<Result<Vec<_>, _>>()?;
        self.name_runs(&mut runs).await?;
        Ok(runs)
    }

    async fn change_authority<R: ApiRequest<Response = AuthorityChanged>>(
        &self,
        caller: &Caller,
        command: Command,
        released: Vec<Run>,
    ) -> Result<AuthorityChanged, Error> {
        let authority = &self.authority;
        let transaction = Transaction { rows: vec![authority.row()], ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| authority.decide(rows, &caller.actor, &command, now);
        let changed =
            self.transactions.respond::<R>(caller, transaction, decide, |before, after| {
                let (before, after) = (authority.in_rows(before), authority.in_rows(after));
                let changed = before != after;
                let authority = authority.to_wire(&after);
                let released = released.clone();
                Ok(AuthorityChanged { authority, changed, recorded: true, released })
            });
        changed.await
    }
}
