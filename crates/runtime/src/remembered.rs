//! Rows as this process last saw them, ready to be decided on: most rows that are looked at were
//! written a moment ago, and reading and parsing them again costs more than to decide.
//!
//! Where no other process writes, what is remembered here is what was acknowledged last. Elsewhere
//! it is good for a decision whose commit names the version, and for nothing else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use kernel::{Noun, Row};

use crate::rows::RowKey;

/// Changes in doubt after which one of before is made or never will be: more than ever wait for a store at once.
const DOUBTS_MAX: u64 = 8_192;
/// Rows after which those are forgotten that nobody has asked for since half as many.
const ROWS_MAX: usize = 131_072;

#[derive(Debug, Default)]
pub(crate) struct Remembered(Mutex<Generations>);

#[derive(Debug, Default)]
struct Generations {
    young: HashMap<RowKey, Arc<Row>>,
    old: HashMap<RowKey, Arc<Row>>,
    /// Rows with a change that may be made yet, and the mark at which nobody waited for it any more. What is
    /// read of them is not kept until somebody has changed them again.
    doubtful: HashMap<RowKey, u64>,
    /// Moves on whenever rows are forgotten.
    mark: u64,
}

impl Remembered {
    pub(crate) fn get(&self, key: &RowKey) -> Option<Arc<Row>> {
        let mut rows = self.rows();
        if let Some(row) = rows.young.get(key) {
            return Some(Arc::clone(row));
        }
        let (key, row) = rows.old.remove_entry(key)?;
        rows.put(key, Arc::clone(&row));
        Some(row)
    }

    /// To be asked before rows are read or written that shall be kept.
    pub(crate) fn mark(&self) -> u64 {
        self.rows().mark
    }

    /// A row that was read since then. It may have been written meanwhile: then that is known here,
    /// unless it was forgotten.
    pub(crate) fn keep_read(&self, mark: u64, key: &RowKey, row: &Arc<Row>) {
        let mut rows = self.rows();
        let is_sure = rows.mark == mark && !rows.doubtful.contains_key(key);
        if is_sure && is_read_again(key) && !rows.knows(key, row.version) {
            rows.put(key.clone(), Arc::clone(row));
        }
    }

    /// A row that was written since then. A later change of it may have been forgotten meanwhile: then it is
    /// only known that what was before is over.
    pub(crate) fn keep_written(&self, mark: u64, key: &RowKey, row: &Arc<Row>) {
        let mut rows = self.rows();
        if !is_read_again(key) || rows.knows(key, row.version) {
            return;
        }
        rows.remove(key);
        if rows.mark == mark {
            rows.doubtful.remove(key);
            rows.put(key.clone(), Arc::clone(row));
        }
    }

    /// Nobody knows what became of these, or will: they may be changed yet.
    pub(crate) fn forget<'a>(&self, keys: impl Iterator<Item = &'a RowKey>) {
        let mut rows = self.rows();
        rows.mark += 1;
        let mark = rows.mark;
        rows.doubtful.retain(|_, since| mark < *since + DOUBTS_MAX);
        for key in keys {
            rows.remove(key);
            rows.doubtful.insert(key.clone(), mark);
        }
    }

    pub(crate) fn forget_all(&self) {
        let mut rows = self.rows();
        rows.mark += 1;
        rows.young.clear();
        rows.old.clear();
    }

    fn rows(&self) -> MutexGuard<'_, Generations> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn remove(&mut self, key: &RowKey) {
        self.young.remove(key);
        self.old.remove(key);
    }

    fn knows(&self, key: &RowKey, version: u64) -> bool {
        let known = self.young.get(key).or_else(|| self.old.get(key));
        known.is_some_and(|known| version <= known.version)
    }

    fn put(&mut self, key: RowKey, row: Arc<Row>) {
        if ROWS_MAX / 2 <= self.young.len() {
            self.old = std::mem::take(&mut self.young);
            self.mark += 1;
        }
        self.young.insert(key, row);
    }
}

/// A slot is written once, and mostly never read.
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

    fn version(rows: &Remembered, number: usize) -> Option<u64> {
        rows.get(&key(number)).map(|row| row.version)
    }

    #[test]
    fn a_newer_row_stays_whoever_comes_later() {
        let rows = Remembered::default();
        let mark = rows.mark();
        rows.keep_written(mark, &key(1), &row(2));
        rows.keep_written(mark, &key(1), &row(1));
        rows.keep_read(mark, &key(1), &row(1));
        assert_eq!(version(&rows, 1), Some(2));
        rows.forget_all();
        assert_eq!(version(&rows, 1), None);
        rows.keep_read(mark, &key(1), &row(1));
        assert_eq!(version(&rows, 1), None, "it was read before it was forgotten");
        rows.keep_read(rows.mark(), &key(1), &row(1));
        assert_eq!(version(&rows, 1), Some(1));
    }

    #[test]
    fn what_may_be_changed_yet_is_not_kept_until_it_is_changed_again() {
        let rows = Remembered::default();
        let before = rows.mark();
        rows.forget([key(1)].iter());
        rows.keep_read(rows.mark(), &key(1), &row(1));
        assert_eq!(version(&rows, 1), None, "the change that is in doubt may follow");
        rows.keep_written(before, &key(1), &row(2));
        assert_eq!(version(&rows, 1), None, "or have followed this one");
        rows.keep_written(rows.mark(), &key(1), &row(3));
        assert_eq!(version(&rows, 1), Some(3), "or be refused for this one");
        rows.forget([key(2)].iter());
        rows.keep_written(before, &key(1), &row(4));
        assert_eq!(version(&rows, 1), None, "it is not that any more, whatever it is");
        rows.keep_read(rows.mark(), &key(1), &row(4));
        assert_eq!(version(&rows, 1), Some(4));

        for _ in 0..DOUBTS_MAX {
            rows.keep_read(rows.mark(), &key(2), &row(1));
            assert_eq!(version(&rows, 2), None);
            rows.forget([].iter());
        }
        rows.keep_read(rows.mark(), &key(2), &row(1));
        assert_eq!(version(&rows, 2), Some(1), "nobody doubts for ever");
    }

    #[test]
    fn what_is_asked_for_is_kept_longer() {
        let rows = Remembered::default();
        for number in 0..ROWS_MAX / 2 {
            rows.keep_written(rows.mark(), &key(number), &row(1));
        }
        assert_eq!(version(&rows, 0), Some(1));
        rows.keep_written(rows.mark(), &key(ROWS_MAX), &row(1));
        assert_eq!(version(&rows, 0), Some(1), "it is young again");
        for number in 0..ROWS_MAX / 2 {
            rows.keep_written(rows.mark(), &key(2 * ROWS_MAX + number), &row(1));
        }
        assert_eq!(version(&rows, 0), Some(1));
        assert_eq!(version(&rows, 1), None);
    }
}
