//! `cargo xtask api-conformance`: tests the HTTP API against its OpenAPI document with Schemathesis, which it installs below
//! `target`.

use std::path::Path;

use anyhow::Result;

use super::with_args;
use crate::process;

pub(super) fn run(root: &Path, args: &[String]) -> Result<()> {
    process::run(root, "cargo", &["build", "-p", "midwatch"])?;
    process::run(root, "cargo", &with_args(&["run", "-p", "conformance", "--", "api"], args))
}
