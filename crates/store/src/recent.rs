//! Rows that a writer has written lately, as it left them.
//!
//! Whoever changes a row has mostly changed it before, and reading it back costs more than writing
//! it. Only the writer puts rows here, after their commit. Where it is the only one who changes them,
//! a row found here is never out of date.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::commit::{Commit, Write};
use crate::port::Row;

/// Rows kept before all are forgotten and the newest are gathered again.
const ROWS_MAX: usize = 4_096;
/// A larger body is not kept.
const BODY_BYTES_MAX: usize = 4_096;

#[derive(Debug, Default)]
pub struct Recent {
    nouns: Mutex<HashMap<&'static str, HashMap<String, Row>>>,
}

impl Recent {
    pub fn get(&self, noun: &str, id: &str) -> Option<Row> {
        self.lock().get(noun)?.get(id).cloned()
    }

    /// After the transaction with these commits is on the disk.
    pub fn keep<'a>(&self, commits: impl Iterator<Item = &'a Commit>) {
        let mut nouns = self.lock();
        for commit in commits {
            if commit.replace.is_some() {
                nouns.clear();
            }
            for write in &commit.writes {
                keep_row(nouns.entry(write.noun).or_default(), write);
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<&'static str, HashMap<String, Row>>> {
        self.nouns.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn keep_row(rows: &mut HashMap<String, Row>, write: &Write) {
    if BODY_BYTES_MAX < write.body.as_ref().map_or(0, |body| body.len()) {
        rows.remove(&write.id);
        return;
    }
    let row = Row { version: write.version, body: write.body.clone() };
    match rows.get_mut(&write.id) {
        Some(kept) => *kept = row,
        None => {
            if ROWS_MAX <= rows.len() {
                rows.clear();
            }
            rows.insert(write.id.clone(), row);
        }
    }
}
