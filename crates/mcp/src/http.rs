//! MCP over HTTP: one path that serves both eras of the protocol.
//!
//! The gateway has authenticated each request, which carries the handle of its principal. A session of the earlier era
//! holds nothing but the client's subscriptions.

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
use rmcp::transport::streamable_http_server::SessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::message::{self, InvalidMessage};
use crate::sessions::{SESSIONS_MAX, SESSIONS_PER_PRINCIPAL_MAX, Sessions};

const SESSION_HEADER: &str = "mcp-session-id";
const VERSION_HEADER: &str = "mcp-protocol-version";

type HttpResponse = Response<BoxBody<Bytes, Infallible>>;

/// The handler of `/mcp`.
pub struct Endpoint<S> {
    service: StreamableHttpService<S, Sessions>,
    sessions: Arc<Sessions>,
    stop: CancellationToken,
}

impl<S: ServerHandler> Endpoint<S> {
    /// `port` is the listening port; requests of web pages with another origin are refused. Each session has its own
    /// server, and so has each request of the later era.
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

    /// Handles a request, which has a handle among its extensions. `principal` is the name of the caller; a session
    /// can only be used by the principal that started it.
    pub async fn handle(&self, principal: &str, request: Request<Bytes>) -> HttpResponse {
        if request.method() == Method::POST
            && let Err(invalid) = message::parse(request.body())
        {
            return malformed(invalid);
        }
        let session = session_of(request.headers());
        if let Some(session) = &session
            && !self.sessions.is_owned_by(session, principal).await
        {
            return unknown_session();
        }
        let ends_session = request.method() == Method::DELETE;
        let mut response = self.service.handle(request.map(Full::new)).await;
        if let (None, Some(started)) = (session, session_of(response.headers())) {
            self.sessions.set_owner(&started, principal).await;
            if self.sessions.is_over_limit(principal).await {
                let _ = self.sessions.close_session(&started.into()).await;
                let what =
                    format!("`{principal}` has {SESSIONS_PER_PRINCIPAL_MAX} sessions, the limit");
                return too_many_sessions(what);
            }
        }
        match response.status() {
            StatusCode::INTERNAL_SERVER_ERROR if self.sessions.is_full().await => {
                return too_many_sessions(format!(
                    "the limit of {SESSIONS_MAX} sessions is reached"
                ));
            }
            // Some clients take any other status for a failure.
            StatusCode::ACCEPTED if ends_session => *response.status_mut() = StatusCode::NO_CONTENT,
            _ => {}
        }
        response
    }

    /// Ends every stream.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

/// The session that the headers name. The later era has no sessions.
fn session_of(headers: &HeaderMap) -> Option<String> {
    let is_modern =
        headers.get(VERSION_HEADER).is_some_and(|it| it == ProtocolVersion::V_2026_07_28.as_str());
    let session = headers.get(SESSION_HEADER).filter(|_| !is_modern)?;
    Some(String::from_utf8_lossy(session.as_bytes()).into_owned())
}

fn too_many_sessions(what: String) -> HttpResponse {
    let error = Error::new(Code::LimitReached, what).hint(
        "end one with DELETE, or try again in a few minutes, when idle sessions have expired",
    );
    error_response(StatusCode::SERVICE_UNAVAILABLE, &error)
}

fn unknown_session() -> HttpResponse {
    let error = Error::new(Code::NotFound, "unknown or expired session");
    error_response(StatusCode::NOT_FOUND, &error.hint("start a new one with `initialize`"))
}

fn error_response(status: StatusCode, error: &Error) -> HttpResponse {
    json_response(status, serde_json::json!({ "error": error }).to_string())
}

fn malformed(InvalidMessage { id, error }: InvalidMessage) -> HttpResponse {
    let message = ServerJsonRpcMessage::error(error, id);
    // Serialising our own message does not fail.
    let text = serde_json::to_string(&message).unwrap_or_default();
    json_response(StatusCode::BAD_REQUEST, text)
}

fn json_response(status: StatusCode, text: String) -> HttpResponse {
    let mut response = Response::new(Full::new(Bytes::from(text)).boxed());
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    response
}

impl<S> fmt::Debug for Endpoint<S> {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Endpoint(/mcp)")
    }
}
