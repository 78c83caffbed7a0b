//! The interface between the engine and the database: what every store must do.
//!
//! A store holds the ledger and the tables derived from it, and writes a [`Commit`] completely or not
//! at all. It knows none of the product's rules: the caller decides versions, limits and bodies. While
//! committing, the store numbers and chains the entries with the `ledger` crate.
//!
//! Every store passes the test suite in [`conformance`].

mod commit;
mod page;
mod port;
pub mod schema;
mod write_stop;

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod memory;

pub use commit::{
    Commit, Delta, DerivedTables, Expect, Item, Outcome, Receipt, StoredResponse, UnchangedKeys,
    Write,
};
pub use memory::Memory;
pub use page::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX, Page};
pub use port::{BEFORE_ALL_DUE, Checkpoint, Due, Error, Newest, Reading, Row, Store};
pub use write_stop::WriteStop;
