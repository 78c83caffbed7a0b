//! Derived tables from the log: made anew, or compared with those that are stored.

use api::{Error, ProgressSink, Rebuilt};
use kernel::watch::{self, Event as WatchEvent};
use kernel::{Actor, Body, Event, Tables, Timestamp};
use store::{Commit, Derived, Outcome, PAGE_ENTRIES_MAX, Store};
use tokio::task::spawn_blocking;

use crate::errors::{self, internal};
use crate::stored;
use crate::watch::Engine;

/// The tables as a fold over the log, up to some entry.
#[derive(Debug, Default)]
pub(crate) struct Fold {
    tables: Tables,
    through: u64,
}

impl Fold {
    /// Goes on to an entry that is in the log. If it is not, the log was damaged while it was open.
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
                    tables.apply(&stored::body(&fields)?);
                    through = fields.seq;
                }
                Ok((tables, through))
            });
            (self.tables, self.through) = folded.await.map_err(internal)??;
            progress.show(self.through, end);
        }
        Ok(())
    }

    pub(crate) fn derived(&self) -> Result<Derived, Error> {
        stored::derived(&self.tables, self.through)
    }
}

impl Engine {
    /// Makes all derived tables anew, whether or not they are right.
    pub(crate) async fn rebuild(
        &self,
        actor: &Actor,
        reason: &str,
        progress: &ProgressSink,
    ) -> Result<Rebuilt, Error> {
        let rebuilt = rebuild(self.store(), actor, self.now(), reason, progress).await;
        self.remembered().forget_all();
        rebuilt
    }
}

/// Replaces the derived tables by what the log says, with an event that tells of it, in one commit.
/// Entries that come meanwhile are folded in.
pub(crate) async fn rebuild(
    store: &dyn Store,
    actor: &Actor,
    now: Timestamp,
    reason: &str,
    progress: &ProgressSink,
) -> Result<Rebuilt, Error> {
    if let Some(reason) = store.stopped_writing() {
        return Err(errors::store(reason));
    }
    let mut fold = Fold::default();
    loop {
        let end = store.head().await.map_err(errors::store)?.size();
        fold.advance(store, end, progress).await?;
        let derived = fold.derived()?;
        let rows = derived.items.len() as u64;
        // A table that cannot even be read differs in every row.
        let differences = match store.derived().await {
            Ok(stored) => differences(&stored, &derived),
            Err(_) => rows,
        };
        let told = watch::Rebuilt { reason: reason.to_owned(), differences };
        let body = &mut Body::Watch(instance(store).await?, WatchEvent::Rebuilt(told));
        let event = Event { at: now, actor, cause: "", body };
        let drafts = vec![stored::draft(event)?];
        let commit = Commit { drafts, replace: Some(derived), ..Commit::default() };
        match store.commit(commit).await.map_err(errors::store)? {
            Outcome::Committed(_) => return Ok(Rebuilt { entries: end, rows, differences }),
            Outcome::Moved { .. } => {}
            other => return Err(internal(format!("the store answered out of turn: {other:?}"))),
        }
    }
}

/// Whose log this is, by its first entry.
async fn instance(store: &dyn Store) -> Result<String, Error> {
    let page = store.entries(0, 1).await.map_err(errors::store)?;
    let first = page.iter().next().map(|fields| fields.noun_id.to_owned());
    first.ok_or_else(|| internal("the log is empty"))
}

/// How many rows and counters are not the same on both sides.
pub(crate) fn differences(stored: &Derived, expected: &Derived) -> u64 {
    differing(&stored.items, &expected.items, |item| (&item.noun, &item.id))
        + differing(&stored.counters, &expected.counters, |(name, _)| name)
}

/// Of two lists sorted by a key: how many keys are on one side only or have other contents.
fn differing<'a, T, K>(left: &'a [T], right: &'a [T], key: impl Fn(&'a T) -> K) -> u64
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
        let derived = |items: &[(&str, u64)], counter| Derived {
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
            assert_eq!(differences(&left, &right), expected, "{left:?} {right:?}");
        }
    }
}
