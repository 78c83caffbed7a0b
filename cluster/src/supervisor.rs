//! The shell that owns a server and its directory, and outlives us for as long as it takes to
//! remove both.
//!
//! It waits on a pipe that this process holds, so no handler, no destructor and no parent-death
//! signal is needed: the kernel closes the pipe however we end. It is a process group of its own,
//! so that Ctrl-C in the terminal reaches us and not the server. Everything in the directory
//! belongs to the user it runs as, because PostgreSQL refuses to be run by root.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::sync::{Mutex, PoisonError};

use anyhow::{Context, Result, anyhow, bail, ensure};

use crate::process;

const SCRIPT: &str = include_str!("supervisor.sh");

/// Who may run the server when we are root, the first that exists.
const USERS: &[&str] = &["postgres", "nobody"];

/// How much of the server's log an error shows.
const LOG_LINES_SHOWN_MAX: usize = 20;

#[derive(Debug)]
pub(crate) struct Supervisor {
    directory: PathBuf,
    shell: Mutex<Shell>,
}

#[derive(Debug)]
struct Shell {
    child: Child,
    /// `None` once the supervisor has been told to end.
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
    server: Option<u32>,
}

impl Supervisor {
    pub(crate) fn start() -> Result<Supervisor> {
        let mut child = command()?
            .process_group(0)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .context("cannot start a shell (and `setpriv`, which root needs)")?;
        let orders = child.stdin.take();
        let answers = child.stdout.take().context("a piped child has a stdout")?;
        let mut shell = Shell { child, orders, answers: BufReader::new(answers), server: None };
        let directory = PathBuf::from(shell.answer().context("cannot make a directory in /tmp")?);
        Ok(Supervisor { directory, shell: Mutex::new(shell) })
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    pub(crate) fn pid(&self) -> u32 {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner).child.id()
    }

    /// The process id of the server, if it was started and not seen to end.
    pub(crate) fn server(&self) -> Option<u32> {
        self.shell.lock().unwrap_or_else(PoisonError::into_inner).server
    }

    /// Carries out one line of shell. Words that are not ours go through [`quoted`].
    pub(crate) fn run(&self, line: &str) -> Result<()> {
        let mut shell = self.shell.lock().unwrap_or_else(PoisonError::into_inner);
        let code = shell.carry_out(line)?;
        drop(shell);
        ensure!(code == 0, "`{line}` ended with {code}; the log ends with:\n{}", self.log());
        Ok(())
    }

    /// The end of the log, for an error that it explains.
    pub(crate) fn log(&self) -> String {
        let text = std::fs::read_to_string(self.directory.join("log")).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        let shown = lines.len().saturating_sub(LOG_LINES_SHOWN_MAX);
        lines.get(shown..).unwrap_or_default().join("\n")
    }
}

impl Shell {
    fn carry_out(&mut self, line: &str) -> Result<u32> {
        let orders = self.orders.as_mut().context("the supervisor has ended")?;
        writeln!(orders, "{line}").context("the supervisor has ended")?;
        let answer = self.answer()?;
        let (code, server) = answer.split_once(' ').unwrap_or((&answer, ""));
        self.server = server.parse().ok();
        code.parse().with_context(|| format!("the supervisor answered `{answer}`"))
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        self.answers.read_line(&mut line).context("the supervisor does not answer")?;
        let line = line.strip_suffix('\n').ok_or_else(|| anyhow!("the supervisor has ended"))?;
        Ok(line.to_owned())
    }
}

impl Drop for Shell {
    /// Returns when the server and its directory are gone.
    fn drop(&mut self) {
        self.orders.take();
        // A child that cannot be waited for is not ours any more; there is nothing left to do.
        let _ = self.child.wait();
    }
}

/// A word that the shell leaves as it is.
pub(crate) fn quoted(word: impl AsRef<Path>) -> String {
    format!("'{}'", word.as_ref().to_string_lossy().replace('\'', r"'\''"))
}

fn command() -> Result<std::process::Command> {
    if process::output("id", &["-u"])?.trim() != "0" {
        let mut command = process::command("sh");
        command.args(["-c", SCRIPT]);
        return Ok(command);
    }
    for user in USERS {
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
    bail!("PostgreSQL does not run as root, and there is no user `postgres` or `nobody`")
}
