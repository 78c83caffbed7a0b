//! The daemon's door for programs that speak HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use api::wire::Secret;
use api::{Code, Error};
use futures::future::{BoxFuture, FutureExt};
use gateway::{Door, Guest};
use mcp::Selection;
use runtime::Watch;
use tokio::net::TcpListener;
use tracing::warn;

use crate::config::{Loaded, Origin};

const KEY: &str = "http.listen";

/// Listens where the configuration says. Where nobody says, and the port is another's, it is done without.
pub(super) async fn listen(loaded: &Loaded) -> Result<Option<TcpListener>, Error> {
    let Some(address) = loaded.config.http.listen else { return Ok(None) };
    match TcpListener::bind(address).await {
        Ok(listener) => Ok(Some(listener)),
        Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_default(loaded) => {
            warn!(%address, "the port is taken, so nobody is served over HTTP; `{KEY}` names another");
            Ok(None)
        }
        Err(error) => Err(refused(address, &error)),
    }
}

/// The tools that are offered.
pub(super) fn selection(loaded: &Loaded) -> Selection {
    let selection = Selection::chosen(loaded.config.http.toolsets.clone());
    for caution in selection.cautions() {
        warn!("{caution}");
    }
    selection
}

fn is_default(loaded: &Loaded) -> bool {
    loaded.values.iter().any(|value| value.key == KEY && value.origin == Origin::Default)
}

fn refused(address: SocketAddr, error: &io::Error) -> Error {
    Error::new(Code::Failed, format!("cannot listen on {address}: {error}"))
        .hint(format!("`{KEY}` in the configuration names another address; empty is none"))
}

/// Lets in whoever has a token.
pub(super) struct ByToken(pub(super) Watch);

impl Door for ByToken {
    fn admit(&self, token: Secret) -> BoxFuture<'_, Result<Guest, Error>> {
        async move {
            let actor = self.0.admit_token(&token).await?;
            Ok(Guest { name: actor.name.clone(), handle: Arc::new(self.0.handle(actor)) })
        }
        .boxed()
    }
}
