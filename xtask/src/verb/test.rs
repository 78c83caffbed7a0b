//! `cargo xtask test`: the checks that CI runs, and a developer before a commit.

use std::path::Path;

use anyhow::{Result, ensure};

use crate::process;
use crate::step::{Step, run_steps};
use crate::verb::tidy;
use crate::{test_programs, tools};

/// The cheap steps come first. Everything is built before the first test because some tests start the binary, and as one
/// workspace, so that no dependency is compiled twice.
const STEPS: &[Step] = &[
    Step { name: "tools", run: tools::ensure },
    Step { name: "fmt", run: fmt },
    Step { name: "clippy", run: clippy },
    Step { name: "tidy", run: tidy::run },
    Step { name: "build", run: test_programs::build },
    Step { name: "test", run: test_programs::run },
];

pub(super) fn run(root: &Path) -> Result<()> {
    run_steps(root, STEPS)
}

fn fmt(root: &Path) -> Result<()> {
    require_component(root, "fmt", "rustfmt")?;
    process::run(root, "cargo", &["fmt", "--all", "--check"])
}

fn clippy(root: &Path) -> Result<()> {
    require_component(root, "clippy", "clippy")?;
    let args = ["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"];
    process::run(root, "cargo", &args)
}

/// Fails if a component is missing that a minimal toolchain leaves out.
fn require_component(root: &Path, verb: &str, name: &str) -> Result<()> {
    ensure!(
        process::succeeds(root, "cargo", &[verb, "--version"]),
        "`cargo {verb}` does not work: add it with `rustup component add {name}`"
    );
    Ok(())
}
