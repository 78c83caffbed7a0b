//! The one task of a process that writes: group commit, and what to do when the database goes away.
//!
//! A group that failed before its commit is written again on a new connection. One whose commit was on
//! its way is looked for in the log first. Only when the database stays away are callers told so.

use std::sync::Arc;

use ledger::Chain;
use store::{Checkpoint, Commit, Derived, Error, Outcome, Page, Receipt};
use tokio::sync::{mpsc, oneshot};
use tracing::warn;

use crate::group::{Appended, Loaded, Plan, decide};
use crate::patience::Patience;
use crate::session::{Failure, Session, check_seen};
use crate::store::Shared;
use crate::target::Target;

/// Commits in one transaction.
const GROUP_COMMITS_MAX: usize = 1_024;
/// What they carry, beyond the first: the database takes no message of more than a gigabyte.
const GROUP_BYTES_MAX: usize = 32 << 20;

/// Something to write, and who waits for it.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) task: Task,
    pub(crate) reply: oneshot::Sender<Answer>,
}

pub(crate) type Answer = Result<Outcome, Error>;

#[derive(Debug)]
pub(crate) enum Task {
    Commit(Commit),
    AppendSealed(Page),
    KeepCheckpoint(Checkpoint),
    ForgetAnswers { before_us: i64 },
}

struct Writer {
    target: Target,
    shared: Arc<Shared>,
    session: Option<Session>,
}

/// What a transaction came to.
enum Attempt {
    /// One outcome for each commit.
    Done(Vec<Outcome>),
    /// Another process was faster with a row: decide again.
    Again,
    Refused(Error),
}

/// A commit that is on its way: what it comes to, and the end of the log by which it is found if the
/// connection is lost. One that appends nothing cannot be found.
struct Doubt {
    before: u64,
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
        let next = |job: &Job| {
            bytes += job.task.bytes();
            !job.task.joins_a_group() || GROUP_BYTES_MAX < bytes
        };
        let end = waiting.iter().position(next).unwrap_or(waiting.len());
        let rest = waiting.split_off(end.max(1));
        let group = std::mem::replace(&mut waiting, rest);
        writer.write(group).await;
    }
}

impl Task {
    /// Whether it can share a transaction with others.
    fn joins_a_group(&self) -> bool {
        matches!(self, Task::Commit(commit) if commit.replace.is_none())
    }

    fn bytes(&self) -> usize {
        let Task::Commit(commit) = self else { return 0 };
        let drafts = commit.drafts.iter().map(|draft| {
            draft.facts().len() + draft.private().map_or(0, |private| private.bytes.len())
        });
        let bodies = commit.writes.iter().filter_map(|write| Some(write.body.as_ref()?.len()));
        let answer = commit.answer.as_ref().map_or(0, |answer| answer.body.len());
        drafts.sum::<usize>() + bodies.sum::<usize>() + answer
    }
}

