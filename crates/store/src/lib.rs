//! What a store must do: the port between the watch and the engine that keeps its data.
//!
//! A store is dumb. It keeps the log and the tables derived from it, and it commits all of a
//! [`Commit`] or nothing. It knows no rule of the product: versions, limits and bodies come in as
//! they shall be stored. Numbering and chaining entries is part of committing them, and is the
//! `ledger` crate's work.
//!
//! Every store passes the one suite in [`conformance`].

mod commit;
mod page;
mod port;
pub mod schema;
mod stop;

#[cfg(feature = "conformance")]
pub mod conformance;
pub mod memory;

pub use commit::{Answer, Commit, Delta, Derived, Expect, Item, Keeps, Outcome, Receipt, Write};
pub use memory::Memory;
pub use page::{PAGE_BYTES_MAX, PAGE_ENTRIES_MAX, Page};
pub use port::{Checkpoint, Error, FIRST_DUE, Row, Store};
pub use stop::Stop;
