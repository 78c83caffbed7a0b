//! Connections, their limits, and which path leads where.

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

use crate::admit::{Door, Ends, Guest, Turned, check_form, check_place, token, unauthorised};
use crate::approval::{self, Form};
use crate::page;
use crate::patient::Patient;
use crate::places::{Busy, Held, Place, Places};

/// How long a client may take to write the head of a request.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// How long it may read nothing of what it is sent.
const WRITE_TIMEOUT: Duration = Duration::from_secs(20);
const CONNECTIONS_MAX: usize = 256;
/// Requests that one principal may have open at once, streams among them.
const REQUESTS_EACH_MAX: usize = 64;
/// How long it may take to write the rest.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);
const BODY_BYTES_MAX: usize = 1 << 20;
const FORM_BYTES_MAX: usize = 64 << 10;
const HEADERS_MAX: usize = 64;
/// How long requests that are under way may take after the daemon was told to stop.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// After an accept that failed, as it does when there are no descriptors left.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

pub(crate) type Answer = Response<BoxBody<Bytes, Infallible>>;

/// How many come in, and how long one of them may take up its place.
#[derive(Clone, Copy, Debug)]
struct Limits {
    connections: usize,
    requests_each: usize,
    write: Duration,
}

/// What every connection leads to.
struct Paths<S> {
    /// Where this listens.
    port: u16,
    door: Arc<dyn Door>,
    places: Places,
    mcp: Endpoint<S>,
}

/// Serves until it is told to stop. At `/mcp` are the servers that `mcp` makes.
pub async fn serve<S: ServerHandler>(
    listener: TcpListener,
    door: Arc<dyn Door>,
    mcp: impl Fn() -> S + Send + Sync + 'static,
    stopped: Receiver<bool>,
) {
    let limits = Limits {
        connections: CONNECTIONS_MAX,
        requests_each: REQUESTS_EACH_MAX,
        write: WRITE_TIMEOUT,
    };
    serve_within(limits, listener, door, mcp, stopped).await;
}

async fn serve_within<S: ServerHandler>(
    limits: Limits,
    listener: TcpListener,
    door: Arc<dyn Door>,
    mcp: impl Fn() -> S + Send + Sync + 'static,
    stopped: Receiver<bool>,
) {
    let port = listener.local_addr().map_or(0, |address| address.port());
    let (places, mcp) = (Places::new(limits.requests_each), Endpoint::new(port, mcp));
    let paths = Arc::new(Paths { port, door, places, mcp });
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
                    let (paths, busy) = (Arc::clone(&paths), Arc::<AtomicBool>::default());
                    let served = converse(stream, limits, paths, Arc::clone(&busy), stopped.clone());
                    open.push(Connected { task: connections.spawn(served), busy });
                }
                Err(error) => {
                    warn!(%error, "a connection could not be accepted");
                    sleep(ACCEPT_PAUSE).await;
                }
            },
        }
    }
    drop(listener);
    paths.mcp.stop();
    let _ = timeout(STOP_GRACE, async { while connections.join_next().await.is_some() {} }).await;
    connections.shutdown().await;
}

/// A connection, for whoever needs its place.
struct Connected {
    task: AbortHandle,
    busy: Arc<AtomicBool>,
}

impl Connected {
    /// Nobody was let in who waits for an answer on it.
    fn is_idle(&self) -> bool {
        !self.busy.load(Ordering::Relaxed)
    }
}

/// Whether there is a place for one more, or one can be had.
fn has_room(open: &mut Vec<Connected>, limits: Limits) -> bool {
    open.retain(|it| !it.task.is_finished());
    open.len() < limits.connections || open.iter().any(Connected::is_idle)
}

/// Whoever says nothing does not keep out whoever has something to say: the first of them has to go.
fn make_room(open: &mut Vec<Connected>, limits: Limits) {
    if open.len() < limits.connections {
        return;
    }
    if let Some(first) = open.iter().position(Connected::is_idle) {
        open.remove(first).task.abort();
    }
}