impl Writer {
    /// Answers every job of a group. Nobody may wait any more for an answer; that is not an error.
    async fn write(&mut self, group: Vec<Job>) {
        let answers = self.persist(&group).await;
        match answers {
            Ok(outcomes) => {
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

    async fn persist(&mut self, group: &[Job]) -> Result<Vec<Outcome>, Error> {
        let mut patience = Patience::new();
        let mut doubt: Option<Doubt> = None;
        loop {
            if let Some(reason) = self.shared.stop.reason() {
                return Err(reason);
            }
            let error = match self.attempt(group, &mut doubt).await {
                Ok(Attempt::Done(outcomes)) => return Ok(outcomes),
                Ok(Attempt::Again) => continue,
                Ok(Attempt::Refused(error)) => return Err(error),
                Err(error) => error,
            };
            self.session = None;
            let open = |error: Error| match doubt {
                None => error,
                Some(_) => Error::InDoubt(error.to_string()),
            };
            match &error {
                Error::Unreachable(_) => {}
                // A standby that is about to take over, and then tells what became of the commit.
                Error::ReadOnly if doubt.is_some() => {}
                Error::Damaged(_) | Error::Rewound(_) => {
                    self.shared.stop.set(error.clone());
                    return Err(error);
                }
                Error::InDoubt(_) => return Err(error),
                _ => return Err(open(error)),
            }
            warn!(%error, "the database is away; trying again");
            patience.pause(error).await.map_err(open)?;
        }
    }

    async fn attempt(
        &mut self,
        group: &[Job],
        doubt: &mut Option<Doubt>,
    ) -> Result<Attempt, Error> {
        self.connect().await?;
        // It was put there just now.
        let Some(session) = &self.session else { return Ok(Attempt::Again) };
        if let Some(Doubt { before, chain, outcomes }) = doubt {
            if chain.size() == *before {
                return Err(Error::InDoubt("the connection was lost during the commit".into()));
            }
            if session.has_entry(chain.size(), chain.head()).await? {
                self.shared.saw(chain);
                return Ok(Attempt::Done(std::mem::take(outcomes)));
            }
            *doubt = None;
        }
        let done = match group {
            [Job { task: Task::AppendSealed(page), .. }] => {
                self.append_sealed(session, page, doubt).await
            }
            [Job { task: Task::KeepCheckpoint(checkpoint), .. }] => session
                .keep_checkpoint(checkpoint)
                .await
                .map(|()| nothing())
                .map_err(Failure::Before),
            [Job { task: Task::ForgetAnswers { before_us }, .. }] => session
                .forget_answers(*before_us)
                .await
                .map(|()| nothing())
                .map_err(Failure::Before),
            [Job { task: Task::Commit(commit @ Commit { replace: Some(derived), .. }), .. }] => {
                self.replace(session, commit, derived, doubt).await
            }
            group => {
                let commits: Vec<&Commit> = group.iter().filter_map(commit).collect();
                self.commit(session, &commits, doubt).await
            }
        };
        match done {
            Ok(attempt) => {
                *doubt = None;
                Ok(attempt)
            }
            Err(Failure::Before(error)) => {
                *doubt = None;
                session.rollback().await;
                Err(error)
            }
            Err(Failure::InDoubt(error)) => Err(error),
        }
    }

    /// A connection on which the log is at least what it was when it was last seen.
    async fn connect(&mut self) -> Result<(), Error> {
        if self.session.is_some() {
            return Ok(());
        }
        let session = Session::open(&self.target).await?;
        check_seen(session.client(), self.shared.seen()).await?;
        self.session = Some(session);
        Ok(())
    }

    /// One transaction for all of them.
    async fn commit(
        &self,
        session: &Session,
        commits: &[&Commit],
        doubt: &mut Option<Doubt>,
    ) -> Result<Attempt, Failure> {
        let (plan, mut chain) = match boldly(session, commits).await? {
            Some(written) => written,
            None => {
                let loaded = session.load(commits).await.map_err(Failure::Before)?;
                let plan = decide(commits, loaded);
                if plan.writes_nothing() {
                    session.rollback().await;
                    let Appended { outcomes, .. } = plan.append(&mut Chain::empty());
                    return Ok(Attempt::Done(outcomes));
                }
                let Some(chain) = session.write(&plan).await.map_err(Failure::Before)? else {
                    session.rollback().await;
                    return Ok(Attempt::Again);
                };
                (plan, chain)
            }
        };
        let before = chain.size();
        let Appended { entries, outcomes } = plan.append(&mut chain);
        *doubt = Some(Doubt { before, chain: chain.clone(), outcomes: outcomes.clone() });
        session.commit(&entries, &chain).await?;
        self.shared.grew(&chain);
        Ok(Attempt::Done(outcomes))
    }

    async fn replace(
        &self,
        session: &Session,
        commit: &Commit,
        derived: &Derived,
        doubt: &mut Option<Doubt>,
    ) -> Result<Attempt, Failure> {
        session.lock_tables().await.map_err(Failure::Before)?;
        let mut chain = session.lock_head().await.map_err(Failure::Before)?;
        let before = chain.size();
        if before != derived.through {
            session.rollback().await;
            return Ok(Attempt::Done(vec![Outcome::Moved { head: before }]));
        }
        session.replace(derived).await.map_err(Failure::Before)?;
        let entries: Vec<_> =
            commit.drafts.iter().map(|draft| (draft, chain.seal(draft))).collect();
        let receipt = Receipt { first: before + 1, last: chain.size() };
        let outcomes = vec![Outcome::Committed(receipt)];
        *doubt = Some(Doubt { before, chain: chain.clone(), outcomes: outcomes.clone() });
        session.commit(&entries, &chain).await?;
        self.shared.grew(&chain);
        Ok(Attempt::Done(outcomes))
    }

    async fn append_sealed(
        &self,
        session: &Session,
        page: &Page,
        doubt: &mut Option<Doubt>,
    ) -> Result<Attempt, Failure> {
        session.begin().await.map_err(Failure::Before)?;
        let mut chain = session.lock_head().await.map_err(Failure::Before)?;
        let before = chain.size();
        for fields in page.iter() {
            if let Err(fault) = chain.check(&fields) {
                session.rollback().await;
                return Ok(Attempt::Refused(Error::Damaged(fault.to_string())));
            }
        }
        *doubt = Some(Doubt { before, chain: chain.clone(), outcomes: vec![no_entry()] });
        session.commit_page(page, &chain).await?;
        self.shared.grew(&chain);
        Ok(nothing())
    }
}

/// Writes at once what most groups come to: every row is as expected, every key new. `None` when it is
/// not so, or cannot be known; then nothing was written.
async fn boldly<'a>(
    session: &Session,
    commits: &[&'a Commit],
) -> Result<Option<(Plan<'a>, Chain)>, Failure> {
    let Some(expected) = Loaded::expected_by(commits) else { return Ok(None) };
    let plan = decide(commits, expected.clone());
    // The key of a commit that is refused is not written, so it would not be found to be answered.
    if plan.refuses_any() {
        return Ok(None);
    }
    match session.write_boldly(&expected, &plan).await.map_err(Failure::Before)? {
        Some(head) => Ok(Some((plan, head))),
        None => {
            session.rollback().await;
            Ok(None)
        }
    }
}

fn commit(job: &Job) -> Option<&Commit> {
    match &job.task {
        Task::Commit(commit) => Some(commit),
        _ => None,
    }
}

/// The outcome of what no entry is made of.
fn no_entry() -> Outcome {
    Outcome::Committed(Receipt { first: 1, last: 0 })
}

fn nothing() -> Attempt {
    Attempt::Done(vec![no_entry()])
}
