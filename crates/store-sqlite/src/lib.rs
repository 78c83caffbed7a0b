//! The embedded store: one SQLite file, one writer thread, concurrent readers.
//!
//! Commits go to the writer thread, which writes all waiting commits in one transaction (group commit)
//! and replies after it is durable. Reads use read-only connections and never wait for a write. The
//! caller holds the lock on the data directory, so no second process writes.

mod error;
mod items;
mod migrate;
mod open;
mod readers;
mod statements;
mod store;
mod writer;

pub use self::store::Sqlite;
