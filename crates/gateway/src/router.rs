//! Which handler responds to which path, and what is checked before it.
//!
//! Invariants: every request passes the check of its host and origin. Every path and every method needs a token in the
//! `Authorization` header, unless [`routes_without_token`] names it; so a caller without a token cannot learn which
//! paths exist.

use std::sync::Arc;

use api::{Code, Error};
use axum::Router;
use axum::middleware::from_fn_with_state;
use axum::routing::{any, get};
use http::StatusCode;
use mcp::{Endpoint, ServerHandler};

use crate::authenticate::{Access, require_token};
use crate::origin::require_own_host_and_origin;
use crate::rejection::Rejection;
use crate::{approval, mcp_route, page};

/// All routes. `port` is the one this server listens on.
pub(crate) fn router<S: ServerHandler>(
    port: u16,
    access: Arc<Access>,
    endpoint: Arc<Endpoint<S>>,
) -> Router {
    let with_token =
        routes_with_token(endpoint).layer(from_fn_with_state(Arc::clone(&access), require_token));
    routes_without_token(access)
        .merge(with_token)
        .layer(from_fn_with_state(port, require_own_host_and_origin))
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
fn routes_without_token(access: Arc<Access>) -> Router {
    let other_methods =
        any(not_found).layer(from_fn_with_state(Arc::clone(&access), require_token));
    let approval = get(approval::sign_in).post(approval::submit).with_state(access);
    Router::new()
        .route(page::STYLE_PATH, other_methods.get(page::style))
        .route(approval::PATH_PREFIX, approval.clone())
        .route(&format!("{}{{*id}}", approval::PATH_PREFIX), approval)
}

async fn not_found() -> Rejection {
    let error = Error::new(Code::NotFound, "there is nothing at this path");
    Rejection { status: StatusCode::NOT_FOUND, error: error.hint("use `/mcp` or `/approvals/ID`") }
}
