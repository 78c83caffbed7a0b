//! Starts the real program, waits for it and kills it.

use std::fs::{self, File, OpenOptions};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use rustix::process::{Pid, Signal, kill_process};
use serde::Deserialize;
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::database::Database;

/// Longer than any step of the program takes on a busy machine.
pub(super) const TIMEOUT: Duration = Duration::from_secs(60);
/// The stderr of all processes of the program.
const STDERR: &str = "stderr.log";

/// The program and its working directory.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) binary: PathBuf,
    pub(super) root: PathBuf,
    /// The database that holds the data, if the directory does not.
    pub(super) database: Option<Arc<Database>>,
}

#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
}

/// The line with which the daemon reports that it is ready.
#[derive(Deserialize)]
struct ReadyLine {
    ready: Ready,
}

#[derive(Deserialize)]
struct Ready {
    socket: PathBuf,
}

#[derive(Deserialize)]
struct TablesRebuilt {
    rebuilt: Rebuilt,
}

#[derive(Deserialize)]
struct Rebuilt {
    differences: u64,
}

impl Program {
    pub(super) fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// The same program in a new directory within this one.
    pub(super) fn in_subdirectory(&self, name: &str) -> Result<Program> {
        let root = self.root.join(name);
        fs::create_dir(&root)?;
        Ok(Program { binary: self.binary.clone(), root, database: self.database.clone() })
    }

    pub(super) fn discard(self) -> Result<()> {
        Ok(fs::remove_dir_all(self.root)?)
    }

    pub(super) fn up(&self) -> Result<Daemon> {
        self.start(self.command(&["--json", "up"])?)
    }

    /// Starts the binary with these arguments and this stdin.
    pub(super) fn start_with_stdin(
        &self,
        arguments: &[&str],
        stdin: impl Into<Stdio>,
    ) -> Result<Daemon> {
        let mut command = self.command(arguments)?;
        command.stdin(stdin);
        self.start(command)
    }

    fn start(&self, mut command: Command) -> Result<Daemon> {
        let mut child = command.spawn().with_context(|| cannot_start(&self.binary))?;
        let stdout = child.stdout.take().context("the daemon has no stdout")?;
        Ok(Daemon { child, stdout: BufReader::new(stdout).lines() })
    }

    /// Rebuilds the derived tables, and returns how many rows differed from the ledger.
    pub(super) async fn rebuild(&self) -> Result<u64> {
        let output = self.ledger("rebuild").await?;
        let report: TablesRebuilt =
            serde_json::from_str(&output).context("unexpected output of `ledger rebuild`")?;
        Ok(report.rebuilt.differences)
    }

    /// Lets the program verify its ledger.
    pub(super) async fn verify(&self) -> Result<()> {
        self.ledger("verify").await.map(drop)
    }

    /// The output of a `ledger` command, which must succeed.
    async fn ledger(&self, verb: &str) -> Result<String> {
        let mut command = self.command(&["--json", "ledger", verb])?;
        let output = timeout(TIMEOUT, command.output()).await;
        let output = output.with_context(|| format!("`ledger {verb}` hangs"))?;
        let output = output.with_context(|| cannot_start(&self.binary))?;
        let stdout = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "`ledger {verb}` failed: {stdout}");
        Ok(stdout.into_owned())
    }

    /// A command with a clean environment.
    #[expect(clippy::disallowed_methods, reason = "the campaign starts the real program")]
    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(&self.binary);
        command.env_clear().env("MIDWATCH_DATA", self.data()).env("HOME", &self.root);
        if let Some(database) = &self.database {
            command.env("MIDWATCH_STORE_URL", &database.url);
        }
        // The campaign makes more runs and approvals in a day than people do, so their limits are off.
        for limit in [
            "APPROVAL_PENDING_PER_AGENT",
            "APPROVAL_ASKS_PER_AGENT",
            "BUDGET_RUNS",
            "BUDGET_RUNS_PER_AGENT",
        ] {
            command.env(format!("MIDWATCH_{limit}"), "0");
        }
        command.env("MIDWATCH_APPROVAL_DENIED_FOR", "1s");
        command.args(arguments).kill_on_drop(true);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(self.stderr()?);
        Ok(command)
    }

    fn stderr(&self) -> Result<File> {
        let path = self.root.join(STDERR);
        Ok(OpenOptions::new().create(true).append(true).open(path)?)
    }
}

impl Daemon {
    /// Waits until it is ready, and returns its socket.
    pub(super) async fn ready(&mut self) -> Result<PathBuf> {
        let line = self.next_line().await?;
        let line: ReadyLine = serde_json::from_str(&line).with_context(|| line.clone())?;
        Ok(line.ready.socket)
    }

    /// Waits for its next line of output.
    pub(super) async fn next_line(&mut self) -> Result<String> {
        let line = timeout(TIMEOUT, self.stdout.next_line()).await;
        let line = line.context("the daemon does not get ready")??;
        let Some(line) = line else { bail!("the daemon ended before it was ready, see {STDERR}") };
        Ok(line)
    }

    /// Kills it with -9 after a delay, and waits until the process is gone.
    pub(super) async fn kill_after(mut self, delay: Duration) -> Result<()> {
        // The timer of the async runtime only counts whole milliseconds.
        spawn_blocking(move || std::thread::sleep(delay)).await?;
        timeout(TIMEOUT, self.child.kill()).await.context("the daemon cannot be killed")??;
        Ok(())
    }

    /// Stops it with SIGTERM, and waits until it exits with success.
    pub(super) async fn stop(self) -> Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        kill_process(id.context("the daemon is gone")?, Signal::TERM)?;
        self.wait().await
    }

    /// Waits until it exits with success.
    pub(super) async fn wait(mut self) -> Result<()> {
        let status =
            timeout(TIMEOUT, self.child.wait()).await.context("the daemon does not stop")??;
        ensure!(status.success(), "the daemon ended with {status}, see {STDERR}");
        Ok(())
    }
}

fn cannot_start(binary: &Path) -> String {
    format!("cannot start `{}`", binary.display())
}
