//! A limit on the requests or connections, streams included, that one principal may have open.
//!
//! Connections are limited. Without this limit one principal could fill them all with streams and lock out the
//! others, the human included.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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
