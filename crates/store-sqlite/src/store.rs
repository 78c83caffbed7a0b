//! [`Sqlite`] implements [`Store`]: it sends jobs to the writer and queries to the readers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use futures::future::{BoxFuture, FutureExt, ready};
use ledger::Chain;
use metrics::Histogram;
use rusqlite::Connection;
use store::{
    Checkpoint, Commit, DerivedTables, Due, Error, Item, Newest, Outcome, Page, Reading, Row,
    Store, StoredResponse,
};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::items;
use crate::migrate;
use crate::open::{self, FileState};
use crate::readers::{self, Readers};
use crate::writer::{self, ENGINE, Job, Shared, Task};

/// Queued jobs, after which callers wait to queue theirs.
const QUEUE_JOBS_MAX: usize = 4_096;

/// A store in one SQLite file.
#[derive(Debug)]
pub struct Sqlite {
    readers: Arc<Readers>,
    shared: Arc<Shared>,
    /// `None` if the store was opened read-only.
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Sqlite {
    /// Opens or creates the database and migrates its schema. The caller holds the lock on its directory,
    /// and calls this in the async runtime that will use the store. If an entry after the newest
    /// checkpoint is damaged, the store opens but refuses to write.
    pub fn open(path: &Path) -> Result<Sqlite, Error> {
        let connection = open::writer(path)?;
        let checkpointer = open::checkpointer(path)?;
        let (chain, fault) = open::load_chain(&connection)?;
        let shared = Arc::new(Shared::new(chain, fault));
        let runtime = Handle::try_current().map_err(|error| Error::Failed(error.to_string()))?;
        let (jobs, queue) = mpsc::channel(QUEUE_JOBS_MAX);
        let (written, written_groups) = mpsc::unbounded_channel();
        let thread = {
            let shared = Arc::clone(&shared);
            let writer = thread::Builder::new().name("store-writer".into());
            let spawned =
                writer.spawn(move || writer::run(connection, checkpointer, shared, queue, written));
            spawned.map_err(|error| Error::Failed(error.to_string()))?
        };
        // Ends with the writer.
        runtime.spawn(writer::reply_to_callers(Arc::clone(&shared), written_groups));
        Ok(Sqlite {
            readers: Arc::new(Readers::new(path.to_owned(), FileState::InUse)),
            shared,
            writer: Some(Writer { jobs: Some(jobs), thread: Some(thread) }),
        })
    }

    /// Opens an existing database read-only; its owner may keep writing. If no process was writing, the
    /// file must be opened again when one starts to: see [`Sqlite::is_outdated`].
    pub fn open_read_only(path: &Path) -> Result<Sqlite, Error> {
        let file_state = FileState::detect(path);
        let connection = open::reader(path, file_state)?;
        migrate::check(&connection)?;
        // Damage does not stop a reader, which may be looking for it.
        let chain =
            open::load_chain(&connection).map_or_else(|_| Chain::empty(), |(chain, _)| chain);
        let shared = Arc::new(Shared::new(chain, Some(Error::ReadOnly)));
        let readers = Arc::new(Readers::new(path.to_owned(), file_state));
        Ok(Sqlite { readers, shared, writer: None })
    }

    /// Whether a process started to write the file after it was opened read-only and idle.
    pub fn is_outdated(&self) -> bool {
        self.readers.is_outdated()
    }

    /// The number of transactions since the store was opened. Each contains a group of commits.
    pub fn transactions(&self) -> u64 {
        self.shared.groups.load(Ordering::Relaxed)
    }

    /// Closes the store; fails unless the whole write-ahead log was copied into the file. Dropping the
    /// store closes it without reporting errors.
    pub fn close(self) -> Result<(), Error> {
        let Sqlite { readers, writer, .. } = self;
        // An open reader would keep the writer from copying the write-ahead log.
        drop(readers);
        writer.map_or(Ok(()), |mut writer| writer.join())
    }

    async fn write(&self, task: Task) -> Result<Outcome, Error> {
        let writer_ended =
            || self.shared.stop.reason().unwrap_or(Error::Failed("the writer has ended".into()));
        let jobs = self
            .writer
            .as_ref()
            .and_then(|writer| writer.jobs.as_ref())
            .ok_or_else(writer_ended)?;
        let (reply, receiver) = oneshot::channel();
        jobs.send(Job { task: Box::new(task), reply }).await.map_err(|_| writer_ended())?;
        let (result, _) = receiver.await.map_err(|_| writer_ended())?;
        result
    }

    /// Runs a query of a few rows in this thread, which is faster than a switch to another.
    fn read<'a, T: Send + 'a>(
        &'a self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Reading<'a, T> {
        ready(self.readers.read(query)).boxed()
    }

    /// Runs a query that may take long in a blocking thread.
    fn scan<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let readers = Arc::clone(&self.readers);
        async move {
            let result = spawn_blocking(move || readers.read(query)).await;
            result.unwrap_or_else(|error| Err(Error::Failed(error.to_string())))
        }
        .boxed()
    }
}

impl Writer {
    /// Waits for the writer thread to end, after which this store does not touch the file.
    fn join(&mut self) -> Result<(), Error> {
        drop(self.jobs.take());
        // The thread does not panic; if it did, its callers got an error.
        let panicked = |_| Err(Error::Failed("the writer has ended".into()));
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(panicked))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Best effort: the next opening reads what stays in the write-ahead log.
        let _ = self.join();
    }
}

