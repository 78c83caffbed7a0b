//! `cargo xtask letta`: runs the tests against a real Letta server, which it installs below `target`.

use std::path::Path;

use anyhow::Result;

use crate::process;

/// The App Server of this version answers without an account and a model.
const PACKAGE: &str = "letta==0.34.12";

pub(super) fn run(root: &Path) -> Result<()> {
    let folder = root.join("target/letta");
    let path = |name: &str| folder.join(name).display().to_string();
    process::run(root, "python3", &["-m", "venv", &path("")])?;
    process::run(root, &path("bin/pip"), &["install", "--quiet", PACKAGE])?;
    let server = format!("MIDWATCH_LETTA={}", path("bin/letta"));
    let test = ["test", "--workspace", "real_letta::", "--", "--ignored"];
    process::run(root, "env", &[&[&server, "cargo"], &test[..]].concat())
}
