//! The only file of this crate that starts processes.
//!
//! A process runs in the root of the workspace, a test in the folder of its package. The caller waits for it, so none outlives its verb.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// What `cargo xtask` sets for this package. The build script of `ring` depends on them: with them, Cargo would compile it,
/// and everything above it, once for `cargo xtask` and once for a plain `cargo`.
const PACKAGE_VARIABLES: &[&str] = &[
    "CARGO_MANIFEST_DIR",
    "CARGO_MANIFEST_LINKS",
    "CARGO_MANIFEST_PATH",
    "CARGO_PKG_NAME",
    "CARGO_PKG_VERSION",
    "CARGO_PKG_VERSION_MAJOR",
    "CARGO_PKG_VERSION_MINOR",
    "CARGO_PKG_VERSION_PATCH",
    "CARGO_PKG_VERSION_PRE",
    "OUT_DIR",
];

/// Runs a program and shows its output. An exit code other than 0 is an error.
pub(crate) fn run(root: &Path, program: &str, args: &[&str]) -> Result<()> {
    let line = command_line(program, args);
    eprintln!("$ {line}");
    let status =
        command(root, program, args).status().with_context(|| format!("cannot run `{line}`"))?;
    ensure!(status.success(), "`{line}` ended with {status}");
    Ok(())
}

/// Runs a program and returns its stdout; stderr is shown. An exit code other than 0 is an error.
pub(crate) fn output(root: &Path, program: &str, args: &[&str]) -> Result<String> {
    let line = command_line(program, args);
    let output = command(root, program, args)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{line}`"))?;
    ensure!(output.status.success(), "`{line}` ended with {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not print UTF-8"))
}

/// Exit and output of a program.
#[derive(Debug)]
pub(crate) struct Captured {
    pub(crate) succeeded: bool,
    /// Its stdout, then its stderr.
    pub(crate) output: String,
}

/// Runs a program of the package in `folder` and collects its output, whether it succeeds or not.
pub(crate) fn capture(folder: &Path, program: &str, args: &[&str]) -> Result<Captured> {
    let output = command(folder, program, args)
        .output()
        .with_context(|| format!("cannot run `{}`", command_line(program, args)))?;
    let mut text = String::from_utf8_lossy(&output.stdout).into_owned();
    text += &String::from_utf8_lossy(&output.stderr);
    Ok(Captured { succeeded: output.status.success(), output: text })
}

/// Whether a program exists and exits with 0. Its output is not shown.
pub(crate) fn succeeds(root: &Path, program: &str, args: &[&str]) -> bool {
    command(root, program, args).output().is_ok_and(|output| output.status.success())
}

fn command_line(program: &str, args: &[&str]) -> String {
    [&[program], args].concat().join(" ")
}

#[expect(clippy::disallowed_methods, reason = "the one file of xtask that starts processes")]
fn command(root: &Path, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    for name in PACKAGE_VARIABLES {
        command.env_remove(name);
    }
    command.args(args).current_dir(root).stdin(Stdio::null());
    command
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Cargo sets the variables for this test as it does for `cargo xtask`.
    #[test]
    fn processes_do_not_get_the_variables_of_this_package() {
        let printed = output(Path::new("/"), "env", &[]).unwrap();
        let names = printed.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name);
        let ours: Vec<&str> = names.filter(|name| PACKAGE_VARIABLES.contains(name)).collect();
        assert_eq!(ours, Vec::<&str>::new());
    }
}
