//! `cargo xtask browser`: looks for violations of WCAG on every page of the dashboard, with axe, which it installs below
//! `target`. The pages stay behind as pictures.

use std::path::Path;

use anyhow::{Context, Result};

use crate::process;

const PACKAGE: &str = "axe-core@4.14.0";

pub(super) fn run(root: &Path) -> Result<()> {
    let folder = root.join("target/axe");
    std::fs::create_dir_all(&folder)
        .with_context(|| format!("cannot make {}", folder.display()))?;
    let prefix = folder.display().to_string();
    let install = ["install", "--prefix", &prefix, "--no-audit", "--no-fund", "--ignore-scripts"];
    process::run(root, "npm", &[&install[..], &[PACKAGE]].concat())?;
    let axe = folder.join("node_modules/axe-core/axe.min.js");
    process::run(root, "cargo", &["build", "-p", "midwatch"])?;
    let variable = format!("MIDWATCH_AXE={}", axe.display());
    let test = ["cargo", "test", "-p", "midwatch", "--test", "it", "bridge::"];
    process::run(root, "env", &[&[variable.as_str()], &test[..]].concat())?;
    eprintln!("pictures of the pages are in target/tmp/pages");
    Ok(())
}
