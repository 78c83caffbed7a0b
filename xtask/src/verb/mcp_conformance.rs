//! `cargo xtask mcp-conformance`: the MCP server beside the official suite, the inspector and the SDKs, which are
//! installed below `target`.

use std::path::Path;

use anyhow::Result;

use crate::process;

pub(super) fn run(root: &Path) -> Result<()> {
    process::run(root, "cargo", &["build", "-p", "midwatch"])?;
    process::run(root, "cargo", &["run", "-p", "conformance", "--", "check"])
}
