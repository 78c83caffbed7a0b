//! The only file of this crate that starts processes.
//!
//! Every process runs in the root of the workspace. The caller waits for it, so none outlives its verb.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

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
    command.args(args).current_dir(root).stdin(Stdio::null());
    command
}
