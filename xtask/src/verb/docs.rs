//! `cargo xtask docs`: rewrites the generated documents.
//!
//! A generated document has a test named `…is_fresh` that rewrites a stale file and fails. So the first pass may fail,
//! and the second must not.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::process;

/// For the whole workspace, like the tests: a single package would select other features of its dependencies and compile
/// them again.
const FRESH: &[&str] = &["test", "--quiet", "--workspace", "--no-fail-fast", "is_fresh"];

pub(super) fn run(root: &Path) -> Result<()> {
    let listed = process::output(root, "cargo", &[FRESH, &["--", "--list"]].concat())?;
    let count = listed.lines().filter(|line| line.ends_with("is_fresh: test")).count();
    ensure!(0 < count, "no test is named `…is_fresh`, so no document was written");
    if process::run(root, "cargo", FRESH).is_err() {
        eprintln!("rewrote stale documents; checking them once more");
        process::run(root, "cargo", FRESH)
            .context("a document is stale although it was just rewritten")?;
    }
    Ok(())
}
