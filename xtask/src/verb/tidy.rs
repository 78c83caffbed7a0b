//! `cargo xtask tidy`: checks every rule of [`crate::tidy`] and prints what to do about each violation.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::tidy;
use crate::workspace::Workspace;

pub(super) fn run(root: &Path) -> Result<()> {
    let violations = tidy::check(&Workspace::read(root)?);
    for violation in &violations {
        eprintln!("{violation}");
    }
    ensure!(violations.is_empty(), "the tree is not tidy: {} violations", violations.len());
    Ok(())
}
