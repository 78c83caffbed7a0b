//! The embedded store: one SQLite file, one thread that writes it, readers beside it.
//!
//! Commits go through the writer thread, which takes all that wait, writes them in one transaction
//! and answers after it is on the disk. Reads use read-only connections and never wait for a write.
//! The data directory's lock, which the caller holds, keeps a second process from writing.

mod error;
mod items;
mod migrate;
mod open;
mod readers;
mod statements;
mod store;
mod writer;

pub use self::store::Sqlite;
