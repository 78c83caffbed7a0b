//! The caller of a request, as a handler sees it.

use std::sync::atomic::{AtomicBool, Ordering};

use api::ProgressSink;
use kernel::Actor;

use crate::commit::idempotency::IdempotencyKey;

/// Who makes a request, and with which options. Only an authorized call makes one.
#[derive(Debug)]
pub struct Caller {
    pub(crate) actor: Actor,
    pub(crate) key: Option<IdempotencyKey>,
    pub(crate) progress: ProgressSink,
    is_replayed: AtomicBool,
}

impl Caller {
    pub(crate) fn new(actor: Actor, key: Option<IdempotencyKey>, progress: ProgressSink) -> Caller {
        Caller { actor, key, progress, is_replayed: AtomicBool::new(false) }
    }

    /// Whether the response is that of an earlier request with the same key.
    pub(crate) fn is_replayed(&self) -> bool {
        self.is_replayed.load(Ordering::Relaxed)
    }

    pub(super) fn set_replayed(&self) {
        self.is_replayed.store(true, Ordering::Relaxed);
    }
}
