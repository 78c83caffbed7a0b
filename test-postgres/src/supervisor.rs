//! A shell process that owns a server and its directory, and outlives this process just long enough
//! to remove both.
//!
//! The shell reads from a pipe that this process holds. The kernel closes the pipe however this
//! process ends, so cleaning up needs no handler, destructor or parent-death signal. The shell has
//! its own process group, so Ctrl-C in the terminal does not reach the server. When started by root,
//! it switches to another user, because PostgreSQL refuses to run as root.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::process;

const SCRIPT: &str = include_str!("supervisor.sh");

/// Users that may run the server when this process is root. The first that exists is used.
const SERVER_USERS: &[&str] = &["postgres", "nobody"];

/// The number of log lines in an error.
const LOG_LINES_SHOWN_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct Supervisor {
    directory: PathBuf,
    shell: Mutex<Shell>,
}

#[derive(Debug)]
struct Shell {
    child: Child,
    /// The shell's stdin; `None` after it was closed, which ends the shell.
    commands: Option<ChildStdin>,
    replies: BufReader<ChildStdout>,
    server_pid: Option<u32>,
}

impl Supervisor {
    pub(crate) fn start() -> Result<Supervisor> {
        let mut child = shell_command()?
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start `sh` (as root: `setpriv sh`)")?;
        let commands = child.stdin.take();
        let replies = child.stdout.take().context("the child has no stdout")?;
        let mut shell =
            Shell { child, commands, replies: BufReader::new(replies), server_pid: None };
        let directory =
            PathBuf::from(shell.read_reply().context("cannot create a directory in /tmp")?);
        Ok(Supervisor { directory, shell: Mutex::new(shell) })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn pid(&self) -> u32 {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner).child.id()
    }

    /// The process id of the server, unless it was stopped through this supervisor.
    pub(crate) fn server_pid(&self) -> Option<u32> {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner).server_pid
    }

    /// Executes one line of shell. Paths and values must go through [`shell_quoted`].
    pub(crate) fn run(&self, line: &str) -> Result<()> {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        let code = shell.execute(line)?;
        drop(shell);
        ensure!(code == 0, "`{line}` ended with {code}; its log:\n{}", self.log_tail());
        Ok(())
    }

    /// The last lines of the log.
    pub(crate) fn log_tail(&self) -> String {
        let text = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.len().saturating_sub(LOG_LINES_SHOWN_MAX);
        lines.get(shown..).unwrap_or_default().join("\n")
    }
}

impl Shell {
    fn execute(&mut self, line: &str) -> Result<u32> {
        let commands = self.commands.as_mut().context("the supervisor has ended")?;
        writeln!(commands, "{line}").context("the supervisor has ended")?;
        let reply = self.read_reply()?;
        let (code, server) = reply.split_once(' ').unwrap_or((&reply, ""));
        self.server_pid = server.parse().ok();
        code.parse().with_context(|| format!("unexpected reply from the supervisor: `{reply}`"))
    }

    fn read_reply(&mut self) -> Result<String> {
        let mut line = String::new();
        self.replies.read_line(&mut line).context("cannot read the supervisor's reply")?;
        let line = line.strip_suffix('\n').ok_or_else(|| anyhow!("the supervisor has ended"))?;
        Ok(line.to_owned())
    }
}

impl Drop for Shell {
    /// Returns after the server has stopped and its directory is removed.
    fn drop(&mut self) {
        self.commands.take();
        // If waiting fails, nothing is left to clean up.
        let _ = self.child.wait();
    }
}

/// Quotes a word so that the shell does not expand it.
pub(crate) fn shell_quoted(word: impl AsRef<Path>) -> String {
    format!("'{}'", word.as_ref().to_string_lossy().replace('\'', r"'\''"))
}

fn shell_command() -> Result<std::process::Command> {
    if process::output("id", &["-u"])?.trim() != "0" {
        let mut command = process::command("sh");
        command.args(["-c", SCRIPT]);
        return Ok(command);
    }
    for user in SERVER_USERS {
        let Ok(group) = process::output("id", &["-g", user]) else { continue };
        let mut command = process::command("setpriv");
        command.arg(format!("--reuid={user}")).arg(format!("--regid={}", group.trim())).args([
            "--clear-groups",
            "sh",
            "-c",
            SCRIPT,
        ]);
        return Ok(command);
    }
    bail!("PostgreSQL refuses to run as root, and neither user `postgres` nor `nobody` exists")
}
