//! Accepts connections within limits, and routes each request by its path.

use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use api::Error;
use bytes::Bytes;
use http::header::{ACCEPT, CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use mcp::{Endpoint, ServerHandler};
use tokio::net::{TcpListener, TcpStream};
use tokio::select;
use tokio::sync::watch::Receiver;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};
use tracing::{debug, warn};

use crate::approval::{self, Form};
use crate::authenticate::{
    Authenticated, Authenticator, ConnectionAddresses, Rejection, check_form,
    check_host_and_origin, token, unauthorised,
};
use crate::concurrency_limit::{BusyGuard, ConcurrencyLimit, ConcurrencyPermit, PermitBody};
use crate::page;
use crate::write_timeout::WriteTimeout;

/// How long a client may take to write the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long a client may read nothing of a response.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECTIONS_MAX: usize = 256;
/// Requests that one principal may have open at once, streams included.
const REQUESTS_PER_PRINCIPAL_MAX: usize = 64;
/// How long a client may take to write the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const BODY_BYTES_MAX: usize = 1 << 20;
const FORM_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
/// How long open requests may take after the daemon was asked to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Pause after a failed accept, for example when no file descriptors are left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// Limits on connections and requests; tests use smaller ones.
#[derive(Clone, Copy, Debug)]
struct Limits {
    connections: usize,
    requests_per_principal: usize,
    write: Duration,
}

/// What the requests of all connections share.
struct Routes<S> {
    /// The port this server listens on.
    port: u16,
    authenticator: Arc<dyn Authenticator>,
    limit: ConcurrencyLimit,
    mcp: Endpoint<S>,
}

/// Serves until `stopped` becomes true. `mcp` creates a server for each session at `/mcp`.
pub async fn serve<S: ServerHandler>(
    listener: TcpListener,
    authenticator: Arc<dyn Authenticator>,
    mcp: impl Fn() -> S + Send + Sync + 'static,
    stopped: Receiver<bool>,
) {
    let limits = Limits {
        connections: CONNECTIONS_MAX,
        requests_per_principal: REQUESTS_PER_PRINCIPAL_MAX,
        write: WRITE_TIMEOUT,
    };
    serve_within(limits, listener, authenticator, mcp, stopped).await;
}

