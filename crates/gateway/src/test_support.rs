//! What the tests of several modules need.

use std::sync::Arc;

use api::wire::Secret;
use api::{Call, Error, Handle};
use futures::future::{BoxFuture, FutureExt, pending, ready};
use mcp::{Selection, Server};

use crate::authenticate::{Authenticated, HttpAuthenticator};
use crate::connection::ConnectionAddresses;
use crate::peer::{PeerFinder, PeerProcess};
use crate::rest::{ApiService, LedgerPosition};
use crate::serve::Services;

/// Authenticates every caller by the name it sends as its token, and never answers a call.
#[derive(Debug)]
pub(crate) struct AcceptAll;

impl HttpAuthenticator for AcceptAll {
    fn authenticate(&self, Secret(name): Secret) -> BoxFuture<'_, Result<Authenticated, Error>> {
        ready(Ok(Authenticated { name, handle: Arc::new(AcceptAll), now_us: 0 })).boxed()
    }

    fn authenticate_person(
        &self,
        token: Secret,
        _: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Authenticated, Error>> {
        self.authenticate(token)
    }
}

impl PeerFinder for AcceptAll {
    fn find_peer(&self, _: ConnectionAddresses) -> BoxFuture<'_, PeerProcess> {
        ready(PeerProcess::Unknown).boxed()
    }
}

impl ApiService for AcceptAll {
    fn authenticate_holder(
        &self,
        token: Secret,
    ) -> BoxFuture<'_, Result<Option<Authenticated>, Error>> {
        self.authenticate(token).map(|caller| caller.map(Some)).boxed()
    }

    fn authenticate_operator(
        &self,
        token: Secret,
        _: PeerProcess,
    ) -> BoxFuture<'_, Result<Authenticated, Error>> {
        self.authenticate(token)
    }

    fn ledger_position(&self) -> BoxFuture<'_, Result<LedgerPosition, Error>> {
        ready(Ok(LedgerPosition { log: "log".to_owned(), entries: 1 })).boxed()
    }

    fn check_ready(&self) -> BoxFuture<'_, Result<(), Error>> {
        ready(Ok(())).boxed()
    }
}

/// Services that accept every caller.
pub(crate) fn services() -> Services {
    Services {
        authenticator: Arc::new(AcceptAll),
        api: Some(Arc::new(AcceptAll)),
        devices: None,
        metrics: None,
        peers: Arc::new(AcceptAll),
    }
}

impl Handle for AcceptAll {
    fn call(&self, _: Call) -> BoxFuture<'_, Result<api::Response, Error>> {
        pending().boxed()
    }

    fn report(&self, _: api::ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        pending().boxed()
    }
}

/// An MCP server with the default tools.
pub(crate) fn server() -> Server {
    Server::with_handle_per_request(Selection::default(), "1")
}
