//! `cargo xtask sim [ARGS]`: simulates the runtime on virtual time with the `sim` crate.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::with_args;

pub(super) fn run(root: &Path, args: &[String]) -> Result<()> {
    let fixed = ["run", "--release", "-p", "sim", "--", "watch"];
    process::run(root, "cargo", &with_args(&fixed, args))
}
