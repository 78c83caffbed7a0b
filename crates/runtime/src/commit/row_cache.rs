//! A cache of rows, ready to be decided on: most rows that are read were written a moment ago, and reading and parsing
//! them again costs more than the decision.
//!
//! If no other process writes to the store, the cache holds what was committed last. Otherwise it is good only for a
//! decision whose commit names the version.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{Noun, Row};

use crate::commit::rows::RowKey;

/// Invalidations after which a commit in doubt has been made or never will be. More commits than this never wait for a
/// store at once.
const IN_DOUBT_MAX: u64 = 8_192;
/// Rows kept; the half that was not used recently goes first.
const ROWS_MAX: usize = 131_072;

#[derive(Debug, Default)]
pub(crate) struct RowCache(Mutex<Entries>);

#[derive(Debug, Default)]
struct Entries {
    young: HashMap<RowKey, Arc<Row>>,
    old: HashMap<RowKey, Arc<Row>>,
    /// Rows that a commit of unknown outcome may still change, and the generation at which it was abandoned. A row that
    /// is read is not kept until it was written again.
    in_doubt: HashMap<RowKey, u64>,
    /// Increases with every invalidation.
    generation: u64,
}

impl RowCache {
    pub(crate) fn get(&self, key: &RowKey) -> Option<Arc<Row>> {
        let mut rows = self.rows();
        if let Some(row) = rows.young.get(key) {
            return Some(Arc::clone(row));
        }
        let (key, row) = rows.old.remove_entry(key)?;
        rows.put(key, Arc::clone(&row));
        Some(row)
    }

    /// Read it before reading or writing rows that are then kept.
    pub(crate) fn generation(&self) -> u64 {
        self.rows().generation
    }

    /// Keeps a row that was read since a generation, unless it was written or invalidated in between.
    pub(crate) fn keep_read(&self, generation: u64, key: &RowKey, row: &Arc<Row>) {
        let mut rows = self.rows();
        let is_certain = rows.generation == generation && !rows.in_doubt.contains_key(key);
        if is_certain && is_read_again(key) && !rows.has(key, row.version) {
            rows.put(key.clone(), Arc::clone(row));
        }
    }

    /// Keeps a row that was written since a generation. If rows were invalidated in between, a later change may be among
    /// them: then the cached row is only dropped.
    pub(crate) fn keep_written(&self, generation: u64, key: &RowKey, row: &Arc<Row>) {
        let mut rows = self.rows();
        if !is_read_again(key) || rows.has(key, row.version) {
            return;
        }
        rows.remove(key);
        if rows.generation == generation {
            rows.in_doubt.remove(key);
            rows.put(key.clone(), Arc::clone(row));
        }
    }

    /// Drops rows whose last commit has an unknown outcome.
    pub(crate) fn invalidate<'a>(&self, keys: impl Iterator<Item = &'a RowKey>) {
        let mut rows = self.rows();
        rows.generation += 1;
        let generation = rows.generation;
        rows.in_doubt.retain(|_, since| generation < *since + IN_DOUBT_MAX);
        for key in keys {
            rows.remove(key);
            rows.in_doubt.insert(key.clone(), generation);
        }
    }

    pub(crate) fn invalidate_all(&self) {
        let mut rows = self.rows();
        rows.generation += 1;
        rows.young.clear();
        rows.old.clear();
    }

    fn rows(&self) -> MutexGuard<'_, Entries> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Entries {
    fn remove(&mut self, key: &RowKey) {
        self.young.remove(key);
        self.old.remove(key);
    }

    fn has(&self, key: &RowKey, version: u64) -> bool {
        let cached = self.young.get(key).or_else(|| self.old.get(key));
        cached.is_some_and(|cached| version <= cached.version)
    }

    fn put(&mut self, key: RowKey, row: Arc<Row>) {
        if ROWS_MAX / 2 <= self.young.len() {
            self.old = std::mem::take(&mut self.young);
            self.generation += 1;
        }
        self.young.insert(key, row);
    }
}

/// A slot is written once and rarely read.
fn is_read_again(key: &RowKey) -> bool {
    key.0 != Noun::Slot
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(number: usize) -> RowKey {
        (Noun::Run, number.to_string())
    }

    fn row(version: u64) -> Arc<Row> {
        Arc::new(Row { version, state: None })
    }

    fn version(rows: &RowCache, number: usize) -> Option<u64> {
        rows.get(&key(number)).map(|row| row.version)
    }

    #[test]
    fn an_older_row_never_replaces_a_newer_one() {
        let rows = RowCache::default();
        let generation = rows.generation();
        rows.keep_written(generation, &key(1), &row(2));
        rows.keep_written(generation, &key(1), &row(1));
        rows.keep_read(generation, &key(1), &row(1));
        assert_eq!(version(&rows, 1), Some(2));
        rows.invalidate_all();
        assert_eq!(version(&rows, 1), None);
        rows.keep_read(generation, &key(1), &row(1));
        assert_eq!(version(&rows, 1), None, "read before the invalidation");
        rows.keep_read(rows.generation(), &key(1), &row(1));
        assert_eq!(version(&rows, 1), Some(1));
    }

    #[test]
    fn a_row_in_doubt_is_not_cached_until_it_is_written_again() {
        let rows = RowCache::default();
        let before = rows.generation();
        rows.invalidate([key(1)].iter());
        rows.keep_read(rows.generation(), &key(1), &row(1));
        assert_eq!(version(&rows, 1), None, "the commit in doubt may still be made");
        rows.keep_written(before, &key(1), &row(2));
        assert_eq!(version(&rows, 1), None, "or may have been made after this one");
        rows.keep_written(rows.generation(), &key(1), &row(3));
        assert_eq!(version(&rows, 1), Some(3), "or is refused because of this one");
        rows.invalidate([key(2)].iter());
        rows.keep_written(before, &key(1), &row(4));
        assert_eq!(version(&rows, 1), None, "the old row is dropped");
        rows.keep_read(rows.generation(), &key(1), &row(4));
        assert_eq!(version(&rows, 1), Some(4));

        for _ in 0..IN_DOUBT_MAX {
            rows.keep_read(rows.generation(), &key(2), &row(1));
            assert_eq!(version(&rows, 2), None);
            rows.invalidate([].iter());
        }
        rows.keep_read(rows.generation(), &key(2), &row(1));
        assert_eq!(version(&rows, 2), Some(1), "the doubt ends");
    }

    #[test]
    fn a_row_that_is_used_stays_cached() {
        let rows = RowCache::default();
        for number in 0..ROWS_MAX / 2 {
            rows.keep_written(rows.generation(), &key(number), &row(1));
        }
        assert_eq!(version(&rows, 0), Some(1));
        rows.keep_written(rows.generation(), &key(ROWS_MAX), &row(1));
        assert_eq!(version(&rows, 0), Some(1), "used again");
        for number in 0..ROWS_MAX / 2 {
            rows.keep_written(rows.generation(), &key(2 * ROWS_MAX + number), &row(1));
        }
        assert_eq!(version(&rows, 0), Some(1));
        assert_eq!(version(&rows, 1), None);
    }
}
