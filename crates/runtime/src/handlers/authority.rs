//! Freezes and thaws the installation, and renews the lease.

use api::{AuthorityChanged, Error, Freeze, LeaseRenew, Response, Thaw};
use kernel::Actor;
use kernel::authority::Command;

use crate::commit::idempotency::IdempotencyKey;
use crate::commit::rows::Rows;
use crate::commit::transaction::Transaction;
use crate::engine::Engine;

impl Engine {
    pub(crate) async fn freeze(
        &self,
        actor: &Actor,
        key: Option<IdempotencyKey>,
        request: Freeze,
    ) -> Result<Response, Error> {
        let command = Command::Freeze { note: request.note };
        self.change_authority(actor, key, command, Response::Freeze).await
    }

    pub(crate) async fn thaw(
        &self,
        actor: &Actor,
        key: Option<IdempotencyKey>,
        request: Thaw,
    ) -> Result<Response, Error> {
        let command = Command::Thaw { note: request.note };
        self.change_authority(actor, key, command, Response::Thaw).await
    }

    pub(crate) async fn lease_renew(
        &self,
        actor: &Actor,
        key: Option<IdempotencyKey>,
        request: LeaseRenew,
    ) -> Result<Response, Error> {
        let command = Command::Renew { note: request.note };
        self.change_authority(actor, key, command, Response::LeaseRenew).await
    }

    async fn change_authority(
        &self,
        actor: &Actor,
        key: Option<IdempotencyKey>,
        command: Command,
        respond: impl Fn(AuthorityChanged) -> Response,
    ) -> Result<Response, Error> {
        let authority = &self.authority;
        let transaction =
            Transaction { rows: vec![authority.row()], ..Transaction::by(actor, key) };
        let decide = |rows: &Rows, now| authority.decide(rows, actor, &command, now);
        let changed = self.transactions.respond(transaction, decide, |before, after| {
            let (before, after) = (authority.in_rows(before), authority.in_rows(after));
            let changed = before != after;
            Ok(respond(AuthorityChanged { authority: authority.to_wire(&after), changed }))
        });
        changed.await
    }
}
