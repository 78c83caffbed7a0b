//! The verifier: is this log what was written, all of it, and by whom it should be?
//!
//! It shares the hashing with the writer and nothing else; it needs no running instance, changes
//! nothing, and holds one entry at a time. [`LogVerifier`] is fed from a data directory,
//! [`verify_export`] reads exported files. Both stop at the first damage, because nothing after it
//! can be judged.
//!
//! A log proves little by itself: whoever can rewrite all of it can make it consistent. What it is
//! measured against comes from outside, as [`Anchors`]; what could not be measured stands in the
//! report as a caveat.

mod export;
mod log;
mod outside;
mod report;
mod trust;
mod walk;

pub use export::{ExportFiles, lines_files, verify_export};
pub use log::LogVerifier;
pub use outside::Checkpoints;
pub use report::{Damage, Report, Verdict};
pub use trust::{Anchors, KEYS_MAX, SignedCheckpoint};