/// The inodes of the file and its directory. A copy has others; a move on the same disk keeps them.
fn location_id(file: &Path) -> Option<String> {
    let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
    Some(format!("{}/{}", inode(file.parent()?)?, inode(file)?))
}

impl Store for Sqlite {
    fn engine(&self) -> &'static str {
        ENGINE
    }

    fn batches(&self) -> Option<&Histogram> {
        Some(&self.shared.batches)
    }

    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.write(Task::Commit(commit)).boxed()
    }

    fn location_id(&self) -> Option<String> {
        location_id(self.readers.path())
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> Reading<'a, Row> {
        self.read(|connection| items::load(connection, noun, id))
    }

    fn load_all<'a>(&'a self, noun: &'a str, ids: &'a [&'a str]) -> Reading<'a, Vec<Row>> {
        self.read(|connection| items::load_all(connection, noun, ids))
    }

    fn list<'a>(&'a self, noun: &'a str, after: &'a str, limit: usize) -> Reading<'a, Vec<Item>> {
        self.read(|connection| items::list(connection, noun, after, limit))
    }

    fn list_newest<'a>(&'a self, rows: Newest<'a>) -> Reading<'a, Vec<Item>> {
        self.read(move |connection| items::list_newest(connection, rows))
    }

    fn list_due<'a>(&'a self, rows: Due<'a>) -> Reading<'a, Vec<Item>> {
        self.read(move |connection| items::list_due(connection, rows))
    }

    fn counter<'a>(&'a self, name: &'a str) -> Reading<'a, i64> {
        self.read(|connection| readers::counter(connection, name))
    }

    fn response<'a>(&'a self, key: &'a str) -> Reading<'a, Option<StoredResponse>> {
        self.read(|connection| readers::response(connection, key))
    }

    fn responses<'a>(&'a self, after: &'a str, limit: usize) -> Reading<'a, Vec<StoredResponse>> {
        self.read(|connection| readers::responses(connection, after, limit))
    }

    fn delete_responses(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::DeleteResponses { before_us }).map(|done| done.map(drop)).boxed()
    }

    fn entries(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Page, Error>> {
        self.scan(move |connection| readers::entries(connection, after, limit))
    }

    fn last_entry_us(&self) -> i64 {
        self.shared.chain.borrow().ts_us()
    }

    fn head(&self) -> BoxFuture<'_, Result<Chain, Error>> {
        ready(Ok(self.shared.chain.borrow().clone())).boxed()
    }

    fn wait_for_entries_after(&self, size: u64) -> BoxFuture<'_, ()> {
        let mut chains = self.shared.chain.subscribe();
        async move {
            // An error means that the store was dropped: no more entries will come.
            let _ = chains.wait_for(|chain| size < chain.size()).await;
        }
        .boxed()
    }

    fn save_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::SaveCheckpoint(checkpoint)).map(|done| done.map(drop)).boxed()
    }

    fn last_checkpoint(&self) -> BoxFuture<'_, Result<Option<Checkpoint>, Error>> {
        self.read(readers::last_checkpoint)
    }

    fn checkpoint_notes(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(u64, String)>, Error>> {
        self.scan(move |connection| readers::checkpoint_notes(connection, after, limit))
    }

    fn load_derived(&self) -> BoxFuture<'_, Result<DerivedTables, Error>> {
        self.scan(readers::load_derived)
    }

    fn append_entries(&self, page: Page) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::AppendEntries(page)).map(|done| done.map(drop)).boxed()
    }

    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.scan(readers::check_files)
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
}
