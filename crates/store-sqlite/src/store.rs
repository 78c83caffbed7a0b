//! The store's front: jobs to the writer, queries to the readers.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::{self, JoinHandle};

use futures::future::{BoxFuture, FutureExt, ready};
use ledger::Chain;
use rusqlite::Connection;
use store::{Answer, Checkpoint, Commit, Derived, Error, Item, Outcome, Page, Row, Store};
use tokio::runtime::Handle;
use tokio::sync::{mpsc, oneshot};
use tokio::task::spawn_blocking;

use crate::items;
use crate::migrate;
use crate::open::{self, Sharing};
use crate::readers::{self, Readers};
use crate::writer::{self, Job, Shared, Task};

/// Commits that wait for the writer before callers wait to hand theirs over.
const QUEUE_JOBS_MAX: usize = 4_096;

#[derive(Debug)]
pub struct Sqlite {
    readers: Arc<Readers>,
    shared: Arc<Shared>,
    /// `None` when the store was opened for reading only.
    writer: Option<Writer>,
}

#[derive(Debug)]
struct Writer {
    jobs: Option<mpsc::Sender<Job>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
}

impl Sqlite {
    /// Opens or creates the database and brings its schema up to date. The caller holds the lock on
    /// its directory, and is inside the runtime in which the store will be used. A log with a fault in
    /// its tail is opened, but writes nothing.
    pub fn open(path: &Path) -> Result<Sqlite, Error> {
        let connection = open::writer(path)?;
        let copier = open::copier(path)?;
        let (chain, fault) = open::resume(&connection)?;
        let shared = Arc::new(Shared::new(chain, fault));
        let runtime = Handle::try_current().map_err(|error| Error::Failed(error.to_string()))?;
        let (jobs, queue) = mpsc::channel(QUEUE_JOBS_MAX);
        let (ended, to_tell) = mpsc::unbounded_channel();
        let thread = {
            let shared = Arc::clone(&shared);
            let writer = thread::Builder::new().name("store-writer".into());
            let spawned =
                writer.spawn(move || writer::run(connection, copier, shared, queue, ended));
            spawned.map_err(|error| Error::Failed(error.to_string()))?
        };
        // Ends when the writer does.
        runtime.spawn(writer::tell(Arc::clone(&shared), to_tell));
        Ok(Sqlite {
            readers: Arc::new(Readers::new(path.to_owned(), Sharing::Written)),
            shared,
            writer: Some(Writer { jobs: Some(jobs), thread: Some(thread) }),
        })
    }

    /// Opens an existing database without the right to write; its owner may go on writing. A file
    /// that nobody writes must be opened again when somebody begins to: see [`Sqlite::is_outdated`].
    pub fn open_read_only(path: &Path) -> Result<Sqlite, Error> {
        let sharing = Sharing::of(path);
        let connection = open::reader(path, sharing)?;
        migrate::check(&connection)?;
        // A reader that looks for damage must not stop at it here.
        let chain = open::resume(&connection).map_or_else(|_| Chain::empty(), |(chain, _)| chain);
        let shared = Arc::new(Shared::new(chain, Some(Error::ReadOnly)));
        let readers = Arc::new(Readers::new(path.to_owned(), sharing));
        Ok(Sqlite { readers, shared, writer: None })
    }

    /// Whether somebody has begun to write a file that was opened for reading while nobody did.
    pub fn is_outdated(&self) -> bool {
        self.readers.is_outdated()
    }

    /// How many transactions were committed since it was opened; each holds a group of commits.
    pub fn transactions(&self) -> u64 {
        self.shared.groups.load(Ordering::Relaxed)
    }

    /// Closes the store, and fails unless all that was written is in the file itself. Without this a
    /// drop closes it as well as it can.
    pub fn close(self) -> Result<(), Error> {
        let Sqlite { readers, writer, .. } = self;
        // A reader would keep the writer from tidying up.
        drop(readers);
        writer.map_or(Ok(()), |mut writer| writer.join())
    }

