//! The verifier: is the ledger complete, unchanged, and signed by the right key?
//!
//! It shares only the hashing with the writer. It needs no daemon, changes nothing, and holds one
//! entry in memory at a time. [`LedgerVerifier`] takes entries from a data directory,
//! [`verify_export`] reads exported files. Both stop at the first damage, because no entry after it
//! can be verified.
//!
//! An attacker who rewrites the whole ledger can make it consistent, so the verifier compares it with
//! [`Anchors`] from elsewhere. Each missing anchor adds a caveat to the report.

mod export;
mod external;
mod ledger;
mod report;
mod trust;
mod verification;

pub use export::{ExportFiles, entry_files, verify_export};
pub use external::CheckpointReader;
pub use ledger::LedgerVerifier;
pub use report::{Damage, Report, Verdict};
pub use trust::{Anchors, KEYS_MAX, SignedCheckpoint};
