//! The developer's verbs behind `cargo xtask`, in Rust, so that a fresh machine needs only Rust and a C compiler.
//!
//! It is a library so that the rules of `tidy` are also tests. [`workspace`] reads the tree once; [`layers`] and [`tidy`]
//! check it and change nothing. Only `process` starts processes. Nothing here ships, and no other crate depends on it.

pub mod layers;
mod process;
pub mod step;
mod test_programs;
pub mod tidy;
mod tools;
pub mod verb;
pub mod workspace;

use std::path::Path;

/// The root of the workspace in which this crate was compiled.
pub fn root() -> &'static Path {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().unwrap_or(here)
}
