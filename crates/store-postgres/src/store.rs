//! [`Postgres`] implements [`Store`]: it sends jobs to the writer and queries to the pool.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::future::{BoxFuture, FutureExt, ready};
use ledger::{Chain, Hash};
use metrics::{Histogram, STORE_BATCH};
use store::{
    Checkpoint, Commit, DerivedTables, Due, Error, Item, Newest, Outcome, Page, Reading, Row,
    Store, StoredResponse, WriteStop,
};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::connect::connect_client;
use crate::pool::{Pool, open_pool};
use crate::session::find_hash;
use crate::target::Target;
use crate::writer::{Job, Task};
use crate::{feed, items, migrate, reads, writer};
use crate::{now, spawn};

/// Queued jobs, after which callers wait to queue theirs.
const QUEUE_JOBS_MAX: usize = 4_096;

/// A store in a PostgreSQL database.
#[derive(Debug)]
pub struct Postgres {
    pool: Pool,
    shared: Arc<Shared>,
    /// `None` if the store was opened read-only.
    jobs: Option<mpsc::Sender<Job>>,
    feed: JoinHandle<()>,
}

/// The state that the tasks of a store share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The size and head of the longest ledger that this process has seen; `None` if empty.
    last_head: Mutex<Option<(u64, Hash)>>,
    /// The size in `last_head`, for readers that wait for more entries.
    sizes: watch::Sender<u64>,
    last_entry_us: AtomicI64,
    pub(crate) stop: WriteStop,
    /// A time of the database's clock, and the moment when it was read.
    time: Mutex<(i64, Instant)>,
    /// The number of committed transactions.
    groups: AtomicU64,
    /// How many jobs each group had.
    pub(crate) batches: Histogram,
    /// The number of successful polls by the feed.
    polls: AtomicU64,
    local_commit: Notify,
}

impl Postgres {
    /// Connects and migrates the schema. The store's tasks run in the current async runtime.
    pub async fn open(target: &Target) -> Result<Postgres, Error> {
        let (mut client, _) = connect_client(target).await?;
        migrate::migrate(&mut client).await?;
        let first = "INSERT INTO head VALUES (1, 0, $1) ON CONFLICT DO NOTHING";
        let empty = Chain::empty().encode();
        client.execute(first, &[&empty]).await.map_err(crate::error::classify)?;
        Postgres::start(target, &client, None).await
    }

    /// Connects to a database that other processes write.
    pub async fn open_read_only(target: &Target) -> Result<Postgres, Error> {
        let (client, _) = connect_client(target).await?;
        migrate::check(&client).await?;
        Postgres::start(target, &client, Some(Error::ReadOnly)).await
    }

    async fn start(
        target: &Target,
        client: &tokio_postgres::Client,
        stopped: Option<Error>,
    ) -> Result<Postgres, Error> {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let time = client.query_one(sql, &[]).await.map_err(crate::error::classify)?;
        let is_writer = stopped.is_none();
        let shared = Arc::new(Shared {
            last_head: Mutex::new(None),
            sizes: watch::Sender::new(0),
            last_entry_us: AtomicI64::new(0),
            stop: WriteStop::new(stopped),
            time: Mutex::new((time.get(0), now())),
            groups: AtomicU64::new(0),
            batches: Histogram::new(&STORE_BATCH),
            polls: AtomicU64::new(0),
            local_commit: Notify::new(),
        });
        let pool = open_pool(target.clone())?;
        let chain = reads::head(&pool).await?;
        if 0 < chain.size() && find_hash(client, chain.size()).await? != Some(chain.head()) {
            let what = format!("entry {} does not match the head of the ledger", chain.size());
            shared.stop.set(Error::Damaged(what));
        }
        shared.record_head(&chain);
        let feed = spawn(feed::run(target.clone(), Arc::clone(&shared)));
        let jobs = is_writer.then(|| {
            let (jobs, queue) = mpsc::channel(QUEUE_JOBS_MAX);
            // Ends when the queue is closed.
            spawn(writer::run(target.clone(), Arc::clone(&shared), queue));
            jobs
        });
        Ok(Postgres { pool, shared, jobs, feed })
    }

    /// The number of transactions since the store was opened. Each contains a group of commits.
    pub fn transactions(&self) -> u64 {
        self.shared.groups.load(Ordering::Relaxed)
    }

