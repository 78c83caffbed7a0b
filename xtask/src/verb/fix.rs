//! `cargo xtask fix`: applies the automatic fixes of clippy and rustfmt.
//!
//! It also changes uncommitted files, so check the diff afterwards.

use std::path::Path;

use anyhow::Result;

use crate::process;

const CLIPPY: &[&str] =
    &["clippy", "--workspace", "--all-targets", "--fix", "--allow-dirty", "--allow-staged"];

/// Formatting comes last, because clippy's suggestions are not formatted.
pub(super) fn run(root: &Path) -> Result<()> {
    process::run(root, "cargo", CLIPPY)?;
    process::run(root, "cargo", &["fmt", "--all"])
}
