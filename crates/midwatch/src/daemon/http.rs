//! The daemon's door for programs that speak HTTP.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;

use api::wire::Secret;
use api::{Answer, Call, Code, Error, Handle};
use futures::future::{BoxFuture, FutureExt};
use gateway::{Door, Ends, Guest};
use mcp::Selection;
use runtime::{Local, Visitor, Engine};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tracing::warn;

use super::peer::Peer;
use crate::access::wait_of;
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
pub(super) struct ByToken {
    watch: Engine,
    /// For whoever looks through the processes of the machine, one after the other.
    looking: Semaphore,
}

impl ByToken {
    pub(super) fn new(watch: Engine) -> ByToken {
        ByToken { watch, looking: Semaphore::new(1) }
    }
}

impl Door for ByToken {
    fn admit(&self, token: Secret) -> BoxFuture<'_, Result<Guest, Error>> {
        async move {
            let watch = self.watch.clone();
            let actor = watch.admit_token(&token).await?;
            let name = actor.name.clone();
            let handle = watch.handle(actor);
            Ok(Guest { name, handle: Arc::new(Shown { token, handle, watch }) })
        }
        .boxed()
    }

    fn receive(&self, token: Secret, ends: Ends) -> BoxFuture<'_, Result<Guest, Error>> {
        async move {
            let watch = &self.watch;
            // Nobody is looked for who has no token of a person.
            watch.admit_person(Visitor { token: Some(&token), ..Visitor::unseen() }).await?;
            let turn = self.looking.acquire().await;
            let peer = spawn_blocking(move || Peer::at(ends)).await;
            drop(turn);
            let peer = peer.map_err(|error| Error::new(Code::Failed, error))?;
            let visitor = Visitor { token: Some(&token), ..peer.visitor() };
            let actor = watch.admit_person(visitor).await?;
            let name = actor.name.clone();
            Ok(Guest { name, handle: Arc::new(watch.handle(actor)) })
        }
        .boxed()
    }
}

/// Speaks for the one with a token.
#[derive(Debug)]
struct Shown {
    token: Secret,
    handle: Local,
    watch: Engine,
}

impl Handle for Shown {
    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<Answer, Error>> {
        async move {
            let waits = wait_of(&mut call.request).is_some_and(|wait_ms| 0 < *wait_ms);
            let answer = self.handle.call(call).await;
            // What has come since is not for a token that was revoked meanwhile.
            if waits {
                self.watch.admit_token(&self.token).await?;
            }
            answer
        }
        .boxed()
    }
}
