//! `cargo xtask crash [ARGS]`: runs the crash loop of the `sim` crate against the release binary.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::with_args;

pub(super) fn run(root: &Path, args: &[String]) -> Result<()> {
    process::run(root, "cargo", &["build", "--release", "-p", "midwatch"])?;
    let fixed = ["run", "--release", "-p", "sim", "--", "crash"];
    process::run(root, "cargo", &with_args(&fixed, args))
}
