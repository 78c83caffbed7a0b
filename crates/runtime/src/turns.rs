//! Turns at a row over which many are at odds.
//!
//! Whoever changes a row decides undisturbed and commits by its version; the slower one decides again. One who was
//! overtaken too often takes a turn: whoever wants to change the row from then on waits for it. So nobody loses for
//! ever, least of all a human's word about a schedule that fires all the time.
//!
//! Nobody has two turns, and nobody waits at a row who has one: so none wait in a circle.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::OwnedMutexGuard;

use crate::rows::RowKey;

/// A noun's name and the id of a row.
type Place = (&'static str, String);

#[derive(Debug, Default)]
pub(crate) struct Turns {
    /// Rows at which somebody has a turn or waits for one.
    taken: Mutex<HashMap<Place, Arc<tokio::sync::Mutex<()>>>>,
}

/// Until it is dropped, nobody else begins to change the row.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    place: Place,
    _held: OwnedMutexGuard<()>,
}

impl Turns {
    /// Returns when none who took a turn at one of these before has it any more.
    pub(crate) async fn pass(&self, rows: &[RowKey]) {
        if self.taken().is_empty() {
            return;
        }
        for (noun, id) in rows {
            let place = (noun.name(), id.clone());
            let is_taken = self.taken().contains_key(&place);
            if is_taken {
                drop(self.take(place).await);
            }
        }
    }

    pub(crate) async fn take(&self, place: Place) -> Turn<'_> {
        let row = Arc::clone(self.taken().entry(place.clone()).or_default());
        Turn { turns: self, place, _held: row.lock_owned().await }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Place, Arc<tokio::sync::Mutex<()>>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut taken = self.turns.taken();
        // The list has one and this turn the other: nobody waits.
        if taken.get(&self.place).is_some_and(|row| Arc::strong_count(row) == 2) {
            taken.remove(&self.place);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::future::{FutureExt, join};
    use kernel::Noun;

    use super::*;

    fn place(id: &str) -> Place {
        (Noun::Agent.name(), id.to_owned())
    }

    #[tokio::test]
    async fn whoever_comes_later_waits_at_that_row_alone() {
        let turns = Turns::default();
        let [ada, eve] = ["ada", "eve"].map(|id| [(Noun::Agent, id.to_owned())]);
        let turn = turns.take(place("ada")).await;
        assert!(turns.pass(&ada).now_or_never().is_none());
        assert!(turns.pass(&eve).now_or_never().is_some());
        assert!(turns.take(place("ada")).now_or_never().is_none());
        let (_, ()) = join(turns.pass(&ada), async { drop(turn) }).await;
        assert!(turns.pass(&ada).now_or_never().is_some());
    }

    #[tokio::test]
    async fn no_row_is_kept_at_which_nobody_waits() {
        let turns = Turns::default();
        let first = turns.take(place("ada")).await;
        // One who gives up waiting.
        assert!(turns.take(place("ada")).now_or_never().is_none());
        drop(first);
        assert!(turns.taken().is_empty());
    }
}
