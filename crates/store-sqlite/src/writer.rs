//! The writer thread: group commit.
//!
//! The thread waits for a job, takes all queued jobs, and writes them in one transaction. After the
//! commit it passes the group to [`reply_to_callers`], an async task, and writes the next group. If
//! the last group had several callers, it waits a small part of the flush time for them to come back;
//! a single caller never waits.
//!
//! Invariant: callers get no reply before the commit. The published chain is durable, and a reader that
//! saw an entry or a reply finds the rows that belong to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ledger::Chain;
use metrics::{Histogram, STORE_BATCH};
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use store::{Checkpoint, Commit, Error, Outcome, Page, Receipt, WriteStop};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::classify;
use crate::statements::{Statements, WriteMode, WriteResult};

/// The kind of this store, as metrics name it.
pub(crate) const ENGINE: &str = "sqlite";
/// The most commits in one transaction.
const GROUP_COMMITS_MAX: usize = 4_096;
/// After a flush that took at least this long, the writer waits for more callers, because they come back
/// sooner than that. During a shorter flush enough jobs queue up without waiting.
const FLUSH_SLOW: Duration = Duration::from_millis(1);
/// The writer waits for callers this fraction of the last flush's time.
const FLUSH_WAIT_DIVISOR: u32 = 4;

/// From this many pages, the checkpointer thread copies the write-ahead log into the file.
const WAL_PAGES_MANY: i32 = 4_000;
/// From this many pages, the writer copies it itself.
const WAL_PAGES_MAX: i32 = 16_000;

/// A task for the writer, and the channel of the caller that waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) task: Box<Task>,
    pub(crate) reply: oneshot::Sender<Reply>,
}

/// The result, and the task, which the caller drops instead of the writer.
pub(crate) type Reply = (TaskResult, Box<Task>);

pub(crate) type TaskResult = Result<Outcome, Error>;

#[derive(Debug)]
pub(crate) enum Task {
    Commit(Commit),
    AppendEntries(Page),
    SaveCheckpoint(Checkpoint),
    DeleteResponses { before_us: i64 },
}

/// The state that the writer shares with the rest of the store.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The chain at the last durable entry.
    pub(crate) chain: watch::Sender<Chain>,
    /// The number of committed transactions.
    pub(crate) groups: AtomicU64,
    /// How many jobs each of them had.
    pub(crate) batches: Histogram,
    pub(crate) stop: WriteStop,
}

/// A group of jobs that is durable, or failed as a whole.
#[derive(Debug)]
pub(crate) struct WrittenGroup {
    group: Vec<Job>,
    results: Result<Vec<TaskResult>, Error>,
    /// The chain after the group.
    chain: Chain,
}

struct Writer<'c> {
    statements: Statements<'c>,
    chain: Chain,
    shared: Arc<Shared>,
    /// Bounded by the number of callers, because each waits for its reply.
    written: mpsc::UnboundedSender<WrittenGroup>,
    /// The number of callers when the last group was written: those in the group and in the queue.
    callers: usize,
    /// How long the commit of the last group took.
    flush: Duration,
}

impl Shared {
    pub(crate) fn new(chain: Chain, stopped: Option<Error>) -> Shared {
        Shared {
            chain: watch::Sender::new(chain),
            groups: AtomicU64::new(0),
            batches: Histogram::new(&STORE_BATCH),
            stop: WriteStop::new(stopped),
        }
    }
}

/// Runs until the queue is closed, then copies the write-ahead log into the file.
pub(crate) fn run(
    mut connection: Connection,
    checkpointer: Connection,
    shared: Arc<Shared>,
    mut jobs: mpsc::Receiver<Job>,
    written: mpsc::UnboundedSender<WrittenGroup>,
) -> Result<(), Error> {
    let counted = count_wal_pages(&mut connection).map_err(classify);
    let wal_pages = counted.inspect_err(|error| shared.stop.set(error.clone()))?;
    match Statements::prepare(&connection) {
        Ok(statements) => thread::scope(|scope| {
            let stop = &shared.stop;
            let mut checkpointer = match Checkpointer::start(scope, checkpointer, stop) {
                Ok(checkpointer) => checkpointer,
                Err(error) => return stop.set(error),
            };
            let chain = shared.chain.borrow().clone();
            let flush = Duration::ZERO;
            let shared = Arc::clone(&shared);
            let mut writer = Writer { statements, chain, shared, written, callers: 1, flush };
            while let Some(job) = jobs.blocking_recv() {
                let group = writer.gather(job, &mut jobs);
                let size = group.len();
                writer.write(group);
                writer.callers = size + jobs.len();
                checkpointer.run_if_due(wal_pages.load(Ordering::Relaxed), &connection, stop);
            }
        }),
        Err(error) => shared.stop.set(error),
    }
    if let Some(reason) = shared.stop.reason() {
        return Err(reason);
    }
    let blocked = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0));
    match blocked.map_err(classify)? {
        0 => Ok(()),
        _ => Err(Error::Failed("another connection is reading the database".into())),
    }
}

