//! The daemon's HTTP listener, and how it authenticates callers.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use api::wire::Secret;
use api::{Call, Code, Error, Handle, Response, ToolReport};
use futures::future::{BoxFuture, FutureExt};
use gateway::{Authenticated, ConnectionAddresses, HttpAuthenticator, PeerFinder};
use mcp::Selection;
use runtime::{Clock, Credentials, Engine, LocalHandle, SystemClock};
use tokio::net::{TcpListener, TcpSocket};
use tracing::warn;

use super::peer::{PeerScanner, credentials_of};
use super::tcp_sockets::{describe, port_holders};
use crate::config::{Loaded, Origin};

const KEY: &str = "http.listen";

/// The backlog of connections that are not accepted yet.
const BACKLOG: u32 = 1024;

/// The configured address, bound but not listening: the port is known, and clients are refused until the daemon is ready.
#[derive(Debug)]
pub(super) struct ReservedAddress {
    bound: Option<io::Result<TcpSocket>>,
    other_loopback: Option<TcpSocket>,
}

/// The daemon's HTTP socket.
#[derive(Debug)]
pub(super) struct HttpListener {
    pub(super) listener: TcpListener,
    /// The same port of the other loopback address, bound and not served: no other process answers at `localhost`.
    pub(super) other_loopback: Option<TcpSocket>,
}

impl ReservedAddress {
    pub(super) fn bind(loaded: &Loaded) -> ReservedAddress {
        let bound = loaded.config.http.listen.map(bind);
        let address = bound.as_ref().and_then(|it| it.as_ref().ok()?.local_addr().ok());
        let other_loopback = address.and_then(bind_other_loopback);
        ReservedAddress { bound, other_loopback }
    }

    /// `None` if HTTP is off or the address could not be bound.
    pub(super) fn address(&self) -> Option<SocketAddr> {
        self.bound.as_ref()?.as_ref().ok()?.local_addr().ok()
    }

    /// Starts to listen. Returns `None` if HTTP is off, or if the default port is taken.
    pub(super) fn listen(self, loaded: &Loaded) -> Result<Option<HttpListener>, Error> {
        let ReservedAddress { bound, other_loopback } = self;
        let (Some(address), Some(bound)) = (loaded.config.http.listen, bound) else {
            return Ok(None);
        };
        match bound.and_then(|socket| socket.listen(BACKLOG)) {
            Ok(listener) => Ok(Some(HttpListener { listener, other_loopback })),
            Err(error) if error.kind() == io::ErrorKind::AddrInUse && is_default(loaded) => {
                let holders = describe(&port_holders(address));
                warn!(%address, holders, "the default port is taken, so HTTP is off; set another address with `{KEY}`");
                Ok(None)
            }
            Err(error) => Err(listen_error(address, &error)),
        }
    }
}

fn bind(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = new_socket(address)?;
    socket.set_reuseaddr(true)?;
    socket.bind(address)?;
    Ok(socket)
}

/// Binds an address that is not served. Without `SO_REUSEADDR`, or another process could listen there.
fn occupy(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = new_socket(address)?;
    socket.set_reuseaddr(false)?;
    socket.bind(address)?;
    Ok(socket)
}

fn new_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    match address {
        SocketAddr::V4(_) => TcpSocket::new_v4(),
        SocketAddr::V6(_) => TcpSocket::new_v6(),
    }
}

/// Takes the port of the other loopback address, too. Without IPv6 there is none.
fn bind_other_loopback(address: SocketAddr) -> Option<TcpSocket> {
    let other: IpAddr = match address.ip() {
        IpAddr::V4(Ipv4Addr::LOCALHOST) => Ipv6Addr::LOCALHOST.into(),
        IpAddr::V6(Ipv6Addr::LOCALHOST) => Ipv4Addr::LOCALHOST.into(),
        _ => return None,
    };
    let other = SocketAddr::new(other, address.port());
    match occupy(other) {
        Ok(socket) => Some(socket),
        Err(error) => {
            if error.kind() == io::ErrorKind::AddrInUse {
                let holders = describe(&port_holders(other));
                warn!(%other, holders, "another process has this port at the other loopback address: do not use `localhost`");
            }
            None
        }
    }
}

/// The configured MCP tools.
pub(super) fn selection(loaded: &Loaded) -> Selection {
    let selection = Selection::new_or_default(loaded.config.http.toolsets.clone());
    for caution in selection.warnings() {
        warn!("{caution}");
    }
    selection
}

fn is_default(loaded: &Loaded) -> bool {
    loaded.values.iter().any(|value| value.key == KEY && value.origin == Origin::Default)
}

fn listen_error(address: SocketAddr, error: &io::Error) -> Error {
    let change =
        format!("set another address with `{KEY}` in the configuration; empty turns HTTP off");
    let failed =
        |what: String| Error::new(Code::Failed, format!("cannot listen on {address}: {what}"));
    if error.kind() != io::ErrorKind::AddrInUse {
        return failed(error.to_string()).hint(change);
    }
    match describe(&port_holders(address)) {
        Some(holders) => failed(format!("{holders} listens there"))
            .hint(format!("enter no token on its pages; end that process, or {change}")),
        None => {
            failed("the port is taken by a process that cannot be named".to_owned()).hint(change)
        }
    }
}

/// Authenticates callers by their token.
pub(super) struct TokenAuthenticator {
    engine: Engine,
    peers: Arc<PeerScanner>,
}

impl TokenAuthenticator {
    pub(super) fn new(engine: Engine, peers: Arc<PeerScanner>) -> TokenAuthenticator {
        TokenAuthenticator { engine, peers }
    }
}

impl HttpAuthenticator for TokenAuthenticator {
    fn authenticate(&self, token: Secret) -> BoxFuture<'_, Result<Authenticated, Error>> {
        async move {
            let engine = self.engine.clone();
            let actor = engine.authenticate_token(&token).await?;
            let name = actor.name().to_owned();
            let handle = engine.handle(actor);
            let handle = Arc::new(TokenHandle { token, handle, engine });
            Ok(Authenticated { name, handle, now_us: SystemClock.now().as_micros() })
        }
        .boxed()
    }

    fn authenticate_person(
        &self,
        token: Secret,
        addresses: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Authenticated, Error>> {
        async move {
            let engine = &self.engine;
            // Check the token first: without a person's token, processes are not scanned.
            engine
                .authenticate_person(Credentials { token: Some(&token), ..Credentials::unknown() })
                .await?;
            let peer = self.peers.find_peer(addresses).await;
            let credentials = Credentials { token: Some(&token), ..credentials_of(&peer) };
            let actor = engine.authenticate_person(credentials).await?;
            engine.record_look(&actor).await;
            let name = actor.name().to_owned();
            let handle = Arc::new(engine.handle(actor));
            Ok(Authenticated { name, handle, now_us: SystemClock.now().as_micros() })
        }
        .boxed()
    }
}

/// A handle that makes requests as the owner of a token.
#[derive(Debug)]
struct TokenHandle {
    token: Secret,
    handle: LocalHandle,
    engine: Engine,
}

impl Handle for TokenHandle {
    fn call(&self, mut call: Call) -> BoxFuture<'_, Result<Response, Error>> {
        async move {
            let waits = call.request.wait_ms_mut().is_some_and(|wait_ms| 0 < *wait_ms);
            let answer = self.handle.call(call).await;
            // The token may have been revoked during the wait.
            if waits {
                self.engine.authenticate_token(&self.token).await?;
            }
            answer
        }
        .boxed()
    }

    fn report(&self, report: ToolReport) -> BoxFuture<'_, Result<(), Error>> {
        self.handle.report(report)
    }
}
