//! `cargo xtask bench NAME [ARGS]`: one benchmark of the `bench` crate, in release mode.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::joined;

pub(super) fn run(root: &Path, name: &str, args: &[String]) -> Result<()> {
    // Some start the program, and must not meet one of another day.
    process::run(root, "cargo", &["build", "--release", "-p", "midwatch", "-p", "conformance"])?;
    let fixed = ["run", "--release", "-p", "bench", "--", name];
    process::run(root, "cargo", &joined(&fixed, args))
}