/// A thread that copies the write-ahead log into the file (a WAL checkpoint) while the writer writes.
struct Checkpointer {
    start: SyncSender<()>,
    done: Receiver<()>,
    is_running: bool,
}

impl Checkpointer {
    fn start<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        connection: Connection,
        stop: &'scope WriteStop,
    ) -> Result<Checkpointer, Error> {
        let ((start, starts), (finished, done)) = (sync_channel(1), sync_channel(1));
        let work = move || {
            for () in starts {
                checkpoint_wal(&connection, stop);
                let _ = finished.send(());
            }
        };
        let thread = thread::Builder::new().name("store-wal".into());
        match thread.spawn_scoped(scope, work) {
            Ok(_) => Ok(Checkpointer { start, done, is_running: false }),
            Err(error) => Err(Error::WriteFailed(format!("cannot start a thread: {error}"))),
        }
    }

    /// Starts a checkpoint if the write-ahead log is long. After it, the writer copies the few pages that
    /// were written meanwhile, because SQLite starts the log again only when all of it is copied.
    fn run_if_due(&mut self, wal_pages: i32, writer: &Connection, stop: &WriteStop) {
        let is_done = self.is_running && self.done.try_recv().is_ok();
        self.is_running &= !is_done;
        match wal_pages {
            ..WAL_PAGES_MANY => {}
            WAL_PAGES_MANY..WAL_PAGES_MAX if is_done => checkpoint_wal(writer, stop),
            WAL_PAGES_MANY..WAL_PAGES_MAX => {
                self.is_running = self.is_running || self.start.try_send(()).is_ok();
            }
            WAL_PAGES_MAX.. => checkpoint_wal(writer, stop),
        }
    }
}

/// Copies the write-ahead log into the file, as far as readers allow. SQLite's automatic checkpoint would
/// not report a failed flush, and some commits would wait for it.
fn checkpoint_wal(connection: &Connection, stop: &WriteStop) {
    let copied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
    if let Err(error @ (Error::WriteFailed(_) | Error::Damaged(_))) = copied.map_err(classify) {
        stop.set(error);
    }
}

