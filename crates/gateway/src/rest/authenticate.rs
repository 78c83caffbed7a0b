//! Who calls the API.

use std::sync::Arc;

use axum::Extension;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;

use crate::authenticate::{bearer_token, unauthorised};
use crate::connection::RequestConnection;
use crate::rejection::Rejection;
use crate::rest::Api;

/// Middleware that passes on only requests with a valid token, and holds a permit of the caller until the response has been
/// sent. The token of a person who can approve counts only from a process that no run started.
pub(super) async fn require_caller(
    State(api): State<Arc<Api>>,
    Extension(connection): Extension<RequestConnection>,
    mut request: Request,
    next: Next,
) -> Result<Response, Rejection> {
    let token = bearer_token(request.headers())?;
    let holder = api.service.authenticate_holder(token.clone()).await.map_err(unauthorised)?;
    let caller = match holder {
        Some(caller) => caller,
        None => {
            let peer = connection.peer().await;
            api.service.authenticate_operator(token, peer).await.map_err(unauthorised)?
        }
    };
    let permit = api.gate.admit_program(&caller, &connection)?;
    request.extensions_mut().insert(caller);
    Ok(permit.hold_during(next.run(request).await))
}
