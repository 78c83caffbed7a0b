//! `GET` of a page.

use std::sync::Arc;

use axum::response::Response;
use http::request::Parts;
use http::{HeaderMap, HeaderName, StatusCode};
use web::View;

use super::looking::LookingHandle;
use super::session::{usage, viewer};
use super::{APPROVAL_PREFIX, Pages, check_same_origin, response};
use crate::connection::RequestConnection;

/// The page at a view. `None` for the page of an approval without a session: that page then asks for a token.
pub(super) async fn page(
    pages: &Pages,
    connection: &RequestConnection,
    head: &Parts,
    view: &View,
) -> Option<Response> {
    let headers = &head.headers;
    if !is_navigation(headers)
        && let Err(rejection) = check_same_origin(headers)
    {
        return Some(response::error_with(rejection.status, &rejection.error, None));
    }
    let session = match pages.session(headers, usage(headers)).await {
        Some(Ok(session)) => session,
        Some(Err(error)) => return Some(response::error(&error, None)),
        None if head.uri.path().starts_with(APPROVAL_PREFIX) => return None,
        None => return Some(response::see_other(&enter_address(view.address()))),
    };
    if let Err(error) = pages.check_peer(connection).await {
        return Some(response::error(&error, None));
    }
    let permit = match pages.gate.admit(&session.caller, connection) {
        Ok(permit) => permit,
        Err(refused) => return Some(response::error_with(refused.status, &refused.error, None)),
    };
    let viewer = viewer(&session, headers);
    let handle = LookingHandle(Arc::clone(&session.caller.handle));
    let response = match web::render(&handle, view, &viewer).await {
        Ok(page) => response::html(StatusCode::OK, page.document(view, &viewer)),
        Err(error) => response::error(&error, Some(&viewer)),
    };
    Some(permit.hold_during(response))
}

/// Links of other programs may lead to a page; their scripts may not load it.
fn is_navigation(headers: &HeaderMap) -> bool {
    const SEC_FETCH_MODE: HeaderName = HeaderName::from_static("sec-fetch-mode");
    headers.get(SEC_FETCH_MODE).is_some_and(|mode| mode.as_bytes() == b"navigate")
}

fn enter_address(target: &str) -> String {
    let target: String = form_urlencoded::byte_serialize(target.as_bytes()).collect();
    format!("/enter?to={target}")
}
