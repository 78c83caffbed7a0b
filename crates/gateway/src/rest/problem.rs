//! Errors of the API: problem details (RFC 9457) around our own.

use api::{API_PREFIX, Code, Error};
use axum::extract::Request;
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, RETRY_AFTER};
use serde_json::json;

use crate::rejection::Rejection;

const PROBLEM_TYPE: &str = "application/problem+json";

/// An error of a route. Its status follows from its code.
#[derive(Debug)]
pub(super) struct Problem {
    rejection: Rejection,
    retry_after_seconds: Option<u64>,
}

impl Problem {
    pub(super) fn retry_after(error: Error, seconds: u64) -> Problem {
        Problem { retry_after_seconds: Some(seconds), ..Problem::from(error) }
    }

    pub(super) fn with_status(status: StatusCode, error: Error) -> Problem {
        Problem { rejection: Rejection { status, error }, retry_after_seconds: None }
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Problem {
        Problem::with_status(status(error.code), error)
    }
}

impl From<Rejection> for Problem {
    fn from(rejection: Rejection) -> Problem {
        Problem { rejection, retry_after_seconds: None }
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let mut response = document(self.rejection.status, &self.rejection.error);
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response
    }
}

/// The status of a code, which is in the table of codes.
pub(super) fn status(code: Code) -> StatusCode {
    StatusCode::from_u16(code.http_status()).unwrap_or(StatusCode::SERVICE_UNAVAILABLE)
}

fn document(status: StatusCode, error: &Error) -> Response {
    let document = json!({
        "type": format!("/errors/{}", error.code.name()),
        "title": error.code.meaning(),
        "status": status.as_u16(),
        "error": error,
    });
    (status, [(CONTENT_TYPE, PROBLEM_TYPE)], document.to_string()).into_response()
}

/// Middleware around all routes: what was rejected before it reached the API is a problem, too.
pub(crate) async fn problem_documents(request: Request, next: Next) -> Response {
    let is_api = request.uri().path().starts_with(API_PREFIX);
    let mut response = next.run(request).await;
    let Some(error) = response.extensions_mut().remove::<Error>() else { return response };
    if !is_api {
        return response;
    }
    let (mut head, _) = response.into_parts();
    let body = document(head.status, &error).into_body();
    head.headers.remove(CONTENT_LENGTH);
    head.headers.insert(CONTENT_TYPE, HeaderValue::from_static(PROBLEM_TYPE));
    Response::from_parts(head, body)
}