    async fn write(&self, task: Task) -> Result<Outcome, Error> {
        let writer_ended =
            || self.shared.stop.reason().unwrap_or(Error::Failed("the writer has ended".into()));
        let jobs = self.jobs.as_ref().ok_or_else(writer_ended)?;
        let (reply, receiver) = oneshot::channel();
        jobs.send(Job { task, reply }).await.map_err(|_| writer_ended())?;
        receiver.await.map_err(|_| writer_ended())?
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

/// The kind of this store, as metrics name it.
pub(crate) const ENGINE: &str = "postgres";

impl Shared {
    /// The size and head of the longest ledger that this process has seen; `None` if empty.
    pub(crate) fn last_head(&self) -> Option<(u64, Hash)> {
        *lock(&self.last_head)
    }

    pub(crate) fn record_head(&self, chain: &Chain) {
        self.last_entry_us.fetch_max(chain.ts_us(), Ordering::Relaxed);
        let mut last_head = lock(&self.last_head);
        if last_head.map_or(0, |(size, _)| size) < chain.size() {
            *last_head = Some((chain.size(), chain.head()));
            self.sizes.send_replace(chain.size());
        }
    }

    /// Records a durable transaction of this process.
    pub(crate) fn record_commit(&self, chain: &Chain) {
        self.record_head(chain);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.local_commit.notify_one();
    }

    pub(crate) async fn wait_for_local_commit(&self) {
        self.local_commit.notified().await;
    }

    /// Whether a reader waits for more entries.
    pub(crate) fn has_waiters(&self) -> bool {
        0 < self.sizes.receiver_count()
    }

    pub(crate) fn record_time(&self, time_us: i64, at: Instant) {
        *lock(&self.time) = (time_us, at);
        self.polls.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of successful polls by the feed.
    pub(crate) fn polls(&self) -> u64 {
        self.polls.load(Ordering::Relaxed)
    }

    fn time_us(&self) -> i64 {
        let (time_us, at) = *lock(&self.time);
        time_us.saturating_add(i64::try_from(at.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn contains_nul(commit: &Commit) -> bool {
    let in_drafts = commit.drafts.iter().any(|draft| {
        let header = draft.header();
        let texts = [header.kind, header.actor, header.role, header.cause];
        texts.into_iter().chain([header.noun, header.noun_id]).any(|text| text.contains('\0'))
    });
    in_drafts
        || commit.writes.iter().any(|write| {
            write.id.contains('\0')
                || write.index_key.as_ref().is_some_and(|key| key.contains('\0'))
        })
        || commit.response.as_ref().is_some_and(|response| response.key.contains('\0'))
}

impl Store for Postgres {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn batches(&self) -> Option<&Histogram> {
        Some(&self.shared.batches)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>> {
        if contains_nul(&commit) {
            // Refused here, because in the database it would fail the whole group.
            let what = "PostgreSQL cannot store a text with a NUL character";
            return ready(Err(Error::Failed(what.into()))).boxed();
        }
        self.write(Task::Commit(commit)).boxed()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> Reading<'a, Row> {
        items::load(&self.pool, noun, id).boxed()
    }

    fn load_all<'a>(&'a self, noun: &'a str, ids: &'a [&'a str]) -> Reading<'a, Vec<Row>> {
        items::load_all(&self.pool, noun, ids).boxed()
    }

    fn list<'a>(&'a self, noun: &'a str, after: &'a str, limit: usize) -> Reading<'a, Vec<Item>> {
        items::list(&self.pool, noun, after, limit).boxed()
    }

    fn list_newest<'a>(&'a self, rows: Newest<'a>) -> Reading<'a, Vec<Item>> {
        items::list_newest(&self.pool, rows).boxed()
    }

    fn list_due<'a>(&'a self, rows: Due<'a>) -> Reading<'a, Vec<Item>> {
        items::list_due(&self.pool, rows).boxed()
    }

    fn counter<'a>(&'a self, name: &'a str) -> Reading<'a, i64> {
        reads::counter(&self.pool, name).boxed()
    }

    fn response<'a>(&'a self, key: &'a str) -> Reading<'a, Option<StoredResponse>> {
        reads::response(&self.pool, key).boxed()
    }

    fn responses<'a>(&'a self, after: &'a str, limit: usize) -> Reading<'a, Vec<StoredResponse>> {
        reads::responses(&self.pool, after, limit).boxed()
    }

    fn delete_responses(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::DeleteResponses { before_us }).map(|done| done.map(drop)).boxed()
    }

    fn entries(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        reads::entries(&self.pool, after, limit).boxed()
    }

    fn last_entry_us(&self) -> i64 {
        self.shared.last_entry_us.load(Ordering::Relaxed)
    }

    fn head(&self) -> BoxFuture<'_, Result<Chain, Error>> {
        reads::head(&self.pool).boxed()
    }

    fn wait_for_entries_after(&self, size: u64) -> BoxFuture<'_, ()> {
        let mut sizes = self.shared.sizes.subscribe();
        async move {
            // An error means that the store was dropped: no more entries will come.
            let _ = sizes.wait_for(|now| size < *now).await;
        }
        .boxed()
    }

    fn save_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::SaveCheckpoint(checkpoint)).map(|done| done.map(drop)).boxed()
    }

    fn last_checkpoint(&self) -> BoxFuture<'_, Result<Option<Checkpoint>, Error>> {
        reads::last_checkpoint(&self.pool).boxed()
    }

    fn checkpoint_notes(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(u64, String)>, Error>> {
        reads::checkpoint_notes(&self.pool, after, limit).boxed()
    }

    fn load_derived(&self) -> BoxFuture<'_, Result<DerivedTables, Error>> {
        reads::load_derived(&self.pool).boxed()
    }

    fn append_entries(&self, page: Page) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::AppendEntries(page)).map(|done| done.map(drop)).boxed()
    }

    /// PostgreSQL checks its own files.
    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>> {
        ready(Ok(())).boxed()
    }

    fn stop_writing(&self, reason: String) {
        self.shared.stop.set(Error::Damaged(reason));
    }

    fn write_stop_reason(&self) -> Option<Error> {
        self.shared.stop.reason()
    }

    fn wait_until_stopped(&self) -> BoxFuture<'_, Error> {
        self.shared.stop.wait().boxed()
    }

    fn shared_clock_us(&self) -> Option<i64> {
        Some(self.shared.time_us())
    }
}
