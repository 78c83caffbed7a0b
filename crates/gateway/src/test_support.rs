//! What the tests of several modules need.

use std::sync::Arc;

use api::wire::Secret;
use api::{Call, Error, Handle};
use futures::future::{BoxFuture, FutureExt, pending, ready};
use mcp::{Selection, Server};

use crate::authenticate::{Authenticated, HttpAuthenticator};
use crate::connection::ConnectionAddresses;

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
