//! A throw-away installation: its data directory, its commands, its daemon.
#![expect(clippy::disallowed_methods, reason = "the tests start the real program")]

use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use tempfile::TempDir;

pub(crate) const PROGRAM: &str = env!("CARGO_BIN_EXE_midwatch");

/// Long enough for a busy machine, short enough to end.
const PATIENCE: Duration = Duration::from_secs(60);

#[derive(Debug)]
pub(crate) struct World {
    root: TempDir,
    data: PathBuf,
    variables: Vec<(String, String)>,
}

/// What a command left behind.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

/// A daemon that has said it is ready. Killed when dropped.
#[derive(Debug)]
pub(crate) struct Daemon {
    child: Child,
    pub(crate) ready: String,
}

impl World {
    pub(crate) fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        World { root, data, variables: Vec::new() }
    }

    pub(crate) fn with_data(mut self, data: impl AsRef<Path>) -> World {
        self.data = self.root.path().join(data);
        self
    }

    pub(crate) fn set(&mut self, name: &str, value: impl Into<String>) {
        self.variables.push((name.to_owned(), value.into()));
    }

    pub(crate) fn root(&self) -> &Path {
        self.root.path()
    }

    pub(crate) fn data(&self) -> &Path {
        &self.data
    }

    /// The program with this world's environment and nothing of ours.
    pub(crate) fn command(&self) -> Command {
        self.prepare(Command::new(PROGRAM))
    }

    /// Another program that will start ours.
    pub(crate) fn wrapped(&self, wrapper: &str) -> Command {
        self.prepare(Command::new(wrapper))
    }

    fn prepare(&self, mut command: Command) -> Command {
        command.env_clear().env("MIDWATCH_DATA", &self.data).env("HOME", self.root.path());
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.variables.iter().cloned());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        let output = self.command().args(arguments).output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Outcome {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }

    /// A command that must succeed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        outcome.stdout
    }

    /// The document that a command prints.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        let outcome = self.run(&[&["--json"], arguments].concat());
        serde_json::from_str(&outcome.stdout).unwrap_or_else(|e| panic!("{e}: {outcome:?}"))
    }

    pub(crate) fn up(&self) -> Daemon {
        Daemon::start(self.command().arg("up"))
    }

    /// Output without what differs from run to run.
    pub(crate) fn plain(&self, text: &str) -> String {
        let text = text.replace(&self.data.display().to_string(), "[DATA]");
        text.replace(&self.root.path().display().to_string(), "[ROOT]")
    }
}

impl Daemon {
    /// Starts it and waits until it serves.
    pub(crate) fn start(command: &mut Command) -> Daemon {
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap();
        let mut stdout = BufReader::new(child.stdout.take().unwrap());
        let mut ready = String::new();
        stdout.read_line(&mut ready).unwrap();
        let daemon = Daemon { child, ready };
        assert!(daemon.ready.starts_with("ready"), "{}", daemon.complaint());
        daemon
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }

    /// As a power failure would, but for what the kernel still holds.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Asks it to stop and returns its exit code and what it said.
    pub(crate) fn stop(mut self) -> (Option<i32>, String) {
        let pid = i32::try_from(self.child.id()).unwrap();
        let pid = rustix::process::Pid::from_raw(pid).unwrap();
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).unwrap();
        self.wait()
    }

    /// Waits for it to end by itself.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let status = wait_for(|| self.child.try_wait().unwrap());
        let mut said = String::new();
        if let Some(mut stderr) = self.child.stderr.take() {
            stderr.read_to_string(&mut said).unwrap();
        }
        (status.code(), said)
    }

    /// Why it did not come up.
    fn complaint(mut self) -> String {
        let (code, said) = self.wait();
        format!("exit code {code:?}, said: {said}")
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Looks again until there is something.
pub(crate) fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    let started = std::time::Instant::now();
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(started.elapsed() < PATIENCE, "nothing came of it in {PATIENCE:?}");
        std::thread::yield_now();
    }
}