async fn serve_within<S: ServerHandler>(
    limits: Limits,
    listener: TcpListener,
    authenticator: Arc<dyn Authenticator>,
    mcp: impl Fn() -> S + Send + Sync + 'static,
    stopped: Receiver<bool>,
) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    let (limit, mcp) =
        (ConcurrencyLimit::new(limits.requests_per_principal), Endpoint::new(port, mcp));
    let routes = Arc::new(Routes { port, authenticator, limit, mcp });
    let mut connections = JoinSet::new();
    let mut open = Vec::new();
    let mut stop = stopped.clone();
    loop {
        select! {
            _ = stop.wait_for(|stopped| *stopped) => break,
            Some(_) = connections.join_next() => {}
            accepted = listener.accept(), if has_room(&mut open, limits) => match accepted {
                Ok((stream, _)) => {
                    make_room(&mut open, limits);
                    let (routes, busy) = (Arc::clone(&routes), Arc::<AtomicBool>::default());
                    let served = serve_connection(stream, limits, routes, Arc::clone(&busy), stopped.clone());
                    open.push(OpenConnection { task: connections.spawn(served), busy });
                }
                Err(error) => {
                    warn!(%error, "failed to accept a connection");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    routes.mcp.stop();
    let _ = timeout(STOP_GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

/// An open connection, which may be closed to make room for a new one.
struct OpenConnection {
    task: AbortHandle,
    busy: Arc<AtomicBool>,
}

impl OpenConnection {
    /// Whether no authenticated caller waits for a response on it.
    fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Relaxed)
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

async fn serve_connection<S: ServerHandler>(
    stream: TcpStream,
    limits: Limits,
    routes: Arc<Routes<S>>,
    busy: Arc<AtomicBool>,
    mut stopped: Receiver<bool>,
) {
    // Otherwise a response in several packets would wait for the client to acknowledge the first.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "failed to disable Nagle's algorithm; responses may be delayed");
    }
    let (Ok(peer), Ok(local)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let addresses = ConnectionAddresses { peer, local };
    let service = service_fn(move |request| {
        let (routes, busy) = (Arc::clone(&routes), Arc::clone(&busy));
        async move { Ok::<_, Infallible>(routes.respond(request, &busy, addresses).await) }
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

impl<S: ServerHandler> Routes<S> {
    async fn respond(
        &self,
        request: Request<Incoming>,
        connection: &Arc<AtomicBool>,
        addresses: ConnectionAddresses,
    ) -> HttpResponse {
        if let Err(rejection) = check_host_and_origin(request.uri(), request.headers(), self.port) {
            return rejection.into_response();
        }
        let path = request.uri().path();
        if let Some(id) = path.strip_prefix("/approvals/") {
            let id = id.to_owned();
            return self.respond_approval(id, request, connection, addresses).await;
        }
        if path == page::STYLE_PATH && [Method::GET, Method::HEAD].contains(request.method()) {
            return page::style();
        }
        match self.authenticate_request(request, connection).await {
            Ok((request, guards)) => {
                let response = self.mcp.handle(guards.0.name(), request).await;
                response.map(|body| BoxBody::new(PermitBody::new(body, guards)))
            }
            Err(rejection) => rejection.into_response(),
        }
    }

    /// Responds with the page of an approval.
    async fn respond_approval(
        &self,
        id: String,
        request: Request<Incoming>,
        connection: &Arc<AtomicBool>,
        addresses: ConnectionAddresses,
    ) -> HttpResponse {
        if request.method() != Method::POST {
            return approval::respond_without_form(request.method());
        }
        let form = match check_form(request.headers()) {
            Ok(()) => read_body(request.into_body(), FORM_BYTES_MAX).await,
            Err(rejection) => Err(rejection),
        };
        let form = match form {
            Ok(body) => Form::read(&body),
            Err(Rejection { status, error }) => {
                return page::html_response(status, page::error(&error));
            }
        };
        let Authenticated { name, handle } =
            match self.authenticator.authenticate_person(form.token.clone(), addresses).await {
                Ok(caller) => caller,
                Err(error) => return approval::error_response(&error),
            };
        let Some(permit) = self.limit.try_acquire(name) else {
            return approval::error_response(&too_many_requests().error);
        };
        let guards = (permit, BusyGuard::new(connection));
        let response = approval::respond(&*handle, id, form).await;
        response.map(|body| BoxBody::new(PermitBody::new(body, guards)))
    }

    /// Authenticates the caller of `/mcp` and reads the whole request; its extensions get the caller's handle.
    async fn authenticate_request(
        &self,
        request: Request<Incoming>,
        connection: &Arc<AtomicBool>,
    ) -> Result<(Request<Bytes>, (ConcurrencyPermit, BusyGuard)), Rejection> {
        let authenticated = self.authenticator.authenticate(token(request.headers())?).await;
        let Authenticated { name, handle } = authenticated.map_err(unauthorised)?;
        let guards = (
            self.limit.try_acquire(name).ok_or_else(too_many_requests)?,
            BusyGuard::new(connection),
        );
        if request.uri().path() != "/mcp" {
            let error = Error::new(api::Code::NotFound, "there is nothing at this path");
            return Err(Rejection {
                status: StatusCode::NOT_FOUND,
                error: error.hint("use `/mcp` or `/approvals/ID`"),
            });
        }
        let (mut head, body) = request.into_parts();
        let body = read_body(body, BODY_BYTES_MAX).await?;
        if accepts_anything(&head.headers) {
            let both = HeaderValue::from_static("application/json, text/event-stream");
            head.headers.insert(ACCEPT, both);
        }
        head.extensions.insert(handle);
        Ok((Request::from_parts(head, body), guards))
    }
}

/// Whether a client sends no `Accept` header, or accepts every type.
fn accepts_anything(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok()).peekable();
    values.peek().is_none() || values.any(|it| it.contains("*/*"))
}

fn too_many_requests() -> Rejection {
    let what = format!("too many open requests; the limit is {REQUESTS_PER_PRINCIPAL_MAX}");
    let error = Error::new(api::Code::LimitReached, what);
    let error = error.hint("close a stream or wait for a response");
    Rejection { status: StatusCode::TOO_MANY_REQUESTS, error }
}

async fn read_body(body: Incoming, bytes_max: usize) -> Result<Bytes, Rejection> {
    let rejection =
        |status, what: &str| Rejection { status, error: Error::new(api::Code::InvalidInput, what) };
    match timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let what = format!("the request is longer than {bytes_max} bytes");
            Err(rejection(StatusCode::PAYLOAD_TOO_LARGE, &what))
        }
        Ok(Err(_)) => Err(rejection(StatusCode::BAD_REQUEST, "the request was truncated")),
        Err(_) => {
            Err(rejection(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive"))
        }
    }
}

impl Rejection {
    fn into_response(self) -> HttpResponse {
        let document = serde_json::json!({ "error": self.error }).to_string();
        let mut response = Response::new(Full::new(Bytes::from(document)).boxed());
        *response.status_mut() = self.status;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net;
    use std::thread;

    use api::wire::Secret;
    use api::{Call, Handle};
    use futures::future::{BoxFuture, FutureExt, pending, ready};
    use mcp::{Selection, Server};
    use serde_json::{Value, json};

    use super::*;

    /// Authenticates every caller by the name it sends as its token, and never answers a call.
    #[derive(Debug)]
    struct AcceptAll;

    impl Authenticator for AcceptAll {
        fn authenticate(
            &self,
            Secret(name): Secret,
        ) -> BoxFuture<'_, Result<Authenticated, Error>> {
            ready(Ok(Authenticated { name, handle: Arc::new(AcceptAll) })).boxed()
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

        fn report(&self, _: api::ToolReport) -> BoxFuture<'_, ()> {
            pending().boxed()
        }
    }

    fn server() -> Server {
        Server::with_handle_per_request(Selection::default(), "1")
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

    #[tokio::test]
    async fn clients_that_never_read_do_not_block_new_connections() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits =
            Limits { connections: 2, requests_per_principal: 9, write: Duration::from_millis(50) };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let served = serve_within(limits, listener, Arc::new(AcceptAll), server, stopped);
        let first = tokio::task::spawn_blocking(move || {
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
        let first = async {
            let first = first.await;
            stop.send_replace(true);
            first
        };
        let ((), first) = futures::join!(served, first);
        assert_eq!(first.unwrap(), "HTTP/1.1 200");
    }

    #[tokio::test]
    async fn the_oldest_idle_connection_is_closed_for_a_new_one() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits =
            Limits { connections: 2, requests_per_principal: 9, write: Duration::from_secs(30) };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let served = serve_within(limits, listener, Arc::new(AcceptAll), server, stopped);
        let checked = tokio::task::spawn_blocking(move || {
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
        });
        let checked = async {
            let checked = checked.await;
            stop.send_replace(true);
            checked
        };
        let ((), checked) = futures::join!(served, checked);
        checked.unwrap();
    }

    #[tokio::test]
    async fn one_principal_cannot_use_up_the_requests_of_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits =
            Limits { connections: 9, requests_per_principal: 2, write: Duration::from_secs(30) };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let served = serve_within(limits, listener, Arc::new(AcceptAll), server, stopped);
        let checked = tokio::task::spawn_blocking(move || {
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
        });
        let checked = async {
            let checked = checked.await;
            stop.send_replace(true);
            checked
        };
        let ((), checked) = futures::join!(served, checked);
        checked.unwrap();
    }
}
