//! A throw-away installation: its data directory, its commands, its daemon.
#![expect(clippy::disallowed_methods, reason = "the tests start the real program")]

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::LazyLock;
use std::sync::mpsc::{self, Receiver};
use std::time::Duration;

use cluster::Cluster;
use rusqlite::Connection;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// A server for all tests; each has a database of its own.
pub(crate) static CLUSTER: LazyLock<Cluster> = LazyLock::new(|| Cluster::start().unwrap());

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
    /// All that it said on stderr, once it has closed it.
    said: Receiver<String>,
}

impl World {
    pub(crate) fn new() -> World {
        let root = tempfile::tempdir().unwrap();
        let data = root.path().join("data");
        World { root, data, variables: Vec::new() }
    }

    /// With its data directory elsewhere below the root.
    pub(crate) fn with_data(mut self, data: impl AsRef<Path>) -> World {
        self.data = self.root.path().join(data);
        self
    }

    /// Another world with a copy of this one's data directory. No daemon may run in it.
    pub(crate) fn copy(&self) -> World {
        let world = World { variables: self.variables.clone(), ..World::new() };
        copy_dir(&self.data, &world.data);
        world
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
        // Many daemons at once; those that are asked over HTTP say where.
        command.env("MIDWATCH_HTTP_LISTEN", "");
        command.env("PATH", std::env::var_os("PATH").unwrap_or_default());
        command.envs(self.variables.iter().cloned());
        command.stdin(Stdio::null());
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::from(self.command().args(arguments).output().unwrap())
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

    /// A command that must be refused with this code and this exit code. Returns what it says.
    pub(crate) fn refused(&self, arguments: &[&str], code: &str, exit: i32) -> String {
        let outcome = self.run(&[&["--json"], arguments].concat());
        let (found, message) = outcome.error();
        assert_eq!(
            (found.as_str(), outcome.code),
            (code, Some(exit)),
            "{arguments:?}: {outcome:?}"
        );
        message
    }

    pub(crate) fn up(&self) -> Daemon {
        Daemon::start(self.command().arg("up"))
    }

    /// The names of all agents, as the program lists them.
    pub(crate) fn agents(&self) -> Vec<String> {
        let document = self.json(&["agent", "list", "--limit", "1000"]);
        let agents = document["agents"].as_array().unwrap_or_else(|| panic!("{document}"));
        agents.iter().map(|agent| agent["name"].as_str().unwrap().to_owned()).collect()
    }

    /// The kinds of all events, in their order.
    pub(crate) fn kinds(&self) -> Vec<String> {
        let document = self.json(&["ledger", "tail", "--limit", "1000"]);
        let events = document["events"].as_array().unwrap_or_else(|| panic!("{document}"));
        events.iter().map(|event| event["kind"].as_str().unwrap().to_owned()).collect()
    }

    /// The log must be sound.
    pub(crate) fn verified(&self) -> Value {
        let outcome = self.run(&["--json", "ledger", "verify"]);
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
        let report: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(report["verdict"], "ok", "{report}");
        report
    }

    /// What the daemon's background check has found, once it has.
    pub(crate) fn checked(&self) -> String {
        wait_for(|| {
            let status = self.json(&["status"]);
            let found = status["log"]["check"].as_str().unwrap_or_else(|| panic!("{status}"));
            (!["not run", "running"].contains(&found)).then(|| found.to_owned())
        })
    }

    /// A world whose data is in a database of its own.
    pub(crate) fn on_postgres() -> World {
        let mut world = World::new();
        world.set("MIDWATCH_STORE_URL", CLUSTER.database().unwrap());
        world
    }

    /// The database, behind the program's back.
    pub(crate) fn database(&self) -> Connection {
        Connection::open(self.data.join("midwatch.db")).unwrap()
    }
}

impl From<Output> for Outcome {
    fn from(output: Output) -> Outcome {
        let text = |bytes| String::from_utf8(bytes).unwrap();
        Outcome {
            code: output.status.code(),
            stdout: text(output.stdout),
            stderr: text(output.stderr),
        }
    }
}

impl Outcome {
    /// The code and the words of the error document that it must have printed.
    pub(crate) fn error(&self) -> (String, String) {
        let document: Value =
            serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:?}"));
        let error = &document["error"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        assert!(error.is_object(), "{self:?}");
        (text(&error["code"]), format!("{}\n{}", text(&error["message"]), text(&error["hint"])))
    }
}

impl Daemon {
    /// Starts it and waits until it serves.
    pub(crate) fn start(command: &mut Command) -> Daemon {
        let daemon = Daemon::spawn(command);
        let is_ready = ["ready", "{\"ready\""].iter().any(|it| daemon.ready.starts_with(it));
        assert!(is_ready, "{}", daemon.complaint());
        daemon
    }

    /// Starts it and waits for the first thing it says, or for its end.
    fn spawn(command: &mut Command) -> Daemon {
        let spawned = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn();
        let mut child = spawned.unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let mut stderr = child.stderr.take().unwrap();
        let (sender, said) = mpsc::channel();
        // Read all along, so that it never waits for us.
        std::thread::spawn(move || {
            let mut bytes = Vec::new();
            let _ = stderr.read_to_end(&mut bytes);
            sender.send(String::from_utf8_lossy(&bytes).into_owned())
        });
        let mut ready = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut ready).unwrap();
        Daemon { child, ready, said }
    }

    /// One that must not come up. Returns its exit code and what it said.
    pub(crate) fn fails(command: &mut Command) -> (Option<i32>, String) {
        let mut daemon = Daemon::spawn(command);
        assert_eq!(daemon.ready, "", "it came up");
        daemon.wait()
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
    pub(crate) fn stop(self) -> (Option<i32>, String) {
        self.signal(Signal::TERM)
    }

    pub(crate) fn signal(mut self, signal: Signal) -> (Option<i32>, String) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
        self.wait()
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().unwrap().is_some()
    }

    /// Waits for it to end by itself.
    pub(crate) fn wait(&mut self) -> (Option<i32>, String) {
        let said = self.said.recv_timeout(PATIENCE).expect("it ends in time");
        (self.child.wait().unwrap().code(), said)
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

pub(crate) fn copy_dir(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true => copy_dir(&entry.path(), &target),
            false => drop(fs::copy(entry.path(), target).unwrap()),
        }
    }
}
