//! How the dashboard's pages authenticate browsers that have signed in.

use std::sync::Arc;

use api::wire::Secret;
use api::{Code, Error, Role};
use futures::future::{BoxFuture, FutureExt};
use gateway::{
    Authenticated, ConnectionAddresses, DeviceAuthenticator, PeerProcess, Session, SessionUse,
};
use runtime::{Clock, DeviceUse, Engine, SignIn, SystemClock};

use super::peer::credentials_of;
use super::tcp_sockets;

pub(super) struct DeviceSessions {
    engine: Engine,
    started_us: i64,
}

impl DeviceSessions {
    pub(super) fn new(engine: Engine) -> DeviceSessions {
        DeviceSessions { engine, started_us: SystemClock.now().as_micros() }
    }
}

impl DeviceAuthenticator for DeviceSessions {
    fn check_peer(&self, peer: PeerProcess) -> BoxFuture<'_, Result<(), Error>> {
        async move { self.engine.authenticate_person(credentials_of(&peer)).await.map(drop) }
            .boxed()
    }

    fn sign_in(
        &self,
        code: Secret,
        page_key: Option<String>,
        browser: String,
        addresses: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Secret, Error>> {
        async move {
            check_user(addresses)?;
            let invalid = |error: &dyn std::fmt::Display| Error::new(Code::InvalidInput, error);
            let page_key = page_key.map(|key| key.parse()).transpose();
            let page_key = page_key.map_err(|error| invalid(&error))?;
            let browser = browser.parse().map_err(|error| invalid(&error))?;
            self.engine.sign_in(SignIn { code, page_key, browser }).await
        }
        .boxed()
    }

    fn authenticate_device(
        &self,
        session: Secret,
        usage: SessionUse,
    ) -> BoxFuture<'_, Result<Session, Error>> {
        async move {
            let by = match usage {
                SessionUse::Look | SessionUse::Form => DeviceUse::ByPerson,
                SessionUse::ByItself => DeviceUse::ByItself,
            };
            let engine = &self.engine;
            let signed_in = engine.authenticate_device(&session, by).await?;
            let actor = signed_in.actor;
            if usage == SessionUse::Look {
                engine.record_look(&actor).await;
            }
            let role = match actor.role {
                kernel::Role::Maintainer => Role::Maintainer,
                kernel::Role::Operator => Role::Operator,
                // No device has the role of an agent or of Midwatch itself.
                kernel::Role::Observer | kernel::Role::Runner | kernel::Role::System => {
                    Role::Observer
                }
            };
            let name = actor.name().to_owned();
            let handle = Arc::new(engine.handle(actor));
            let now_us = SystemClock.now().as_micros();
            Ok(Session {
                caller: Authenticated { name, handle, now_us },
                role,
                device: signed_in.id.to_string(),
                page_key: signed_in.page_key.map(String::from),
            })
        }
        .boxed()
    }

    fn started_us(&self) -> i64 {
        self.started_us
    }
}

/// Refuses other users of the machine: they can see the link while a browser is started with it. Where the operating system
/// does not tell the user, the code alone counts.
fn check_user(addresses: ConnectionAddresses) -> Result<(), Error> {
    let ours = rustix::process::getuid().as_raw();
    let socket = tcp_sockets::find_peer_socket(addresses.peer, addresses.local);
    match socket.is_none_or(|socket| socket.uid == ours || socket.uid == 0) {
        true => Ok(()),
        false => Err(Error::new(Code::Denied, "this link is for another user of the machine")
            .hint("open it as the user who runs the daemon")),
    }
}
