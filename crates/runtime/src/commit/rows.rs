//! Rows loaded for a decision, and the rows after it.

use std::collections::BTreeMap;
use std::sync::Arc;

use api::Error;
use kernel::authority::Authority;
use kernel::noun::ChangedRow;
use kernel::{EventBody, Noun, NounState, Row, Timestamp};
use store::{Expect, Write};

use crate::commit::codec;

/// A noun, and the id of one of its rows.
pub(crate) type RowKey = (Noun, String);

/// The key of the row with this id.
pub(crate) fn row_key<T: NounState>(id: &T::Id) -> RowKey {
    (T::NOUN, id.as_ref().to_owned())
}

#[derive(Clone, Debug, Default)]
pub(crate) struct Rows(BTreeMap<RowKey, Arc<Row>>);

impl Rows {
    pub(crate) fn insert(&mut self, key: RowKey, row: Arc<Row>) {
        self.0.insert(key, row);
    }

    pub(crate) fn extend(&mut self, others: Rows) {
        self.0.extend(others.0);
    }

    pub(crate) fn row(&self, noun: Noun, id: &str) -> Option<&Row> {
        self.0.get(&(noun, id.to_owned())).map(|row| &**row)
    }

    /// The state of a row; `None` if it is not loaded or there is no such object.
    pub(crate) fn get<T: NounState>(&self, id: &T::Id) -> Option<&T> {
        self.row(T::NOUN, id.as_ref())?.get()
    }

    /// The authority of an installation; the default if it was never changed.
    pub(crate) fn authority_of(&self, instance: &str) -> Authority {
        self.get::<Authority>(instance).cloned().unwrap_or_default()
    }

    /// The versions of those `keys` that the transaction leaves unchanged, as conditions of its commit.
    pub(crate) fn unchanged(&self, after: &Rows, keys: &[RowKey]) -> Vec<Expect> {
        let unchanged = keys.iter().filter(|key| self.version(key) == after.version(key));
        let expect = |key: &RowKey| {
            let (noun, id) = (key.0.name(), key.1.clone());
            Expect { noun, id, version: self.version(key) }
        };
        unchanged.map(expect).collect()
    }

    /// The earliest time at which one of these schedules is due.
    pub(crate) fn earliest_due(&self) -> Option<Timestamp> {
        let schedules = self.0.iter().filter(|((noun, _), _)| *noun == Noun::Progress);
        schedules.filter_map(|(_, row)| row.due()).min()
    }

    /// The rows that the events change and that are not loaded yet.
    pub(crate) fn missing(&self, events: &[EventBody]) -> Vec<RowKey> {
        let touched =
            events.iter().flat_map(EventBody::changed_rows).filter(|touched| !touched.is_new);
        let keys = touched.map(|ChangedRow { noun, id, .. }| (noun, id));
        keys.filter(|key| !self.0.contains_key(key)).collect()
    }

    /// The rows after the events.
    pub(crate) fn after(&self, events: &[EventBody]) -> Rows {
        let mut rows = self.0.clone();
        for event in events {
            for ChangedRow { noun, id, .. } in event.changed_rows() {
                let key = (noun, id);
                let id = key.1.clone();
                Arc::make_mut(rows.entry(key).or_default()).apply(noun, &id, event);
            }
        }
        Rows(rows)
    }

    /// The rows whose version differs from `before`.
    pub(crate) fn changed<'a>(
        &'a self,
        before: &'a Rows,
    ) -> impl Iterator<Item = (&'a RowKey, &'a Arc<Row>)> {
        self.0.iter().filter(move |(key, row)| before.version(key) != row.version)
    }

    pub(crate) fn is_changed(&self, before: &Rows, noun: &str, id: &str) -> bool {
        self.changed(before).any(|((its, key), _)| its.name() == noun && key == id)
    }

    /// The writes that turn these rows into `after`.
    pub(crate) fn writes(&self, after: &Rows) -> Result<Vec<Write>, Error> {
        let none = Row::default();
        let changed = after.changed(self).map(|(key @ (noun, id), row)| {
            let before = self.0.get(key).map_or(&none, |row| row);
            codec::write_row(*noun, id.clone(), before, row)
        });
        changed.collect()
    }

    /// 0 for a row that does not exist.
    fn version(&self, key: &RowKey) -> u64 {
        self.0.get(key).map_or(0, |row| row.version)
    }
}
