//! The protocol over HTTP: one path that serves both eras.
//!
//! Whoever made a request was found out before; the request carries the handle that speaks for them, each
//! request its own. A session of the earlier era holds nothing but what a client follows.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;

use api::{Code, Error};
use bytes::Bytes;
use http::header::{CONTENT_TYPE, HeaderValue};
use http::{HeaderMap, Method, Request, Response, StatusCode};
use http_body_util::combinators::BoxBody;
use http_body_util::{BodyExt, Full};
use rmcp::handler::server::ServerHandler;
use rmcp::model::{ProtocolVersion, ServerJsonRpcMessage};
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::message::{self, Wrong};
use crate::sessions::{SESSIONS_MAX, Sessions};

const SESSION: &str = "mcp-session-id";
const VERSION: &str = "mcp-protocol-version";

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// What answers at `/mcp`.
pub struct Endpoint<S> {
    service: StreamableHttpService<S, Sessions>,
    sessions: Arc<Sessions>,
    stop: CancellationToken,
}

impl<S: ServerHandler> Endpoint<S> {
    /// `port` is where it is reached; pages from elsewhere are turned away. Every session has a server of its
    /// own, and so has every request of the later era.
    pub fn new(port: u16, server: impl Fn() -> S + Send + Sync + 'static) -> Endpoint<S> {
        let stop = CancellationToken::new();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(
                ["localhost", "127.0.0.1", "[::1]"].map(|it| format!("http://{it}:{port}")),
            )
            .with_json_response(true)
            .with_cancellation_token(stop.clone());
        let sessions = Arc::new(Sessions::default());
        let service =
            StreamableHttpService::new(move || Ok(server()), Arc::clone(&sessions), config);
        Endpoint { service, sessions, stop }
    }

    /// Answers a request that has a handle among its extensions. `by` is how its principal is known; a session
    /// is of the one who began it, and for others it is not there.
    pub async fn answer(&self, by: &str, request: Request<Bytes>) -> Answer {
        if request.method() == Method::POST
            && let Err(wrong) = message::read(request.body())
        {
            return malformed(wrong);
        }
        let session = session_of(request.headers());
        if let Some(session) = &session
            && !self.sessions.is_of(session, by).await
        {
            return unknown();
        }
        let is_end = request.method() == Method::DELETE;
        let mut answer = self.service.handle(request.map(Full::new)).await;
        if let (None, Some(begun)) = (session, session_of(answer.headers())) {
            self.sessions.give(&begun, by).await;
        }
        match answer.status() {
            StatusCode::INTERNAL_SERVER_ERROR if self.sessions.are_full().await => return full(),
            // It is done, and there are clients that take anything else for a failure.
            StatusCode::ACCEPTED if is_end => *answer.status_mut() = StatusCode::NO_CONTENT,
            _ => {}
        }
        answer
    }

    /// Ends every stream.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

/// The session that is named. There are none in the later era.
fn session_of(headers: &HeaderMap) -> Option<String> {
    let is_modern =
        headers.get(VERSION).is_some_and(|it| it == ProtocolVersion::V_2026_07_28.as_str());
    let session = headers.get(SESSION).filter(|_| !is_modern)?;
    Some(String::from_utf8_lossy(session.as_bytes()).into_owned())
}

fn full() -> Answer {
    let what = format!("there are {SESSIONS_MAX} sessions, and there can be no more");
    let error = Error::new(Code::LimitReached, what).hint(
        "end one with DELETE, or try again in a few minutes, when those that nobody uses are over",
    );
    refused(StatusCode::SERVICE_UNAVAILABLE, &error)
}

fn unknown() -> Answer {
    let error = Error::new(Code::NotFound, "there is no such session");
    refused(StatusCode::NOT_FOUND, &error.hint("begin another with `initialize`"))
}

fn refused(status: StatusCode, error: &Error) -> Answer {
    document(status, serde_json::json!({ "error": error }).to_string())
}

fn malformed(Wrong { id, error }: Wrong) -> Answer {
    let message = ServerJsonRpcMessage::error(error, id);
    // What is made here can be written.
    let text = serde_json::to_string(&message).unwrap_or_default();
    document(StatusCode::BAD_REQUEST, text)
}

fn document(status: StatusCode, text: String) -> Answer {
    let mut answer = Response::new(Full::new(Bytes::from(text)).boxed());
    *answer.status_mut() = status;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer
}

impl<S> fmt::Debug for Endpoint<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Endpoint(/mcp)")
    }
}
