//! `cargo xtask letta`: the test against a real Letta server, which is installed below `target`.

use std::path::Path;

use anyhow::Result;

use crate::process;

/// Its App Server needs no account and no model to answer.
const PACKAGE: &str = "letta==0.34.12";

pub(super) fn run(root: &Path) -> Result<()> {
    let place = root.join("target/letta");
    let at = |name: &str| place.join(name).display().to_string();
    process::run(root, "python3", &["-m", "venv", &at("")])?;
    process::run(root, &at("bin/pip"), &["install", "--quiet", PACKAGE])?;
    let server = format!("MIDWATCH_LETTA={}", at("bin/letta"));
    let test = ["test", "--workspace", "real_letta::", "--", "--ignored"];
    process::run(root, "env", &[&[&server, "cargo"], &test[..]].concat())
}
