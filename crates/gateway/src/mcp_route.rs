//! The route `/mcp`, for programs.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use bytes::Bytes;
use http::header::{ACCEPT, HeaderValue};
use http::{HeaderMap, Response};
use http_body_util::combinators::BoxBody;
use mcp::{Endpoint, ServerHandler};

use crate::authenticate::Authenticated;
use crate::body::read_body;
use crate::byte_budget::ByteBudget;
use crate::rejection::Rejection;

const BODY_BYTES_MAX: usize = 1 << 20;

/// Reads the whole request and passes it to the MCP server, with the handle of its caller among its extensions.
pub(crate) async fn respond<S: ServerHandler>(
    State(endpoint): State<Arc<Endpoint<S>>>,
    Extension(caller): Extension<Authenticated>,
    Extension(bodies): Extension<ByteBudget>,
    request: Request,
) -> Result<Response<BoxBody<Bytes, Infallible>>, Rejection> {
    let (mut head, body) = request.into_parts();
    let mut reservation = bodies.reserve(caller.name.clone());
    let body = read_body(body, BODY_BYTES_MAX, &mut reservation).await?;
    if accepts_anything(&head.headers) {
        let both = HeaderValue::from_static("application/json, text/event-stream");
        head.headers.insert(ACCEPT, both);
    }
    head.extensions.insert(caller.handle);
    Ok(endpoint.handle(&caller.name, Request::from_parts(head, body)).await)
}

/// Whether a client sends no `Accept` header, or accepts every type.
fn accepts_anything(headers: &HeaderMap) -> bool {
    let mut values = headers.get_all(ACCEPT).iter().filter_map(|it| it.to_str().ok()).peekable();
    values.peek().is_none() || values.any(|it| it.contains("*/*"))
}
