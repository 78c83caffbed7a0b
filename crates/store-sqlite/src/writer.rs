//! The one thread that writes: group commit.
//!
//! It waits for a job, takes all that came meanwhile, writes them in one transaction, and answers
//! after the commit. When several callers are at work it waits a moment for those it has just
//! answered, a small part of what the disk takes; a lone caller never waits.
//!
//! Invariant: no answer before the commit; the published chain is what is on the disk.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use ledger::Chain;
use rusqlite::Connection;
use store::{Checkpoint, Commit, Error, Outcome, Page, Receipt};
use tokio::sync::{mpsc, oneshot, watch};

use crate::error::meaning;
use crate::recent::Recent;
use crate::statements::{Manner, Statements, Written};

/// Commits in one transaction.
const GROUP_COMMITS_MAX: usize = 4_096;
/// A flush that takes longer than this is worth waiting for more callers; callers come back sooner
/// than that, and during a shorter flush the next group gathers by itself.
const FLUSH_SLOW: Duration = Duration::from_millis(1);
/// How long to wait for callers that are on their way, as a part of the last flush's time.
const PATIENCE_DIVISOR: u32 = 4;

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
    pub(crate) recent: Recent,
    pub(crate) groups: AtomicU64,
    pub(crate) stopped: watch::Sender<Option<Error>>,
}

struct Writer<'c> {
    statements: Statements<'c>,
    chain: Chain,
    shared: Arc<Shared>,
    /// Callers at work when the last group was answered: those in it and those that waited.
    callers: usize,
    /// How long the disk took to keep the last group.
    flush: Duration,
}

impl Shared {
    pub(crate) fn new(chain: Chain, stopped: Option<Error>) -> Shared {
        Shared {
            chain: watch::Sender::new(chain),
            recent: Recent::default(),
            groups: AtomicU64::new(0),
            stopped: watch::Sender::new(stopped),
        }
    }

    pub(crate) fn stopped(&self) -> Option<Error> {
        self.stopped.borrow().clone()
    }

    /// The first reason stays.
    pub(crate) fn stop(&self, reason: Error) {
        self.stopped.send_if_modified(|stopped| {
            let is_first = stopped.is_none();
            stopped.get_or_insert(reason);
            is_first
        });
    }
}

/// Runs until nobody can send a job any more, then leaves a tidy file.
pub(crate) fn run(connection: Connection, shared: Arc<Shared>, mut jobs: mpsc::Receiver<Job>) {
    match Statements::prepare(&connection) {
        Ok(statements) => {
            let chain = shared.chain.borrow().clone();
            let flush = Duration::ZERO;
            let mut writer = Writer { statements, chain, shared, callers: 1, flush };
            let mut group = Vec::new();
            while let Some(job) = jobs.blocking_recv() {
                group.push(job);
                writer.gather(&mut group, &mut jobs);
                let size = group.len();
                writer.write(&mut group);
                writer.callers = size + jobs.len();
            }
        }
        Err(error) => shared.stop(meaning(error)),
    }
    // Best effort: what stays in the write-ahead log is found again at the next opening.
    let _ = connection.execute_batch("PRAGMA wal_checkpoint(TRUNCATE)");
}

impl Writer<'_> {
    #[expect(clippy::disallowed_methods, reason = "measures how long to wait for other callers")]
    fn gather(&self, group: &mut Vec<Job>, jobs: &mut mpsc::Receiver<Job>) {
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
                return;
            }
            thread::yield_now();
        }
    }

    /// Writes a group and answers every one of it, after the commit.
    fn write(&mut self, group: &mut Vec<Job>) {
        let answers = self.try_write(group);
        // An answer that nobody waits for any more is not an error.
        match answers {
            Ok(answers) => {
                for (job, answer) in group.drain(..).zip(answers) {
                    let _ = job.reply.send((answer, job.task));
                }
            }
            Err(error) => {
                for job in group.drain(..) {
                    let _ = job.reply.send((Err(error.clone()), job.task));
                }
            }
        }
    }

    fn try_write(&mut self, group: &[Job]) -> Result<Vec<Answer>, Error> {
        if let Some(reason) = self.shared.stopped() {
            return Err(reason);
        }
        let before = self.chain.clone();
        match self.transaction(group) {
            Ok(answers) => {
                self.shared.recent.keep(committed(group, &answers));
                self.shared.groups.fetch_add(1, Ordering::Relaxed);
                self.shared.chain.send_replace(self.chain.clone());
                Ok(answers)
            }
            Err(error) => {
                self.statements.rollback();
                self.chain = before;
                let error = meaning(error);
                if matches!(error, Error::Stopped(_) | Error::Damaged(_)) {
                    self.shared.stop(error.clone());
                }
                Err(error)
            }
        }
    }

    /// The answers hold only once this has returned.
    #[expect(clippy::disallowed_methods, reason = "measures how long the disk takes")]
    fn transaction(&mut self, group: &[Job]) -> Result<Vec<Answer>, rusqlite::Error> {
        let before = self.chain.clone();
        self.statements.begin()?;
        let answers = match self.tasks(group, Manner::Bold)? {
            Some(answers) => answers,
            None => {
                self.statements.rollback();
                self.chain = before;
                self.statements.begin()?;
                // Care never has to undo, so there are answers now.
                self.tasks(group, Manner::Careful)?.ok_or(rusqlite::Error::InvalidQuery)?
            }
        };
        let started = Instant::now();
        self.statements.commit()?;
        self.flush = started.elapsed();
        Ok(answers)
    }

    /// All tasks in the open transaction; `None` when it must be undone.
    fn tasks(
        &mut self,
        group: &[Job],
        manner: Manner,
    ) -> Result<Option<Vec<Answer>>, rusqlite::Error> {
        let mut answers = Vec::with_capacity(group.len());
        for job in group {
            match self.task(&job.task, manner)? {
                Some(answer) => answers.push(answer),
                None => return Ok(None),
            }
        }
        Ok(Some(answers))
    }

    fn task(&mut self, task: &Task, manner: Manner) -> Result<Option<Answer>, rusqlite::Error> {
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

/// The commits of a group that were not refused.
fn committed<'a>(group: &'a [Job], answers: &'a [Answer]) -> impl Iterator<Item = &'a Commit> {
    group.iter().zip(answers).filter_map(|(job, answer)| match (&*job.task, answer) {
        (Task::Commit(commit), Ok(Outcome::Committed(_))) => Some(commit),
        _ => None,
    })
}