    async fn write(&self, task: Task) -> Result<Outcome, Error> {
        let gone =
            || self.shared.stop.reason().unwrap_or(Error::Failed("the writer is gone".into()));
        let jobs = self.writer.as_ref().and_then(|writer| writer.jobs.as_ref()).ok_or_else(gone)?;
        let (reply, answer) = oneshot::channel();
        jobs.send(Job { task: Box::new(task), reply }).await.map_err(|_| gone())?;
        let (answer, _) = answer.await.map_err(|_| gone())?;
        answer
    }

    /// For a query of a few rows: it is shorter than a way to another thread and back.
    fn read<'a, T: Send + 'a>(
        &'a self,
        query: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> BoxFuture<'a, Result<T, Error>> {
        ready(self.readers.read(query)).boxed()
    }

    /// For a query that may take long.
    fn scan<T: Send + 'static>(
        &self,
        query: impl FnOnce(&Connection) -> Result<T, Error> + Send + 'static,
    ) -> BoxFuture<'_, Result<T, Error>> {
        let readers = Arc::clone(&self.readers);
        async move {
            let answer = spawn_blocking(move || readers.read(query)).await;
            answer.unwrap_or_else(|error| Err(Error::Failed(error.to_string())))
        }
        .boxed()
    }
}

impl Writer {
    /// Waits for the writer, so that nothing of this store touches the file afterwards.
    fn join(&mut self) -> Result<(), Error> {
        drop(self.jobs.take());
        // The thread never panics by its own code; if it did, its jobs were answered as gone.
        let gone = |_| Err(Error::Failed("the writer is gone".into()));
        self.thread.take().map_or(Ok(()), |thread| thread.join().unwrap_or_else(gone))
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        // Best effort: what stays in the write-ahead log is found again at the next opening.
        let _ = self.join();
    }
}

/// Other than that of every copy of the file or its directory; the same wherever that is moved on its disk.
fn place(file: &Path) -> Option<String> {
    let inode = |path: &Path| fs::metadata(path).map(|found| found.ino()).ok();
    Some(format!("{}/{}", inode(file.parent()?)?, inode(file)?))
}

impl Store for Sqlite {
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>> {
        self.write(Task::Commit(commit)).boxed()
    }

    fn place(&self) -> Option<String> {
        place(self.readers.path())
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> BoxFuture<'a, Result<Row, Error>> {
        self.read(|connection| items::load(connection, noun, id))
    }

    fn load_all<'a>(
        &'a self,
        noun: &'a str,
        ids: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Row>, Error>> {
        self.read(|connection| items::load_all(connection, noun, ids))
    }

    fn list<'a>(
        &'a self,
        noun: &'a str,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        self.read(|connection| items::list(connection, noun, after, limit))
    }

    fn newest<'a>(
        &'a self,
        noun: &'a str,
        under: Option<&'a str>,
        before: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        self.read(|connection| items::newest(connection, noun, under, before, limit))
    }

    fn due<'a>(
        &'a self,
        noun: &'a str,
        after: (i64, &'a str),
        until_us: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>> {
        self.read(|connection| items::due(connection, noun, after, until_us, limit))
    }

    fn counter<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<i64, Error>> {
        self.read(|connection| readers::counter(connection, name))
    }

    fn answer<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Answer>, Error>> {
        self.read(|connection| readers::answer(connection, key))
    }

    fn answers<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Error>> {
        self.read(|connection| readers::answers(connection, after, limit))
    }

    fn forget_answers(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::ForgetAnswers { before_us }).map(|done| done.map(drop)).boxed()
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

    fn grown_past(&self, size: u64) -> BoxFuture<'_, ()> {
        let mut chains = self.shared.chain.subscribe();
        async move {
            // An error means that the store is gone: nothing will grow any more.
            let _ = chains.wait_for(|chain| size < chain.size()).await;
        }
        .boxed()
    }

    fn keep_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::KeepCheckpoint(checkpoint)).map(|done| done.map(drop)).boxed()
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

    fn derived(&self) -> BoxFuture<'_, Result<Derived, Error>> {
        self.scan(readers::derived)
    }

    fn append_sealed(&self, page: Page) -> BoxFuture<'_, Result<(), Error>> {
        self.write(Task::AppendSealed(page)).map(|done| done.map(drop)).boxed()
    }

    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>> {
        self.scan(readers::check_files)
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
}
