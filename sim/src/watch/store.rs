//! The store of a life: the one in memory, behind the faults of [`Faulty`].

use futures::future::{BoxFuture, FutureExt};
use ledger::Chain;
use store::{Answer, Checkpoint, Commit, Derived, Error, Item, Outcome, Page, Row, Store};

use super::faults::{Faulty, OnItsWay};
use crate::dice::Dice;

/// What a commit is about, as far as chance goes.
fn about(commit: &Commit) -> String {
    let writes = commit.writes.iter().map(|write| format!("{}/{}", write.noun, write.id));
    format!("commit {} {}", commit.drafts.len(), writes.collect::<Vec<_>>().join(" "))
}

impl Store for Faulty {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>> {
        async move {
            let mut dice = self.dice(&about(&commit));
            let own = Dice::of(dice.next(), 0);
            let mut coming = OnItsWay { store: self, commit: Some(commit), dice: own };
            self.pass(&mut dice, 4).await;
            let Some(commit) = coming.commit.take() else {
                return Err(Error::Failed("there is nothing to commit".to_owned()));
            };
            if dice.is_percent(self.mood().refused) {
                let failed = Error::Failed("the simulation says so".to_owned());
                return Err(if dice.is_one_in(2) { Error::Full } else { failed });
            }
            self.die_if_burnt(0).await;
            let _answering = self.answering.clone();
            let outcome = self.memory.commit(commit).await?;
            self.die_if_burnt(1).await;
            self.burn();
            self.pass(&mut dice, 4).await;
            match &outcome {
                Outcome::Committed(_) if dice.is_percent(self.mood().in_doubt) => {
                    Err(Error::InDoubt("the simulation says so".to_owned()))
                }
                _ => Ok(outcome),
            }
        }
        .boxed()
    }

    fn is_shared(&self) -> bool {
        self.is_shared
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> BoxFuture<'a, Result<Row, Error>> {
        async move {
            self.read(noun, id).await?;
            self.memory.load(noun, id).await
        }
        .boxed()
    }

    fn load_all<'a>(
        &'a self,
        noun: &'a str,
        ids: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
        async move {
            self.read(noun, &ids.join(" ")).await?;
            self.memory.load_all(noun, ids).await
        }
        .boxed()
    }

    fn list<'a>(
        &'a self,
        noun: &'a str,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        async move {
            self.read("list", noun).await?;
            self.memory.list(noun, after, limit).await
        }
        .boxed()
    }

    fn newest<'a>(
        &'a self,
        noun: &'a str,
        under: Option<&'a str>,
        before: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        async move {
            self.read("newest", noun).await?;
            self.memory.newest(noun, under, before, limit).await
        }
        .boxed()
    }

    fn due<'a>(
        &'a self,
        noun: &'a str,
        after: (i64, &'a str),
        until_us: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        async move {
            self.read("due", noun).await?;
            self.memory.due(noun, after, until_us, limit).await
        }
        .boxed()
    }

    fn counter<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<i64, Error>> {
        self.memory.counter(name)
    }

    fn answer<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Answer>, Error>> {
        async move {
            self.read("answer", key).await?;
            self.memory.answer(key).await
        }
        .boxed()
    }

    fn answers<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Error>> {
        self.memory.answers(after, limit)
    }

    fn forget_answers(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.check_upkeep()?;
            self.memory.forget_answers(before_us).await
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
            self.check_upkeep()?;
            self.memory.head().await
        }
        .boxed()
    }

    fn grown_past(&self, size: u64) -> BoxFuture<'_, ()> {
        async move {
            // Nobody but the upkeep waits for that, and it would be woken in an order left to chance.
            self.until_upkeep().await;
            self.memory.grown_past(size).await;
        }
        .boxed()
    }

    fn keep_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>> {
        self.memory.keep_checkpoint(checkpoint)
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

    fn derived(&self) -> BoxFuture<'_, Result<Derived, Error>> {
        self.memory.derived()
    }

    fn append_sealed(&self, page: Page) -> BoxFuture<'_, Result<(), Error>> {
        self.memory.append_sealed(page)
    }

    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.until_upkeep().await;
            Ok(())
        }
        .boxed()
    }

    fn stop_writing(&self, reason: String) {
        self.memory.stop_writing(reason);
    }

    fn stopped_writing(&self) -> Option<Error> {
        self.memory.stopped_writing()
    }

    fn until_stopped(&self) -> BoxFuture<'_, Error> {
        self.memory.until_stopped()
    }
}
