//! `/healthz` and `/readyz`, for the programs that look after the daemon. They need no token and tell nothing secret.

use std::sync::Arc;

use axum::extract::State;
use axum::response::IntoResponse;
use http::StatusCode;

use crate::rest::service::ApiService;

/// The process is alive: it responds.
pub(super) async fn is_alive() -> &'static str {
    "alive\n"
}

/// Whether the ledger can be written.
pub(super) async fn is_ready(State(service): State<Arc<dyn ApiService>>) -> impl IntoResponse {
    match service.check_ready().await {
        Ok(()) => (StatusCode::OK, "ready\n".to_owned()),
        // The message may name a file.
        Err(error) => {
            (StatusCode::SERVICE_UNAVAILABLE, format!("not ready: {}\n", error.code.name()))
        }
    }
}
