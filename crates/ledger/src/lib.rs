//! The tamper-evident log: what is hashed, how entries are chained, and how the chain is signed.
//!
//! Everything here is a function of its arguments: no clock, no randomness, no file. A store keeps
//! the rows and calls [`Chain::seal`] in its single writer; whoever doubts the rows calls
//! [`Chain::check`] on them. [`export`] turns the log into files, [`verify`] judges a log or its
//! files against what is known from outside.
//!
//! The byte layouts are written down in `docs/ledger-format.md` and are held by golden files,
//! because an entry written once must verify for ever.
//!
//! ```
//! use ledger::{Chain, Draft, Header, canonical};
//!
//! let header = Header {
//!     ts_us: 1_750_000_000_000_000,
//!     kind: "genesis",
//!     version: 1,
//!     actor: "midwatch",
//!     role: "system",
//!     cause: "",
//!     noun: "instance",
//!     noun_id: "5f0c",
//! };
//! let facts = canonical(&serde_json::json!({ "instance": "5f0c", "format": 1 }))?;
//! let draft = Draft::new(header, facts, None)?;
//!
//! let mut chain = Chain::empty();
//! let sealed = chain.seal(&draft);
//! assert_eq!((sealed.seq, chain.size(), chain.head()), (1, 1, sealed.hash));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod canonical;
mod chain;
mod checkpoint;
mod entry;
pub mod export;
mod hash;
mod hex;
mod key;
mod layout;
mod note;
mod tree;
pub mod verify;

pub use canonical::{INTEGER_MAX, NotCanonical, canonical, canonical_shared};
pub use chain::{Chain, Fault, FaultKind, NotAChain};
pub use checkpoint::{Checkpoint, open, sign};
pub use entry::{
    Draft, Entry, EntryPrivate, FACTS_BYTES_MAX, Fields, Header, PRIVATE_BYTES_MAX, Private,
    PrivateRef, Sealed, TEXT_BYTES_MAX, TooLarge,
};
pub use hash::{Hash, NotAHash};
pub use key::{KeyError, SigningKey, VerifyingKey};
pub use note::{NOTE_BYTES_MAX, NoteError, SIGNATURES_MAX};
