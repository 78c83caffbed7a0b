//! `cargo xtask docs`: writes the generated documents again.
//!
//! A generated document has a test named `…is_fresh` that rewrites a stale file and fails. So the
//! first pass may fail, and the second must not.

use std::path::Path;

use anyhow::{Context, Result, ensure};

use crate::process;

/// Of the whole workspace, as its tests are built: one package alone has dependencies with other features, and
/// all of them would be compiled again.
const FRESH: &[&str] = &["test", "--quiet", "--workspace", "--no-fail-fast", "is_fresh"];

pub(super) fn run(root: &Path) -> Result<()> {
    let listed = process::read(root, "cargo", &[FRESH, &["--", "--list"]].concat())?;
    let count = listed.lines().filter(|line| line.ends_with("is_fresh: test")).count();
    ensure!(0 < count, "no test is named `…is_fresh`, so nothing was written");
    if process::run(root, "cargo", FRESH).is_err() {
        eprintln!("stale documents were written again; checking them once more");
        process::run(root, "cargo", FRESH).context("a document is stale although just written")?;
    }
    Ok(())
}
