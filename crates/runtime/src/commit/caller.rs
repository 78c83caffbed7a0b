//! The caller of a request, as a handler sees it.

use std::sync::atomic::{AtomicBool, Ordering};

use api::{Code, Error, ProgressSink};
use kernel::Actor;

use crate::commit::idempotency::IdempotencyKey;

/// Who makes a request, and with which options. Only an authorized call makes one.
#[derive(Debug)]
pub struct Caller {
    pub(crate) actor: Actor,
    pub(crate) key: Option<IdempotencyKey>,
    /// The version of the edited object that the caller has read.
    pub(crate) version: Option<u64>,
    pub(crate) progress: ProgressSink,
    is_replayed: AtomicBool,
}

impl Caller {
    pub(crate) fn new(actor: Actor, key: Option<IdempotencyKey>, progress: ProgressSink) -> Caller {
        Caller { actor, key, version: None, progress, is_replayed: AtomicBool::new(false) }
    }

    /// A caller whose edit is about this version only.
    pub(crate) fn expecting(self, version: Option<u64>) -> Caller {
        Caller { version, ..self }
    }

    /// Refuses an edit of another version than the caller has read. Part of the decision, so that the commit depends on it.
    pub(crate) fn check_version(&self, present: u64) -> Result<(), Error> {
        match self.version {
            Some(version) if version != present => {
                let what =
                    format!("the object has version {present}, and the edit is about {version}");
                Err(Error::new(Code::Stale, what).hint("read the object again, and edit that"))
            }
            _ => Ok(()),
        }
    }

    /// Whether the response is that of an earlier request with the same key.
    pub(crate) fn is_replayed(&self) -> bool {
        self.is_replayed.load(Ordering::Relaxed)
    }

    pub(super) fn set_replayed(&self) {
        self.is_replayed.store(true, Ordering::Relaxed);
    }
}