/// Keeps the number of pages in the write-ahead log, updated after each commit.
fn count_wal_pages(connection: &mut Connection) -> Result<Arc<AtomicI32>, rusqlite::Error> {
    let pages = Arc::new(AtomicI32::new(0));
    let updated = Arc::clone(&pages);
    connection.wal_hook(Some(move |_: &mut Wal, count| {
        updated.store(count, Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(pages)
}

/// Sends each caller its result, group by group. A task wakes callers more cheaply than the writer
/// thread, whose time is the bottleneck.
pub(crate) async fn reply_to_callers(
    shared: Arc<Shared>,
    mut written: mpsc::UnboundedReceiver<WrittenGroup>,
) {
    while let Some(WrittenGroup { group, results, chain }) = written.recv().await {
        if results.is_ok() {
            shared.chain.send_replace(chain);
        }
        // A caller may have stopped waiting; that is not an error.
        match results {
            Ok(results) => {
                for (job, result) in group.into_iter().zip(results) {
                    let _ = job.reply.send((result, job.task));
                }
            }
            Err(error) => {
                for job in group {
                    let _ = job.reply.send((Err(error.clone()), job.task));
                }
            }
        }
    }
}

impl Writer<'_> {
    /// Collects the next group, waiting a little for more callers after a slow flush.
    #[expect(clippy::disallowed_methods, reason = "measures how long to wait for other callers")]
    fn gather(&self, first: Job, jobs: &mut mpsc::Receiver<Job>) -> Vec<Job> {
        let mut group = Vec::with_capacity(self.callers);
        group.push(first);
        let wait_max = match FLUSH_SLOW <= self.flush {
            true => self.flush / FLUSH_WAIT_DIVISOR,
            false => Duration::ZERO,
        };
        let started = Instant::now();
        loop {
            while group.len() < GROUP_COMMITS_MAX
                && let Ok(job) = jobs.try_recv()
            {
                group.push(job);
            }
            if self.callers <= group.len() || wait_max <= started.elapsed() {
                return group;
            }
            thread::yield_now();
        }
    }

    fn write(&mut self, group: Vec<Job>) {
        let results = self.commit_group(&group);
        let chain = self.chain.clone();
        // Fails only if no caller is left.
        let _ = self.written.send(WrittenGroup { group, results, chain });
    }

    fn commit_group(&mut self, group: &[Job]) -> Result<Vec<TaskResult>, Error> {
        if let Some(reason) = self.shared.stop.reason() {
            return Err(reason);
        }
        let before = self.chain.clone();
        match self.write_transaction(group) {
            Ok(results) => {
                self.shared.groups.fetch_add(1, Ordering::Relaxed);
                self.shared.batches.observe(&[ENGINE], group.len() as u64);
                Ok(results)
            }
            Err(error) => {
                self.statements.rollback();
                self.chain = before;
                if matches!(error, Error::WriteFailed(_) | Error::Damaged(_)) {
                    self.shared.stop.set(error.clone());
                }
                Err(error)
            }
        }
    }

    /// Writes a group in one transaction. The results are valid only if this returns `Ok`.
    #[expect(clippy::disallowed_methods, reason = "measures how long the disk takes")]
    fn write_transaction(&mut self, group: &[Job]) -> Result<Vec<TaskResult>, Error> {
        let before = self.chain.clone();
        self.statements.begin()?;
        let results = match self.execute_all(group, WriteMode::Optimistic)? {
            Some(results) => results,
            None => {
                self.statements.rollback();
                self.chain = before;
                self.statements.begin()?;
                // Checking first never needs a rollback.
                self.execute_all(group, WriteMode::CheckFirst)?
                    .ok_or_else(|| Error::Failed("a checked commit had to be rolled back".into()))?
            }
        };
        let started = Instant::now();
        self.statements.commit()?;
        self.flush = started.elapsed();
        Ok(results)
    }

    /// Executes all tasks in the open transaction; `None` if it must be rolled back.
    fn execute_all(
        &mut self,
        group: &[Job],
        mode: WriteMode,
    ) -> Result<Option<Vec<TaskResult>>, Error> {
        let mut results = Vec::with_capacity(group.len());
        for job in group {
            match self.execute(&job.task, mode)? {
                Some(result) => results.push(result),
                None => return Ok(None),
            }
        }
        Ok(Some(results))
    }

    fn execute(&mut self, task: &Task, mode: WriteMode) -> Result<Option<TaskResult>, Error> {
        let first = self.chain.size() + 1;
        match task {
            Task::Commit(commit) => {
                return Ok(match self.statements.write(&mut self.chain, commit, mode)? {
                    WriteResult::Done(outcome) => Some(Ok(outcome)),
                    WriteResult::MustRollBack => None,
                });
            }
            Task::AppendEntries(page) => {
                let mut longer = self.chain.clone();
                for entry in page.iter() {
                    if let Err(fault) = longer.verify_next(&entry) {
                        return Ok(Some(Err(Error::Damaged(fault.to_string()))));
                    }
                }
                for entry in page.iter() {
                    self.statements.insert(&entry)?;
                }
                self.chain = longer;
            }
            Task::SaveCheckpoint(checkpoint) => self.statements.save_checkpoint(checkpoint)?,
            Task::DeleteResponses { before_us } => self.statements.delete_responses(*before_us)?,
        }
        Ok(Some(Ok(Outcome::Committed(Receipt { first, last: self.chain.size() }))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn checkpointer_runs_again_after_the_wal_restarted() {
        let (stop, writer) = (WriteStop::new(None), Connection::open_in_memory().unwrap());
        let ((start, starts), (finished, done)) = (sync_channel(1), sync_channel(1));
        let mut checkpointer = Checkpointer { start, done, is_running: false };
        for _ in 0..3 {
            checkpointer.run_if_due(WAL_PAGES_MANY, &writer, &stop);
            assert!(starts.try_recv().is_ok(), "the checkpointer was not started");
            checkpointer.run_if_due(WAL_PAGES_MANY, &writer, &stop);
            assert!(starts.try_recv().is_err(), "the checkpointer was started twice");
            finished.send(()).unwrap();
            checkpointer.run_if_due(1, &writer, &stop);
        }
    }
}
