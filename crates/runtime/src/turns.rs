//! Turns at a row over which many are at odds.
//!
//! Whoever changes a row decides undisturbed and commits by its version; the slower one decides again. One who was
//! overtaken too often takes a turn: whoever is about to write that row from then on waits, and decides again. So
//! nobody loses for ever, least of all a human's word about a schedule that fires all the time.
//!
//! Nobody has two turns, and who has one waits for no other: so none wait in a circle.

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

/// Until it is dropped, nobody else of this process writes the row who was not about to.
#[derive(Debug)]
pub(crate) struct Turn<'a> {
    turns: &'a Turns,
    place: Place,
    _held: OwnedMutexGuard<()>,
}

impl Turns {
    /// Returns when none who took a turn at one of these before has it any more, and whether there was somebody.
    pub(crate) async fn pass(&self, rows: impl Iterator<Item = &RowKey>) -> bool {
        let taken: Vec<Place> = {
            let taken = self.taken();
            match taken.is_empty() {
                true => return false,
                false => rows.map(place_of).filter(|place| taken.contains_key(place)).collect(),
            }
        };
        let has_waited = !taken.is_empty();
        for place in taken {
            drop(self.take(place).await);
        }
        has_waited
    }

    pub(crate) async fn take(&self, place: Place) -> Turn<'_> {
        let row = Arc::clone(self.taken().entry(place.clone()).or_default());
        Turn { turns: self, place, _held: row.lock_owned().await }
    }

    fn taken(&self) -> MutexGuard<'_, HashMap<Place, Arc<tokio::sync::Mutex<()>>>> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn place_of((noun, id): &RowKey) -> Place {
    (noun.name(), id.clone())
}

impl Turn<'_> {
    pub(crate) fn is_at(&self, noun: &str, id: &str) -> bool {
        self.place.0 == noun && self.place.1 == id
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
        assert!(turn.is_at("agent", "ada") && !turn.is_at("agent", "eve"));
        assert_eq!(turns.pass(ada.iter()).now_or_never(), None);
        assert_eq!(turns.pass(eve.iter()).now_or_never(), Some(false));
        assert!(turns.take(place("ada")).now_or_never().is_none());
        assert_eq!(join(turns.pass(ada.iter()), async { drop(turn) }).await, (true, ()));
        assert_eq!(turns.pass(ada.iter()).now_or_never(), Some(false));
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
