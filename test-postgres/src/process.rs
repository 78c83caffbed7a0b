//! Starts processes, without the developer's own PostgreSQL settings, and reads their state from
//! `/proc`. No other module of this crate starts a process.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// One minute of intervals. A failing wait takes longer, because each poll takes time too.
const POLLS_MAX: u32 = 6_000;

/// Environment variables that would redirect a client to another server, or a server to other files.
const POSTGRES_VARIABLES: &[&str] = &[
    "PGDATA",
    "PGDATABASE",
    "PGHOST",
    "PGHOSTADDR",
    "PGOPTIONS",
    "PGPASSWORD",
    "PGPORT",
    "PGSERVICE",
    "PGSSLMODE",
    "PGSSLROOTCERT",
    "PGUSER",
];

#[expect(clippy::disallowed_methods, reason = "the only function that starts processes")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in POSTGRES_VARIABLES {
        command.env_remove(name);
    }
    // The server's user may not have access to the current directory.
    command.env("LC_ALL", "C").current_dir("/");
    command
}

/// Runs a program and returns its stdout. The error contains its stderr.
pub(crate) fn output(program: impl AsRef<OsStr>, args: &[&str]) -> Result<String> {
    let program = program.as_ref();
    let output =
        command(program).args(args).output().with_context(|| format!("cannot run {program:?}"))?;
    let stderr = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program:?} ended with {}: {stderr}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{program:?} did not print UTF-8"))
}

/// Polls until `is_true` returns true; returns false after about a minute.
pub(crate) fn wait_until(mut is_true: impl FnMut() -> bool) -> bool {
    for _ in 0..POLLS_MAX {
        if is_true() {
            return true;
        }
        std::thread::sleep(POLL_INTERVAL);
    }
    false
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    Stopped,
    /// The process has ended, even if its parent has not waited for it.
    Gone,
}

pub(crate) fn state(pid: u32) -> State {
    match read_stat(pid) {
        Some(('Z' | 'X', _)) | None => State::Gone,
        Some(('T', _)) => State::Stopped,
        Some(_) => State::Alive,
    }
}

pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| read_stat(pid).is_some_and(|(_, ppid)| ppid == parent)).collect()
}

/// The state and the parent of a process, from `/proc/PID/stat`.
fn read_stat(pid: u32) -> Option<(char, u32)> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name precedes, in brackets, and may contain any character.
    let (_, rest) = line.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}
