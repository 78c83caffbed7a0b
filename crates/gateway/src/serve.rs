//! Accepts connections within limits, and serves a router on each of them.
//!
//! What limits a connection is here: how many there are, how long a client may take, and how all of them end. What a
//! request may do is in the router.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use mcp::{Endpoint, ServerHandler};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::watch::Receiver;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::authenticate::{CallerGate, HttpAuthenticator, RequestLimits};
use crate::connection::{BusyFlag, ConnectionAddresses, RequestConnection};
use crate::metrics_route::MetricsSource;
use crate::pages::DeviceAuthenticator;
use crate::peer::PeerFinder;
use crate::rest::ApiService;
use crate::router::router;
use crate::write_timeout::WriteTimeout;

/// How long a client may take to write the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may read nothing of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECTIONS_MAX: usize = 256;
const HEADERS_MAX: usize = 64;
/// How long open requests may take after the daemon was asked to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept, for example when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Limits on connections and requests; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
struct Limits {
    connections: usize,
    requests: RequestLimits,
    write: Duration,
}

/// What the routes need of the daemon.
#[derive(Clone)]
pub struct Services {
    pub authenticator: Arc<dyn HttpAuthenticator>,
    /// `None` for a server without the HTTP API.
    pub api: Option<Arc<dyn ApiService>>,
    /// `None` for a server without the dashboard.
    pub devices: Option<Arc<dyn DeviceAuthenticator>>,
    /// `None` for a server without metrics.
    pub metrics: Option<Arc<dyn MetricsSource>>,
    pub peers: Arc<dyn PeerFinder>,
}

impl std::fmt::Debug for Services {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str("Services")
    }
}

/// Serves until `stopped` becomes true. `mcp` creates a server for each session at `/mcp`.
pub async fn serve<S: ServerHandler>(
    listener: TcpListener,
    services: Services,
    mcp: impl Fn() -> S + Send + Sync + 'static,
    stopped: Receiver<bool>,
) {
    let limits = Limits {
        connections: CONNECTIONS_MAX,
        requests: RequestLimits::default(),
        write: WRITE_TIMEOUT,
    };
    serve_within(limits, listener, services, mcp, stopped).await;
}

