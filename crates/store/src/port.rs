//! The [`Store`] trait.

use std::fmt::Debug;
use std::sync::Arc;

use futures::future::BoxFuture;
use ledger::Chain;
use metrics::Histogram;

use crate::commit::{Commit, DerivedTables, Item, Outcome, StoredResponse};
use crate::page::Page;

/// What a store reads.
pub type Reading<'a, T> = BoxFuture<'a, Result<T, Error>>;

/// The position before the first due row, see [`Due`].
pub const BEFORE_ALL_DUE: (i64, &str) = (i64::MIN, "");

/// Which rows [`Store::list_newest`] lists.
#[derive(Clone, Copy, Debug)]
pub struct Newest<'a> {
    pub noun: &'a str,
    /// Only rows with this index key.
    pub index_key: Option<&'a str>,
    /// Only rows with a lower id; any id if empty.
    pub before: &'a str,
    pub limit: usize,
}

/// Which rows [`Store::list_due`] lists.
#[derive(Clone, Copy, Debug)]
pub struct Due<'a> {
    pub noun: &'a str,
    /// The due time and the id of the previous page's last row, or [`BEFORE_ALL_DUE`].
    pub after: (i64, &'a str),
    /// The latest due time.
    pub until_us: i64,
    pub limit: usize,
}

/// The version and body of a row; version 0 and no body if the row does not exist.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Row {
    pub version: u64,
    pub body: Option<Arc<[u8]>>,
}

/// A signed checkpoint of the ledger, and the chain at its size, so that opening the ledger reads only
/// later entries.
#[derive(Clone, Debug, PartialEq)]
pub struct Checkpoint {
    pub chain: Chain,
    pub note: String,
}

/// Why a store failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Nothing was written; the same commit may succeed later.
    #[error("the disk is full")]
    DiskFull,
    #[error("the data directory is read-only")]
    ReadOnly,
    /// The store stops writing but can still be read.
    #[error("the ledger is damaged: {0}")]
    Damaged(String),
    /// The derived tables cannot be read. The ledger is intact, and the tables can be rebuilt from it.
    #[error("the derived tables are damaged: {0}")]
    TablesDamaged(String),
    /// The ledger lost acknowledged entries, by a failover or a restored copy. The store stops
    /// writing.
    #[error("the ledger was rewound: {0}")]
    Rewound(String),
    /// The database does not respond. Nothing was written.
    #[error("cannot reach the database: {0}")]
    Unreachable(String),
    /// The database wants the password in a form that reveals it. Nothing was sent.
    #[error("the database asked for the password {form}, so it was not sent")]
    PasswordNotSent { form: &'static str },
    /// The database refuses the user or the password.
    #[error("the database refuses the connection: {0}")]
    AccessDenied(String),
    /// The server has no such database.
    #[error("{0}")]
    NoDatabase(String),
    /// The connection was lost during a commit, and could not be restored in time to find out whether
    /// the commit happened.
    #[error("lost the database during a commit, which may have happened or not: {0}")]
    InDoubt(String),
    /// It is unknown what reached the disk. The process must end; the next start finds out.
    #[error("failed to write the store: {0}")]
    WriteFailed(String),
    #[error("the data has format {found}, but this program supports formats up to {known}")]
    NewerFormat { found: u32, known: u32 },
    #[error("the store failed: {0}")]
    Failed(String),
}

