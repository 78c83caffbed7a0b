//! A client of `midwatch mcp`, the MCP server on standard input and output.
#![expect(clippy::disallowed_methods, reason = "a wait has a deadline")]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::wait::{TIMEOUT, wait_for};
use crate::support::world::World;

/// Far below what a call may wait, far above what exiting takes.
const EXIT_TIMEOUT: Duration = Duration::from_secs(15);
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// A client that can send any line, valid or not, in either era of the protocol.
pub(crate) struct Client {
    pub(crate) child: Child,
    pub(crate) input: Option<ChildStdin>,
    pub(crate) lines: Receiver<Value>,
    pub(crate) last_id: u64,
    pub(crate) modern: bool,
    capabilities: Value,
}

impl Client {
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Client {
        Client::spawn(world.command(), arguments)
    }

    pub(crate) fn spawn(mut command: Command, arguments: &[&str]) -> Client {
        let mut child = command
            .arg("mcp")
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let lines = read_lines(child.stdout.take().unwrap());
        let input = child.stdin.take();
        Client { child, input, lines, last_id: 0, modern: false, capabilities: json!({}) }
    }

    /// A client of the legacy era, after the handshake.
    pub(crate) fn legacy(world: &World, arguments: &[&str]) -> Client {
        Client::start(world, arguments).initialize(json!({}))
    }

    pub(crate) fn legacy_with(world: &World, capabilities: Value) -> Client {
        Client::start(world, &[]).initialize(capabilities)
    }

    fn initialize(mut self, capabilities: Value) -> Client {
        let client = &mut self;
        client.capabilities = capabilities;
        let response = client.request(
            "initialize",
            json!({
                "protocolVersion": LEGACY,
                "capabilities": client.capabilities,
                "clientInfo": {"name": "story", "version": "1"},
            }),
        );
        assert_eq!(response["result"]["protocolVersion"], LEGACY, "{response}");
        assert_eq!(response["result"]["serverInfo"]["name"], "midwatch", "{response}");
        client.write(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}).to_string());
        self
    }

    /// A client of the modern era, which names itself in every request.
    pub(crate) fn modern(world: &World, arguments: &[&str]) -> Client {
        Client::start(world, arguments).discover(json!({}))
    }

    pub(crate) fn modern_with(world: &World, capabilities: Value) -> Client {
        Client::start(world, &[]).discover(capabilities)
    }

    fn discover(mut self, capabilities: Value) -> Client {
        let client = &mut self;
        (client.modern, client.capabilities) = (true, capabilities);
        let found = client.request("server/discover", json!({}));
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
        self.lines.recv_timeout(TIMEOUT).unwrap()
    }

    pub(crate) fn send(&mut self, method: &str, mut parameters: Value) -> u64 {
        self.last_id += 1;
        if self.modern {
            parameters["_meta"] = json!({
                "io.modelcontextprotocol/protocolVersion": MODERN,
                "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": self.capabilities,
            });
        }
        let id = self.last_id;
        let request = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": parameters});
        self.write(&request.to_string());
        id
    }

    /// Sends a request and returns its response. Skips notifications.
    pub(crate) fn request(&mut self, method: &str, parameters: Value) -> Value {
        let id = self.send(method, parameters);
        loop {
            let read = self.read();
            if read["id"] == id {
                return read;
            }
        }
    }

    /// Calls a tool. Returns the result, whose text and structured content must be the same, if it has both.
    pub(crate) fn tool(&mut self, name: &str, arguments: Value) -> Value {
        let response = self.request("tools/call", json!({"name": name, "arguments": arguments}));
        assert!(response.get("error").is_none(), "{name}: {response}");
        let result = &response["result"];
        if let Some(structured) = result.get("structuredContent") {
            assert_eq!(answer_of(result), *structured, "text and structured content differ");
        }
        result.clone()
    }

    /// Calls a tool, which must succeed. Returns the answer.
    pub(crate) fn ok(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], false, "{name}: {result}");
        answer_of(&result)
    }

    /// Calls a tool, which must be refused. Returns the error code.
    pub(crate) fn refused(&mut self, name: &str, arguments: Value) -> String {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], true, "{name}: {result}");
        answer_of(&result)["error"]["code"].as_str().unwrap().to_owned()
    }

    pub(crate) fn tools(&mut self) -> Vec<Value> {
        let listed = self.request("tools/list", json!({}));
        listed["result"]["tools"].as_array().unwrap().clone()
    }

    /// Closes the input, upon which the server must exit. Returns its exit code.
    pub(crate) fn close(mut self) -> i32 {
        drop(self.input.take());
        let started = Instant::now();
        let status = wait_for(|| self.child.try_wait().unwrap());
        assert!(started.elapsed() < EXIT_TIMEOUT, "it exited after {:?}", started.elapsed());
        status.code().unwrap()
    }
}

/// The answer in the text of a tool's result; null if there is no text.
pub(crate) fn answer_of(result: &Value) -> Value {
    let text = result["content"][0]["text"].as_str();
    text.map_or(Value::Null, |text| serde_json::from_str(text).unwrap())
}

impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn read_lines(output: ChildStdout) -> Receiver<Value> {
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

/// Adds a schedule of the agent `echo` that a test can treat as started by hand only.
pub(crate) fn add_schedule(client: &mut Client) -> String {
    create_schedule(
        client,
        json!({"name": "brief", "agent": "echo", "prompt": "say hello", "every": "1000h"}),
    )
}

/// Adds such a schedule that allows a thousand runs at once.
pub(crate) fn add_concurrent_schedule(client: &mut Client) -> String {
    create_schedule(
        client,
        json!({
            "name": "wide", "agent": "echo", "prompt": "say hello", "every": "1000h",
            "overlap": "allow:1000", "per_day": 1000,
        }),
    )
}

/// Calls `schedule_create`. Returns the id.
pub(crate) fn create_schedule(client: &mut Client, arguments: Value) -> String {
    let added = client.ok("schedule_create", arguments);
    added["schedule"]["id"].as_str().unwrap().to_owned()
}

/// Calls `run_start` with an idempotency key. Returns the id.
pub(crate) fn start_run(client: &mut Client, schedule: &str, key: &str) -> String {
    let arguments = json!({"schedule_id": schedule, "idempotency_key": key});
    client.ok("run_start", arguments)["run"]["id"].as_str().unwrap().to_owned()
}

/// The cursor after everything that `run_wait` reports of a run so far.
pub(crate) fn newest_cursor(client: &mut Client, run: &str) -> Value {
    client.ok("run_wait", json!({"run_id": run, "max_wait_s": 0}))["cursor"].clone()
}

/// Follows a run with `run_wait` until it has ended.
pub(crate) fn wait_for_end(client: &mut Client, run: &str) -> Value {
    wait_for_run(client, run, |report| report["ended"] == true)
}

/// Follows a run with `run_wait` until the report is as awaited.
pub(crate) fn wait_for_run(
    client: &mut Client,
    run: &str,
    is_awaited: impl Fn(&Value) -> bool,
) -> Value {
    let mut arguments = json!({"run_id": run});
    loop {
        let report = client.ok("run_wait", arguments.clone());
        if is_awaited(&report) {
            return report;
        }
        assert_ne!(report["ended"], true, "{report}");
        arguments["cursor"] = report["cursor"].clone();
    }
}
