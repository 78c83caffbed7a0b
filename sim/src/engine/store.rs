//! The simulated store: the in-memory store behind the faults of [`FaultyStore`].

use futures::future::{BoxFuture, FutureExt};
use ledger::Chain;
use store::{
    Checkpoint, Commit, DerivedTables, Due, Error, Item, Newest, Outcome, Page, Reading, Row,
    Store, StoredResponse,
};

use super::faults::{FaultyStore, PendingCommit};
use crate::dice::Dice;

/// The key of a commit's dice.
fn dice_key(commit: &Commit) -> String {
    let writes = commit.writes.iter().map(|write| format!("{}/{}", write.noun, write.id));
    format!("commit {} {}", commit.drafts.len(), writes.collect::<Vec<_>>().join(" "))
}

impl Store for FaultyStore {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>> {
        async move {
            let mut dice = self.dice(&dice_key(&commit));
            let own = Dice::of(dice.next(), 0);
            let mut pending = PendingCommit { store: self, commit: Some(commit), dice: own };
            self.delay(&mut dice, 4).await;
            let Some(commit) = pending.commit.take() else {
                return Err(Error::Failed("nothing to commit".to_owned()));
            };
            if dice.is_percent(self.fault_rates().refused) {
                let failed = Error::Failed("simulated failure".to_owned());
                return Err(if dice.is_one_in(2) { Error::DiskFull } else { failed });
            }
            self.crash_if_due(0).await;
            let _unacknowledged = self.unacknowledged.clone();
            let outcome = self.memory.commit(commit).await?;
            self.crash_if_due(1).await;
            self.count_commit();
            self.delay(&mut dice, 4).await;
            match &outcome {
                Outcome::Committed(_) if dice.is_percent(self.fault_rates().in_doubt) => {
                    Err(Error::InDoubt("simulated failure".to_owned()))
                }
                _ => Ok(outcome),
            }
        }
        .boxed()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> Reading<'a, Row> {
        async move {
            self.read(noun, id).await?;
            self.memory.load(noun, id).await
        }
        .boxed()
    }

    fn load_all<'a>(&'a self, noun: &'a str, ids: &'a [&'a str]) -> Reading<'a, Vec<Row>> {
        async move {
            self.read(noun, &ids.join(" ")).await?;
            self.memory.load_all(noun, ids).await
        }
        .boxed()
    }

    fn list<'a>(&'a self, noun: &'a str, after: &'a str, limit: usize) -> Reading<'a, Vec<Item>> {
        async move {
            self.read("list", noun).await?;
            self.memory.list(noun, after, limit).await
        }
        .boxed()
    }

    fn list_newest<'a>(&'a self, rows: Newest<'a>) -> Reading<'a, Vec<Item>> {
        async move {
            self.read("newest", rows.noun).await?;
            self.memory.list_newest(rows).await
        }
        .boxed()
    }

    fn list_due<'a>(&'a self, rows: Due<'a>) -> Reading<'a, Vec<Item>> {
        async move {
            self.read("due", rows.noun).await?;
            self.memory.list_due(rows).await
        }
        .boxed()
    }

    fn counter<'a>(&'a self, name: &'a str) -> Reading<'a, i64> {
        self.memory.counter(name)
    }

    fn response<'a>(&'a self, key: &'a str) -> Reading<'a, Option<StoredResponse>> {
        async move {
            self.read("answer", key).await?;
            self.memory.response(key).await
        }
        .boxed()
    }

    fn responses<'a>(&'a self, after: &'a str, limit: usize) -> Reading<'a, Vec<StoredResponse>> {
        self.memory.responses(after, limit)
    }

    fn delete_responses(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.check_maintenance()?;
            self.memory.delete_responses(before_us).await
        }
        .boxed()
    }

    fn entries(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        self.memory.entries(after, limit)
    }

    fn last_entry_us(&self) -> i64 {
        self.memory.last_entry_us()
    }

    fn head(&self) -> BoxFuture<'_, Result<Chain, Error>> {
        async move {
            self.check_maintenance()?;
            self.memory.head().await
        }
        .boxed()
    }

    fn wait_for_entries_after(&self, size: u64) -> BoxFuture<'_, ()> {
        async move {
            // Only maintenance waits for that, and it would be woken in a random order.
            self.wait_for_maintenance().await;
            self.memory.wait_for_entries_after(size).await;
        }
        .boxed()
    }

    fn save_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>> {
        self.memory.save_checkpoint(checkpoint)
    }

    fn last_checkpoint(&self) -> BoxFuture<'_, Result<Option<Checkpoint>, Error>> {
        self.memory.last_checkpoint()
    }

    fn checkpoint_notes(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(u64, String)>, Error>> {
        self.memory.checkpoint_notes(after, limit)
    }

    fn load_derived(&self) -> BoxFuture<'_, Result<DerivedTables, Error>> {
        self.memory.load_derived()
    }

    fn append_entries(&self, page: Page) -> BoxFuture<'_, Result<(), Error>> {
        self.memory.append_entries(page)
    }

    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.wait_for_maintenance().await;
            Ok(())
        }
        .boxed()
    }

    fn stop_writing(&self, reason: String) {
        self.memory.stop_writing(reason);
    }

    fn write_stop_reason(&self) -> Option<Error> {
        self.memory.write_stop_reason()
    }

    fn wait_until_stopped(&self) -> BoxFuture<'_, Error> {
        self.memory.wait_until_stopped()
    }
}
