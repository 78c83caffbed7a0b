//! The trait that a store implements.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use ledger::Chain;

use crate::commit::{Answer, Commit, Derived, Item, Outcome};
use crate::page::Page;

/// The place before all rows that are due.
pub const FIRST_DUE: (i64, &str) = (i64::MIN, "");

/// A row of the generic table, or its absence: version 0 and no body.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub version: u64,
    pub body: Option<Arc<[u8]>>,
}

/// A signed statement of how long the log is and what its root is, with the chain at that place, so
/// that a start need only read what came after.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub chain: Chain,
    pub note: String,
}

/// Why a store could not do its work. The message is for people.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was written; the same commit may succeed when there is room.
    #[error("there is no room left on the disk")]
    Full,
    #[error("the data directory cannot be written")]
    ReadOnly,
    /// Nothing is written any more; what is readable stays readable.
    #[error("the log is damaged: {0}")]
    Damaged(String),
    /// The derived tables cannot be read. The log is not concerned, and they can be replaced.
    #[error("the tables are damaged: {0}")]
    Tables(String),
    /// The log is not a continuation of what it was before: a failover or a restored copy has lost
    /// entries that were acknowledged. Nothing is written any more.
    #[error("the log was rewound: {0}")]
    Rewound(String),
    /// The database does not answer. Nothing was changed.
    #[error("the database cannot be reached: {0}")]
    Unreachable(String),
    /// The database went away during a commit and did not come back in time to be asked about it.
    #[error("it is not known whether the change was made, the database went away: {0}")]
    InDoubt(String),
    /// It is not known what reached the disk. The process must end; a restart finds out.
    #[error("the disk failed to keep what was written: {0}")]
    Stopped(String),
    #[error("the data has format {found}, this program knows formats up to {known}")]
    Newer { found: u32, known: u32 },
    #[error("the store failed: {0}")]
    Failed(String),
}

/// A store. Cheap to share behind an `Arc`; every method may be called from many tasks at once.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
/// use store::{Commit, Memory, Outcome, Store, Write};
///
/// let store = Memory::new();
/// let body = Some(b"{}".as_slice().into());
/// let write = Write { noun: "agent", id: "ada".into(), version: 1, body, ..Write::default() };
/// let commit = || Commit { writes: vec![write.clone()], ..Commit::default() };
/// assert!(matches!(store.commit(commit()).await?, Outcome::Committed(_)));
/// assert_eq!(store.load("agent", "ada").await?.version, 1);
///
/// // Whoever decided on an older version is told, and nothing is written.
/// let conflict = Outcome::Conflict { noun: "agent", id: "ada".into() };
/// assert_eq!(store.commit(commit()).await?, conflict);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Debug + Send + Sync + 'static {
    /// Commits all of it or nothing, and answers only when it is durable. A conflict is an answer
    /// for this commit alone, whatever others are written in the same transaction.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// Whether other processes may write at the same time.
    fn is_shared(&self) -> bool {
        false
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> BoxFuture<'a, Result<Row, Error>>;

    /// The rows of these ids, in their order, all at one moment.
    fn load_all<'a>(
        &'a self,
        noun: &'a str,
        ids: &'a [&'a str],
    ) -> BoxFuture<'a, Result<Vec<Row>, Error>>;

    /// Rows of a noun that have a body, by id, beginning after `after`.
    fn list<'a>(
        &'a self,
        noun: &'a str,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>>;

    /// Rows of a noun that have a body, by id from the end downwards, beginning below `before`; all of
    /// them if that is empty. With `under`, only those that have this key.
    fn newest<'a>(
        &'a self,
        noun: &'a str,
        under: Option<&'a str>,
        before: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>>;

    /// Rows of a noun that are due at or before an instant, by that and by id, beginning after `after`:
    /// when the last of an earlier page was due and its id, or [`FIRST_DUE`].
    fn due<'a>(
        &'a self,
        noun: &'a str,
        after: (i64, &'a str),
        until_us: i64,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Item>, Error>>;

    fn counter<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<i64, Error>>;

    /// The answer kept under a key.
    fn answer<'a>(&'a self, key: &'a str) -> BoxFuture<'a, Result<Option<Answer>, Error>>;

    /// The answers with a key above `after`, by key.
    fn answers<'a>(
        &'a self,
        after: &'a str,
        limit: usize,
    ) -> BoxFuture<'a, Result<Vec<Answer>, Error>>;

    /// Drops answers given before an instant.
    fn forget_answers(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>>;

    /// The committed entries after a sequence number, in order, without a gap. Bounded by `limit`,
    /// [`crate::PAGE_ENTRIES_MAX`] and [`crate::PAGE_BYTES_MAX`]; empty only at the end.
    fn entries(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Page, Error>>;

    /// The time of the last entry, as far as is known without asking: at least of all that were committed
    /// here. 0 if there is none.
    fn last_entry_us(&self) -> i64;

    /// The end of the committed log.
    fn head(&self) -> BoxFuture<'_, Result<Chain, Error>>;

    /// Returns when the log is longer than `size`, or when the store is closed.
    fn grown_past(&self, size: u64) -> BoxFuture<'_, ()>;

    /// Keeps a checkpoint. A second one for the same size is not kept.
    fn keep_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>>;

    fn last_checkpoint(&self) -> BoxFuture<'_, Result<Option<Checkpoint>, Error>>;

    /// The notes of checkpoints with a size above `after`, by size.
    fn checkpoint_notes(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(u64, String)>, Error>>;

    /// All derived tables and the entry they belong to, seen at one moment.
    fn derived(&self) -> BoxFuture<'_, Result<Derived, Error>>;

    /// Appends entries that were sealed elsewhere; each must follow the one before.
    fn append_sealed(&self, page: Page) -> BoxFuture<'_, Result<(), Error>>;

    /// Looks at the store's own files for damage, at leisure.
    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Refuses every commit from now on; reading goes on.
    fn stop_writing(&self, reason: String);

    /// Why commits are refused, if they are.
    fn stopped_writing(&self) -> Option<Error>;

    /// Returns when commits are refused, with the reason.
    fn until_stopped(&self) -> BoxFuture<'_, Error>;

    /// Tells the place where all of it is from its copies, if it can be copied behind its back.
    fn place(&self) -> Option<String> {
        None
    }

    /// The time that counts, if it is not this machine's: processes on several machines go by the
    /// clock of the store they share. Microseconds since 1970.
    fn time_us(&self) -> Option<i64> {
        None
    }
}
