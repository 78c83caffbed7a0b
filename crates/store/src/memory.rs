//! A store in memory, for simulations and as the simplest implementation of [`Store`].
//!
//! Nothing survives the process. One lock protects everything; no await holds it.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use futures::future::{BoxFuture, FutureExt, ready};
use ledger::{Chain, Draft, Entry, Fault};
use tokio::sync::watch;

use crate::commit::{Commit, DerivedTables, Expect, Item, Outcome, Receipt, StoredResponse};
use crate::page::Page;
use crate::port::{Checkpoint, Due, Error, Newest, Reading, Row, Store};
use crate::write_stop::WriteStop;

#[derive(Debug)]
pub struct Memory {
    inner: Mutex<Inner>,
    size: watch::Sender<u64>,
    stop: WriteStop,
}

#[derive(Debug)]
struct Inner {
    chain: Chain,
    entries: Vec<Entry>,
    /// By noun and id.
    items: BTreeMap<String, BTreeMap<String, Item>>,
    counters: BTreeMap<String, i64>,
    responses: BTreeMap<String, StoredResponse>,
    checkpoints: BTreeMap<u64, Checkpoint>,
}

impl Memory {
    pub fn new() -> Memory {
        let inner = Inner {
            chain: Chain::empty(),
            entries: Vec::new(),
            items: BTreeMap::new(),
            counters: BTreeMap::new(),
            responses: BTreeMap::new(),
            checkpoints: BTreeMap::new(),
        };
        let (size, stop) = (watch::Sender::new(0), WriteStop::new(None));
        Memory { inner: Mutex::new(inner), size, stop }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for Memory {
    fn default() -> Memory {
        Memory::new()
    }
}

impl Inner {
    fn commit(&mut self, commit: Commit) -> Outcome {
        if let Some(refused) = self.refusal(&commit) {
            return refused;
        }
        if let Some(derived) = commit.replace_derived {
            self.replace_derived(derived);
        }
        for write in commit.writes {
            self.put_item(Item {
                noun: write.noun.to_owned(),
                id: write.id,
                version: write.version,
                body: write.body,
                due_us: write.due_us,
                index_key: write.index_key,
            });
        }
        for delta in commit.deltas {
            *self.counters.entry(delta.counter.to_string()).or_default() += delta.add;
        }
        if let Some(response) = commit.response {
            self.responses.insert(response.key.clone(), response);
        }
        let first = self.chain.size() + 1;
        for draft in &commit.drafts {
            self.append(draft);
        }
        Outcome::Committed(Receipt { first, last: self.chain.size() })
    }

    /// The first reason to refuse a commit.
    fn refusal(&self, commit: &Commit) -> Option<Outcome> {
        if let Some(response) = &commit.response
            && let Some(earlier) = self.responses.get(&response.key)
        {
            return Some(match earlier.request_hash == response.request_hash {
                true => Outcome::Replayed(earlier.body.clone()),
                false => Outcome::KeyTaken,
            });
        }
        if let Some(derived) = &commit.replace_derived
            && derived.through != self.chain.size()
        {
            return Some(Outcome::StaleDerived { head: self.chain.size() });
        }
        for write in &commit.writes {
            if self.row(write.noun, &write.id).version != write.expected_version {
                return Some(Outcome::Conflict { noun: write.noun, id: write.id.clone() });
            }
        }
        for Expect { noun, id, version } in &commit.expects {
            if self.row(noun, id).version != *version {
                return Some(Outcome::Conflict { noun, id: id.clone() });
            }
        }
        let mut values = BTreeMap::new();
        for delta in &commit.deltas {
            let before = self.counters.get(&*delta.counter).copied().unwrap_or_default();
            let value = values.entry(&*delta.counter).or_insert(before);
            *value += delta.add;
            if !(0..=delta.max).contains(value) {
                return Some(Outcome::OverLimit { counter: delta.counter.clone() });
            }
        }
        None
    }

    fn append(&mut self, draft: &Draft) {
        let appended = self.chain.append(draft);
        self.entries.push(draft.appended_as(appended).to_owned());
    }

    fn append_entries(&mut self, page: &Page) -> Result<(), Fault> {
        let mut chain = self.chain.clone();
        for entry in page.iter() {
            chain.verify_next(&entry)?;
        }
        self.chain = chain;
        self.entries.extend(page.iter().map(|entry| entry.to_owned()));
        Ok(())
    }

    fn replace_derived(&mut self, derived: DerivedTables) {
        self.items.clear();
        derived.items.into_iter().for_each(|item| self.put_item(item));
        self.counters = derived.counters.into_iter().collect();
    }

    fn put_item(&mut self, item: Item) {
        self.items.entry(item.noun.clone()).or_default().insert(item.id.clone(), item);
    }

    fn row(&self, noun: &str, id: &str) -> Row {
        let found = self.items.get(noun).and_then(|items| items.get(id));
        let row = |item: &Item| Row { version: item.version, body: item.body.clone() };
        found.map(row).unwrap_or_default()
    }

    /// The rows of a noun with a body, sorted by id.
    fn items_of(&self, noun: &str) -> impl DoubleEndedIterator<Item = &Item> {
        let items = self.items.get(noun).into_iter().flat_map(BTreeMap::values);
        items.filter(|item| item.body.is_some())
    }

    fn derived(&self) -> DerivedTables {
        let counters = self.counters.iter().filter(|(_, value)| **value != 0);
        DerivedTables {
            through: self.chain.size(),
            items: self.items.values().flat_map(BTreeMap::values).cloned().collect(),
            counters: counters.map(|(name, value)| (name.clone(), *value)).collect(),
        }
    }

    fn entries(&self, after: u64, limit: usize) -> Page {
        let mut page = Page::default();
        let skip = usize::try_from(after).unwrap_or(usize::MAX);
        for entry in self.entries.iter().skip(skip).take(limit) {
            if page.is_full() {
                break;
            }
            page.push(&entry.entry_ref());
        }
        page
    }
}

fn ready_ok<'a, T: Send + 'a>(value: T) -> Reading<'a, T> {
    ready(Ok(value)).boxed()
}

impl Store for Memory {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>> {
        if let Some(stopped) = self.write_stop_reason() {
            return ready(Err(stopped)).boxed();
        }
        let mut inner = self.lock();
        let outcome = inner.commit(commit);
        self.size.send_replace(inner.chain.size());
        ready_ok(outcome)
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> Reading<'a, Row> {
        ready_ok(self.lock().row(noun, id))
    }

