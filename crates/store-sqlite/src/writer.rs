//! The one thread that writes: group commit.
//!
//! It waits for a job, takes all that came meanwhile, and writes them in one transaction. After the
//! commit it hands the group to [`tell`], a task among the callers, and goes on with the next one.
//! When several callers are at work it waits a moment for those of the last group, a small part of
//! what the disk takes; a lone caller never waits.
//!
//! Invariant: no answer before the commit; the published chain is what is on the disk, and whoever
//! saw an entry or an answer finds the rows that belong to it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use ledger::Chain;
use rusqlite::Connection;
use rusqlite::hooks::Wal;
use store::{Checkpoint, Commit, Error, Outcome, Page, Receipt, Stop};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::meaning;
use crate::statements::{Manner, Statements, Written};

/// Commits in one transaction.
const GROUP_COMMITS_MAX: usize = 4_096;
/// A flush that takes longer than this is worth waiting for more callers; callers come back sooner
/// than that, and during a shorter flush the next group gathers by itself.
const FLUSH_SLOW: Duration = Duration::from_millis(1);
/// How long to wait for callers that are on their way, as a part of the last flush's time.
const PATIENCE_DIVISOR: u32 = 4;

/// Pages of the write-ahead log after which it is copied back into the file, beside the writer …
const WAL_PAGES_MANY: i32 = 4_000;
/// … and after which the writer does all of it itself.
const WAL_PAGES_MAX: i32 = 16_000;

/// Something to write, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) task: Box<Task>,
    pub(crate) reply: oneshot::Sender<Done>,
}

/// The answer, and the task to be dropped by whoever made it, not by the writer.
pub(crate) type Done = (Answer, Box<Task>);

pub(crate) type Answer = Result<Outcome, Error>;

#[derive(Debug)]
pub(crate) enum Task {
    Commit(Commit),
    AppendSealed(Page),
    KeepCheckpoint(Checkpoint),
    ForgetAnswers { before_us: i64 },
}

/// What the writer shows to the rest of the store.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The end of the log, as it is on the disk.
    pub(crate) chain: watch::Sender<Chain>,
    pub(crate) groups: AtomicU64,
    pub(crate) stop: Stop,
}

/// A group of jobs that is on the disk, or has failed as a whole.
#[derive(Debug)]
pub(crate) struct Ended {
    group: Vec<Job>,
    answers: Result<Vec<Answer>, Error>,
    /// The end of the log.
    chain: Chain,
}

struct Writer<'c> {
    statements: Statements<'c>,
    chain: Chain,
    shared: Arc<Shared>,
    /// No longer than the callers are many, since each waits for its answer.
    ended: mpsc::UnboundedSender<Ended>,
    /// Callers at work when the last group was written: those in it and those that waited.
    callers: usize,
    /// How long the disk took to keep the last group.
    flush: Duration,
}

impl Shared {
    pub(crate) fn new(chain: Chain, stopped: Option<Error>) -> Shared {
        Shared {
            chain: watch::Sender::new(chain),
            groups: AtomicU64::new(0),
            stop: Stop::new(stopped),
        }
    }
}

/// Runs until nobody can send a job any more, then leaves a tidy file.
pub(crate) fn run(
    mut connection: Connection,
    copier: Connection,
    shared: Arc<Shared>,
    mut jobs: mpsc::Receiver<Job>,
    ended: mpsc::UnboundedSender<Ended>,
) -> Result<(), Error> {
    let counted = count_wal_pages(&mut connection).map_err(meaning);
    let wal_pages = counted.inspect_err(|error| shared.stop.set(error.clone()))?;
    match Statements::prepare(&connection) {
        Ok(statements) => thread::scope(|scope| {
            let stop = &shared.stop;
            let mut copier = match Copier::start(scope, copier, stop) {
                Ok(copier) => copier,
                Err(error) => return stop.set(error),
            };
            let chain = shared.chain.borrow().clone();
            let flush = Duration::ZERO;
            let shared = Arc::clone(&shared);
            let mut writer = Writer { statements, chain, shared, ended, callers: 1, flush };
            while let Some(job) = jobs.blocking_recv() {
                let group = writer.gather(job, &mut jobs);
                let size = group.len();
                writer.write(group);
                writer.callers = size + jobs.len();
                copier.look_at(wal_pages.load(Ordering::Relaxed), &connection, stop);
            }
        }),
        Err(error) => shared.stop.set(error),
    }
    if let Some(reason) = shared.stop.reason() {
        return Err(reason);
    }
    let tidied = connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", (), |row| row.get(0));
    match tidied.map_err(meaning)? {
        0 => Ok(()),
        _ => Err(Error::Failed("somebody reads the database".into())),
    }
}

