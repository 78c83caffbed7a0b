//! How many requests or connections one principal may have open, streams among them.
//!
//! There are only so many connections. Whoever fills them with streams would keep everybody else out, the
//! human among them.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body_util::combinators::BoxBody;
use hyper::body::{Body, Frame, SizeHint};

type Taken = HashMap<String, usize>;

/// Who has how many.
#[derive(Debug)]
pub struct Places {
    each: usize,
    taken: Arc<Mutex<Taken>>,
}

/// One of them, until it is dropped.
#[derive(Debug)]
pub struct Place {
    name: String,
    taken: Arc<Mutex<Taken>>,
}

/// An answer whose request takes up a place, and keeps its connection, until it has been sent.
pub(crate) struct Held {
    body: BoxBody<Bytes, Infallible>,
    _kept: (Place, Busy),
}

/// A connection is at work for somebody who was let in, until this is dropped.
pub(crate) struct Busy(Arc<AtomicBool>);

impl Busy {
    pub(crate) fn new(connection: &Arc<AtomicBool>) -> Busy {
        connection.store(true, Ordering::Relaxed);
        Busy(Arc::clone(connection))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

impl Places {
    /// So many for each.
    pub fn new(each: usize) -> Places {
        Places { each, taken: Arc::default() }
    }

    /// `None` for whoever has as many as there are for each.
    pub fn take(&self, name: String) -> Option<Place> {
        let mut taken = lock(&self.taken);
        let count = taken.entry(name.clone()).or_default();
        if self.each <= *count {
            return None;
        }
        *count += 1;
        Some(Place { name, taken: Arc::clone(&self.taken) })
    }
}

impl Place {
    /// Whose it is.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut taken = lock(&self.taken);
        if let Some(count) = taken.get_mut(&self.name) {
            *count -= 1;
            if *count == 0 {
                taken.remove(&self.name);
            }
        }
    }
}

impl Held {
    pub(crate) fn new(body: BoxBody<Bytes, Infallible>, kept: (Place, Busy)) -> Held {
        Held { body, _kept: kept }
    }
}

impl Body for Held {
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

fn lock(taken: &Mutex<Taken>) -> MutexGuard<'_, Taken> {
    taken.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_has_so_many_and_gives_them_back() {
        let places = Places::new(2);
        let take = |name: &str| places.take(name.to_owned());
        let first = take("ada");
        let _second = take("ada");
        assert!(first.is_some() && take("ada").is_none());
        let _other = take("ben");
        drop(first);
        let _third = take("ada");
        assert!(take("ada").is_none());
        drop((_second, _third, _other));
        assert!(lock(&places.taken).is_empty(), "nobody is kept in mind for ever");
    }
}