    fn load_all<'a>(&'a self, noun: &'a str, ids: &'a [&'a str]) -> Reading<'a, Vec<Row>> {
        let inner = self.lock();
        ready_ok(ids.iter().map(|id| inner.row(noun, id)).collect())
    }

    fn list<'a>(&'a self, noun: &'a str, after: &'a str, limit: usize) -> Reading<'a, Vec<Item>> {
        let inner = self.lock();
        let later = inner.items_of(noun).filter(|item| after < item.id.as_str());
        ready_ok(later.take(limit).cloned().collect())
    }

    fn list_newest<'a>(&'a self, rows: Newest<'a>) -> Reading<'a, Vec<Item>> {
        let Newest { noun, index_key, before, limit } = rows;
        let inner = self.lock();
        let matches = |item: &&Item| {
            let is_below = before.is_empty() || item.id.as_str() < before;
            is_below && (index_key.is_none() || item.index_key.as_deref() == index_key)
        };
        ready_ok(inner.items_of(noun).rev().filter(matches).take(limit).cloned().collect())
    }

    fn list_due<'a>(&'a self, rows: Due<'a>) -> Reading<'a, Vec<Item>> {
        let Due { noun, after, until_us, limit } = rows;
        let inner = self.lock();
        let is_due = |item: &&Item| {
            let is_between = |due_us| after < (due_us, &*item.id) && due_us <= until_us;
            item.due_us.is_some_and(is_between)
        };
        let mut due: Vec<&Item> = inner.items_of(noun).filter(is_due).collect();
        // A stable sort keeps rows of one instant sorted by id.
        due.sort_by_key(|item| item.due_us);
        ready_ok(due.into_iter().take(limit).cloned().collect())
    }

    fn counter<'a>(&'a self, name: &'a str) -> Reading<'a, i64> {
        ready_ok(self.lock().counters.get(name).copied().unwrap_or_default())
    }

    fn response<'a>(&'a self, key: &'a str) -> Reading<'a, Option<StoredResponse>> {
        ready_ok(self.lock().responses.get(key).cloned())
    }

    fn responses<'a>(&'a self, after: &'a str, limit: usize) -> Reading<'a, Vec<StoredResponse>> {
        let inner = self.lock();
        let later = inner.responses.values().filter(|response| after < response.key.as_str());
        ready_ok(later.take(limit).cloned().collect())
    }

    fn delete_responses(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.lock().responses.retain(|_, response| before_us <= response.at_us);
        ready_ok(())
    }

    fn entries(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        ready_ok(self.lock().entries(after, limit))
    }

    fn last_entry_us(&self) -> i64 {
        self.lock().chain.ts_us()
    }

    fn head(&self) -> BoxFuture<'_, Result<Chain, Error>> {
        ready_ok(self.lock().chain.clone())
    }

    fn wait_for_entries_after(&self, size: u64) -> BoxFuture<'_, ()> {
        let mut sizes = self.size.subscribe();
        async move {
            // An error means that the store was dropped: no more entries will come.
            let _ = sizes.wait_for(|now| size < *now).await;
        }
        .boxed()
    }

    fn save_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>> {
        let size = checkpoint.chain.size();
        self.lock().checkpoints.entry(size).or_insert(checkpoint);
        ready_ok(())
    }

    fn last_checkpoint(&self) -> BoxFuture<'_, Result<Option<Checkpoint>, Error>> {
        ready_ok(self.lock().checkpoints.last_key_value().map(|(_, last)| last.clone()))
    }

    fn checkpoint_notes(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(u64, String)>, Error>> {
        let inner = self.lock();
        let later = inner.checkpoints.range(after.saturating_add(1)..).take(limit);
        ready_ok(later.map(|(size, checkpoint)| (*size, checkpoint.note.clone())).collect())
    }

    fn load_derived(&self) -> BoxFuture<'_, Result<DerivedTables, Error>> {
        ready_ok(self.lock().derived())
    }

    fn append_entries(&self, page: Page) -> BoxFuture<'_, Result<(), Error>> {
        let mut inner = self.lock();
        let outcome = inner.append_entries(&page);
        self.size.send_replace(inner.chain.size());
        ready(outcome.map_err(|fault| Error::Damaged(fault.to_string()))).boxed()
    }

    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>> {
        ready_ok(())
    }

    fn stop_writing(&self, reason: String) {
        self.stop.set(Error::Damaged(reason));
    }

    fn write_stop_reason(&self) -> Option<Error> {
        self.stop.reason()
    }

    fn wait_until_stopped(&self) -> BoxFuture<'_, Error> {
        self.stop.wait().boxed()
    }
}