async fn converse<S: ServerHandler>(
    stream: TcpStream,
    limits: Limits,
    paths: Arc<Paths<S>>,
    busy: Arc<AtomicBool>,
    mut stopped: Receiver<bool>,
) {
    // An answer in several pieces would wait for the client to acknowledge the first.
    if let Err(error) = stream.set_nodelay(true) {
        debug!(%error, "answers may be held back");
    }
    let (Ok(theirs), Ok(ours)) = (stream.peer_addr(), stream.local_addr()) else { return };
    let ends = Ends { theirs, ours };
    let answer = service_fn(move |request| {
        let (paths, busy) = (Arc::clone(&paths), Arc::clone(&busy));
        async move { Ok::<_, Infallible>(paths.answer(request, &busy, ends).await) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT).max_headers(HEADERS_MAX);
    let stream = TokioIo::new(Patient::new(stream, limits.write));
    let mut connection = std::pin::pin!(builder.serve_connection(stream, answer));
    let told_to_stop = async { drop(stopped.wait_for(|stopped| *stopped).await) };
    let ended = select! {
        ended = connection.as_mut() => ended,
        () = told_to_stop => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        debug!(%error, "a connection ended early");
    }
}

impl<S: ServerHandler> Paths<S> {
    async fn answer(
        &self,
        request: Request<Incoming>,
        connection: &Arc<AtomicBool>,
        ends: Ends,
    ) -> Answer {
        if let Err(turned) = check_place(request.uri(), request.headers(), self.port) {
            return turned.into_answer();
        }
        let path = request.uri().path();
        if let Some(id) = path.strip_prefix("/approvals/") {
            let id = id.to_owned();
            return self.approval(id, request, connection, ends).await;
        }
        if path == page::STYLE_PATH && [Method::GET, Method::HEAD].contains(request.method()) {
            return page::style();
        }
        match self.admitted(request, connection).await {
            Ok((request, kept)) => {
                let answer = self.mcp.answer(kept.0.name(), request).await;
                answer.map(|body| BoxBody::new(Held::new(body, kept)))
            }
            Err(turned) => turned.into_answer(),
        }
    }

    /// The page of an approval, for people.
    async fn approval(
        &self,
        id: String,
        request: Request<Incoming>,
        connection: &Arc<AtomicBool>,
        ends: Ends,
    ) -> Answer {
        if request.method() != Method::POST {
            return approval::without_form(request.method());
        }
        let form = match check_form(request.headers()) {
            Ok(()) => read(request.into_body(), FORM_BYTES_MAX).await,
            Err(turned) => Err(turned),
        };
        let form = match form {
            Ok(body) => Form::read(&body),
            Err(Turned { status, error }) => return page::shown(status, page::refused(&error)),
        };
        let Guest { name, handle } = match self.door.receive(form.token.clone(), ends).await {
            Ok(guest) => guest,
            Err(error) => return approval::refused(&error),
        };
        let Some(place) = self.places.take(name) else {
            return approval::refused(&crowded().error);
        };
        let kept = (place, Busy::new(connection));
        let answer = approval::answer(&*handle, id, form).await;
        answer.map(|body| BoxBody::new(Held::new(body, kept)))
    }

    /// The whole request, with the handle that speaks for whoever makes it.
    async fn admitted(
        &self,
        request: Request<Incoming>,
        connection: &Arc<AtomicBool>,
    ) -> Result<(Request<Bytes>, (Place, Busy)), Turned> {
        let admitted = self.door.admit(token(request.headers())?).await;
        let Guest { name, handle } = admitted.map_err(unauthorised)?;
        let kept = (self.places.take(name).ok_or_else(crowded)?, Busy::new(connection));
        if request.uri().path() != "/mcp" {
            let error = Error::new(api::Code::NotFound, "there is nothing at this path");
            return Err(Turned {
                status: StatusCode::NOT_FOUND,
                error: error.hint("there are `/mcp` and `/approvals/ID`"),
            });
        }
        let (mut head, body) = request.into_parts();
        let body = read(body, BODY_BYTES_MAX).await?;
        if understands_anything(&head.headers) {
            let both = HeaderValue::from_static("application/json, text/event-stream");
            head.headers.insert(ACCEPT, both);
        }
        head.extensions.insert(handle);
        Ok((Request::from_parts(head, body), kept))
    }
}

/// Some clients do not say what they understand, or that it is all the same to them.
fn understands_anything(headers: &HeaderMap) -> bool {
    let mut said = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok()).peekable();
    said.peek().is_none() || said.any(|it| it.contains("*/*"))
}

fn crowded() -> Turned {
    let what = format!("you have {REQUESTS_EACH_MAX} requests open, and can have no more");
    let error = Error::new(api::Code::LimitReached, what);
    let error = error.hint("end a stream, or wait for an answer");
    Turned { status: StatusCode::TOO_MANY_REQUESTS, error }
}

async fn read(body: Incoming, bytes_max: usize) -> Result<Bytes, Turned> {
    let turned =
        |status, what: &str| Turned { status, error: Error::new(api::Code::InvalidInput, what) };
    match timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let what = format!("such a request has at most {bytes_max} bytes");
            Err(turned(StatusCode::PAYLOAD_TOO_LARGE, &what))
        }
        Ok(Err(_)) => Err(turned(StatusCode::BAD_REQUEST, "the request was cut off")),
        Err(_) => Err(turned(StatusCode::REQUEST_TIMEOUT, "the request took too long to come")),
    }
}

