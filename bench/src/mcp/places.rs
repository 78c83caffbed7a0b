//! The servers: ours, our transport with the fixture's echo, and those of the SDKs, which are installed below
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
pub(super) enum Place {
    /// The daemon, and the program on standard input that asks it.
    Midwatch,
    /// What a call costs before anything of the watch is asked.
    Fixture,
    TypeScript,
    Python,
}

/// A server over HTTP. Ended when dropped.
pub(super) struct Served {
    child: Child,
    pub(super) address: String,
    pub(super) token: String,
}

/// Where the peers are, and the directory of our own.
pub(super) struct Peers {
    dir: PathBuf,
    programs: PathBuf,
    root: TempDir,
    /// What is asked over stdio asks it, too.
    daemon: Rc<Served>,
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
        // The first agent begins the log that a token is written to.
        let agent = ["agent", "add", "echo", "--backend", "builtin"];
        succeed(midwatch(&programs, root.path()).args(agent))?;
        let create = ["--json", "token", "create", "--role", "operator", "--name", "bench"];
        let said = midwatch(&programs, root.path()).args(create).output()?;
        ensure!(said.status.success(), "{said:?}");
        let created: Value = serde_json::from_slice(&said.stdout)?;
        let token = created.pointer("/token/secret").and_then(Value::as_str);
        let token = token.context("no token")?.to_owned();
        let mut up = midwatch(&programs, root.path());
        up.env("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0").args(["--json", "up"]);
        let daemon = Rc::new(Served::start(up, token)?);
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

impl Place {
    pub(super) const ALL: [Place; 4] =
        [Place::Midwatch, Place::Fixture, Place::TypeScript, Place::Python];

    pub(super) fn name(self) -> &'static str {
        match self {
            Place::Midwatch => "midwatch",
            Place::Fixture => "our transport, echo",
            Place::TypeScript => "typescript",
            Place::Python => "python",
        }
    }

    /// The call that is made again and again.
    pub(super) fn tool(self) -> Value {
        match self {
            Place::Midwatch => json!({"name": "server_health", "arguments": {}}),
            _ => json!({"name": "echo", "arguments": {"text": "hello"}}),
        }
    }

    pub(super) fn http(self, peers: &Peers) -> anyhow::Result<Rc<Served>> {
        let command = match self {
            Place::Midwatch => return Ok(Rc::clone(&peers.daemon)),
            Place::Fixture => peers.fixture(),
            Place::TypeScript => peers.script("node", "mcp-server.mjs", "http"),
            Place::Python => {
                peers.script(peers.dir.join("python/bin/python"), "mcp_server.py", "http")
            }
        };
        Ok(Rc::new(Served::start(command, "anybody".to_owned())?))
    }

    pub(super) fn stdio(self, peers: &Peers) -> anyhow::Result<Command> {
        Ok(match self {
            Place::Midwatch => {
                let mut command = peers.midwatch();
                command.arg("mcp");
                command
            }
            Place::Fixture => {
                let mut command = peers.fixture();
                command.arg("--stdio");
                command
            }
            Place::TypeScript => peers.script("node", "mcp-server.mjs", "stdio"),
            Place::Python => {
                peers.script(peers.dir.join("python/bin/python"), "mcp_server.py", "stdio")
            }
        })
    }
}

impl Served {
    /// The first line that it prints says where it is.
    fn start(mut command: Command, token: String) -> anyhow::Result<Served> {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().with_context(|| format!("cannot start {command:?}"))?;
        let output = child.stdout.take().context("no output")?;
        let mut served = Served { child, address: String::new(), token };
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line)?;
        let at = line.find("127.0.0.1:").with_context(|| format!("{command:?} said {line:?}"))?;
        let address = line.get(at..).unwrap_or_default();
        served.address = address.split(['/', '"', '\n']).next().unwrap_or_default().to_owned();
        Ok(served)
    }

    pub(super) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Served {
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
