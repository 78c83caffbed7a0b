//! `cargo xtask tidy`: judges the tree by every rule of [`crate::tidy`] and prints what to do.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::tidy;
use crate::workspace::Workspace;

pub(super) fn run(root: &Path) -> Result<()> {
    let faults = tidy::check(&Workspace::read(root)?);
    for fault in &faults {
        eprintln!("{fault}");
    }
    ensure!(faults.is_empty(), "the tree is not tidy: {} places", faults.len());
    Ok(())
}
