//! Reads the body of a request within limits of bytes, of memory for all requests, and of time.

use std::time::Duration;

use api::{Code, Error};
use axum::body::Body;
use bytes::Bytes;
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::timeout;

use crate::byte_budget::Reservation;
use crate::rejection::Rejection;

/// How long a client may take to write the body of a request.
const BODY_TIMEOUT: Duration = Duration::from_secs(30);

/// Reads the whole body while there is room for it. A body that arrives in one piece is not copied.
pub(crate) async fn read_body(
    body: Body,
    bytes_max: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Rejection> {
    let read = timeout(BODY_TIMEOUT, read_pieces(body, bytes_max, reservation)).await;
    read.unwrap_or_else(|_| {
        Err(rejection(StatusCode::REQUEST_TIMEOUT, "the request took too long to arrive"))
    })
}

async fn read_pieces(
    body: Body,
    bytes_max: usize,
    reservation: &mut Reservation,
) -> Result<Bytes, Rejection> {
    let mut body = Limited::new(body, bytes_max);
    let mut pieces: Vec<Bytes> = Vec::new();
    let mut bytes = 0;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|error| match error.is::<LengthLimitError>() {
            true => {
                let what = format!("the request is longer than {bytes_max} bytes");
                rejection(StatusCode::PAYLOAD_TOO_LARGE, &what)
            }
            false => rejection(StatusCode::BAD_REQUEST, "the request was truncated"),
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        bytes += piece.len();
        if !reservation.grow_to(bytes) {
            return Err(too_much_memory());
        }
        pieces.push(piece);
    }
    Ok(match <[Bytes; 1]>::try_from(pieces) {
        Ok([whole]) => whole,
        Err(pieces) => pieces.concat().into(),
    })
}

fn too_much_memory() -> Rejection {
    let error =
        Error::new(Code::LimitReached, "the open requests of programs hold too much memory");
    let error = error.hint("try again when some of them are done");
    Rejection { status: StatusCode::TOO_MANY_REQUESTS, error }
}

fn rejection(status: StatusCode, what: &str) -> Rejection {
    Rejection { status, error: Error::new(Code::InvalidInput, what) }
}
