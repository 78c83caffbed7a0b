//! `cargo xtask bench NAME [ARGS]`: runs one benchmark of the `bench` crate in release mode.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::with_args;

pub(super) fn run(root: &Path, name: &str, args: &[String]) -> Result<()> {
    // Some benchmarks start the binaries and must not measure stale ones.
    process::run(root, "cargo", &["build", "--release", "-p", "midwatch", "-p", "conformance"])?;
    let fixed = ["run", "--release", "-p", "bench", "--", name];
    process::run(root, "cargo", &with_args(&fixed, args))
}