async fn serve_within<S: ServerHandler>(
    limits: Limits,
    listener: TcpListener,
    services: Services,
    mcp: impl Fn() -> S + Send + Sync + 'static,
    stopped: Receiver<bool>,
) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    let peers = Arc::clone(&services.peers);
    let gate = Arc::new(CallerGate::new(Arc::clone(&services.authenticator), limits.requests));
    let endpoint = Arc::new(Endpoint::new(port, mcp));
    let router = router(port, gate, Arc::clone(&endpoint), services, stopped.clone());
    let site = Site { router, peers };
    let mut connections = accept_until_stopped(listener, limits, site, stopped).await;
    endpoint.stop();
    let _ = timeout(STOP_GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

/// What every connection serves.
#[derive(Clone)]
struct Site {
    router: Router,
    peers: Arc<dyn PeerFinder>,
}

/// Returns the connections that are still open after the stop; each of them ends after its present request.
async fn accept_until_stopped(
    listener: TcpListener,
    limits: Limits,
    site: Site,
    stopped: Receiver<bool>,
) -> JoinSet<()> {
    let mut connections = JoinSet::new();
    let mut open = Vec::new();
    let mut stop = stopped.clone();
    loop {
        select! {
            _ = stop.wait_for(|stopped| *stopped) => return connections,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if has_room(&mut open, limits) => match accepted {
                Ok((stream, _)) => {
                    make_room(&mut open, limits);
                    let busy = BusyFlag::default();
                    let served = serve_connection(stream, limits, site.clone(), busy.clone(), stopped.clone());
                    open.push(OpenConnection { task: connections.spawn(served), busy });
                }
                Err(error) => {
                    warn!(%error, "failed to accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
}

/// An open connection, which may be closed to make room for a new one.
struct OpenConnection {
    task: AbortHandle,
    busy: BusyFlag,
}

impl OpenConnection {
    /// Whether no authenticated caller waits for a response on it.
    fn is_idle(&self) -> bool {
        !self.busy.is_set()
    }
}

/// Whether one more connection fits, possibly after closing an idle one.
fn has_room(open: &mut Vec<OpenConnection>, limits: Limits) -> bool {
    open.retain(|it| !it.task.is_finished());
    open.len() < limits.connections || open.iter().any(OpenConnection::is_idle)
}

/// Closes the oldest idle connection if all are in use, so that idle clients cannot lock out others.
fn make_room(open: &mut Vec<OpenConnection>, limits: Limits) {
    if open.len() < limits.connections {
        return;
    }
    if let Some(first) = open.iter().position(OpenConnection::is_idle) {
        open.remove(first).task.abort();
    }
}

async fn serve_connection(
    stream: TcpStream,
    limits: Limits,
    site: Site,
    busy: BusyFlag,
    mut stopped: Receiver<bool>,
) {
    // Otherwise a response in several packets would wait for the client to acknowledge the first.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "failed to disable Nagle's algorithm; responses may be delayed");
    }
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let connection = RequestConnection::new(ConnectionAddresses { peer, local }, busy, site.peers);
    let router = TowerToHyperService::new(site.router);
    let service = service_fn(move |mut request| {
        request.extensions_mut().insert(connection.clone());
        router.call(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(HEADERS_MAX);
    let stream = TokioIo::new(WriteTimeout::new(stream, limits.write));
    let mut connection = std::pin::pin!(builder.serve_connection(stream, service));
    let stopping = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let ended = select! {
        ended = connection.as_mut() => ended,
        () = stopping => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "connection ended early");
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net;
    use std::thread;

    use serde_json::{Value, json};

    use super::*;
    use crate::test_support::{server, services};

    fn limits(connections: usize, per_principal: usize, write: Duration) -> Limits {
        let requests = RequestLimits { per_principal, of_programs: 9 };
        Limits { connections, requests, write }
    }

    /// A valid request with a long response.
    fn valid_request(address: net::SocketAddr) -> Vec<u8> {
        request(address, "x", "tools/list", json!({}))
    }

    fn request(address: net::SocketAddr, who: &str, method: &str, mut params: Value) -> Vec<u8> {
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = params["name"].as_str().map(|name| format!("Mcp-Name: {name}\r\n"));
        let name = name.unwrap_or_default();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        let body = body.to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {who}\r\n\
             Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// The start of the response's status line.
    fn status(stream: &mut net::TcpStream) -> String {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        String::from_utf8_lossy(&first).into_owned()
    }

    /// Serves within these limits while `client` runs, and returns what it returns.
    async fn with_server<T: Send + 'static>(
        limits: Limits,
        client: impl FnOnce(net::SocketAddr) -> T + Send + 'static,
    ) -> T {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let served = serve_within(limits, listener, services(), server, stopped);
        let client = async {
            let result = tokio::task::spawn_blocking(move || client(address)).await;
            stop.send_replace(true);
            result
        };
        let ((), result) = futures::join!(served, client);
        result.unwrap()
    }

    #[tokio::test]
    async fn clients_that_never_read_do_not_block_new_connections() {
        let limits = limits(2, 9, Duration::from_millis(50));
        let first = with_server(limits, move |address| {
            let request = valid_request(address);
            let unread: Vec<_> = (0..limits.connections)
                .map(|_| net::TcpStream::connect(address).unwrap())
                .map(|mut stream| {
                    let request = request.clone();
                    // Writes until the server closes the connection.
                    thread::spawn(move || while stream.write_all(&request).is_ok() {})
                })
                .collect();
            let mut stream = net::TcpStream::connect(address).unwrap();
            stream.write_all(&request).unwrap();
            let first = status(&mut stream);
            for thread in unread {
                thread.join().unwrap();
            }
            first
        });
        assert_eq!(first.await, "HTTP/1.1 200");
    }

    #[tokio::test]
    async fn the_oldest_idle_connection_is_closed_for_a_new_one() {
        let limits = limits(2, 9, Duration::from_secs(30));
        with_server(limits, move |address| {
            let connect = || net::TcpStream::connect(address).unwrap();
            let mut silent = [connect(), connect()];
            let mut third = connect();
            third.write_all(&valid_request(address)).unwrap();
            assert_eq!(status(&mut third), "HTTP/1.1 200");
            assert_eq!(
                silent[0].read(&mut [0]).unwrap(),
                0,
                "the oldest connection was not closed"
            );
            // The other still works.
            silent[1].write_all(&valid_request(address)).unwrap();
            assert_eq!(status(&mut silent[1]), "HTTP/1.1 200");
        })
        .await;
    }

    #[tokio::test]
    async fn one_principal_cannot_use_up_the_requests_of_others() {
        let limits = limits(9, 2, Duration::from_secs(30));
        with_server(limits, move |address| {
            let send = |who: &str, method: &str, params: Value| {
                let mut stream = net::TcpStream::connect(address).unwrap();
                stream.write_all(&request(address, who, method, params)).unwrap();
                stream
            };
            let waits = || send("ada", "tools/call", json!({"name": "status_get"}));
            let held = [waits(), waits()];
            // When each of them is accepted is not observable, so poll.
            let becomes = |expected: &str| {
                (0..10_000).any(|_| status(&mut send("ada", "tools/list", json!({}))) == expected)
            };
            assert!(becomes("HTTP/1.1 429"), "one principal has no limit");
            assert_eq!(status(&mut send("ben", "tools/list", json!({}))), "HTTP/1.1 200");
            drop(held);
            assert!(becomes("HTTP/1.1 200"), "a closed request still holds its permit");
        })
        .await;
    }

    /// Two programs hold as many requests as programs may have; the third connection is left for people.
    #[tokio::test]
    async fn programs_together_leave_connections_for_people() {
        let requests = RequestLimits { per_principal: 9, of_programs: 2 };
        let limits = Limits { connections: 3, requests, write: Duration::from_secs(30) };
        with_server(limits, move |address| {
            let send = |request: &[u8]| {
                let mut stream = net::TcpStream::connect(address).unwrap();
                stream.write_all(request).unwrap();
                stream
            };
            let waits =
                |who| send(&request(address, who, "tools/call", json!({"name": "status_get"})));
            let held = [waits("ada"), waits("ben")];
            let list = |who| status(&mut send(&request(address, who, "tools/list", json!({}))));
            // When each of them is accepted is not observable, so poll.
            assert!((0..10_000).any(|_| list("eve") == "HTTP/1.1 429"), "programs have no limit");
            let page = format!("GET /approvals/apr_1 HTTP/1.1\r\nHost: {address}\r\n\r\n");
            assert_eq!(status(&mut send(page.as_bytes())), "HTTP/1.1 200");
            drop(held);
            assert!((0..10_000).any(|_| list("eve") == "HTTP/1.1 200"), "a permit is not released");
        })
        .await;
    }
}
