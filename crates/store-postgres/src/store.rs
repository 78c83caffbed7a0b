//! The store's front: jobs to the writer, queries to the pool.

use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use deadpool_postgres::{Manager, ManagerConfig, Pool, RecyclingMethod};
use futures::future::{BoxFuture, FutureExt, ready};
use ledger::{Chain, Hash};
use store::{Answer, Checkpoint, Commit, Derived, Error, Item, Outcome, Page, Row, Stop, Store};
use tokio::sync::{Notify, mpsc, oneshot, watch};
use tokio::task::JoinHandle;

use crate::session::{connect, hash_of};
use crate::target::Target;
use crate::writer::{Job, Task};
use crate::{feed, items, migrate, reads, writer};
use crate::{now, spawn};

/// Commits that wait for the writer before callers wait to hand theirs over.
const QUEUE_JOBS_MAX: usize = 4_096;
/// Connections for reading.
const READERS_MAX: usize = 8;

#[derive(Debug)]
pub struct Postgres {
    pool: Pool,
    shared: Arc<Shared>,
    /// `None` when the store was opened for reading only.
    jobs: Option<mpsc::Sender<Job>>,
    feed: JoinHandle<()>,
}

/// What the tasks of a store know together.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The longest end of the log that this process has seen, and its size for those who wait.
    seen: Mutex<Option<(u64, Hash)>>,
    sizes: watch::Sender<u64>,
    last_entry_us: AtomicI64,
    pub(crate) stop: Stop,
    /// What the database's clock said, and when.
    time: Mutex<(i64, Instant)>,
    groups: AtomicU64,
    looks: AtomicU64,
    grown_here: Notify,
}

impl Postgres {
    /// Connects and brings the schema up to date. The runtime it is called in carries its tasks.
    pub async fn open(target: &Target) -> Result<Postgres, Error> {
        let mut client = connect(target).await?;
        migrate::migrate(&mut client).await?;
        let first = "INSERT INTO head VALUES (1, 0, $1) ON CONFLICT DO NOTHING";
        let empty = Chain::empty().encode();
        client.execute(first, &[&empty]).await.map_err(crate::error::meaning)?;
        Postgres::start(target, &client, None).await
    }

    /// Connects to a database that others write.
    pub async fn open_read_only(target: &Target) -> Result<Postgres, Error> {
        let client = connect(target).await?;
        migrate::check(&client).await?;
        Postgres::start(target, &client, Some(Error::ReadOnly)).await
    }

    async fn start(
        target: &Target,
        client: &tokio_postgres::Client,
        stopped: Option<Error>,
    ) -> Result<Postgres, Error> {
        let sql = "SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint";
        let time = client.query_one(sql, &[]).await.map_err(crate::error::meaning)?;
        let is_writer = stopped.is_none();
        let shared = Arc::new(Shared {
            seen: Mutex::new(None),
            sizes: watch::Sender::new(0),
            last_entry_us: AtomicI64::new(0),
            stop: Stop::new(stopped),
            time: Mutex::new((time.get(0), now())),
            groups: AtomicU64::new(0),
            looks: AtomicU64::new(0),
            grown_here: Notify::new(),
        });
        let manager = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let manager = Manager::from_config(target.config().clone(), target.tls().clone(), manager);
        let pool = Pool::builder(manager).max_size(READERS_MAX).build();
        let pool = pool.map_err(|error| Error::Failed(error.to_string()))?;

        let chain = reads::head(&pool).await?;
        if 0 < chain.size() && hash_of(client, chain.size()).await? != Some(chain.head()) {
            let what =
                format!("entry {} is not the one that the end of the log names", chain.size());
            shared.stop.set(Error::Damaged(what));
        }
        shared.saw(&chain);
        let feed = spawn(feed::run(target.clone(), Arc::clone(&shared)));
        let jobs = is_writer.then(|| {
            let (jobs, queue) = mpsc::channel(QUEUE_JOBS_MAX);
            // Ends when nobody can send a job any more.
            spawn(writer::run(target.clone(), Arc::clone(&shared), queue));
            jobs
        });
        Ok(Postgres { pool, shared, jobs, feed })
    }

    /// How many transactions were committed since it was opened; each holds a group of commits.
    pub fn transactions(&self) -> u64 {
        self.shared.groups.load(Ordering::Relaxed)
    }

    async fn write(&self, task: Task) -> Result<Outcome, Error> {
        let gone =
            || self.shared.stop.reason().unwrap_or(Error::Failed("the writer is gone".into()));
        let jobs = self.jobs.as_ref().ok_or_else(gone)?;
        let (reply, answer) = oneshot::channel();
        jobs.send(Job { task, reply }).await.map_err(|_| gone())?;
        answer.await.map_err(|_| gone())?
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        self.feed.abort();
    }
}

