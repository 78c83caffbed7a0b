//! The processes of the demo: this program, started again as a daemon and as the command that approves.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use api::{Code, Error};
use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, ChildStdout, Command};
use tokio::time::timeout;

/// How long the daemon may take to start.
const START_TIME_MAX: Duration = Duration::from_secs(60);
/// How long it may take to stop before it is killed.
const STOP_TIME_MAX: Duration = Duration::from_secs(10);
/// How long the demo waits for a person.
const ANSWER_TIME_MAX: Duration = Duration::from_secs(60);

/// This program on the directory of the demo, without the user's own settings.
#[derive(Debug)]
pub(super) struct Program {
    path: PathBuf,
    data: PathBuf,
    environment: BTreeMap<String, String>,
}

/// What became of the question to the person at the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Answer {
    Approved,
    NotApproved,
    /// There was none in time.
    None,
}

impl Program {
    pub(super) fn new(
        environment: &BTreeMap<String, String>,
        data: &Path,
    ) -> Result<Program, Error> {
        let path = std::env::current_exe().map_err(|error| Error::new(Code::Failed, error))?;
        let mut environment = environment.clone();
        environment.retain(|name, _| !name.starts_with("MIDWATCH_"));
        let settings = [
            ("MIDWATCH_LOG_LEVEL", "error"),
            // The default port is left to a real daemon.
            ("MIDWATCH_HTTP_LISTEN", ""),
            // Its end waits for no run.
            ("MIDWATCH_RUNS_DRAIN", "0s"),
        ];
        environment.extend(settings.map(|(name, value)| (name.to_owned(), value.to_owned())));
        Ok(Program { path, data: data.to_owned(), environment })
    }

    pub(super) fn environment(&self) -> &BTreeMap<String, String> {
        &self.environment
    }

    /// Starts the daemon and waits until it is ready. Its errors go to stderr.
    pub(super) async fn start_daemon(&self) -> Result<Daemon, Error> {
        let mut command = self.command(&["up"]);
        // A group of its own: ctrl-c is for the demo, which then stops the daemon.
        command.process_group(0).stdin(Stdio::null()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().map_err(not_started)?;
        let stdout = child.stdout.take().ok_or_else(|| not_started("it has no output"))?;
        let mut stdout = BufReader::new(stdout);
        let mut ready = String::new();
        match timeout(START_TIME_MAX, stdout.read_line(&mut ready)).await {
            Ok(Ok(1..)) => Ok(Daemon { child, _stdout: stdout }),
            Ok(Ok(0)) => Err(not_started("it ended at once")),
            Ok(Err(error)) => Err(not_started(error)),
            Err(_) => Err(not_started("it was not ready in time")),
        }
    }

    /// Lets the person at the terminal answer, with the real command.
    pub(super) async fn approve(&self, approval: &str) -> Result<Answer, Error> {
        let mut command = self.command(&["approval", "approve", approval]);
        let mut child = command.kill_on_drop(true).spawn().map_err(not_started)?;
        match timeout(ANSWER_TIME_MAX, child.wait()).await {
            Ok(Ok(status)) if status.success() => Ok(Answer::Approved),
            Ok(Ok(_)) => Ok(Answer::NotApproved),
            Ok(Err(error)) => Err(not_started(error)),
            Err(_) => {
                let _ = child.kill().await;
                Ok(Answer::None)
            }
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the demo starts this program")]
    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.path);
        command.arg("--data").arg(&self.data).args(arguments);
        command.env_clear().envs(&self.environment);
        command
    }
}

fn not_started(what: impl std::fmt::Display) -> Error {
    Error::new(Code::Failed, format!("a process of the demo did not start: {what}"))
        .hint("its own message is above, if it printed one")
}

/// A running daemon. It ends with this value.
#[derive(Debug)]
pub(super) struct Daemon {
    child: Child,
    /// Kept open, so that the daemon can write to it.
    _stdout: BufReader<ChildStdout>,
}

impl Daemon {
    pub(super) fn pid(&self) -> u32 {
        self.child.id().unwrap_or_default()
    }

    /// `kill -9`
    pub(super) async fn kill(&mut self) {
        let _ = self.child.kill().await;
    }

    /// Stops it in order, so that it removes its socket wherever that is; kills it if that takes too long.
    pub(super) async fn stop(&mut self) {
        let pid = self.child.id().and_then(|pid| Pid::from_raw(pid.cast_signed()));
        if let Some(pid) = pid {
            let _ = kill_process(pid, Signal::TERM);
        }
        if timeout(STOP_TIME_MAX, self.child.wait()).await.is_err() {
            self.kill().await;
        }
    }
}
