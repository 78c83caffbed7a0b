//! A client of the MCP server on standard input and output, as hosts of agents start it.
#![expect(
    clippy::disallowed_methods,
    reason = "it waits no longer and no shorter than it was asked to"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::World;

pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// Far below what a call may wait, far above what leaving takes.
const SOON: Duration = Duration::from_secs(15);
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// A client that writes lines and reads lines, and is as wrong as it wants to be.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) lines: Receiver<Value>,
    pub(crate) last_id: u64,
    pub(crate) modern: bool,
    /// What it says that it can do.
    can: Value,
}

impl Client {
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Client {
        Client::of(world.command(), arguments)
    }

    pub(crate) fn of(mut command: Command, arguments: &[&str]) -> Client {
        let mut child = command
            .arg("mcp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = lines_of(child.stdout.take().unwrap());
        let input = child.stdin.take();
        Client { child, input, lines, last_id: 0, modern: false, can: json!({}) }
    }

    /// One that has shaken hands.
    pub(crate) fn legacy(world: &World, arguments: &[&str]) -> Client {
        Client::start(world, arguments).greeted(json!({}))
    }

    /// One that can do more than call tools.
    pub(crate) fn legacy_with(world: &World, can: Value) -> Client {
        Client::start(world, &[]).greeted(can)
    }

    fn greeted(mut self, can: Value) -> Client {
        let client = &mut self;
        client.can = can;
        let hello = client.ask(
            "initialize",
            json!({
                "protocolVersion": LEGACY,
                "capabilities": client.can,
                "clientInfo": {"name": "story", "version": "1"},
            }),
        );
        assert_eq!(hello["result"]["protocolVersion"], LEGACY, "{hello}");
        assert_eq!(hello["result"]["serverInfo"]["name"], "midwatch", "{hello}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        self
    }

    /// One that says with every request who it is.
    pub(crate) fn modern(world: &World, arguments: &[&str]) -> Client {
        Client::start(world, arguments).discovered(json!({}))
    }

    pub(crate) fn modern_with(world: &World, can: Value) -> Client {
        Client::start(world, &[]).discovered(can)
    }

    fn discovered(mut self, can: Value) -> Client {
        let client = &mut self;
        (client.modern, client.can) = (true, can);
        let found = client.ask("server/discover", json!({}));
        let versions = found["result"]["supportedVersions"].as_array().unwrap();
        assert!(versions.contains(&json!(MODERN)) && versions.contains(&json!(LEGACY)), "{found}");
        self
    }

    pub(crate) fn write(&mut self, line: &str) {
        let input = self.input.as_mut().unwrap();
        input.write_all(line.as_bytes()).unwrap();
        input.write_all(b"\n").unwrap();
        input.flush().unwrap();
    }

    pub(crate) fn read(&self) -> Value {
        self.lines.recv_timeout(PATIENCE).unwrap()
    }

    pub(crate) fn send(&mut self, method: &str, mut parameters: Value) -> u64 {
        self.last_id += 1;
        if self.modern {
            parameters["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.can,
            });
        }
        let id = self.last_id;
        let asked = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        self.write(&asked.to_string());
        id
    }

    /// The answer to one request; news that come meanwhile are left out.
    pub(crate) fn ask(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        loop {
            let read = self.read();
            if read["id"] == id {
                return read;
            }
        }
    }

    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let answer = self.ask("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(answer.get("error").is_none(), "{name}: {answer}");
        let result = &answer["result"];
        let said: Value =
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(said, result["structuredContent"], "both say the same");
        result.clone()
    }

    /// What a call gives that works.
    pub(crate) fn ok(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["structuredContent"].clone()
    }

    /// The code with which a call is refused.
    pub(crate) fn refused(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], true, "{name}: {result}");
        result["structuredContent"]["error"]["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let listed = self.ask("tools/list", json!({}));
        listed["result"]["tools"].as_array().unwrap().clone()
    }

    /// Ends what it writes; the server must leave.
    pub(crate) fn leave(mut self) -> i32 {
        drop(self.input.take());
        let deadline = Instant::now() + SOON;
        loop {
            if let Some(status) = self.child.try_wait().unwrap() {
                return status.code().unwrap();
            }
            assert!(Instant::now() < deadline, "it is still there after {SOON:?}");
            thread::yield_now();
        }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn lines_of(output: ChildStdout) -> Receiver<Value> {
    let (sender, lines) = mpsc::channel();
    thread::spawn(move || {
        for line in BufReader::new(output).lines() {
            let Ok(line) = line else { return };
            let value = serde_json::from_str(&line).unwrap_or_else(|e| panic!("{e}: {line}"));
            if sender.send(value).is_err() {
                return;
            }
        }
    });
    lines
}

/// A world with an agent that answers at once.
pub(crate) fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    world
}

/// Adds a schedule that fires when told.
pub(crate) fn schedule(client: &mut Client) -> String {
    let asked = json!({"name": "brief", "agent": "echo", "prompt": "say hello", "every": "1000h"});
    let added = client.ok("schedule_create", asked);
    added["schedule"]["id"].as_str().unwrap().to_owned()
}

/// Adds a schedule that many runs may be of at once.
pub(crate) fn wide_schedule(client: &mut Client) -> String {
    let asked = json!({
        "name": "wide", "agent": "echo", "prompt": "say hello", "every": "1000h",
        "overlap": "allow:1000", "per_day": 1000,
    });
    let added = client.ok("schedule_create", asked);
    added["schedule"]["id"].as_str().unwrap().to_owned()
}

/// Follows a run to its end.
pub(crate) fn ended(client: &mut Client, run: &str) -> Value {
    let mut cursor = Value::Null;
    loop {
        let asked = match &cursor {
            Value::Null => json!({"run_id": run}),
            cursor => json!({"run_id": run, "cursor": cursor}),
        };
        let news = client.ok("run_wait", asked);
        if news["ended"] == true {
            return news;
        }
        cursor = news["cursor"].clone();
    }
}
