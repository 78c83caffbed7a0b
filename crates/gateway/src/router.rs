//! Which handler responds to which path, and what is checked before it.
//!
//! Invariants: every request passes the check of its host and origin. Every path and every method needs a token in the
//! `Authorization` header, unless [`routes_without_token`] names it; so a caller without a token cannot learn which
//! other paths exist.

use std::sync::Arc;

use api::{Code, Error};
use axum::Router;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{any, get};
use http::StatusCode;
use mcp::{Endpoint, ServerHandler};
use tokio::sync::watch::Receiver;

use crate::authenticate::{CallerGate, require_token};
use crate::origin::require_own_host_and_origin;
use crate::pages::{Pages, dashboard};
use crate::rejection::Rejection;
use crate::rest;
use crate::serve::Services;
use crate::{approval, mcp_route, metrics_route, page};

/// All routes. `port` is the one this server listens on.
pub(crate) fn router<S: ServerHandler>(
    port: u16,
    gate: Arc<CallerGate>,
    endpoint: Arc<Endpoint<S>>,
    services: Services,
    stopped: Receiver<bool>,
) -> Router {
    let Services { api, devices, metrics, .. } = services;
    let rest = api.map(|api| rest::routes(api, Arc::clone(&gate))).unwrap_or_default();
    let with_token =
        routes_with_token(endpoint).layer(from_fn_with_state(Arc::clone(&gate), require_token));
    let metrics = metrics.map(|source| metrics_route::routes(source, Arc::clone(&gate)));
    let mut routes = routes_without_token(Arc::clone(&gate))
        .merge(metrics.unwrap_or_default())
        .merge(with_token);
    if let Some(devices) = devices {
        let pages = Arc::new(Pages::new(gate, devices, stopped));
        routes = routes.layer(from_fn_with_state(pages, dashboard));
    }
    routes
        .merge(rest)
        .layer(from_fn_with_state(port, require_own_host_and_origin))
        .layer(from_fn(rest::problem_documents))
        // Builds the handlers now, and not again for each request.
        .with_state(())
}

/// Handlers of these routes get their caller as an extension, `Authenticated`.
fn routes_with_token<S: ServerHandler>(endpoint: Arc<Endpoint<S>>) -> Router {
    Router::new()
        .route("/mcp", any(mcp_route::respond::<S>).with_state(endpoint))
        .fallback(not_found)
}

/// The only routes that respond without a token in the header: the style sheet, which is the same for everyone, and the
/// page of an approval, which has its token in the form.
fn routes_without_token(gate: Arc<CallerGate>) -> Router {
    let other_methods = any(not_found).layer(from_fn_with_state(Arc::clone(&gate), require_token));
    let approval = get(approval::sign_in).post(approval::submit).with_state(gate);
    Router::new()
        .route(page::STYLE_PATH, other_methods.get(page::style))
        .route(approval::PATH_PREFIX, approval.clone())
        .route(&format!("{}{{*id}}", approval::PATH_PREFIX), approval)
}

