//! `cargo xtask fuzz [ARGS]`: feeds mangled messages to the MCP parser.

use std::path::Path;

use anyhow::Result;

use crate::process;
use crate::verb::with_args;

pub(super) fn run(root: &Path, args: &[String]) -> Result<()> {
    let fixed = ["run", "-p", "conformance", "--", "fuzz"];
    process::run(root, "cargo", &with_args(&fixed, args))
}
