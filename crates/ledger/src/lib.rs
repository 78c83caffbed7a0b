//! The ledger: a tamper-evident log whose entries form a hash chain and the leaves of a Merkle tree,
//! and whose tree is signed in checkpoints.
//!
//! Every function depends on its arguments only: no clock, no randomness, no file. A store keeps the
//! entries as rows. Its single writer calls [`Chain::append`]; a verifier calls [`Chain::verify_next`].
//! [`export`] writes the ledger to files, [`verify`] verifies a ledger or its exported files.
//!
//! `docs/ledger-format.md` specifies the byte layouts. Golden files lock them, because an entry must
//! verify for ever.
//!
//! ```
//! use ledger::{Chain, Draft, Header, canonical_json};
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
//! let facts = canonical_json(&serde_json::json!({ "instance": "5f0c", "format": 1 }))?;
//! let draft = Draft::new(header, facts, None)?;
//!
//! let mut chain = Chain::empty();
//! let appended = chain.append(&draft);
//! assert_eq!((appended.seq, chain.size(), chain.head()), (1, 1, appended.hash));
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

pub use canonical::{INTEGER_MAX, NotCanonical, canonical_json, canonical_json_shared};
pub use chain::{Chain, Fault, FaultKind, NotAChain};
pub use checkpoint::{Checkpoint, open_checkpoint, sign_checkpoint};
pub use entry::{
    Appended, Draft, Entry, EntryPrivate, EntryRef, FACTS_BYTES_MAX, Header, PRIVATE_BYTES_MAX,
    Private, PrivateRef, TEXT_BYTES_MAX, TooLarge,
};
pub use hash::{Hash, NotAHash};
pub use key::{KeyError, SigningKey, VerifyingKey};
pub use note::{NOTE_BYTES_MAX, NoteError, SIGNATURES_MAX};
