//! Reads the body of a request within a limit of bytes and of time.

use std::time::Duration;

use api::{Code, Error};
use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::rejection::Rejection;

/// How long a client may take to write the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the whole body. A body that arrives in one piece is not copied.
pub(crate) async fn read_body(body: Body, bytes_max: usize) -> Result<Bytes, Rejection> {
    let rejection =
        |status, what: &str| Rejection { status, error: Error::new(Code::InvalidInput, what) };
    match timeout(BODY_TIMEOUT, Limited::new(body, bytes_max).collect()).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => {
            let what = format!("the request is longer than {bytes_max} bytes");
            Err(rejection(StatusCode::PAYLOAD_TOO_LARGE, &what))
        }
        Ok(Err(_)) => Err(rejection(StatusCode::BAD_REQUEST, "the request was truncated")),
        Err(_) => {
            Err(rejection(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive"))
        }
    }
}
