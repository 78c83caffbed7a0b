//! `cargo xtask walk`: runs the commands of the walked pages and rewrites the output that the pages show.
//!
//! A second walk compares, so that a page whose output differs from walk to walk is found here.

use std::path::Path;

use anyhow::{Context, Result};

use crate::process;

/// For the whole workspace, like the tests, so that nothing is compiled again with other features.
const WALK: &[&str] = &["cargo", "test", "--quiet", "--workspace", "--test", "it", "walk::"];

pub(super) fn run(root: &Path) -> Result<()> {
    process::run(root, "env", &[&["MIDWATCH_WALK_REWRITE=1"], WALK].concat())?;
    process::run(root, "env", WALK).context("a page differs from one walk to the next")
}
