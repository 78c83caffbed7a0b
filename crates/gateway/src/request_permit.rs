//! What a request of an authenticated caller holds until its response has been sent.

use std::pin::Pin;
use std::task::{Context, Poll};

use axum::body::Body;
use axum::response::Response;
use bytes::Bytes;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use tokio::sync::OwnedSemaphorePermit;

use crate::concurrency_limit::ConcurrencyPermit;
use crate::connection::BusyGuard;

/// One permit of the caller, and the mark that its connection is busy.
pub(crate) struct RequestPermit {
    _permit: ConcurrencyPermit,
    _busy: BusyGuard,
    /// The permit of a program.
    _of_programs: Option<OwnedSemaphorePermit>,
}

impl RequestPermit {
    pub(crate) fn new(permit: ConcurrencyPermit, busy: BusyGuard) -> RequestPermit {
        RequestPermit { _permit: permit, _busy: busy, _of_programs: None }
    }

    /// Also holds a permit of all programs.
    pub(crate) fn with(self, of_programs: OwnedSemaphorePermit) -> RequestPermit {
        RequestPermit { _of_programs: Some(of_programs), ..self }
    }

    /// Holds this permit until the body of `response` has been sent or dropped.
    pub(crate) fn hold_during(self, response: Response) -> Response {
        response.map(|body| Body::new(PermitBody { body, _permit: self }))
    }
}

/// A response body that keeps the permit of its request.
struct PermitBody {
    body: Body,
    _permit: RequestPermit,
}

impl HttpBody for PermitBody {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
