//! A limit on the requests or connections, streams included, that one principal may have open.
//!
//! Connections are limited. Without this limit one principal could fill them all with streams and lock out the
//! others, the human included.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};

type Counts = HashMap<String, usize>;

/// Permits per principal.
#[derive(Debug)]
pub struct ConcurrencyLimit {
    per_principal: usize,
    counts: Arc<Mutex<Counts>>,
}

/// One permit of a principal; dropping it releases it.
#[derive(Debug)]
pub struct ConcurrencyPermit {
    name: String,
    counts: Arc<Mutex<Counts>>,
}

/// A response body that keeps its request's permit, and its connection busy, until it has been sent.
pub(crate) struct PermitBody {
    body: BoxBody<Bytes, Infallible>,
    _guards: (ConcurrencyPermit, BusyGuard),
}

/// Marks a connection as busy with a request of an authenticated caller until this is dropped.
pub(crate) struct BusyGuard(Arc<AtomicBool>);

impl BusyGuard {
    pub(crate) fn new(connection: &Arc<AtomicBool>) -> BusyGuard {
        connection.store(true, Ordering::Relaxed);
        BusyGuard(Arc::clone(connection))
    }
}

impl Drop for BusyGuard {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl ConcurrencyLimit {
    pub fn new(per_principal: usize) -> ConcurrencyLimit {
        ConcurrencyLimit { per_principal, counts: Arc::default() }
    }

    /// Returns `None` when the principal has all of its permits in use.
    pub fn try_acquire(&self, name: String) -> Option<ConcurrencyPermit> {
        let mut counts = lock(&self.counts);
        let count = counts.entry(name.clone()).or_default();
        if self.per_principal <= *count {
            return None;
        }
        *count += 1;
        Some(ConcurrencyPermit { name, counts: Arc::clone(&self.counts) })
    }
}

impl ConcurrencyPermit {
    /// The principal that holds this permit.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut counts = lock(&self.counts);
        if let Some(count) = counts.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                counts.remove(&self.name);
            }
        }
    }
}

impl PermitBody {
    pub(crate) fn new(
        body: BoxBody<Bytes, Infallible>,
        guards: (ConcurrencyPermit, BusyGuard),
    ) -> PermitBody {
        PermitBody { body, _guards: guards }
    }
}

impl Body for PermitBody {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

fn lock(counts: &Mutex<Counts>) -> MutexGuard<'_, Counts> {
    counts.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permits_are_limited_per_principal_and_released_on_drop() {
        let limit = ConcurrencyLimit::new(2);
        let acquire = |name: &str| limit.try_acquire(name.to_owned());
        let first = acquire("ada");
        let _second = acquire("ada");
        assert!(first.is_some() && acquire("ada").is_none());
        let _other = acquire("ben");
        drop(first);
        let _third = acquire("ada");
        assert!(acquire("ada").is_none());
        drop((_second, _third, _other));
        assert!(lock(&limit.counts).is_empty(), "a principal without permits has no entry");
    }
}
