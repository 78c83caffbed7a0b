//! The servers: Midwatch, our transport with the echo of the fixture, and those of the SDKs, which are installed below
//! `target/`.

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::rc::Rc;

use anyhow::{Context, ensure};
use serde_json::{Value, json};
use tempfile::TempDir;

const NODE_PACKAGES: [&str; 2] = ["@modelcontextprotocol/sdk@1.32.2", "zod@4"];
const PYTHON_PACKAGE: &str = "mcp>=2,<3";

#[derive(Clone, Copy, Debug)]
pub(super) enum Server {
    /// The daemon, or `midwatch mcp` on stdio, which calls it.
    Midwatch,
    /// Our transport without the engine.
    Fixture,
    TypeScript,
    Python,
}

/// A server over HTTP, killed when dropped.
pub(super) struct HttpServer {
    child: Child,
    pub(super) address: String,
    pub(super) token: String,
}

/// The installed peers, and the running daemon.
pub(super) struct Peers {
    dir: PathBuf,
    programs: PathBuf,
    root: TempDir,
    /// Also serves `midwatch mcp` on stdio.
    daemon: Rc<HttpServer>,
}

impl Peers {
    pub(super) fn install() -> anyhow::Result<Peers> {
        let program = std::env::current_exe()?;
        let programs = program.parent().context("no directory")?.to_owned();
        let target = program.ancestors().nth(2).context("the program is not below `target/`")?;
        let dir = target.join("mcp-peers");
        std::fs::create_dir_all(&dir)?;
        std::fs::write(dir.join("package.json"), "{\"private\":true,\"type\":\"module\"}\n")?;
        let mut npm = Command::new("npm");
        npm.args(["install", "--no-audit", "--no-fund", "--ignore-scripts", "--loglevel=error"]);
        succeed(npm.args(NODE_PACKAGES).current_dir(&dir))?;
        if !dir.join("python/bin/python").exists() {
            succeed(Command::new("python3").args(["-m", "venv"]).arg(dir.join("python")))?;
        }
        let mut pip = Command::new(dir.join("python/bin/python"));
        succeed(pip.args(["-m", "pip", "install", "--quiet", PYTHON_PACKAGE]))?;
        println!("peers    {}, {PYTHON_PACKAGE}", NODE_PACKAGES.join(", "));

        let root = tempfile::tempdir()?;
        // The first command creates the installation, which a token needs.
        let agent = ["agent", "add", "echo", "--backend", "builtin"];
        succeed(midwatch(&programs, root.path()).args(agent))?;
        let create = ["--json", "token", "create", "--for", "mcp", "--name", "bench"];
        let output = midwatch(&programs, root.path()).args(create).output()?;
        ensure!(output.status.success(), "{output:?}");
        let created: Value = serde_json::from_slice(&output.stdout)?;
        let token = created.pointer("/token/secret").and_then(Value::as_str);
        let token = token.context("no token")?.to_owned();
        let mut up = midwatch(&programs, root.path());
        up.env("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0").args(["--json", "up"]);
        let daemon = Rc::new(HttpServer::start(up, token)?);
        Ok(Peers { dir, programs, root, daemon })
    }

    fn midwatch(&self) -> Command {
        midwatch(&self.programs, self.root.path())
    }

    fn script(&self, program: impl AsRef<Path>, script: &str, transport: &str) -> Command {
        let mut command = Command::new(program.as_ref());
        command.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("peers").join(script));
        command.arg(transport).current_dir(&self.dir);
        command
    }

    fn fixture(&self) -> Command {
        let mut command = Command::new(self.programs.join("conformance"));
        command.arg("fixture");
        command
    }
}

impl Server {
    pub(super) const ALL: [Server; 4] =
        [Server::Midwatch, Server::Fixture, Server::TypeScript, Server::Python];

    pub(super) fn name(self) -> &'static str {
        match self {
            Server::Midwatch => "midwatch",
            Server::Fixture => "our transport, echo",
            Server::TypeScript => "typescript",
            Server::Python => "python",
        }
    }

    /// The tool call that is measured.
    pub(super) fn tool(self) -> Value {
        match self {
            Server::Midwatch => json!({"name": "server_health", "arguments": {}}),
            _ => json!({"name": "echo", "arguments": {"text": "hello"}}),
        }
    }

    pub(super) fn http(self, peers: &Peers) -> anyhow::Result<Rc<HttpServer>> {
        let command = match self {
            Server::Midwatch => return Ok(Rc::clone(&peers.daemon)),
            Server::Fixture => peers.fixture(),
            Server::TypeScript => peers.script("node", "mcp-server.mjs", "http"),
            Server::Python => {
                peers.script(peers.dir.join("python/bin/python"), "mcp_server.py", "http")
            }
        };
        Ok(Rc::new(HttpServer::start(command, "unused".to_owned())?))
    }

    pub(super) fn stdio(self, peers: &Peers) -> anyhow::Result<Command> {
        Ok(match self {
            Server::Midwatch => {
                let mut command = peers.midwatch();
                command.arg("mcp");
                command
            }
            Server::Fixture => {
                let mut command = peers.fixture();
                command.arg("--stdio");
                command
            }
            Server::TypeScript => peers.script("node", "mcp-server.mjs", "stdio"),
            Server::Python => {
                peers.script(peers.dir.join("python/bin/python"), "mcp_server.py", "stdio")
            }
        })
    }
}

impl HttpServer {
    /// Its first line of output has its address.
    fn start(mut command: Command, token: String) -> anyhow::Result<HttpServer> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("no output")?;
        let mut server = HttpServer { child, address: String::new(), token };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let at =
            line.find("127.0.0.1:").with_context(|| format!("{command:?} printed {line:?}"))?;
        let address = line.get(at..).unwrap_or_default();
        server.address = address.split(['/', '"', '\n']).next().unwrap_or_default().to_owned();
        Ok(server)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for HttpServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn midwatch(programs: &Path, root: &Path) -> Command {
    let mut command = Command::new(programs.join("midwatch"));
    command.env("MIDWATCH_DATA", root.join("data")).env("HOME", root);
    command.env_remove("MIDWATCH_TOKEN").env("MIDWATCH_HTTP_LISTEN", "");
    command
}

fn succeed(command: &mut Command) -> anyhow::Result<()> {
    let status = command.stdin(Stdio::null()).stdout(Stdio::null()).status();
    let status = status.with_context(|| format!("cannot run {command:?}"))?;
    ensure!(status.success(), "{command:?} ended with {status}");
    Ok(())
}