/// A store. It is shared behind an `Arc`; tasks may call every method concurrently.
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
/// // A commit that expects an older version conflicts and writes nothing.
/// let conflict = Outcome::Conflict { noun: "agent", id: "ada".into() };
/// assert_eq!(store.commit(commit()).await?, conflict);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Store: Debug + Send + Sync + 'static {
    /// Writes the commit completely or not at all, and returns when it is durable. A conflict does not
    /// affect other commits of the same transaction.
    fn commit(&self, commit: Commit) -> BoxFuture<'_, Result<Outcome, Error>>;

    /// The kind of the store, as metrics name it.
    fn engine(&self) -> &'static str {
        "memory"
    }

    /// How many commits were written to disk together, if the store counts that.
    fn batches(&self) -> Option<&Histogram> {
        None
    }

    /// Whether other processes may write to the store concurrently.
    fn is_shared(&self) -> bool {
        false
    }

    fn load<'a>(&'a self, noun: &'a str, id: &'a str) -> Reading<'a, Row>;

    /// The rows with these ids, in this order, from one snapshot.
    fn load_all<'a>(&'a self, noun: &'a str, ids: &'a [&'a str]) -> Reading<'a, Vec<Row>>;

    /// Rows of a noun with a body and an id after `after`, sorted by id.
    fn list<'a>(&'a self, noun: &'a str, after: &'a str, limit: usize) -> Reading<'a, Vec<Item>>;

    /// Rows of a noun with a body, sorted by id in descending order.
    fn list_newest<'a>(&'a self, rows: Newest<'a>) -> Reading<'a, Vec<Item>>;

    /// Rows of a noun that are due, sorted by due time and id.
    fn list_due<'a>(&'a self, rows: Due<'a>) -> Reading<'a, Vec<Item>>;

    fn counter<'a>(&'a self, name: &'a str) -> Reading<'a, i64>;

    /// The stored response to an idempotency key.
    fn response<'a>(&'a self, key: &'a str) -> Reading<'a, Option<StoredResponse>>;

    /// Stored responses with a key after `after`, sorted by key.
    fn responses<'a>(&'a self, after: &'a str, limit: usize) -> Reading<'a, Vec<StoredResponse>>;

    /// Deletes responses stored before an instant.
    fn delete_responses(&self, before_us: i64) -> BoxFuture<'_, Result<(), Error>>;

    /// The committed entries after a sequence number, in order and without gaps. Limited by `limit`,
    /// [`crate::PAGE_ENTRIES_MAX`] and [`crate::PAGE_BYTES_MAX`]; empty only at the end.
    fn entries(&self, after: u64, limit: usize) -> BoxFuture<'_, Result<Page, Error>>;

    /// The time of the last known entry, without a query: not earlier than any entry that this process
    /// committed. 0 if the ledger is empty.
    fn last_entry_us(&self) -> i64;

    /// The chain at the last committed entry.
    fn head(&self) -> BoxFuture<'_, Result<Chain, Error>>;

    /// Returns when the ledger has more than `size` entries, or when the store is closed.
    fn wait_for_entries_after(&self, size: u64) -> BoxFuture<'_, ()>;

    /// Stores a checkpoint, unless one of the same size exists.
    fn save_checkpoint(&self, checkpoint: Checkpoint) -> BoxFuture<'_, Result<(), Error>>;

    fn last_checkpoint(&self) -> BoxFuture<'_, Result<Option<Checkpoint>, Error>>;

    /// The notes of checkpoints larger than `after`, sorted by size.
    fn checkpoint_notes(
        &self,
        after: u64,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<(u64, String)>, Error>>;

    /// All derived tables and the entry that they belong to, from one snapshot.
    fn load_derived(&self) -> BoxFuture<'_, Result<DerivedTables, Error>>;

    /// Appends existing entries, such as those of another store. Each must verify as the next one.
    fn append_entries(&self, page: Page) -> BoxFuture<'_, Result<(), Error>>;

    /// Checks the store's files for damage, which may take long.
    fn check_files(&self) -> BoxFuture<'_, Result<(), Error>>;

    /// Refuses all further commits. Reading still works.
    fn stop_writing(&self, reason: String);

    /// Why the store refuses commits, if it does.
    fn write_stop_reason(&self) -> Option<Error>;

    /// Returns the reason when the store refuses commits.
    fn wait_until_stopped(&self) -> BoxFuture<'_, Error>;

    /// Identifies the location of the data, if files can be copied without this program: a copy has
    /// another id.
    fn location_id(&self) -> Option<String> {
        None
    }

    /// The clock of a store that processes on several machines share, in microseconds since 1970. `None`:
    /// use this machine's clock.
    fn shared_clock_us(&self) -> Option<i64> {
        None
    }
}
