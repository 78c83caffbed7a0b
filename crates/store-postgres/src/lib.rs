//! The store on PostgreSQL: one database that several processes may share.
//!
//! Each process collects commits into groups, as the embedded store does, and writes a group in one
//! transaction: first the rows, then the row `head`, which it locks until the commit. So all processes
//! append in one order, no reader sees an entry before its predecessor, and the lock is held only while
//! the entries are appended and flushed. See `docs/decisions/0005`.
//!
//! If the connection is lost during a commit, the ledger shows whether the commit happened: the writer
//! locks `head` again and searches the entries.

mod backoff;
mod connect;
mod error;
mod feed;
mod group;
mod items;
mod migrate;
mod pool;
mod reads;
mod scram_only;
mod session;
mod store;
mod target;
mod writer;

pub use store::Postgres;
pub use target::{InvalidTarget, Target};
use tokio::task::JoinHandle;

#[expect(clippy::disallowed_methods, reason = "each of these tasks ends with its store")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::task::spawn(task)
}

#[expect(clippy::disallowed_methods, reason = "measures how old the database's time is")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
