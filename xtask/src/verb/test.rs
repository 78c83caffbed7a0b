//! `cargo xtask test`: what CI runs, and what a developer runs before a commit.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::process;
use crate::step::{Step, walk};
use crate::tools;
use crate::verb::tidy;

/// The cheap steps come first. All is built before the first test because some of them start the binary, and as
/// one workspace, so that no dependency is compiled twice.
const STEPS: &[Step] = &[
    Step { name: "tools", run: tools::ensure },
    Step { name: "fmt", run: fmt },
    Step { name: "clippy", run: clippy },
    Step { name: "tidy", run: tidy::run },
    Step {
        name: "build",
        run: |root| process::run(root, "cargo", &["test", "--workspace", "--no-run"]),
    },
    Step { name: "test", run: |root| process::run(root, "cargo", &["test", "--workspace"]) },
];

pub(super) fn run(root: &Path) -> Result<()> {
    walk(root, STEPS)
}

fn fmt(root: &Path) -> Result<()> {
    component(root, "fmt", "rustfmt")?;
    process::run(root, "cargo", &["fmt", "--all", "--check"])
}

fn clippy(root: &Path) -> Result<()> {
    component(root, "clippy", "clippy")?;
    let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(root, "cargo", &args)
}

/// A part of the toolchain that a minimal installation leaves out.
fn component(root: &Path, verb: &str, name: &str) -> Result<()> {
    ensure!(
        process::works(root, "cargo", &[verb, "--version"]),
        "`cargo {verb}` does not work: add it with `rustup component add {name}`"
    );
    Ok(())
}
