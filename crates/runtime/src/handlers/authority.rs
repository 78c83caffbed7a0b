//! Freezes and thaws the installation, and renews the lease.

use api::{ApiRequest, AuthorityChanged, Error, Freeze, LeaseRenew, Serve, Thaw};
use kernel::authority::Command;

use crate::commit::caller::Caller;
use crate::commit::rows::Rows;
use crate::commit::transaction::Transaction;
use crate::engine::Engine;

impl Serve<Freeze> for Engine {
    async fn serve(&self, caller: &Caller, request: Freeze) -> Result<AuthorityChanged, Error> {
        let command = Command::Freeze { note: request.note };
        self.change_authority::<Freeze>(caller, command).await
    }
}

impl Serve<Thaw> for Engine {
    async fn serve(&self, caller: &Caller, request: Thaw) -> Result<AuthorityChanged, Error> {
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
                Ok(AuthorityChanged { authority: authority.to_wire(&after), changed })
            });
        changed.await
    }
}