/// Whoever copies most of the write-ahead log back, beside the writer.
struct Copier {
    tell: SyncSender<()>,
    has_copied: Receiver<()>,
    is_at_work: bool,
}

impl Copier {
    fn start<'scope>(
        scope: &'scope thread::Scope<'scope, '_>,
        connection: Connection,
        stop: &'scope Stop,
    ) -> Result<Copier, Error> {
        let ((tell, told), (copied, has_copied)) = (sync_channel(1), sync_channel(1));
        let work = move || {
            for () in told {
                copy_back(&connection, stop);
                let _ = copied.send(());
            }
        };
        let thread = thread::Builder::new().name("store-copier".into());
        match thread.spawn_scoped(scope, work) {
            Ok(_) => Ok(Copier { tell, has_copied, is_at_work: false }),
            Err(error) => Err(Error::Stopped(format!("no thread can be started: {error}"))),
        }
    }

    /// Has a long log copied. What was written meanwhile is little, and copied by the writer: only when nothing is
    /// left does the log begin anew, and the two would never be done at the same time.
    fn look_at(&mut self, wal_pages: i32, writer: &Connection, stop: &Stop) {
        let is_done = self.is_at_work && self.has_copied.try_recv().is_ok();
        self.is_at_work &= !is_done;
        match wal_pages {
            // It has begun anew, if it was copied.
            ..WAL_PAGES_MANY => {}
            WAL_PAGES_MANY..WAL_PAGES_MAX if is_done => copy_back(writer, stop),
            WAL_PAGES_MANY..WAL_PAGES_MAX => {
                self.is_at_work = self.is_at_work || self.tell.try_send(()).is_ok();
            }
            WAL_PAGES_MAX.. => copy_back(writer, stop),
        }
    }
}

/// Copies the write-ahead log into the file, as far as readers let it. SQLite could do so by itself, but would
/// not tell of a flush that failed, and every so many commits one would wait for it.
fn copy_back(connection: &Connection, stop: &Stop) {
    let copied = connection.query_row("PRAGMA wal_checkpoint(PASSIVE)", (), |_| Ok(()));
    if let Err(error @ (Error::Stopped(_) | Error::Damaged(_))) = copied.map_err(meaning) {
        stop.set(error);
    }
}

/// Counts the pages in the write-ahead log, after each commit.
fn count_wal_pages(connection: &mut Connection) -> Result<Arc<AtomicI32>, rusqlite::Error> {
    let pages = Arc::new(AtomicI32::new(0));
    let counted = Arc::clone(&pages);
    connection.wal_hook(Some(move |_: &mut Wal, count| {
        counted.store(count, Ordering::Relaxed);
        Ok(())
    }))?;
    Ok(pages)
}

