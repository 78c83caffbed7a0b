//! `cargo xtask sim [ARGS]`: the runtime on virtual time, life after life, by the `sim` crate.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::joined;

pub(super) fn run(root: &Path, args: &[String]) -> Result<()> {
    let fixed = ["run", "--release", "-p", "sim", "--", "watch"];
    process::run(root, "cargo", &joined(&fixed, args))
}
