//! A commit: everything that one decision changes, and its possible outcomes.

use std::borrow::Cow;
use std::sync::Arc;

use ledger::{Draft, Hash};

/// Written in one transaction, completely or not at all.
#[derive(Debug, Default)]
pub struct Commit {
    /// Entries to append to the ledger.
    pub drafts: Vec<Draft>,
    pub writes: Vec<Write>,
    pub expects: Vec<Expect>,
    pub deltas: Vec<Delta>,
    pub response: Option<StoredResponse>,
    /// Replaces all derived tables, if the ledger still ends at their entry.
    pub replace_derived: Option<DerivedTables>,
}

/// A row of the generic table, and the version that it must have before. It replaces the whole row,
/// including its keys `due_us` and `index_key`. A row without a body has no keys.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Write {
    pub noun: &'static str,
    pub id: String,
    /// 0: the row must not exist.
    pub expected_version: u64,
    pub version: u64,
    /// `None` for a removed object; its row stays, so that versions keep increasing.
    pub body: Option<Arc<[u8]>>,
    /// When the row is due, see [`Store::list_due`](crate::Store::list_due).
    pub due_us: Option<i64>,
    /// Groups rows of a noun, see [`Store::list_newest`](crate::Store::list_newest).
    pub index_key: Option<String>,
    /// Which keys are known to equal those of the existing row, so that a store need not update their
    /// indexes.
    pub unchanged_keys: UnchangedKeys,
}

/// A row that the decision has read but does not write, and the version that it must still have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    pub noun: &'static str,
    pub id: String,
    /// 0: the row must not exist.
    pub version: u64,
}

/// Which keys of a row do not change.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnchangedKeys {
    #[default]
    Unknown,
    IndexKey,
    Both,
}

/// Adds to a shared counter, if the result is between zero and `max`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    pub counter: Cow<'static, str>,
    pub add: i64,
    pub max: i64,
}

/// The response to a request with an idempotency key. A repeated request gets the same response.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredResponse {
    pub key: String,
    /// The hash of the request, which reveals a key that is reused for another request.
    pub request_hash: Hash,
    pub body: Vec<u8>,
    pub at_us: i64,
}

/// All derived tables as of the entry `through`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DerivedTables {
    pub through: u64,
    /// Sorted by noun and id.
    pub items: Vec<Item>,
    /// Sorted by name, without counters at zero.
    pub counters: Vec<(String, i64)>,
}

/// A row of the generic table with its keys.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    pub noun: String,
    pub id: String,
    pub version: u64,
    pub body: Option<Arc<[u8]>>,
    pub due_us: Option<i64>,
    pub index_key: Option<String>,
}

/// The outcome of a commit. Every outcome but `Committed` wrote nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The commit is durable.
    Committed(Receipt),
    /// A row did not have the expected version: load, decide and commit again.
    Conflict { noun: &'static str, id: String },
    /// A counter would exceed its bounds.
    OverLimit { counter: Cow<'static, str> },
    /// The idempotency key was used before for the same request; this is the stored response.
    Replayed(Vec<u8>),
    /// The idempotency key was used before for another request.
    KeyTaken,
    /// `replace_derived` belongs to an earlier end of the ledger.
    StaleDerived { head: u64 },
}

/// The sequence numbers of a commit's entries. `last < first` if it has none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub first: u64,
    pub last: u64,
}
