//! The writer task of a process: group commit, and retries while the database is unreachable.
//!
//! A group that failed before `COMMIT` is written again on a new connection. If the connection was lost
//! during `COMMIT`, the writer first searches the ledger for the group's last entry. Callers get an
//! error only if the database stays unreachable.

use std::sync::Arc;

use ledger::Chain;
use store::{Checkpoint, Commit, DerivedTables, Error, Outcome, Page, Receipt};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::backoff::Backoff;
use crate::group::{AppendedGroup, GroupPlan, LoadedRows, decide};
use crate::session::{Failure, Session, check_not_rewound};
use crate::store::{ENGINE, Shared};
use crate::target::Target;

/// The most commits in one transaction.
const GROUP_COMMITS_MAX: usize = 1_024;
/// The most bytes in one transaction of several commits: PostgreSQL limits a message to one gigabyte.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// A task for the writer, and the channel of the caller that waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) task: Task,
    pub(crate) reply: oneshot::Sender<TaskResult>,
}

pub(crate) type TaskResult = Result<Outcome, Error>;

#[derive(Debug)]
pub(crate) enum Task {
    Commit(Commit),
    AppendEntries(Page),
    SaveCheckpoint(Checkpoint),
    DeleteResponses { before_us: i64 },
}

struct Writer {
    target: Target,
    shared: Arc<Shared>,
    session: Option<Session>,
}

/// The result of one try to write a group.
enum Attempt {
    /// One outcome per job.
    Done(Vec<Outcome>),
    /// Another process changed a row first: decide again.
    Retry,
    Refused(Error),
}

/// A transaction whose `COMMIT` was sent. If the connection is lost, its last entry shows whether it
/// happened; without entries that cannot be found out.
struct PendingCommit {
    /// The size of the ledger before the transaction.
    size_before: u64,
    /// The chain after the transaction.
    chain: Chain,
    outcomes: Vec<Outcome>,
}

pub(crate) async fn run(target: Target, shared: Arc<Shared>, mut jobs: mpsc::Receiver<Job>) {
    let mut writer = Writer { target, shared, session: None };
    let mut waiting: Vec<Job> = Vec::new();
    loop {
        if waiting.is_empty() && jobs.recv_many(&mut waiting, GROUP_COMMITS_MAX).await == 0 {
            return;
        }
        let mut bytes = 0;
        let exceeds_group = |job: &Job| {
            bytes += job.task.bytes();
            !job.task.can_join_group() || GROUP_BYTES_MAX < bytes
        };
        let end = waiting.iter().position(exceeds_group).unwrap_or(waiting.len());
        let rest = waiting.split_off(end.max(1));
        let group = std::mem::replace(&mut waiting, rest);
        writer.write(group).await;
    }
}

impl Task {
    /// Whether the task may share a transaction with others.
    fn can_join_group(&self) -> bool {
        matches!(self, Task::Commit(commit) if commit.replace_derived.is_none())
    }

    fn bytes(&self) -> usize {
        let Task::Commit(commit) = self else { return 0 };
        let drafts = commit.drafts.iter().map(|draft| {
            draft.facts().len() + draft.private().map_or(0, |private| private.bytes.len())
        });
        let bodies = commit.writes.iter().filter_map(|write| Some(write.body.as_ref()?.len()));
        let response = commit.response.as_ref().map_or(0, |response| response.body.len());
        drafts.sum::<usize>() + bodies.sum::<usize>() + response
    }
}

impl Writer {
    /// Writes a group and replies to every caller. A caller may have stopped waiting; that is not an
    /// error.
    async fn write(&mut self, group: Vec<Job>) {
        let outcomes = self.persist(&group).await;
        match outcomes {
            Ok(outcomes) => {
                self.shared.batches.observe(&[ENGINE], group.len() as u64);
                for (job, outcome) in group.into_iter().zip(outcomes) {
                    let _ = job.reply.send(Ok(outcome));
                }
            }
            Err(error) => {
                for job in group {
                    let _ = job.reply.send(Err(error.clone()));
                }
            }
        }
    }

