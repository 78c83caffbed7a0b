//! A commit: everything that one decision changes, and what may come of it.

use std::borrow::Cow;
use std::sync::Arc;

use ledger::{Draft, Hash};

/// All of this is written in one transaction, or none of it.
#[derive(Debug, Default)]
pub struct Commit {
    pub drafts: Vec<Draft>,
    pub writes: Vec<Write>,
    pub expects: Vec<Expect>,
    pub deltas: Vec<Delta>,
    pub answer: Option<Answer>,
    /// Puts these in the place of all derived tables, if the log still ends where they do.
    pub replace: Option<Derived>,
}

/// A row of the generic table, and the version that it must have had. It takes the place of the row
/// before as a whole, with its keys. A row without a body has no keys either.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Write {
    pub noun: &'static str,
    pub id: String,
    /// 0: there must not be a row.
    pub expected: u64,
    pub version: u64,
    /// `None` for a thing that is gone; its row stays, so that its versions go on.
    pub body: Option<Arc<[u8]>>,
    /// When the row wants to be looked at.
    pub due_us: Option<i64>,
    /// A key under which rows of this noun can be listed.
    pub under: Option<String>,
    /// What is said of the row's keys is what they were before, as far as that is known. A store may
    /// then leave its indexes alone.
    pub keeps: Keeps,
}

/// A row that is not written, and the version that it must still have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expect {
    pub noun: &'static str,
    pub id: String,
    /// 0: there must not be a row.
    pub version: u64,
}

/// Which keys of a row stay as they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Keeps {
    #[default]
    Unknown,
    Under,
    Both,
}

/// Adds to a counter that many writers share, if it stays between zero and its limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delta {
    pub counter: Cow<'static, str>,
    pub add: i64,
    pub max: i64,
}

/// The answer to a request that carried a key. The same key gets the same answer again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    pub key: String,
    /// Of the request, so that a key used for another request is noticed.
    pub request_hash: Hash,
    pub body: Vec<u8>,
    pub at_us: i64,
}

/// Every derived table as it is after the entry `through`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Derived {
    pub through: u64,
    /// Sorted by noun and id.
    pub items: Vec<Item>,
    /// Sorted by name; a counter at zero is left out.
    pub counters: Vec<(String, i64)>,
}

/// One row of the generic table, with its keys as they were written.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Item {
    pub noun: String,
    pub id: String,
    pub version: u64,
    pub body: Option<Arc<[u8]>>,
    pub due_us: Option<i64>,
    pub under: Option<String>,
}

/// What became of a commit. All but `Committed` left nothing behind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It is durable.
    Committed(Receipt),
    /// A row had another version than expected: load, decide and commit again.
    Conflict { noun: &'static str, id: String },
    /// A counter would have left its bounds.
    OverLimit { counter: Cow<'static, str> },
    /// The key was answered before; this is that answer.
    Answered(Vec<u8>),
    /// The key was used before, for another request.
    KeyTaken,
    /// `replace` was made for an earlier end of the log.
    Moved { head: u64 },
}

/// Where the entries of a commit are. `last < first` when it had none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Receipt {
    pub first: u64,
    pub last: u64,
}
