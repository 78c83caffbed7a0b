//! The protocol over HTTP: one path that serves both eras.
//!
//! Whoever made a request was found out before; the request carries the handle that speaks for them, each
//! request its own. A session of the earlier era holds nothing but what a client follows.

use std::convert::Infallible;
use std::fmt;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use http_body_util::combinators::BoxBody;
use rmcp::transport::streamable_http_server::session::local::LocalSessionManager;
use rmcp::transport::{StreamableHttpServerConfig, StreamableHttpService};
use tokio_util::sync::CancellationToken;

use crate::server::Server;
use crate::toolset::Selection;

/// What answers at `/mcp`.
pub struct Endpoint {
    service: StreamableHttpService<Server, LocalSessionManager>,
    stop: CancellationToken,
}

impl Endpoint {
    pub fn new(version: &'static str) -> Endpoint {
        let stop = CancellationToken::new();
        let config = StreamableHttpServerConfig::default()
            .with_allowed_origins(["http://localhost:*", "http://127.0.0.1:*", "http://[::1]:*"])
            .with_json_response(true)
            .with_cancellation_token(stop.clone());
        let server = move || Ok(Server::of_requests(Selection::default(), version));
        let service =
            StreamableHttpService::new(server, LocalSessionManager::default().into(), config);
        Endpoint { service, stop }
    }

    /// Answers a request that has a handle among its extensions.
    pub async fn answer(
        &self,
        request: Request<Full<Bytes>>,
    ) -> Response<BoxBody<Bytes, Infallible>> {
        self.service.handle(request).await
    }

    /// Ends every stream.
    pub fn stop(&self) {
        self.stop.cancel();
    }
}

impl fmt::Debug for Endpoint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Endpoint(/mcp)")
    }
}
