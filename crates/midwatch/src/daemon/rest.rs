//! What the HTTP API needs of the daemon: who calls, and the state of the ledger.

use std::sync::Arc;
use std::time::Duration;

use api::wire::Secret;
use api::{Call, Code, Error, Handle, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt};
use gateway::{ApiService, Authenticated, LedgerPosition, PeerProcess};
use kernel::{Actor, Role};
use runtime::{Clock, Credentials, Engine, LocalHandle, SystemClock};
use tokio::time::timeout;

use super::peer::credentials_of;

/// How long the store may take to say that it is there.
const READY_WITHIN: Duration = Duration::from_secs(2);

pub(super) struct RestService {
    engine: Engine,
}

impl RestService {
    pub(super) fn new(engine: Engine) -> RestService {
        RestService { engine }
    }

    fn authenticated(
        &self,
        actor: Actor,
        token: Secret,
        peer: Option<PeerProcess>,
    ) -> Authenticated {
        let name = actor.name().to_owned();
        let engine = self.engine.clone();
        let handle = Arc::new(RestHandle { handle: engine.handle(actor), engine, token, peer });
        Authenticated { name, handle, now_us: SystemClock.now().as_micros() }
    }
}

/// The holder of a token, whatever process sends it.
async fn holder(engine: &Engine, token: &Secret) -> Result<Actor, Error> {
    engine.authenticate(Credentials { token: Some(token), ..Credentials::unknown() }).await
}

/// The person of a token, if the process that sends it is none of a run.
async fn person(engine: &Engine, token: &Secret, peer: &PeerProcess) -> Result<Actor, Error> {
    let credentials = Credentials { token: Some(token), ..credentials_of(peer) };
    engine.authenticate_api_client(credentials).await
}

impl ApiService for RestService {
    fn authenticate_holder(
        &self,
        token: Secret,
    ) -> BoxFuture<'_, Result<Option<Authenticated>, Error>> {
        async move {
            let actor = holder(&self.engine, &token).await?;
            let counts_alone = actor.role < Role::Operator;
            Ok(counts_alone.then(|| self.authenticated(actor, token, None)))
        }
        .boxed()
    }

    fn authenticate_operator(
        &self,
        token: Secret,
        peer: PeerProcess,
    ) -> BoxFuture<'_, Result<Authenticated, Error>> {
        async move {
            let actor = person(&self.engine, &token, &peer).await?;
            Ok(self.authenticated(actor, token, Some(peer)))
        }
        .boxed()
    }

    fn ledger_position(&self) -> BoxFuture<'_, Result<LedgerPosition, Error>> {
        async move {
            let (log, entries) =
                (self.engine.instance().to_owned(), self.engine.ledger_size().await?);
            Ok(LedgerPosition { log, entries })
        }
        .boxed()
    }

    fn check_ready(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            let late = |_| Err(Error::new(Code::Busy, "the store does not respond"));
            timeout(READY_WITHIN, self.engine.check_ready()).await.unwrap_or_else(late)
        }
        .boxed()
    }
}

/// A handle that makes requests as the holder of a token.
#[derive(Debug)]
struct RestHandle {
    handle: LocalHandle,
    engine: Engine,
    token: Secret,
    /// The process that sent the token, if it is a person's.
    peer: Option<PeerProcess>,
}

impl Handle for RestHandle {
    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        async move {
            let waits = call.request.wait_ms_mut().is_some_and(|wait_ms| 0 < *wait_ms);
            let answer = self.handle.call(call).await;
            // The token may have been revoked during the wait.
            if waits {
                let (engine, token) = (&self.engine, &self.token);
                match &self.peer {
                    Some(peer) => person(engine, token, peer).await?,
                    None => holder(engine, token).await?,
                };
            }
            answer
        }
        .boxed()
    }

    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        self.handle.report(report)
    }
}