impl Turned {
    fn into_answer(self) -> Answer {
        let document = serde_json::json!({ "error": self.error }).to_string();
        let mut answer = Response::new(Full::new(Bytes::from(document)).boxed());
        *answer.status_mut() = self.status;
        let headers = answer.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
        if self.status == StatusCode::UNAUTHORIZED {
            headers.insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        answer
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

    /// Lets everybody in by the name that they show, to where nothing is ever answered.
    #[derive(Debug)]
    struct Open;

    impl Door for Open {
        fn admit(&self, Secret(name): Secret) -> BoxFuture<'_, Result<Guest, Error>> {
            ready(Ok(Guest { name, handle: Arc::new(Open) })).boxed()
        }

        fn receive(&self, token: Secret, _: Ends) -> BoxFuture<'_, Result<Guest, Error>> {
            self.admit(token)
        }
    }

    impl Handle for Open {
        fn call(&self, _: Call) -> BoxFuture<'_, Result<api::Answer, Error>> {
            pending().boxed()
        }
    }

    fn server() -> Server {
        Server::of_requests(Selection::default(), "1")
    }

    /// A good request whose answer is long.
    fn good(address: net::SocketAddr) -> Vec<u8> {
        request(address, "x", "tools/list", json!({}))
    }

    fn request(address: net::SocketAddr, who: &str, method: &str, mut asked: Value) -> Vec<u8> {
        asked["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        let name = asked["name"].as_str().map(|name| format!("Mcp-Name: {name}\r\n"));
        let name = name.unwrap_or_default();
        let body = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": asked});
        let body = body.to_string();
        format!(
            "POST /mcp HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {who}\r\n\
             Content-Type: application/json\r\nMCP-Protocol-Version: 2026-07-28\r\n\
             Mcp-Method: {method}\r\n{name}Content-Length: {}\r\n\r\n{body}",
            body.len()
        )
        .into_bytes()
    }

    /// The first line of the answer.
    fn status(stream: &mut net::TcpStream) -> String {
        stream.set_read_timeout(Some(Duration::from_secs(30))).unwrap();
        let mut first = [0; 12];
        stream.read_exact(&mut first).unwrap();
        String::from_utf8_lossy(&first).into_owned()
    }

    #[tokio::test]
    async fn connections_that_never_read_do_not_lock_the_door() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits { connections: 2, requests_each: 9, write: Duration::from_millis(50) };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let served = serve_within(limits, listener, Arc::new(Open), server, stopped);
        let first = tokio::task::spawn_blocking(move || {
            let request = good(address);
            let mute: Vec<_> = (0..limits.connections)
                .map(|_| net::TcpStream::connect(address).unwrap())
                .map(|mut stream| {
                    let request = request.clone();
                    // Writes until it is thrown out.
                    thread::spawn(move || while stream.write_all(&request).is_ok() {})
                })
                .collect();
            let mut stream = net::TcpStream::connect(address).unwrap();
            stream.write_all(&request).unwrap();
            let first = status(&mut stream);
            for thread in mute {
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
    async fn connections_that_say_nothing_give_way_one_after_the_other() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits { connections: 2, requests_each: 9, write: Duration::from_secs(30) };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let served = serve_within(limits, listener, Arc::new(Open), server, stopped);
        let told = tokio::task::spawn_blocking(move || {
            let connect = || net::TcpStream::connect(address).unwrap();
            let mut silent = [connect(), connect()];
            let mut third = connect();
            third.write_all(&good(address)).unwrap();
            assert_eq!(status(&mut third), "HTTP/1.1 200");
            assert_eq!(silent[0].read(&mut [0]).unwrap(), 0, "the first had to go");
            // The other is as good as ever.
            silent[1].write_all(&good(address)).unwrap();
            assert_eq!(status(&mut silent[1]), "HTTP/1.1 200");
        });
        let told = async {
            let told = told.await;
            stop.send_replace(true);
            told
        };
        let ((), told) = futures::join!(served, told);
        told.unwrap();
    }

    #[tokio::test]
    async fn one_principal_with_many_requests_leaves_room_for_the_others() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let limits = Limits { connections: 9, requests_each: 2, write: Duration::from_secs(30) };
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let served = serve_within(limits, listener, Arc::new(Open), server, stopped);
        let told = tokio::task::spawn_blocking(move || {
            let send = |who: &str, method: &str, asked: Value| {
                let mut stream = net::TcpStream::connect(address).unwrap();
                stream.write_all(&request(address, who, method, asked)).unwrap();
                stream
            };
            let waits = || send("ada", "tools/call", json!({"name": "status_get"}));
            let held = [waits(), waits()];
            // They are let in one after the other, and nobody says when.
            let becomes = |expected: &str| {
                (0..10_000).any(|_| status(&mut send("ada", "tools/list", json!({}))) == expected)
            };
            assert!(becomes("HTTP/1.1 429"), "there is no end to what one may have");
            assert_eq!(status(&mut send("ben", "tools/list", json!({}))), "HTTP/1.1 200");
            drop(held);
            assert!(becomes("HTTP/1.1 200"), "what has gone still has its place");
        });
        let told = async {
            let told = told.await;
            stop.send_replace(true);
            told
        };
        let ((), told) = futures::join!(served, told);
        told.unwrap();
    }
}
