//! Rebuilds the derived tables from the ledger, or compares them with the stored ones.

use api::{Error, ProgressSink, Rebuilt};
use kernel::installation::{self, Event as InstallationEvent};
use kernel::{Actor, Counter, Event, EventBody, Tables, Timestamp};
use store::{Commit, DerivedTables, Outcome, PAGE_ENTRIES_MAX, Store};
use tokio::task::spawn_blocking;

use crate::commit::codec;
use crate::errors::{self, internal};
use crate::ledger::integrity_check::IntegrityCheck;

/// The tables as a fold over the ledger, through some entry.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    tables: Tables,
    through: u64,
}

impl Fold {
    /// Folds in the entries through `end`. A missing entry means that the ledger was damaged while it was open.
    pub(crate) async fn advance(
        &mut self,
        store: &dyn Store,
        end: u64,
        progress: &ProgressSink,
    ) -> Result<(), Error> {
        while self.through < end {
            let limit = usize::try_from(end - self.through).unwrap_or(PAGE_ENTRIES_MAX);
            let page = store.entries(self.through, limit).await.map_err(errors::store)?;
            if page.is_empty() {
                let missing = format!("entry {} is missing", self.through + 1);
                store.stop_writing(missing.clone());
                return Err(errors::store(store::Error::Damaged(missing)));
            }
            let mut tables = std::mem::take(&mut self.tables);
            let folded = spawn_blocking(move || -> Result<_, Error> {
                let mut through = 0;
                for fields in page.iter() {
                    tables.apply(&codec::decode_event(&fields)?);
                    through = fields.seq;
                }
                Ok((tables, through))
            });
            (self.tables, self.through) = folded.await.map_err(internal)??;
            progress.show(self.through, end);
        }
        Ok(())
    }

    pub(crate) fn derived(&self) -> Result<DerivedTables, Error> {
        codec::encode_tables(&self.tables, self.through)
    }
}

impl IntegrityCheck {
    /// Rebuilds all derived tables, even if they are right.
    pub(crate) async fn rebuild(
        &self,
        actor: &Actor,
        reason: &str,
        progress: &ProgressSink,
    ) -> Result<Rebuilt, Error> {
        let rebuilt = rebuild(&*self.store, actor, self.time.now(), reason, progress).await;
        self.transactions.cache.invalidate_all();
        rebuilt
    }
}

/// Replaces the derived tables and records that, in one commit. Entries that are added meanwhile are folded in.
pub(crate) async fn rebuild(
    store: &dyn Store,
    actor: &Actor,
    now: Timestamp,
    reason: &str,
    progress: &ProgressSink,
) -> Result<Rebuilt, Error> {
    if let Some(reason) = store.write_stop_reason() {
        return Err(errors::store(reason));
    }
    let mut fold = Fold::default();
    loop {
        let end = store.head().await.map_err(errors::store)?.size();
        fold.advance(store, end, progress).await?;
        let derived = fold.derived()?;
        let rows = derived.items.len() as u64;
        // Tables that cannot be read differ in every row.
        let differences = match store.load_derived().await {
            Ok(stored) => count_differences(&stored, &derived),
            Err(_) => rows,
        };
        let rebuilt = installation::Rebuilt { reason: reason.to_owned(), differences };
        let body = &mut EventBody::Installation(
            instance(store).await?,
            InstallationEvent::Rebuilt(rebuilt),
        );
        let event = Event { at: now, actor, cause: "", body };
        let drafts = vec![codec::draft_entry(event)?];
        let commit = Commit { drafts, replace_derived: Some(derived), ..Commit::default() };
        match store.commit(commit).await.map_err(errors::store)? {
            Outcome::Committed(_) => return Ok(Rebuilt { entries: end, rows, differences }),
            Outcome::StaleDerived { .. } => {}
            other => return Err(internal(format!("unexpected outcome of a commit: {other:?}"))),
        }
    }
}

/// The installation of this ledger, which its first entry names.
async fn instance(store: &dyn Store) -> Result<String, Error> {
    let page = store.entries(0, 1).await.map_err(errors::store)?;
    let first = page.iter().next().map(|fields| fields.noun_id.to_owned());
    first.ok_or_else(|| internal("the ledger is empty"))
}

/// How many rows and counters differ.
pub(crate) fn count_differences(stored: &DerivedTables, expected: &DerivedTables) -> u64 {
    let counters: Vec<_> =
        stored.counters.iter().filter(|(name, _)| Counter::is_derived(name)).cloned().collect();
    count_differing(&stored.items, &expected.items, |item| (&item.noun, &item.id))
        + count_differing(&counters, &expected.counters, |(name, _)| name)
}

/// How many keys of two sorted lists are in one of them only, or have different contents.
fn count_differing<'a, T, K>(left: &'a [T], right: &'a [T], key: impl Fn(&'a T) -> K) -> u64
where
    T: PartialEq,
    K: Ord,
{
    let (mut left, mut right) = (left.iter().peekable(), right.iter().peekable());
    let mut count = 0;
    loop {
        let differs = match (left.peek(), right.peek()) {
            (None, None) => return count,
            (Some(a), Some(b)) if key(a) == key(b) => left.next() != right.next(),
            (Some(a), Some(b)) if key(b) < key(a) => right.next().is_some(),
            (Some(_), _) => left.next().is_some(),
            (None, Some(_)) => right.next().is_some(),
        };
        count += u64::from(differs);
    }
}

#[cfg(test)]
mod tests {
    use store::Item;

    use super::*;

    #[test]
    fn differences_are_counted_by_row() {
        let item = |id: &str, version| Item { id: id.into(), version, ..Item::default() };
        let derived = |items: &[(&str, u64)], counter| DerivedTables {
            through: 0,
            items: items.iter().map(|(id, version)| item(id, *version)).collect(),
            counters: vec![("c".into(), counter)],
        };
        for (left, right, expected) in [
            (derived(&[], 1), derived(&[], 1), 0),
            (derived(&[], 1), derived(&[], 2), 1),
            (derived(&[("a", 1)], 1), derived(&[("a", 1)], 1), 0),
            (derived(&[("a", 1)], 1), derived(&[("a", 2)], 1), 1),
            (derived(&[("a", 1), ("b", 1)], 1), derived(&[("b", 1), ("c", 1)], 1), 2),
            (derived(&[("b", 1)], 1), derived(&[("a", 1)], 2), 3),
        ] {
            assert_eq!(count_differences(&left, &right), expected, "{left:?} {right:?}");
        }
    }
}