/// Tells each caller what became of its job, one group after the other. Waking a caller is cheaper
/// here than from the writer's thread, and the writer has the least time of all.
pub(crate) async fn tell(shared: Arc<Shared>, mut ended: mpsc::UnboundedReceiver<Ended>) {
    while let Some(Ended { group, answers, chain }) = ended.recv().await {
        if answers.is_ok() {
            shared.chain.send_replace(chain);
        }
        // An answer that nobody waits for any more is not an error.
        match answers {
            Ok(answers) => {
                for (job, answer) in group.into_iter().zip(answers) {
                    let _ = job.reply.send((answer, job.task));
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
    #[expect(clippy::disallowed_methods, reason = "measures how long to wait for other callers")]
    fn gather(&self, first: Job, jobs: &mut mpsc::Receiver<Job>) -> Vec<Job> {
        let mut group = Vec::with_capacity(self.callers);
        group.push(first);
        let patience = match FLUSH_SLOW <= self.flush {
            true => self.flush / PATIENCE_DIVISOR,
            false => Duration::ZERO,
        };
        let started = Instant::now();
        loop {
            while group.len() < GROUP_COMMITS_MAX
                && let Ok(job) = jobs.try_recv()
            {
                group.push(job);
            }
            if self.callers <= group.len() || patience <= started.elapsed() {
                return group;
            }
            thread::yield_now();
        }
    }

    fn write(&mut self, group: Vec<Job>) {
        let answers = self.try_write(&group);
        let chain = self.chain.clone();
        // Fails only when no caller is left.
        let _ = self.ended.send(Ended { group, answers, chain });
    }

    fn try_write(&mut self, group: &[Job]) -> Result<Vec<Answer>, Error> {
        if let Some(reason) = self.shared.stop.reason() {
            return Err(reason);
        }
        let before = self.chain.clone();
        match self.transaction(group) {
            Ok(answers) => {
                self.shared.groups.fetch_add(1, Ordering::Relaxed);
                Ok(answers)
            }
            Err(error) => {
                self.statements.rollback();
                self.chain = before;
                if matches!(error, Error::Stopped(_) | Error::Damaged(_)) {
                    self.shared.stop.set(error.clone());
                }
                Err(error)
            }
        }
    }

    /// The answers hold only once this has returned.
    #[expect(clippy::disallowed_methods, reason = "measures how long the disk takes")]
    fn transaction(&mut self, group: &[Job]) -> Result<Vec<Answer>, Error> {
        let before = self.chain.clone();
        self.statements.begin()?;
        let answers = match self.tasks(group, Manner::Bold)? {
            Some(answers) => answers,
            None => {
                self.statements.rollback();
                self.chain = before;
                self.statements.begin()?;
                // Care never has to undo, so there are answers now.
                self.tasks(group, Manner::Careful)?
                    .ok_or_else(|| Error::Failed("a careful commit was undone".into()))?
            }
        };
        let started = Instant::now();
        self.statements.commit()?;
        self.flush = started.elapsed();
        Ok(answers)
    }

    /// All tasks in the open transaction; `None` when it must be undone.
    fn tasks(&mut self, group: &[Job], manner: Manner) -> Result<Option<Vec<Answer>>, Error> {
        let mut answers = Vec::with_capacity(group.len());
        for job in group {
            match self.task(&job.task, manner)? {
                Some(answer) => answers.push(answer),
                None => return Ok(None),
            }
        }
        Ok(Some(answers))
    }

    fn task(&mut self, task: &Task, manner: Manner) -> Result<Option<Answer>, Error> {
        let first = self.chain.size() + 1;
        match task {
            Task::Commit(commit) => {
                return Ok(match self.statements.write(&mut self.chain, commit, manner)? {
                    Written::Done(outcome) => Some(Ok(outcome)),
                    Written::MustUndo => None,
                });
            }
            Task::AppendSealed(page) => {
                let mut longer = self.chain.clone();
                for fields in page.iter() {
                    if let Err(fault) = longer.check(&fields) {
                        return Ok(Some(Err(Error::Damaged(fault.to_string()))));
                    }
                }
                for fields in page.iter() {
                    self.statements.insert(&fields)?;
                }
                self.chain = longer;
            }
            Task::KeepCheckpoint(checkpoint) => self.statements.keep_checkpoint(checkpoint)?,
            Task::ForgetAnswers { before_us } => self.statements.forget_answers(*before_us)?,
        }
        Ok(Some(Ok(Outcome::Committed(Receipt { first, last: self.chain.size() }))))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_log_that_has_begun_anew_is_copied_beside_the_writer_again() {
        let (stop, writer) = (Stop::new(None), Connection::open_in_memory().unwrap());
        let ((tell, told), (copied, has_copied)) = (sync_channel(1), sync_channel(1));
        let mut copier = Copier { tell, has_copied, is_at_work: false };
        for _ in 0..3 {
            copier.look_at(WAL_PAGES_MANY, &writer, &stop);
            assert!(told.try_recv().is_ok(), "the writer has copied all of it");
            copier.look_at(WAL_PAGES_MANY, &writer, &stop);
            assert!(told.try_recv().is_err(), "it is told once");
            copied.send(()).unwrap();
            copier.look_at(1, &writer, &stop);
        }
    }
}
