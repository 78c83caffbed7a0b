//! The servers under test: the fixture, and the real program with a temporary data directory.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

/// How soon a run that needs an approval asks for it.
const APPROVAL_WITHIN: Duration = Duration::from_secs(20);

/// A child process, killed when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// Starts a server, and returns it with the first line that it prints.
    fn start(command: &mut Command) -> Result<(Server, String)> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("the child has no stdout")?;
        let server = Server(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(!line.is_empty(), "{command:?} printed nothing");
        Ok((server, line.trim().to_owned()))
    }
}

pub(super) struct Fixture {
    pub(super) url: String,
    _server: Server,
}

impl Fixture {
    pub(super) fn start() -> Result<Fixture> {
        let (server, url) = Server::start(Command::new(std::env::current_exe()?).arg("fixture"))?;
        Ok(Fixture { url, _server: server })
    }
}

/// A daemon, a maintainer's token, the agent `echo` that answers at once, and the agent `outside` whose runs need
/// approval.
pub(super) struct World {
    root: TempDir,
    pub(super) program: PathBuf,
    pub(super) url: String,
    pub(super) token: String,
    _daemon: Server,
}

impl World {
    pub(super) fn start() -> Result<World> {
        let root = tempfile::tempdir()?;
        let program = std::env::current_exe()?.with_file_name("midwatch");
        let run = |arguments: &[&str]| -> Result<Value> {
            let output = command(&program, root.path()).arg("--json").args(arguments).output()?;
            ensure!(output.status.success(), "{arguments:?}: {output:?}");
            Ok(serde_json::from_slice(&output.stdout)?)
        };
        run(&["agent", "add", "echo", "--backend", "builtin"])?;
        run(&["agent", "add", "outside", "--backend", "builtin", "--tier", "2"])?;
        let token = run(&["token", "create", "--for", "mcp", "--name", "mia"])?;
        let token = text(&token, "/token/secret")?;
        let mut up = command(&program, root.path());
        let up = up.env("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0").args(["--json", "up"]);
        let (daemon, ready) = Server::start(up.stderr(Stdio::null()))?;
        let url = format!("{}/mcp", text(&serde_json::from_str(&ready)?, "/ready/http")?);
        Ok(World { root, program, url, token, _daemon: daemon })
    }

    pub(super) fn root(&self) -> &Path {
        self.root.path()
    }

    /// Adds a schedule that is due once in a long time. Returns its id.
    pub(super) fn add_schedule(&self, name: &str, agent: &str) -> Result<String> {
        let add = ["schedule", "add", "--name", name, "--agent", agent];
        let added = self.run(&[&add[..], &["--prompt", name, "--every", "1000h"]].concat())?;
        text(&added, "/schedule/id")
    }

    /// Starts a run. Returns its id.
    pub(super) fn start_run(&self, schedule: &str) -> Result<String> {
        text(&self.run(&["run", "start", schedule])?, "/run/id")
    }

    /// The approval that a run waits for.
    pub(super) fn wait_for_approval(&self, run: &str) -> Result<String> {
        let started = Instant::now();
        loop {
            let shown = self.run(&["run", "show", run])?;
            if let Ok(approval) = text(&shown, "/run/approval_id") {
                return Ok(approval);
            }
            ensure!(started.elapsed() < APPROVAL_WITHIN, "the run needs no approval: {shown}");
            sleep(Duration::from_millis(10));
        }
    }

    /// Creates a token, and returns its secret.
    pub(super) fn create_token(&self, name: &str, role: &str) -> Result<String> {
        let created = self.run(&["token", "create", "--role", role, "--name", name])?;
        text(&created, "/token/secret")
    }

    /// Fails if the ledger is damaged.
    pub(super) fn verify(&self) -> Result<()> {
        self.run(&["ledger", "verify"]).map(drop)
    }

    fn run(&self, arguments: &[&str]) -> Result<Value> {
        let mut command = command(&self.program, self.root.path());
        let output = command.arg("--json").args(arguments).output()?;
        ensure!(output.status.success(), "{arguments:?}: {output:?}");
        Ok(serde_json::from_slice(&output.stdout)?)
    }

    /// Sets the environment in which clients find this world.
    pub(super) fn envs<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let root = self.root.path();
        command
            .env("MIDWATCH_DATA", root.join("data"))
            .env("HOME", root)
            .env("MIDWATCH_TOKEN", &self.token)
    }
}

/// A command of the program in a clean environment, without a token.
fn command(program: impl AsRef<OsStr>, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("MIDWATCH_TOKEN").env("MIDWATCH_DATA", root.join("data")).env("HOME", root);
    command.env("MIDWATCH_HTTP_LISTEN", "").stdin(Stdio::null()).current_dir(root);
    command
}

fn text(value: &Value, pointer: &str) -> Result<String> {
    let text = value.pointer(pointer).and_then(Value::as_str);
    Ok(text.with_context(|| format!("no {pointer} in {value}"))?.to_owned())
}
