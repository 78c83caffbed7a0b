//! The store on PostgreSQL: one database that several processes may share.
//!
//! Each process gathers commits into groups, as the embedded store does, and writes a group in one
//! transaction: the rows first, then the end of the log, whose row is held until the commit. So there
//! is one order and one cursor, nobody sees an entry before the one it follows, and the row is held
//! no longer than it takes to append and to flush. See `docs/decisions/0005`.
//!
//! A connection that is lost during a commit leaves it open whether the commit happened; the log
//! itself answers that, under the same row.

mod error;
mod feed;
mod group;
mod items;
mod migrate;
mod patience;
mod reads;
mod session;
mod store;
mod target;
mod writer;

pub use store::Postgres;
pub use target::{InvalidTarget, Target};
use tokio::task::JoinHandle;

#[expect(clippy::disallowed_methods, reason = "each of these tasks ends with the store it serves")]
fn spawn(task: impl Future<Output = ()> + Send + 'static) -> JoinHandle<()> {
    tokio::task::spawn(task)
}

#[expect(clippy::disallowed_methods, reason = "measures how long ago the database told its time")]
fn now() -> std::time::Instant {
    std::time::Instant::now()
}
