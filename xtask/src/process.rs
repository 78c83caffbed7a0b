//! The one place of this crate that starts processes.
//!
//! Every process runs in the workspace's folder and is waited for; none outlives its verb.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

/// Runs a program whose output the developer sees. An exit code other than 0 is an error.
pub(crate) fn run(root: &Path, program: &str, args: &[&str]) -> Result<()> {
    let line = spelled(program, args);
    eprintln!("$ {line}");
    let status =
        command(root, program, args).status().with_context(|| format!("cannot run `{line}`"))?;
    ensure!(status.success(), "`{line}` ended with {status}");
    Ok(())
}

/// Runs a program and returns what it printed to stdout; its complaints go to the developer.
pub(crate) fn read(root: &Path, program: &str, args: &[&str]) -> Result<String> {
    let line = spelled(program, args);
    let output = command(root, program, args)
        .stderr(Stdio::inherit())
        .output()
        .with_context(|| format!("cannot run `{line}`"))?;
    ensure!(output.status.success(), "`{line}` ended with {}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("`{line}` did not print UTF-8"))
}

/// Whether a program exists and ends well, without showing its output.
pub(crate) fn works(root: &Path, program: &str, args: &[&str]) -> bool {
    command(root, program, args).output().is_ok_and(|output| output.status.success())
}

fn spelled(program: &str, args: &[&str]) -> String {
    [&[program], args].concat().join(" ")
}

#[expect(clippy::disallowed_methods, reason = "the one named place of xtask that starts processes")]
fn command(root: &Path, program: &str, args: &[&str]) -> Command {
    let mut command = Command::new(program);
    command.args(args).current_dir(root).stdin(Stdio::null());
    command
}
