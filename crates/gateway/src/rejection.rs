//! The response to a request that was not accepted: an error as JSON, after which the connection is closed.

use api::Error;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CONNECTION, CONTENT_TYPE, HeaderValue, WWW_AUTHENTICATE};

/// An error response to a request that was not accepted.
#[derive(Debug)]
pub(crate) struct Rejection {
    pub(crate) status: StatusCode,
    pub(crate) error: Error,
}

impl IntoResponse for Rejection {
    fn into_response(self) -> Response {
        let document = serde_json::json!({ "error": self.error }).to_string();
        let headers = [(CONTENT_TYPE, "application/json"), (CONNECTION, "close")];
        let mut response = (self.status, headers, document).into_response();
        if self.status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response.extensions_mut().insert(self.error);
        response
    }
}
