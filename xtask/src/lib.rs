//! The developer's verbs behind `cargo xtask`, in Rust, so that a fresh machine needs only Rust and
//! a C compiler.
//!
//! A library, so that what `tidy` checks is also a test. [`workspace`] reads the tree once;
//! [`layers`] and [`tidy`] judge it and touch nothing. Processes are started in `process` alone.
//! Nothing here ships, and no other crate depends on it.

pub mod layers;
mod process;
pub mod step;
pub mod tidy;
mod tools;
pub mod verb;
pub mod workspace;

use std::path::Path;

/// The folder of the workspace this crate was compiled in.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
