//! The servers that are held to the protocol: the fixture, and the real program on a directory of its own.

use std::ffi::OsStr;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;
use tempfile::TempDir;

/// Ended when dropped.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Server {
    /// With the first line that it prints.
    fn start(command: &mut Command) -> Result<(Server, String)> {
        let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let output = child.stdout.take().context("it has no output")?;
        let server = Server(child);
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        ensure!(!line.is_empty(), "{command:?} said nothing");
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

/// A daemon, the token of a maintainer, an agent that answers at once and one that waits for a human before.
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
            let said = prepared(&program, root.path()).arg("--json").args(arguments).output()?;
            ensure!(said.status.success(), "{arguments:?}: {said:?}");
            Ok(serde_json::from_slice(&said.stdout)?)
        };
        run(&["agent", "add", "echo", "--backend", "builtin"])?;
        run(&["agent", "add", "outside", "--backend", "builtin", "--tier", "2"])?;
        let token = run(&["token", "create", "--role", "maintainer", "--name", "mia"])?;
        let token = text(&token, "/token/secret")?;
        let mut up = prepared(&program, root.path());
        let up = up.env("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0").args(["--json", "up"]);
        let (daemon, ready) = Server::start(up.stderr(Stdio::null()))?;
        let url = format!("{}/mcp", text(&serde_json::from_str(&ready)?, "/ready/http")?);
        Ok(World { root, program, url, token, _daemon: daemon })
    }

    /// The environment in which commands find this world. Whoever starts the program without a token speaks for
    /// the user of the machine.
    pub(super) fn envs<'a>(&self, command: &'a mut Command) -> &'a mut Command {
        let root = self.root.path();
        command
            .env("MIDWATCH_DATA", root.join("data"))
            .env("HOME", root)
            .env("MIDWATCH_TOKEN", &self.token)
    }
}

fn prepared(program: impl AsRef<OsStr>, root: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_remove("MIDWATCH_TOKEN").env("MIDWATCH_DATA", root.join("data")).env("HOME", root);
    command.env("MIDWATCH_HTTP_LISTEN", "").stdin(Stdio::null());
    command
}

fn text(value: &Value, pointer: &str) -> Result<String> {
    let text = value.pointer(pointer).and_then(Value::as_str);
    Ok(text.with_context(|| format!("no {pointer} in {value}"))?.to_owned())
}
