//! `/metrics`, for a Prometheus server: a token that may read them, and all metrics as text.

use std::sync::Arc;

use api::Error;
use api::wire::Secret;
use axum::extract::State;
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use axum::{Extension, Router};
use futures::future::BoxFuture;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};

use crate::authenticate::{Authenticated, CallerGate, bearer_token, require_token, unauthorised};
use crate::connection::{ConnectionAddresses, RequestConnection};
use crate::rejection::Rejection;
use crate::router::not_found;

const PATH: &str = "/metrics";

/// The metrics, and who may read them.
pub trait MetricsSource: Send + Sync {
    /// Authenticates a reader of the metrics by the token that a process has sent.
    fn authenticate(
        &self,
        token: Secret,
        addresses: ConnectionAddresses,
    ) -> BoxFuture<'_, Result<Authenticated, Error>>;

    /// All metrics, in the text format of Prometheus.
    fn read(&self) -> BoxFuture<'_, Result<String, Error>>;
}

/// The route. Other methods look like a path that does not exist.
pub(crate) fn routes(source: Arc<dyn MetricsSource>, gate: Arc<CallerGate>) -> Router {
    let other_methods = any(not_found).layer(from_fn_with_state(Arc::clone(&gate), require_token));
    Router::new().route(PATH, other_methods.get(respond).with_state((source, gate)))
}

async fn respond(
    State((source, gate)): State<(Arc<dyn MetricsSource>, Arc<CallerGate>)>,
    Extension(connection): Extension<RequestConnection>,
    headers: HeaderMap,
) -> Result<Response, Rejection> {
    let token = bearer_token(&headers)?;
    let reader = source.authenticate(token, connection.addresses).await.map_err(unauthorised)?;
    let permit = gate.admit_program(&reader, &connection)?;
    let text = source.read().await;
    let text =
        text.map_err(|error| Rejection { status: StatusCode::SERVICE_UNAVAILABLE, error })?;
    let headers = [(CONTENT_TYPE, metrics::CONTENT_TYPE), (CACHE_CONTROL, "no-store")];
    Ok(permit.hold_during((headers, text).into_response()))
}
