//! Responses of the dashboard and their headers.

use api::Error;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{
    CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, HeaderName, HeaderValue, LOCATION,
    REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS,
};
use serde_json::json;
use web::{Asset, Done, Viewer};

use crate::approval::status;

/// A page loads only our own style and script, and no page of others may frame it.
const CONTENT: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; \
                       connect-src 'self'; form-action 'self'; frame-ancestors 'none'; \
                       base-uri 'none'; require-trusted-types-for 'script'; \
                       trusted-types midwatch; report-uri /csp";
const OPENER_POLICY: HeaderName = HeaderName::from_static("cross-origin-opener-policy");
const RESOURCE_POLICY: HeaderName = HeaderName::from_static("cross-origin-resource-policy");

pub(super) fn html(status: StatusCode, page: String) -> Response {
    let mut response = with_type(status, "text/html; charset=utf-8", page);
    let headers = response.headers_mut();
    headers.insert(CONTENT_SECURITY_POLICY, HeaderValue::from_static(CONTENT));
    headers.insert(OPENER_POLICY, HeaderValue::from_static("same-origin"));
    // With a stricter policy, browsers would send no `Origin` with a form.
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("same-origin"));
    no_store(response)
}

/// The page of an error.
pub(super) fn error(error: &Error, viewer: Option<&Viewer>) -> Response {
    error_with(status(error.code), error, viewer)
}

pub(super) fn error_with(status: StatusCode, error: &Error, viewer: Option<&Viewer>) -> Response {
    html(status, web::error_document(error, viewer))
}

pub(super) fn see_other(location: &str) -> Response {
    let mut response = StatusCode::SEE_OTHER.into_response();
    if let Ok(location) = HeaderValue::from_str(location) {
        response.headers_mut().insert(LOCATION, location);
    }
    no_store(response)
}

/// The result of a form that a script sent.
pub(super) fn done(Done { location, message }: &Done) -> Response {
    json_response(StatusCode::OK, json!({ "location": location, "message": message }).to_string())
}

/// The error of a form that a script sent.
pub(super) fn error_json(status: StatusCode, error: &Error) -> Response {
    json_response(status, json!({ "error": error }).to_string())
}

fn json_response(status: StatusCode, document: String) -> Response {
    no_store(with_type(status, "application/json", document))
}

/// A file of ours. Its address changes with its content.
pub(super) fn asset(asset: &Asset) -> Response {
    let mut response = with_type(StatusCode::OK, asset.content_type, asset.body);
    let forever = HeaderValue::from_static("public, max-age=31536000, immutable");
    response.headers_mut().insert(CACHE_CONTROL, forever);
    response
}

pub(super) fn no_store(mut response: Response) -> Response {
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

pub(super) fn with_type(
    status: StatusCode,
    kind: &'static str,
    body: impl IntoResponse,
) -> Response {
    let headers = [
        (CONTENT_TYPE, kind),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
        (RESOURCE_POLICY, "same-origin"),
    ];
    (status, headers, body).into_response()
}
