//! All derived state, as a fold over events: `ledger rebuild` computes it, and the stored tables must equal it.
//! No rule lives here; the traits of each noun say what its events change.
//!
//! Invariant: a row's version is the number of events that changed it. A removed object keeps its row
//! without a state, so no version is used twice for one id.

use std::collections::BTreeMap;

use crate::counter::Counter;
use crate::noun::{ChangedRow, NounState};
use crate::time::Timestamp;
use crate::{EventBody, Noun, State};

/// Every derived row and counter.
///
/// ```
/// use kernel::agent::{Event, Removed};
/// use kernel::{EventBody, Noun, Tables, Timestamp};
///
/// let mut tables = Tables::default();
/// let removed = Event::Removed(Removed { at: Timestamp::from_micros(0) });
/// tables.apply(&EventBody::Agent("ada".parse()?, removed));
/// let row = &tables.rows[&(Noun::Agent, "ada".to_owned())];
/// assert_eq!((row.version, &row.state), (1, &None));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tables {
    pub rows: BTreeMap<(Noun, String), Row>,
    pub counters: BTreeMap<Counter, i64>,
}

/// A derived row. Its state is `None` after the object was removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub version: u64,
    pub state: Option<State>,
}

impl Tables {
    pub fn apply(&mut self, body: &EventBody) {
        for ChangedRow { noun, id, .. } in body.changed_rows() {
            self.rows.entry((noun, id.clone())).or_default().apply(noun, &id, body);
        }
        for (counter, add) in body.counter_deltas() {
            *self.counters.entry(counter).or_default() += add;
        }
    }

    /// The state of a row; `None` if there is no such object.
    pub fn get<T: NounState>(&self, id: &T::Id) -> Option<&T> {
        self.rows.get(&(T::NOUN, id.as_ref().to_owned()))?.get()
    }
}

impl Row {
    /// Applies an event that changes this row.
    pub fn apply(&mut self, noun: Noun, id: &str, body: &EventBody) {
        self.version += 1;
        self.state = State::apply(noun, id, self.state.take(), body);
    }

    /// The state of one noun, unless the object was removed or the row is of another noun.
    pub fn get<T: NounState>(&self) -> Option<&T> {
        self.state.as_ref()?.get()
    }

    /// When the daemon must handle it next.
    pub fn due(&self) -> Option<Timestamp> {
        self.state.as_ref()?.due()
    }

    /// The secondary key that it can be listed by.
    pub fn index_key(&self) -> Option<String> {
        self.state.as_ref()?.index_key()
    }
}
