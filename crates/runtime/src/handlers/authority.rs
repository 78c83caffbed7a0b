//! Freezes and thaws the installation, and renews the lease.

use std::time::Duration;

use api::{ApiRequest, AuthorityChanged, Error, Freeze, LeaseRenew, Serve, Thaw};
use kernel::authority::Command;
use tokio::time::timeout;
use tracing::warn;

use crate::commit::caller::Caller;
use crate::commit::rows::Rows;
use crate::commit::transaction::Transaction;
use crate::engine::Engine;

/// How long a stop may wait for the ledger. It is in effect before that.
pub(super) const RECORD_WITHIN: Duration = Duration::from_secs(1);

/// Takes effect at once. The response does not wait for a ledger that cannot record it.
impl Serve<Freeze> for Engine {
    async fn serve(&self, caller: &Caller, request: Freeze) -> Result<AuthorityChanged, Error> {
        self.authority.freeze_now(&caller.actor, request.note.clone())?;
        let command = Command::Freeze { note: request.note };
        let recorded = self.change_authority::<Freeze>(caller, command);
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
        Ok(AuthorityChanged { authority, changed: true, recorded: false })
    }
}

/// Ends only a freeze that is in the ledger.
impl Serve<Thaw> for Engine {
    async fn serve(&self, caller: &Caller, request: Thaw) -> Result<AuthorityChanged, Error> {
        self.authority.record_freeze().await?;
        let command = Command::Thaw { note: request.note };
        self.change_authority::<Thaw>(caller, command).await
    }
}

impl Serve<LeaseRenew> for Engine {
    async fn serve(&self, caller: &Caller, request: LeaseRenew) -> Result<AuthorityChanged, Error> {
        let command = Command::Renew { note: request.note };
        self.change_authority::<LeaseRenew>(caller, command).await
    }
}

impl Engine {
    async fn change_authority<R: ApiRequest<Response = AuthorityChanged>>(
        &self,
        caller: &Caller,
        command: Command,
    ) -> Result<AuthorityChanged, Error> {
        let authority = &self.authority;
        let transaction = Transaction { rows: vec![authority.row()], ..Transaction::of(caller) };
        let decide = |rows: &Rows, now| authority.decide(rows, &caller.actor, &command, now);
        let changed =
            self.transactions.respond::<R>(caller, transaction, decide, |before, after| {
                let (before, after) = (authority.in_rows(before), authority.in_rows(after));
                let changed = before != after;
                let authority = authority.to_wire(&after);
                Ok(AuthorityChanged { authority, changed, recorded: true })
            });
        changed.await
    }
}