impl Shared {
    /// The end of the log that this process knows of, if it is not empty.
    pub(crate) fn seen(&self) -> Option<(u64, Hash)> {
        *lock(&self.seen)
    }

    pub(crate) fn saw(&self, chain: &Chain) {
        self.last_entry_us.fetch_max(chain.ts_us(), Ordering::Relaxed);
        let mut seen = lock(&self.seen);
        if seen.map_or(0, |(size, _)| size) < chain.size() {
            *seen = Some((chain.size(), chain.head()));
            self.sizes.send_replace(chain.size());
        }
    }

    /// A transaction of this process is on the disk.
    pub(crate) fn grew(&self, chain: &Chain) {
        self.saw(chain);
        self.groups.fetch_add(1, Ordering::Relaxed);
        self.grown_here.notify_one();
    }

    pub(crate) async fn until_grown_here(&self) {
        self.grown_here.notified().await;
    }

    /// Whether somebody waits for the log to grow.
    pub(crate) fn is_awaited(&self) -> bool {
        0 < self.sizes.receiver_count()
    }

    pub(crate) fn told_time(&self, time_us: i64, at: Instant) {
        *lock(&self.time) = (time_us, at);
        self.looks.fetch_add(1, Ordering::Relaxed);
    }

    /// How often the database told its time.
    pub(crate) fn looks(&self) -> u64 {
        self.looks.load(Ordering::Relaxed)
    }

    fn time_us(&self) -> i64 {
        let (time_us, at) = *lock(&self.time);
        time_us.saturating_add(i64::try_from(at.elapsed().as_micros()).unwrap_or(i64::MAX))
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn holds_nul(commit: &Commit) -> bool {
    let in_drafts = commit.drafts.iter().any(|draft| {
        let header = draft.header();
        let texts = [header.kind, header.actor, header.role, header.cause];
        texts.into_iter().chain([header.noun, header.noun_id]).any(|text| text.contains('\0'))
    });
    in_drafts
        || commit.writes.iter().any(|write| {
            write.id.contains('\0') || write.under.as_ref().is_some_and(|key| key.contains('\0'))
        })
        || commit.answer.as_ref().is_some_and(|answer| answer.key.contains('\0'))
}

impl Store for Postgres {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>> {
        if holds_nul(&commit) {
            // Here, because in the database it would fail for all that share its transaction.
            let what = "a text with a NUL character cannot be kept in PostgreSQL";
            return ready(Err(Error::Failed(what.into()))).boxed();
        }
        self.write(Task::Commit(commit)).boxed()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> BoxFuture<'a, Result<Row, Error>> {
        items::load(&self.pool, noun, id).boxed()
    }

    fn load_all<'a>(
        &'a self,
        noun: &'a str,
        ids: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
        items::load_all(&self.pool, noun, ids).boxed()
    }

    fn list<'a>(
        &'a self,
        noun: &'a str,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        items::list(&self.pool, noun, after, limit).boxed()
    }

    fn newest<'a>(
        &'a self,
        noun: &'a str,
        under: Option<&'a str>,
        before: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        items::newest(&self.pool, noun, under, before, limit).boxed()
    }

    fn due<'a>(
        &'a self,
        noun: &'a str,
        after: (i64, &'a str),
        until_us: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        items::due(&self.pool, noun, after, until_us, limit).boxed()
    }

    fn counter<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<i64, Error>> {
        reads::counter(&self.pool, name).boxed()
    }

    fn answer<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Answer>, Error>> {
        reads::answer(&self.pool, key).boxed()
    }

    fn answers<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Error>> {
        reads::answers(&self.pool, after, limit).boxed()
    }

    fn forget_answers(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::ForgetAnswers { before_us }).map(|done| done.map(drop)).boxed()
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

    fn grown_past(&self, size: u64) -> BoxFuture<'_, ()> {
        let mut sizes = self.shared.sizes.subscribe();
        async move {
            // An error means that the store is gone: nothing will grow any more.
            let _ = sizes.wait_for(|now| size < *now).await;
        }
        .boxed()
    }

    fn keep_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::KeepCheckpoint(checkpoint)).map(|done| done.map(drop)).boxed()
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

    fn derived(&self) -> BoxFuture<'_, Result<Derived, Error>> {
        reads::derived(&self.pool).boxed()
    }

    fn append_sealed(&self, page: Page) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::AppendSealed(page)).map(|done| done.map(drop)).boxed()
    }

    /// The database looks after its own files.
    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>> {
        ready(Ok(())).boxed()
    }

    fn stop_writing(&self, reason: String) {
        self.shared.stop.set(Error::Damaged(reason));
    }

    fn stopped_writing(&self) -> Option<Error> {
        self.shared.stop.reason()
    }

    fn until_stopped(&self) -> BoxFuture<'_, Error> {
        self.shared.stop.until().boxed()
    }

    fn time_us(&self) -> Option<i64> {
        Some(self.shared.time_us())
    }
}
