//! `cargo xtask fuzz [ARGS]`: mangled lines for the parser of MCP messages.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::joined;

pub(super) fn run(root: &Path, args: &[String]) -> Result<()> {
    let fixed = ["run", "-p", "conformance", "--", "fuzz"];
    process::run(root, "cargo", &joined(&fixed, args))
}
