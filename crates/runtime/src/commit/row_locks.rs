//! Locks on rows that several transactions keep writing at once.
//!
//! A transaction decides without a lock and commits by version; on a conflict it decides again. One that has lost or
//! waited too often locks the row: other transactions of this process that are about to write the row wait, then decide
//! again. So no change loses for ever, for example an edit of a schedule that fires every second.
//!
//! A transaction holds at most one lock, and waits for none while it holds one, so there is no deadlock.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::commit::rows::RowKey;

/// A noun's name and the id of a row.
pub(crate) type RowName = (&'static str, String);

#[derive(Debug, Default)]
pub(crate) struct RowLocks {
    /// Rows that are locked, or for whose lock a transaction waits.
    locked: Mutex<HashMap<RowName, Arc<tokio::sync::Mutex<()>>>>,
}

/// Held by the transaction that writes the row next.
#[derive(Debug)]
pub(crate) struct RowLock<'a> {
    locks: &'a RowLocks,
    row: RowName,
    _held: OwnedMutexGuard<()>,
}

impl RowLocks {
    /// Waits until none of these rows is locked. Returns the first for which it had to wait.
    pub(crate) async fn wait_for(&self, rows: impl Iterator<Item = &RowKey>) -> Option<RowName> {
        let locked: Vec<RowName> = {
            let locked = self.locked();
            match locked.is_empty() {
                true => return None,
                false => rows.map(row_name).filter(|row| locked.contains_key(row)).collect(),
            }
        };
        for row in &locked {
            drop(self.lock(row.clone()).await);
        }
        locked.into_iter().next()
    }

    pub(crate) async fn lock(&self, row: RowName) -> RowLock<'_> {
        let mutex = Arc::clone(self.locked().entry(row.clone()).or_default());
        RowLock { locks: self, row, _held: mutex.lock_owned().await }
    }

    fn locked(&self) -> MutexGuard<'_, HashMap<RowName, Arc<tokio::sync::Mutex<()>>>> {
        self.locked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn row_name((noun, id): &RowKey) -> RowName {
    (noun.name(), id.clone())
}

impl RowLock<'_> {
    pub(crate) fn is_on(&self, noun: &str, id: &str) -> bool {
        self.row.0 == noun && self.row.1 == id
    }
}

impl Drop for RowLock<'_> {
    fn drop(&mut self) {
        let mut locked = self.locks.locked();
        // One reference is in the map, the other here: no transaction waits.
        if locked.get(&self.row).is_some_and(|row| Arc::strong_count(row) == 2) {
            locked.remove(&self.row);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::{FutureExt, join};
    use kernel::Noun;

    use super::*;

    fn row(id: &str) -> RowName {
        (Noun::Agent.name(), id.to_owned())
    }

    #[tokio::test]
    async fn a_lock_blocks_only_its_row() {
        let locks = RowLocks::default();
        let [ada, eve] = ["ada", "eve"].map(|id| [(Noun::Agent, id.to_owned())]);
        let lock = locks.lock(row("ada")).await;
        assert!(lock.is_on("agent", "ada") && !lock.is_on("agent", "eve"));
        assert_eq!(locks.wait_for(ada.iter()).now_or_never(), None);
        assert_eq!(locks.wait_for(eve.iter()).now_or_never(), Some(None));
        assert!(locks.lock(row("ada")).now_or_never().is_none());
        assert_eq!(
            join(locks.wait_for(ada.iter()), async { drop(lock) }).await,
            (Some(row("ada")), ())
        );
        assert_eq!(locks.wait_for(ada.iter()).now_or_never(), Some(None));
    }

    #[tokio::test]
    async fn an_unused_lock_is_removed() {
        let locks = RowLocks::default();
        let first = locks.lock(row("ada")).await;
        // A transaction that gives up waiting.
        assert!(locks.lock(row("ada")).now_or_never().is_none());
        drop(first);
        assert!(locks.locked().is_empty());
    }
}