pub(crate) async fn not_found() -> Rejection {
    let error = Error::new(Code::NotFound, "there is nothing at this path");
    Rejection {
        status: StatusCode::NOT_FOUND,
        error: error.hint("use `/mcp`, `/api/v1` or `/approvals/ID`"),
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use api::{API_PREFIX, Route};
    use axum::body::Body;
    use axum::extract::Request;
    use bytes::Bytes;
    use http::header::{ALLOW, AUTHORIZATION, CONNECTION, CONTENT_TYPE, HOST, WWW_AUTHENTICATE};
    use http::{HeaderMap, Method};
    use http_body_util::BodyExt;
    use hyper::service::Service;
    use hyper_util::service::TowerToHyperService;

    use super::*;
    use crate::authenticate::RequestLimits;
    use crate::connection::{BusyFlag, ConnectionAddresses, RequestConnection};
    use crate::test_support::{AcceptAll, server, services};

    const PORT: u16 = 7400;
    const METHODS: [Method; 8] = [
        Method::GET,
        Method::HEAD,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
    ];

    #[derive(Debug, PartialEq)]
    struct Reply {
        status: u16,
        headers: HeaderMap,
        body: Bytes,
    }

    /// Sends a request to `path` with these headers.
    async fn send(method: &Method, path: &str, headers: &[(&str, &str)]) -> Reply {
        let gate = Arc::new(CallerGate::new(Arc::new(AcceptAll), RequestLimits::default()));
        let (_sender, receiver) = tokio::sync::watch::channel(false);
        let router =
            router(PORT, gate, Arc::new(Endpoint::new(PORT, server)), services(), receiver);
        let here = SocketAddr::from(([127, 0, 0, 1], PORT));
        let addresses = ConnectionAddresses { peer: here, local: here };
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let connection =
            RequestConnection::new(addresses, BusyFlag::default(), Arc::new(AcceptAll));
        let request = request.extension(connection).body(Body::empty()).unwrap();
        let response = TowerToHyperService::new(router).call(request).await.unwrap();
        let (head, body) = response.into_parts();
        let body = body.collect().await.unwrap().to_bytes();
        Reply { status: head.status.as_u16(), headers: head.headers, body }
    }

    async fn without_token(method: &Method, path: &str) -> Reply {
        send(method, path, &[(HOST.as_str(), "localhost")]).await
    }

    async fn with_token(method: &Method, path: &str) -> Reply {
        let headers = [(HOST.as_str(), "localhost"), (AUTHORIZATION.as_str(), "Bearer ada")];
        send(method, path, &headers).await
    }

    #[tokio::test]
    async fn without_a_token_paths_that_exist_look_like_paths_that_do_not() {
        for method in METHODS {
            let nowhere = without_token(&method, "/nowhere").await;
            assert_eq!(nowhere.status, 401, "{method}");
            assert_eq!(nowhere.headers[WWW_AUTHENTICATE], "Bearer", "{method}");
            assert_eq!(nowhere.headers[CONNECTION], "close", "{method}");
            for path in ["/", "/mcp", "/mcp/", "/approvals", "*"] {
                assert_eq!(without_token(&method, path).await, nowhere, "{method} {path}");
            }
            let nowhere = without_token(&method, "/api/v1/nowhere").await;
            assert_eq!(nowhere.status, 401, "{method}");
            assert_eq!(nowhere.headers[WWW_AUTHENTICATE], "Bearer", "{method}");
            assert_eq!(nowhere.headers[CONTENT_TYPE], "application/problem+json", "{method}");
            let paths = Route::all().map(|route| format!("{API_PREFIX}{}", route.path));
            let more = ["/events", "/openapi.json", "", "/"].map(|it| format!("{API_PREFIX}{it}"));
            for path in paths.chain(more) {
                assert_eq!(without_token(&method, &path).await, nowhere, "{method} {path}");
            }
        }
    }

    #[tokio::test]
    async fn only_the_style_sheet_and_approval_pages_need_no_token() {
        for (method, path, status) in [
            (Method::GET, "/page.css", 200),
            (Method::HEAD, "/page.css", 200),
            (Method::GET, "/healthz", 200),
            (Method::GET, "/readyz", 200),
            (Method::POST, "/readyz", 405),
            (Method::POST, "/page.css", 401),
            (Method::OPTIONS, "/page.css", 401),
            (Method::GET, "/page.css/", 401),
            (Method::GET, "/approvals/", 200),
            (Method::GET, "/approvals/apr_1", 200),
            (Method::HEAD, "/approvals/apr_1", 200),
            (Method::GET, "/approvals/apr_1/%ff", 200),
            (Method::PUT, "/approvals/apr_1", 405),
            // There is no form, so no page of ours sent it.
            (Method::POST, "/approvals/apr_1", 403),
            (Method::POST, "/approvals/apr_1/approve", 403),
        ] {
            assert_eq!(without_token(&method, path).await.status, status, "{method} {path}");
        }
        let allowed = &without_token(&Method::PUT, "/approvals/apr_1").await.headers[ALLOW];
        assert_eq!(allowed, "GET,HEAD,POST");
    }

    #[tokio::test]
    async fn with_a_token_unknown_paths_and_methods_are_not_found() {
        for (method, path) in [
            (Method::GET, "/"),
            (Method::POST, "/mcpx"),
            (Method::POST, "/mcp/approve"),
            (Method::POST, "/page.css"),
        ] {
            let reply = with_token(&method, path).await;
            assert_eq!(reply.status, 404, "{method} {path}");
            assert!(reply.body.windows(6).any(|it| it == b"`/mcp`"), "{method} {path}: {reply:?}");
        }
        assert_eq!(with_token(&Method::POST, "/mcp").await.status, 400, "no message");
    }

    #[tokio::test]
    async fn every_path_checks_the_host_first() {
        let foreign = [(HOST.as_str(), "evil.example"), (AUTHORIZATION.as_str(), "Bearer ada")];
        for method in METHODS {
            for path in ["/mcp", "/page.css", "/approvals/", "/approvals/apr_1", "/nowhere", "*"] {
                assert_eq!(send(&method, path, &foreign).await.status, 403, "{method} {path}");
            }
        }
    }
}