    /// Writes a group, and retries while the database is unreachable.
    async fn persist(&mut self, group: &[Job]) -> Result<Vec<Outcome>, Error> {
        let mut backoff = Backoff::new();
        let mut pending: Option<PendingCommit> = None;
        loop {
            if let Some(reason) = self.shared.stop.reason() {
                return Err(reason);
            }
            let error = match self.attempt(group, &mut pending).await {
                Ok(Attempt::Done(outcomes)) => return Ok(outcomes),
                Ok(Attempt::Retry) => continue,
                Ok(Attempt::Refused(error)) => return Err(error),
                Err(error) => error,
            };
            self.session = None;
            let classify_pending = |error: Error| match pending {
                None => error,
                Some(_) => Error::InDoubt(error.to_string()),
            };
            match &error {
                Error::Unreachable(_) => {}
                // A standby that is about to be promoted, and then knows whether the commit happened.
                Error::ReadOnly if pending.is_some() => {}
                Error::Damaged(_) | Error::Rewound(_) => {
                    self.shared.stop.set(error.clone());
                    return Err(error);
                }
                Error::InDoubt(_) => return Err(error),
                _ => return Err(classify_pending(error)),
            }
            warn!(%error, "cannot reach the database; retrying");
            backoff.wait(error).await.map_err(classify_pending)?;
        }
    }

    async fn attempt(
        &mut self,
        group: &[Job],
        pending: &mut Option<PendingCommit>,
    ) -> Result<Attempt, Error> {
        self.connect().await?;
        // `connect` has set it.
        let Some(session) = &self.session else { return Ok(Attempt::Retry) };
        if let Some(PendingCommit { size_before, chain, outcomes }) = pending {
            if chain.size() == *size_before {
                return Err(Error::InDoubt("the connection was lost during the commit".into()));
            }
            if session.has_entry(chain.size(), chain.head()).await? {
                self.shared.record_head(chain);
                return Ok(Attempt::Done(std::mem::take(outcomes)));
            }
            *pending = None;
        }
        let done = match group {
            [Job { task: Task::AppendEntries(page), .. }] => {
                self.append_entries(session, page, pending).await
            }
            [Job { task: Task::SaveCheckpoint(checkpoint), .. }] => session
                .save_checkpoint(checkpoint)
                .await
                .map(|()| done_without_entries())
                .map_err(Failure::NotCommitted),
            [Job { task: Task::DeleteResponses { before_us }, .. }] => session
                .delete_responses(*before_us)
                .await
                .map(|()| done_without_entries())
                .map_err(Failure::NotCommitted),
            [
                Job {
                    task: Task::Commit(commit @ Commit { replace_derived: Some(derived), .. }),
                    ..
                },
            ] => self.replace_derived(session, commit, derived, pending).await,
            group => {
                let commits: Vec<&Commit> = group.iter().filter_map(as_commit).collect();
                self.commit(session, &commits, pending).await
            }
        };
        match done {
            Ok(attempt) => {
                *pending = None;
                Ok(attempt)
            }
            Err(Failure::NotCommitted(error)) => {
                *pending = None;
                session.rollback().await;
                Err(error)
            }
            Err(Failure::InDoubt(error)) => Err(error),
        }
    }

    /// Connects if necessary, and checks that the ledger has not lost entries.
    async fn connect(&mut self) -> Result<(), Error> {
        if self.session.is_some() {
            return Ok(());
        }
        let session = Session::open(&self.target).await?;
        check_not_rewound(session.client(), self.shared.last_head()).await?;
        self.session = Some(session);
        Ok(())
    }

