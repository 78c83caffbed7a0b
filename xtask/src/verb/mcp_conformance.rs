//! `cargo xtask mcp-conformance`: tests the MCP server with the official suite, the inspector, the SDKs and Claude
//! Code, which it installs below `target`.

use std::path::Path;

use anyhow::Result;

use crate::process;

pub(super) fn run(root: &Path) -> Result<()> {
    process::run(root, "cargo", &["build", "-p", "midwatch"])?;
    process::run(root, "cargo", &["run", "-p", "conformance", "--", "check"])
}
