//! The real program as a process: started, waited for, killed.

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

/// Longer than the program may take for anything on a busy machine.
pub(super) const PATIENCE: Duration = Duration::from_secs(60);
/// What the program says on stderr, over all its lives.
const STDERR: &str = "stderr.log";

/// The program and the directory that it works in.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) binary: PathBuf,
    pub(super) root: PathBuf,
    /// Where the data is, if it is not in the directory.
    pub(super) database: Option<Arc<Database>>,
}

#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
}

/// The line that says that the daemon serves.
#[derive(Deserialize)]
struct Announced {
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
    pub(super) fn at(&self, name: &str) -> Result<Program> {
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

    /// As a process that is told other things than the program is, and to which something is handed in
    /// the place of its input.
    pub(super) fn host(&self, arguments: &[&str], handed: impl Into<Stdio>) -> Result<Daemon> {
        let mut command = self.command(arguments)?;
        command.stdin(handed);
        self.start(command)
    }

    fn start(&self, mut command: Command) -> Result<Daemon> {
        let mut child = command.spawn().with_context(|| cannot_start(&self.binary))?;
        let stdout = child.stdout.take().context("the daemon has no stdout")?;
        Ok(Daemon { child, stdout: BufReader::new(stdout).lines() })
    }

    /// Makes the derived tables anew, and says how many rows were not what the log says.
    pub(super) async fn rebuild(&self) -> Result<u64> {
        let said = self.ledger("rebuild").await?;
        let answer: TablesRebuilt =
            serde_json::from_str(&said).context("`rebuild` said something else")?;
        Ok(answer.rebuilt.differences)
    }

    /// Has the program itself verify its log.
    pub(super) async fn verify(&self) -> Result<()> {
        self.ledger("verify").await.map(drop)
    }

    /// What a command about the ledger says, which must succeed.
    async fn ledger(&self, verb: &str) -> Result<String> {
        let mut command = self.command(&["--json", "ledger", verb])?;
        let output = timeout(PATIENCE, command.output()).await;
        let output = output.with_context(|| format!("`ledger {verb}` hangs"))?;
        let output = output.with_context(|| cannot_start(&self.binary))?;
        let said = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "`ledger {verb}` failed: {said}");
        Ok(said.into_owned())
    }

    /// With its own environment and nothing of ours.
    #[expect(clippy::disallowed_methods, reason = "the campaign starts the real program")]
    fn command(&self, arguments: &[&str]) -> Result<Command> {
        let mut command = Command::new(&self.binary);
        command.env_clear().env("MIDWATCH_DATA", self.data()).env("HOME", &self.root);
        if let Some(database) = &self.database {
            command.env("MIDWATCH_STORE_URL", &database.url);
        }
        // People who are asked every second are not to be spared here.
        for key in ["PENDING_PER_AGENT", "ASKS_PER_AGENT"] {
            command.env(format!("MIDWATCH_APPROVAL_{key}"), "0");
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
    /// Waits until it serves. Returns where.
    pub(super) async fn ready(&mut self) -> Result<PathBuf> {
        let line = self.says().await?;
        let announced: Announced = serde_json::from_str(&line).with_context(|| line.clone())?;
        Ok(announced.ready.socket)
    }

    /// Waits for its next line.
    pub(super) async fn says(&mut self) -> Result<String> {
        let line = timeout(PATIENCE, self.stdout.next_line()).await;
        let line = line.context("the daemon does not come up")??;
        let Some(line) = line else { bail!("the daemon did not come up, see {STDERR}") };
        Ok(line)
    }

    /// kill -9, at a moment. Returns when nothing of the process is left.
    pub(super) async fn kill_after(mut self, delay: Duration) -> Result<()> {
        // Not the timer of the runtime, which counts whole milliseconds.
        spawn_blocking(move || std::thread::sleep(delay)).await?;
        timeout(PATIENCE, self.child.kill()).await.context("the daemon cannot be killed")??;
        Ok(())
    }

    /// Asks it to stop, and waits until it has, without a complaint.
    pub(super) async fn stop(self) -> Result<()> {
        let id = self.child.id().and_then(|id| Pid::from_raw(id.cast_signed()));
        kill_process(id.context("the daemon is gone")?, Signal::TERM)?;
        self.ends().await
    }

    /// Waits until it has ended, without a complaint.
    pub(super) async fn ends(mut self) -> Result<()> {
        let status = timeout(PATIENCE, self.child.wait()).await.context("the daemon goes on")??;
        ensure!(status.success(), "the daemon was to stop, and ended with {status}, see {STDERR}");
        Ok(())
    }
}

fn cannot_start(binary: &Path) -> String {
    format!("cannot start `{}`", binary.display())
}