    /// Writes all commits in one transaction.
    async fn commit(
        &self,
        session: &Session,
        commits: &[&Commit],
        pending: &mut Option<PendingCommit>,
    ) -> Result<Attempt, Failure> {
        let (plan, mut chain) = match commit_optimistically(session, commits).await? {
            Some(written) => written,
            None => {
                let loaded = session.load(commits).await.map_err(Failure::NotCommitted)?;
                let plan = decide(commits, loaded);
                if plan.writes_nothing() {
                    session.rollback().await;
                    let AppendedGroup { outcomes, .. } = plan.append(&mut Chain::empty());
                    return Ok(Attempt::Done(outcomes));
                }
                let Some(chain) = session.write(&plan).await.map_err(Failure::NotCommitted)? else {
                    session.rollback().await;
                    return Ok(Attempt::Retry);
                };
                (plan, chain)
            }
        };
        let size_before = chain.size();
        let AppendedGroup { entries, outcomes } = plan.append(&mut chain);
        *pending =
            Some(PendingCommit { size_before, chain: chain.clone(), outcomes: outcomes.clone() });
        session.commit(&entries, &chain).await?;
        self.shared.record_commit(&chain);
        Ok(Attempt::Done(outcomes))
    }

    async fn replace_derived(
        &self,
        session: &Session,
        commit: &Commit,
        derived: &DerivedTables,
        pending: &mut Option<PendingCommit>,
    ) -> Result<Attempt, Failure> {
        session.lock_tables().await.map_err(Failure::NotCommitted)?;
        let mut chain = session.lock_head().await.map_err(Failure::NotCommitted)?;
        let size_before = chain.size();
        if size_before != derived.through {
            session.rollback().await;
            return Ok(Attempt::Done(vec![Outcome::StaleDerived { head: size_before }]));
        }
        session.replace_derived(derived).await.map_err(Failure::NotCommitted)?;
        let entries: Vec<_> =
            commit.drafts.iter().map(|draft| (draft, chain.append(draft))).collect();
        let receipt = Receipt { first: size_before + 1, last: chain.size() };
        let outcomes = vec![Outcome::Committed(receipt)];
        *pending =
            Some(PendingCommit { size_before, chain: chain.clone(), outcomes: outcomes.clone() });
        session.commit(&entries, &chain).await?;
        self.shared.record_commit(&chain);
        Ok(Attempt::Done(outcomes))
    }

    async fn append_entries(
        &self,
        session: &Session,
        page: &Page,
        pending: &mut Option<PendingCommit>,
    ) -> Result<Attempt, Failure> {
        session.begin().await.map_err(Failure::NotCommitted)?;
        let mut chain = session.lock_head().await.map_err(Failure::NotCommitted)?;
        let size_before = chain.size();
        for entry in page.iter() {
            if let Err(fault) = chain.verify_next(&entry) {
                session.rollback().await;
                return Ok(Attempt::Refused(Error::Damaged(fault.to_string())));
            }
        }
        *pending = Some(PendingCommit {
            size_before,
            chain: chain.clone(),
            outcomes: vec![without_entries()],
        });
        session.commit_page(page, &chain).await?;
        self.shared.record_commit(&chain);
        Ok(done_without_entries())
    }
}

/// Writes a group in one round trip if every row is as expected and every idempotency key is new, as in
/// most groups. Otherwise, or if that cannot be known, writes nothing and returns `None`.
async fn commit_optimistically<'a>(
    session: &Session,
    commits: &[&'a Commit],
) -> Result<Option<(GroupPlan<'a>, Chain)>, Failure> {
    let Some(expected) = LoadedRows::expected_by(commits) else { return Ok(None) };
    let plan = decide(commits, expected.clone());
    // The key of a refused commit is not written, so its earlier use would not be found.
    if plan.refuses_any() {
        return Ok(None);
    }
    match session.write_optimistically(&expected, &plan).await.map_err(Failure::NotCommitted)? {
        Some(head) => Ok(Some((plan, head))),
        None => {
            session.rollback().await;
            Ok(None)
        }
    }
}

fn as_commit(job: &Job) -> Option<&Commit> {
    match &job.task {
        Task::Commit(commit) => Some(commit),
        _ => None,
    }
}

/// The outcome of a task without entries.
fn without_entries() -> Outcome {
    Outcome::Committed(Receipt { first: 1, last: 0 })
}

fn done_without_entries() -> Attempt {
    Attempt::Done(vec![without_entries()])
}
