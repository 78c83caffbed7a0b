//! `cargo xtask bench NAME [ARGS]`: one benchmark of the `bench` crate, in release mode.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::joined;

pub(super) fn run(root: &Path, name: &str, args: &[String]) -> Result<()> {
    let fixed = ["run", "--release", "-p", "bench", "--", name];
    process::run(root, "cargo", &joined(&fixed, args))
}
