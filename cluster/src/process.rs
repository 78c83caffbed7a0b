//! The one place of this crate that starts processes, and what Linux says about running ones.
//!
//! A developer's own settings for PostgreSQL's programs do not reach them.

use std::ffi::OsStr;
use std::fs;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

const PAUSE: Duration = Duration::from_millis(20);

/// One minute of pauses. A wait that fails is longer, because looking takes time too.
const LOOKS_MAX: u32 = 3_000;

/// Variables that would send a client elsewhere, or a server to other files.
const FOREIGN: &[&str] = &[
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

#[expect(clippy::disallowed_methods, reason = "the one named place that starts processes")]
pub(crate) fn command(program: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(program);
    for name in FOREIGN {
        command.env_remove(name);
    }
    // The user who runs the server may not be allowed to look at the current directory.
    command.env("LC_ALL", "C").current_dir("/");
    command
}

/// Runs a program and returns what it printed; what it complained about is in the error.
pub(crate) fn output(program: impl AsRef<OsStr>, args: &[&str]) -> Result<String> {
    let program = program.as_ref();
    let output =
        command(program).args(args).output().with_context(|| format!("cannot run {program:?}"))?;
    let complaint = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "{program:?} ended with {}: {complaint}", output.status);
    String::from_utf8(output.stdout).with_context(|| format!("{program:?} did not print UTF-8"))
}

/// Whether `look` says yes within a minute or so.
pub(crate) fn comes_true(mut look: impl FnMut() -> bool) -> bool {
    for _ in 0..LOOKS_MAX {
        if look() {
            return true;
        }
        std::thread::sleep(PAUSE);
    }
    false
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Alive,
    Stopped,
    /// It has ended, whether or not somebody has waited for it.
    Gone,
}

pub(crate) fn state(pid: u32) -> State {
    match stat(pid) {
        Some(('Z' | 'X', _)) | None => State::Gone,
        Some(('T', _)) => State::Stopped,
        Some(_) => State::Alive,
    }
}

pub(crate) fn children(parent: u32) -> Vec<u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    pids.filter(|&pid| stat(pid).is_some_and(|(_, its_parent)| its_parent == parent)).collect()
}

/// The state and the parent of a process.
fn stat(pid: u32) -> Option<(char, u32)> {
    let line = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name comes before, in brackets, and may hold any character.
    let (_, rest) = line.rsplit_once(')')?;
    let mut words = rest.split_whitespace();
    let state = words.next()?.chars().next()?;
    Some((state, words.next()?.parse().ok()?))
}
