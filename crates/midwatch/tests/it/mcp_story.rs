//! The MCP server on standard input and output, as hosts of agents start it.
#![expect(
    clippy::disallowed_methods,
    reason = "it waits no longer and no shorter than it was asked to"
)]

use std::io::{BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::world::{PROGRAM, World, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);
/// Far below what a call may wait, far above what leaving takes.
const SOON: Duration = Duration::from_secs(15);
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// A client that writes lines and reads lines, and is as wrong as it wants to be.
pub(crate) struct Client {
    child: Child,
    input: Option<ChildStdin>,
    lines: Receiver<Value>,
    last_id: u64,
    modern: bool,
    /// What it says that it can do.
    can: Value,
}

impl Client {
    pub(crate) fn start(world: &World, arguments: &[&str]) -> Client {
        Client::of(world.command(), arguments)
    }

    fn of(mut command: Command, arguments: &[&str]) -> Client {
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
    fn ok(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.tool(name, arguments);
        assert_eq!(result["isError"], false, "{name}: {result}");
        result["structuredContent"].clone()
    }

    /// The code with which a call is refused.
    fn refused(&mut self, name: &str, arguments: Value) -> String {
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
fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    world
}

/// Adds a schedule that fires when told.
fn schedule(client: &mut Client) -> String {
    let asked = json!({"name": "brief", "agent": "echo", "prompt": "say hello", "every": "1000h"});
    let added = client.ok("schedule_create", asked);
    added["schedule"]["id"].as_str().unwrap().to_owned()
}

/// Follows a run to its end.
fn ended(client: &mut Client, run: &str) -> Value {
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

#[test]
fn u1_an_agent_schedules_runs_and_reads_in_both_eras() {
    let world = world();
    let _daemon = world.up();
    for (number, start) in [Client::legacy, Client::modern].into_iter().enumerate() {
        let mut client = start(&world, &[]);
        assert_eq!(client.ok("server_health", json!({}))["ok"], true);
        let id = schedule(&mut client);
        let key = format!("era-{number}");
        let asked = json!({"schedule_id": id, "idempotency_key": key});
        let started = client.ok("run_start", asked.clone());
        let run = started["run"]["id"].as_str().unwrap().to_owned();
        assert_eq!(started.get("replayed"), None);
        let again = client.ok("run_start", asked);
        assert_eq!(again["run"]["id"], run, "the same key, the same run");
        assert_eq!(again["replayed"], true);
        let news = ended(&mut client, &run);
        assert_eq!(news["run"]["state"], "done", "{news}");
        assert_eq!(news["run"]["output"]["text"], "say hello");
        let listed = client.ok("run_list", json!({"schedule_id": id}));
        assert_eq!(listed["runs"].as_array().unwrap().len(), number + 1, "{listed}");
        let read = client.ask("resources/read", json!({"uri": format!("midwatch://run/{run}")}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("say hello"), "{read}");
        let prompt = json!({"name": "follow_run", "arguments": {"run_id": run}});
        let prompt = client.ask("prompts/get", prompt);
        assert!(
            prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains(&run)
        );
        assert_eq!(client.leave(), 0);
    }
    let events = world.json(&["ledger", "tail", "--limit", "1000"]);
    let added =
        events["events"].as_array().unwrap().iter().find(|it| it["kind"] == "schedule.added");
    let by = added.unwrap()["actor"].as_str().unwrap();
    assert!(by.starts_with("mcp:uid:"), "{by}");
    world.verified();
}

#[test]
fn a_daemon_that_was_killed_is_found_again_and_nothing_is_lost() {
    let world = world();
    let daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let id = schedule(&mut client);
    let asked = json!({"schedule_id": id, "idempotency_key": "once"});
    let run = client.ok("run_start", asked.clone())["run"]["id"].clone();
    daemon.kill();
    // Without a daemon the directory itself answers, and the same key is the same run.
    assert_eq!(client.ok("run_start", asked.clone())["run"]["id"], run);
    assert_eq!(client.ok("server_health", json!({}))["kept"], false);
    let _daemon = world.up();
    assert_eq!(client.ok("run_start", asked)["run"]["id"], run);
    assert_eq!(client.ok("server_health", json!({}))["kept"], true);
    let news = ended(&mut client, run.as_str().unwrap());
    assert!(["done", "unknown"].contains(&news["run"]["state"].as_str().unwrap()), "{news}");
    let runs = world.json(&["run", "list"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
}

#[test]
fn b01_what_decides_is_neither_listed_nor_called_by_its_name() {
    let world = world();
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    let _daemon = world.up();
    let mut client =
        Client::modern(&world, &["--toolsets", "core,schedule,run,approval,agent,ledger"]);
    let asked = json!({"name": "out", "agent": "hook", "prompt": "go", "every": "1000h"});
    let id = client.ok("schedule_create", asked)["schedule"]["id"].clone();
    let run = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let run = client.ok("run_get", json!({"run_id": run}));
        run["run"]["approval_id"].as_str().map(str::to_owned)
    });
    let waits = client.ok("run_get", json!({"run_id": run}));
    assert!(waits["next_action"].as_str().unwrap().contains("you cannot"), "{waits}");
    let called = client.ok("approval_call_human", json!({"id": approval}));
    assert_eq!(called["waiting"], true, "{called}");

    // Neither listed nor callable by its name.
    let words =
        ["approve", "deny", "decide", "freeze", "thaw", "lease", "token", "config", "settle"];
    let names: Vec<String> =
        client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let suspicious = |name: &&String| {
        *name != "permission_decide" && words.iter().any(|word| name.contains(word))
    };
    assert_eq!(names.iter().find(suspicious), None);
    for name in ["approval_approve", "approval_resolve", "freeze", "lease_renew", "policy_set"] {
        let answer = client.ask("tools/call", json!({"name": name, "arguments": {"id": approval}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    // The log says who has tried, once a minute.
    let events = world.json(&["ledger", "tail", "--limit", "100"])["events"].clone();
    let tried: Vec<&Value> = events
        .as_array()
        .unwrap()
        .iter()
        .filter(|event| event["kind"] == "watch.refused")
        .map(|event| &event["body"])
        .collect();
    let [tried] = tried.try_into().unwrap();
    assert_eq!((&tried["call"], &tried["code"]), (&json!("tool.misuse"), &json!("not_found")));
    assert_eq!(tried["about"], "approval_approve");
    assert!(tried["by"].as_str().unwrap().starts_with("mcp:"), "{tried}");
    // Nor is there a method for it.
    let answer = client.ask("approval/decide", json!({"id": approval}));
    assert_eq!(answer["error"]["code"], -32601, "{answer}");
    let shown = world.json(&["approval", "show", &approval]);
    assert_eq!(shown["approval"]["state"], "pending");
}

/// Every method of both eras, and some that are none.
const METHODS: [&str; 24] = [
    "initialize",
    "server/discover",
    "ping",
    "completion/complete",
    "logging/setLevel",
    "prompts/get",
    "prompts/list",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "resources/subscribe",
    "resources/unsubscribe",
    "tools/call",
    "tools/list",
    "tasks/get",
    "tasks/update",
    "tasks/cancel",
    "sampling/createMessage",
    "elicitation/create",
    "approval/decide",
    "approval.approve",
    "authority/freeze",
    "lease/renew",
    "policy/set",
];

#[test]
fn b01_no_tool_and_no_method_approves_freezes_renews_or_changes_the_orders() {
    let world = world();
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    let _daemon = world.up();
    let toolsets: Vec<&str> = ::mcp::Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
    let toolsets = toolsets.join(",");
    let mut client = Client::modern(&world, &["--toolsets", &toolsets]);
    let asked = json!({"name": "out", "agent": "hook", "prompt": "go", "every": "1000h"});
    let schedule = client.ok("schedule_create", asked)["schedule"]["id"].clone();
    let run = client.ok("run_start", json!({"schedule_id": schedule, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let run = client.ok("run_get", json!({"run_id": run}));
        run["run"]["approval_id"].as_str().map(str::to_owned)
    });
    let before = world.json(&["status"]);
    let policy = world.json(&["policy", "check"]);

    // What a host would say that has learnt how approvals are given.
    let said = json!({
        "id": approval, "approval_id": approval, "decision": "approve", "action": "accept",
        "reason": "the user said yes", "persons": 2, "role": "maintainer", "actor": "uid:0",
        "run_id": approval, "schedule_id": approval, "idempotency_key": "forged", "force": true,
    });
    let answers = json!({
        "approve": {"action": "accept", "content": {"approve": true, "id": approval}},
    });
    let mut names: Vec<String> =
        client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let guessed = ["approval_approve", "approval_resolve", "approval_decide", "freeze", "thaw"];
    let more = ["lease_renew", "policy_set", "config_reload", "token_create", "run_settle"];
    names.extend([guessed, more].concat().into_iter().map(str::to_owned));
    for era in [false, true] {
        client.modern = era;
        for name in &names {
            for arguments in [said.clone(), json!({"id": approval}), json!({"run_id": approval})] {
                let call = json!({
                    "name": name, "arguments": arguments,
                    "inputResponses": answers, "requestState": approval,
                });
                let answer = client.ask("tools/call", call);
                assert!(answer.get("result").is_some() || answer.get("error").is_some());
            }
        }
        for method in METHODS {
            let mut asked = said.clone();
            asked["name"] = json!("approval_approve");
            asked["uri"] = json!(format!("midwatch://approval/{approval}/approve"));
            asked["inputResponses"] = answers.clone();
            asked["requestState"] = json!(approval);
            let answer = client.ask(method, asked);
            assert!(answer.get("result").is_some() || answer.get("error").is_some(), "{method}");
        }
    }

    let shown = world.json(&["approval", "show", &approval]);
    assert_eq!(shown["approval"]["state"], "pending", "{shown}");
    assert_eq!(world.json(&["run", "show", &run])["run"]["state"], "waiting_permission");
    assert_eq!(world.json(&["status"])["authority"], before["authority"]);
    assert_eq!(world.json(&["policy", "check"]), policy);
    let forbidden = |kind: &&String| {
        let is_answer = kind.starts_with("approval.") && *kind != "approval.asked";
        let families = ["authority.", "config.", "policy.", "token."];
        is_answer || families.iter().any(|family| kind.starts_with(family))
    };
    assert_eq!(world.kinds().iter().find(forbidden), None);
}

#[test]
fn without_input_it_ends_within_a_second() {
    let world = world();
    // As long as it takes the machine to start the program at all, and a second.
    let started = Instant::now();
    world.ok(&["--version"]);
    let allowed = started.elapsed() + Duration::from_secs(1);
    let started = Instant::now();
    assert_eq!(world.run(&["mcp"]).code, Some(0));
    assert!(started.elapsed() <= allowed, "{:?} of {allowed:?}", started.elapsed());
}

#[test]
fn a_flood_of_nonsense_is_answered_line_by_line() {
    const LINES: usize = 5_000;
    let world = world();
    let mut client = Client::legacy(&world, &[]);
    let mut input = client.input.take().unwrap();
    let writer = thread::spawn(move || {
        for number in 0..LINES {
            let line = match number % 4 {
                0 => "{".to_owned(),
                1 => format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":7}}"),
                2 => "[[[[]]]".to_owned(),
                _ => format!("\"{}\"", "x".repeat(number)),
            };
            input.write_all(line.as_bytes()).unwrap();
            input.write_all(b"\n").unwrap();
        }
        input
    });
    for number in 0..LINES {
        let answer = client.read();
        assert!(answer["error"]["code"].is_i64(), "{number}: {answer}");
    }
    client.input = Some(writer.join().unwrap());
    assert!(!client.tools().is_empty());
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_call_that_takes_long_shows_signs_of_life_to_whoever_asks_for_them() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let id = schedule(&mut client);
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let run = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let seen = client.ok("run_wait", json!({"run_id": run, "max_wait_s": 0}))["cursor"].clone();
    let wait = json!({"run_id": run, "cursor": seen, "max_wait_s": 5});
    let call = json!({"name": "run_wait", "arguments": wait, "_meta": {"progressToken": "p"}});
    let id = client.send("tools/call", call);
    let mut signs = Vec::new();
    let answer = loop {
        let read = client.read();
        if read["id"] == id {
            break read;
        }
        assert_eq!(read["method"], "notifications/progress", "{read}");
        assert_eq!(read["params"]["progressToken"], "p", "{read}");
        signs.push(read["params"]["progress"].as_f64().unwrap());
    };
    assert_eq!(answer["result"]["isError"], false, "{answer}");
    assert!(!signs.is_empty() && signs.is_sorted_by(|a, b| a < b), "{signs:?}");
}

#[test]
fn ids_are_completed_and_lists_are_paged_by_their_own_cursors() {
    let world = world();
    let mut client = Client::legacy(&world, &[]);
    let id = schedule(&mut client);
    let run = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let places = [
        (json!({"type": "ref/resource", "uri": "midwatch://schedule/{id}"}), "id", "sch_", &id),
        (json!({"type": "ref/resource", "uri": "midwatch://run/{id}/events"}), "id", "run_", &run),
        (json!({"type": "ref/prompt", "name": "follow_run"}), "run_id", &run[..8], &run),
    ];
    for (place, name, begun, expected) in places {
        let asked = json!({"ref": place, "argument": {"name": name, "value": begun}});
        let answer = client.ask("completion/complete", asked);
        assert_eq!(answer["result"]["completion"]["values"], json!([expected]), "{answer}");
        let asked = json!({"ref": place, "argument": {"name": name, "value": "no such"}});
        let answer = client.ask("completion/complete", asked);
        assert_eq!(answer["result"]["completion"]["values"], json!([]), "{answer}");
    }
    let strange =
        json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "y", "value": ""}});
    assert_eq!(client.ask("completion/complete", strange)["error"]["code"], -32602);
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    for list in lists {
        assert!(client.ask(list, json!({}))["result"].get("nextCursor").is_none(), "{list}");
        let answer = client.ask(list, json!({"cursor": "made up"}));
        assert_eq!(answer["error"]["code"], -32602, "{list}: {answer}");
    }
}

#[test]
fn an_assistant_does_what_the_orders_allow_and_not_more() {
    let world = world();
    std::fs::write(
        world.data().join("policy.toml"),
        "[[rule]]\nid = \"no-new\"\ndeny = [\"schedule.create\"]\nrole = [\"runner\"]\n\
         match = [{ capability = \"schedule.create\", role = \"runner\" }]\n\
         not_match = [{ capability = \"schedule.read\" }]\n\
         [[rule]]\nid = \"ask-first\"\nask = [\"run.start\"]\n\
         match = [{ capability = \"run.start\" }]\nnot_match = [{ capability = \"run.cancel\" }]\n",
    )
    .unwrap();
    let id = world.json(&[
        "schedule", "add", "--name", "mine", "--agent", "echo", "--prompt", "x", "--every", "1000h",
    ])["schedule"]["id"]
        .as_str()
        .unwrap()
        .to_owned();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let asked = json!({"name": "new", "agent": "echo", "prompt": "p", "every": "1h"});
    assert_eq!(client.refused("schedule_create", asked), "denied");
    let start = json!({"schedule_id": id, "idempotency_key": "k"});
    assert_eq!(client.refused("run_start", start), "human_needed");
    assert_eq!(client.ok("schedule_pause", json!({"id": id}))["changed"], true);
    let ruling = client.ok("permission_decide", json!({"capability": "schedule.create"}));
    assert_eq!(ruling["behavior"], "deny", "{ruling}");
    let ruling = client.ok(
        "permission_decide",
        json!({"tool_name": "Read", "input": {"file_path": "/srv/x"}, "tool_use_id": "t"}),
    );
    assert_eq!(ruling["behavior"], "allow", "{ruling}");
    assert_eq!(ruling["updatedInput"], json!({"file_path": "/srv/x"}));
    let ruling = client
        .ok("permission_decide", json!({"tool_name": "Bash", "input": {"command": "rm -rf /"}}));
    assert_eq!(ruling["behavior"], "deny", "{ruling}");
    assert_eq!(ruling["ruling"]["verdict"], "ask", "a human could say yes: {ruling}");
}

#[test]
fn an_agents_token_reaches_its_own_schedules_only() {
    let mut world = world();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let token = world.json(&["token", "create", "--role", "runner", "--name", "ada"]);
    let other = world.json(&[
        "schedule", "add", "--name", "not-hers", "--agent", "echo", "--prompt", "x", "--every",
        "9h",
    ]);
    let other = other["schedule"]["id"].as_str().unwrap().to_owned();
    let _daemon = world.up();
    world.set("MIDWATCH_TOKEN", token["token"]["secret"].as_str().unwrap());
    let mut ada = Client::legacy(&world, &[]);
    assert_eq!(ada.refused("schedule_get", json!({"id": other})), "not_found");
    let fired = json!({"schedule_id": other, "idempotency_key": "k"});
    assert_eq!(ada.refused("run_start", fired), "not_found");
    let asked = json!({"name": "own", "agent": "ada", "prompt": "hi", "every": "9h"});
    let own = ada.ok("schedule_create", asked)["schedule"]["id"].clone();
    let started = ada.ok("run_start", json!({"schedule_id": own, "idempotency_key": "k2"}));
    let run = started["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(ended(&mut ada, &run)["run"]["state"], "done");
    assert_eq!(ada.ok("schedule_list", json!({}))["schedules"].as_array().unwrap().len(), 1);
    assert_eq!(ada.refused("schedule_resume", json!({"id": own})), "role_too_low");
}

#[test]
fn hostile_lines_get_errors_of_the_protocol_and_the_next_one_an_answer() {
    let world = world();
    let mut client = Client::legacy(&world, &[]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(5 << 20));
    let lines: &[(&str, i64)] = &[
        ("not json", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"tools/list\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"tools/list\"}", -32600),
        (&deep, -32700),
        (&long, -32600),
    ];
    for (line, code) in lines {
        client.write(line);
        let answer = client.read();
        let shown: String = line.chars().take(60).collect();
        assert_eq!(answer["error"]["code"], *code, "{shown}: {answer}");
    }
    let input = client.input.as_mut().unwrap();
    input.write_all(b"\xff\xfe{\"jsonrpc\"}\n\n   \n").unwrap();
    assert_eq!(client.read()["error"]["code"], -32700);
    assert_eq!(client.ask("no/such", json!({}))["error"]["code"], -32601);
    for (method, parameters) in [
        ("tools/call", json!({"name": 5})),
        ("tools/call", json!([])),
        ("tools/list", json!({"cursor": 7})),
        ("initialize", json!({"protocolVersion": null})),
        ("tools/call", json!({"name": "x".repeat(1 << 20)})),
    ] {
        let wrong = client.ask(method, parameters);
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        assert!(wrong.to_string().len() < 1_000, "what is wrong is not repeated at length");
    }
    // Bad arguments are for the model to mend.
    assert_eq!(client.refused("run_get", json!({"run_id": 5})), "invalid_input");
    assert_eq!(client.refused("run_get", json!({"run_id": "x", "extra": 1})), "invalid_input");
    assert_eq!(
        client.refused("run_wait", json!({"run_id": "x", "cursor": "1.2"})),
        "invalid_input"
    );
    // Without a handshake it is answered all the same.
    let mut rude = Client::start(&world, &[]);
    assert!(!rude.tools().is_empty());
    assert_eq!(rude.leave(), 0);
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_hundred_calls_at_once_are_each_answered() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let mut open: Vec<u64> = (0..100)
        .map(|_| client.send("tools/call", json!({"name": "status_get", "arguments": {}})))
        .collect();
    while !open.is_empty() {
        let answer = client.read();
        let id = answer["id"].as_u64().unwrap();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        open.retain(|other| *other != id);
    }
}

/// A run that waits for a human, and the cursor after all that there is to know of it.
fn waiting_run(client: &mut Client) -> (String, Value) {
    let asked = json!({"name": "out", "agent": "hook", "prompt": "go", "every": "1000h"});
    let id = client.ok("schedule_create", asked)["schedule"]["id"].clone();
    let run = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    wait_for(|| {
        let found = client.ok("run_get", json!({"run_id": run}));
        (found["run"]["state"] == "waiting_permission").then_some(())
    });
    let cursor = client.ok("run_wait", json!({"run_id": run, "max_wait_s": 0}))["cursor"].clone();
    (run, cursor)
}

#[test]
fn calls_that_wait_keep_neither_the_human_nor_other_calls_waiting() {
    let world = world();
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let (run, cursor) = waiting_run(&mut client);
    let wait = json!({"run_id": run, "cursor": cursor, "max_wait_s": 25});
    let wait = json!({"name": "run_wait", "arguments": wait});
    let mut open: Vec<u64> = (0..200).map(|_| client.send("tools/call", wait.clone())).collect();
    assert_eq!(client.ok("server_health", json!({}))["ok"], true);
    assert_eq!(world.json(&["freeze"])["changed"], true);
    world.ok(&["run", "cancel", &run]);
    while !open.is_empty() {
        let answer = client.read();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        let id = answer["id"].as_u64().unwrap();
        open.retain(|other| *other != id);
    }
}

#[test]
fn it_leaves_when_its_input_ends_and_a_hundred_of_them_leave_nobody_behind() {
    let world = world();
    let _daemon = world.up();
    assert_eq!(world.run(&["mcp"]).code, Some(0), "nothing was asked");
    for _ in 0..100 {
        assert_eq!(Client::start(&world, &[]).leave(), 0);
    }
    // One that waits does not wait for its run.
    let mut client = Client::legacy(&world, &[]);
    let id = schedule(&mut client);
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let run = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let seen = client.ok("run_wait", json!({"run_id": run, "max_wait_s": 0}))["cursor"].clone();
    let wait = json!({"run_id": run, "cursor": seen, "max_wait_s": 25});
    client.send("tools/call", json!({"name": "run_wait", "arguments": wait}));
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_host_that_starts_it_from_a_thread_keeps_it_and_a_host_that_is_killed_does_not() {
    let world = world();
    // The thread that started it is no more, and it answers.
    let mut client =
        thread::scope(|scope| scope.spawn(|| Client::legacy(&world, &[])).join().unwrap());
    assert_eq!(client.ok("server_health", json!({}))["kept"], false);
    assert_eq!(client.leave(), 0);
    // A host that is killed while somebody else holds its end of the pipe.
    let mut shell = world.wrapped("sh");
    shell.args(["-c", "exec 3<&0; \"$0\" \"$@\" <&3 & wait", PROGRAM]);
    let mut client = Client::of(shell, &[]);
    assert!(!client.tools().is_empty());
    client.child.kill().unwrap();
    assert_eq!(client.lines.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn whoever_waits_without_a_daemon_waits_and_hears_of_what_comes() {
    let world = world();
    let mut client = Client::legacy(&world, &[]);
    let id = schedule(&mut client);
    let run = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let seen = client.ok("run_wait", json!({"run_id": run}))["cursor"].clone();
    let started = Instant::now();
    let wait = json!({"run_id": run, "cursor": seen, "max_wait_s": 2});
    assert_eq!(client.ok("run_wait", wait)["cursor"], seen);
    assert!(Duration::from_secs(2) <= started.elapsed(), "it did not wait");
    let wait = json!({"run_id": run, "cursor": seen, "max_wait_s": 25});
    client.send("tools/call", json!({"name": "run_wait", "arguments": wait}));
    world.ok(&["run", "cancel", &run]);
    let news = client.read();
    assert_eq!(news["result"]["structuredContent"]["run"]["state"], "cancelled", "{news}");
}

#[test]
fn a_last_line_without_an_end_is_answered_too() {
    let world = world();
    let mut client = Client::legacy(&world, &[]);
    let asked = json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list"}).to_string();
    let mut input = client.input.take().unwrap();
    input.write_all(asked.as_bytes()).unwrap();
    drop(input);
    assert_eq!(client.read()["id"], 99);
}

#[test]
fn a_long_answer_is_cut_and_the_whole_can_be_read() {
    let world = world();
    let mut client = Client::legacy(&world, &[]);
    let prompt = "\"".repeat(60_000);
    let asked = json!({"name": "long", "agent": "echo", "prompt": prompt, "every": "1000h"});
    let added = client.ok("schedule_create", asked);
    assert!(added.to_string().len() <= 65_536, "{}", added.to_string().len());
    assert_eq!(added["truncated"], true);
    let uri = format!("midwatch://schedule/{}", added["schedule"]["id"].as_str().unwrap());
    assert_eq!(added["resource"], uri);
    let read = client.ask("resources/read", json!({"uri": uri}));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(60_000 < text.len() && text.contains(&"\\\"".repeat(60_000)), "{}", text.len());
    let shown = client.tool("schedule_get", json!({"id": added["schedule"]["id"]}));
    assert_eq!(shown["content"][1]["uri"], uri, "{shown}");
    assert!(shown.to_string().len() <= 65_536, "{}", shown.to_string().len());
}

/// However much a run says, all of it can be read, and no answer is too long.
#[test]
fn what_a_run_has_said_is_read_piece_by_piece() {
    let world = world();
    let loud = "yes \"h\u{e4}\u{1f600}\t\" | head -c 239994";
    let add = ["agent", "add", "loud", "--backend", "command", "--", "sh", "-c", loud];
    world.ok(&add);
    let daemon = world.up();
    let mut client = Client::modern(&world, &[]);
    let asked = json!({"name": "loud", "agent": "loud", "prompt": "x", "every": "1000h"});
    let id = client.ok("schedule_create", asked)["schedule"]["id"].clone();
    let started = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "once"}));
    let run = started["run"]["id"].as_str().unwrap().to_owned();
    let news = ended(&mut client, &run);
    assert!(news["next_action"].as_str().unwrap().contains("run_output"), "{news}");
    let (mut said, mut cursor) = (String::new(), None);
    loop {
        let asked = match cursor {
            None => json!({"run_id": run}),
            Some(cursor) => json!({"run_id": run, "cursor": cursor}),
        };
        let piece = client.tool("run_output", asked);
        assert!(piece.to_string().len() <= 65_536, "{}", piece.to_string().len());
        let piece = &piece["structuredContent"];
        said += piece["text"].as_str().unwrap();
        cursor = piece["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert!(said == "h\u{e4}\u{1f600}\t\n".repeat(26_666), "{} bytes", said.len());
    assert_eq!(world.ok(&["run", "output", &run]).trim_end(), said.trim_end());
    assert_eq!(
        client.refused("run_output", json!({"run_id": run, "cursor": "x"})),
        "invalid_input"
    );
    assert_eq!(daemon.stop().0, Some(0));
}

#[test]
fn what_cannot_be_read_cannot_be_subscribed_to() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    for uri in ["midwatch://schedule/sch_none", "midwatch://run/run_none/events", "midwatch://x"] {
        let answer = client.ask("resources/subscribe", json!({"uri": uri}));
        assert!(answer.get("error").is_some(), "{uri}: {answer}");
    }
    let mut client = Client::modern(&world, &[]);
    let status = "midwatch://status";
    let many: Vec<String> = (0..33).map(|n| format!("midwatch://run/run_{n}")).collect();
    for uris in
        [json!(["midwatch://schedule/sch_none"]), json!([status, "midwatch://x"]), json!(many)]
    {
        let filter = json!({"resourceSubscriptions": uris});
        let answer = client.ask("subscriptions/listen", json!({"notifications": filter}));
        assert!(answer.get("error").is_some(), "{uris}: {answer}");
    }
    // Each listens for as long as it wants, so there are not many.
    let filter = json!({"notifications": {"resourceSubscriptions": [status]}});
    for _ in 0..16 {
        client.send("subscriptions/listen", filter.clone());
    }
    let answer = client.ask("subscriptions/listen", filter);
    assert!(answer["error"]["message"].as_str().unwrap().contains("16 requests"), "{answer}");
}

#[test]
fn tools_that_look_through_directories_are_judged_by_what_is_forbidden_below() {
    let world = world();
    let ask = |client: &mut Client, tool: &str, input: Value| {
        let asked = json!({"tool_name": tool, "input": input});
        client.ok("permission_decide", asked)["behavior"].as_str().unwrap().to_owned()
    };
    let looks = [
        ("Grep", json!({"pattern": "key", "path": "/srv"})),
        ("Glob", json!({"pattern": "/srv/secret/**"})),
        ("Glob", json!({"pattern": "../secret/*", "path": "/srv/x"})),
        ("LS", json!({"path": "/srv"})),
    ];
    let mut client = Client::legacy(&world, &[]);
    for (tool, input) in &looks {
        assert_eq!(ask(&mut client, tool, input.clone()), "allow", "{tool}");
    }
    std::fs::write(
        world.data().join("policy.toml"),
        "[[rule]]\nid = \"secret\"\ndeny = [\"filesystem.read\"]\npath = [\"/srv/secret/*\"]\n\
         match = [{ capability = \"filesystem.read\", path = \"/srv/secret/x\" }]\n\
         not_match = [{ capability = \"filesystem.read\", path = \"/srv/x\" }]\n",
    )
    .unwrap();
    for (tool, input) in looks {
        assert_eq!(ask(&mut client, tool, input), "deny", "{tool}");
    }
    let notebook = json!({"notebook_path": "/srv/secret/x.ipynb"});
    assert_eq!(ask(&mut client, "NotebookRead", notebook), "deny");
    assert_eq!(ask(&mut client, "NotebookRead", json!({"notebook_path": "/srv/x"})), "allow");
    assert_eq!(ask(&mut client, "Read", json!({"file_path": "/srv/x"})), "allow");
    let both = json!({"tool_name": "Bash", "capability": "filesystem.read"});
    assert_eq!(client.refused("permission_decide", both), "invalid_input");
}

#[test]
fn what_is_read_only_offers_and_does_no_more_than_reading() {
    let world = world();
    let mut client = Client::legacy(&world, &["--read-only"]);
    for tool in client.tools() {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
    let asked = json!({"name": "x", "agent": "echo", "prompt": "p", "every": "1h"});
    let answer = client.ask("tools/call", json!({"name": "schedule_create", "arguments": asked}));
    assert_eq!(answer["error"]["code"], -32602, "{answer}");
    assert_eq!(client.ok("schedule_preview", asked_preview())["dry_run"], true);
    let tools = client.tools();
    let preview = tools.iter().find(|tool| tool["name"] == "schedule_preview").unwrap();
    assert!(preview["inputSchema"]["properties"].get("prompt").is_some(), "{preview}");
    assert!(preview["inputSchema"]["properties"].get("idempotency_key").is_none(), "{preview}");
    assert_eq!(client.ok("schedule_list", json!({}))["schedules"], json!([]));
    world.refused(&["mcp", "--toolsets", "nonsense"], "bad_usage", 2);
}

fn asked_preview() -> Value {
    json!({"name": "x", "agent": "echo", "prompt": "p", "every": "1h"})
}

/// Asks for news of these. In the later era that there may be some is the first of them.
fn follow(client: &mut Client, uris: &[String]) {
    if client.modern {
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        client.send("subscriptions/listen", filter);
        let acknowledged = client.read();
        assert!(acknowledged["method"].as_str().unwrap().contains("acknowledged"));
        return hear(client, uris);
    }
    for uri in uris {
        let subscribed = client.ask("resources/subscribe", json!({"uri": uri}));
        assert!(subscribed.get("error").is_none(), "{subscribed}");
    }
}

/// Reads until there was news of each of these.
fn hear(client: &Client, uris: &[String]) {
    let mut awaited: Vec<&String> = uris.iter().collect();
    while !awaited.is_empty() {
        let read = client.read();
        assert_eq!(read["method"], "notifications/resources/updated", "{read}");
        awaited.retain(|uri| read["params"]["uri"] != **uri);
    }
}

#[test]
fn news_of_what_happens_come_to_whoever_subscribed_in_both_eras() {
    let world = world();
    let _daemon = world.up();
    for start in [Client::legacy, Client::modern] {
        let mut client = start(&world, &[]);
        let id = schedule(&mut client);
        let uris = [format!("midwatch://schedule/{id}"), "midwatch://status".to_owned()];
        follow(&mut client, &uris);
        for change in ["pause", "resume"] {
            world.ok(&["schedule", change, &id]);
            hear(&client, &uris);
        }
    }
}

#[test]
fn an_agent_hears_and_reads_of_what_is_its_own() {
    let mut world = world();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let token = world.json(&["token", "create", "--role", "runner", "--name", "ada"]);
    let add = ["schedule", "add", "--name", "not-hers", "--agent", "echo", "--prompt", "x"];
    let other = world.json(&[&add[..], &["--every", "9h"]].concat());
    let other = other["schedule"]["id"].as_str().unwrap().to_owned();
    let _daemon = world.up();
    let others_run = world.json(&["run", "start", &other])["run"]["id"].clone();
    let others_events = format!("midwatch://run/{}/events", others_run.as_str().unwrap());
    world.set("MIDWATCH_TOKEN", token["token"]["secret"].as_str().unwrap());
    for (key, start) in ["legacy", "modern"].into_iter().zip([Client::legacy, Client::modern]) {
        let mut ada = start(&world, &[]);
        let asked = json!({"name": key, "agent": "ada", "prompt": "hi", "every": "9h"});
        let own = ada.ok("schedule_create", asked)["schedule"]["id"].clone();
        let asked = json!({"schedule_id": own, "idempotency_key": key});
        let run = ada.ok("run_start", asked)["run"]["id"].as_str().unwrap().to_owned();
        ended(&mut ada, &run);
        let uri = format!("midwatch://run/{run}/events");
        let read = ada.ask("resources/read", json!({"uri": uri}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        let told: Value = serde_json::from_str(text).unwrap();
        let kinds = told["events"].as_array().unwrap().iter().map(|event| &event["kind"]);
        assert_eq!(kinds.collect::<Vec<_>>(), ["run.queued", "run.started", "run.ended"]);
        let read = ada.ask("resources/read", json!({"uri": others_events}));
        assert!(read["error"]["message"].as_str().unwrap().contains("there is no run"), "{read}");

        let own = own.as_str().unwrap();
        let uris = [format!("midwatch://schedule/{own}"), "midwatch://status".to_owned()];
        follow(&mut ada, &uris);
        let listening = ada.last_id;
        world.ok(&["schedule", "pause", own]);
        hear(&ada, &uris);
        // There is no more news of what is gone, and that is said.
        world.ok(&["schedule", "remove", own]);
        if ada.modern {
            let end = wait_for(|| Some(ada.read()).filter(|read| read["id"] == listening));
            assert_eq!(end["error"]["data"]["error"]["code"], "not_found", "{end}");
        }
    }
}

/// No tool that changes something gets by the standing orders.
#[test]
fn every_tool_that_changes_something_is_judged_first() {
    let world = world();
    let rules = r#"
        [[rule]]
        id = "hands-off"
        deny = ["schedule.create", "schedule.change", "run.start", "run.cancel"]
        role = ["runner"]
        match = [{ capability = "run.cancel", role = "runner" }]
        not_match = [{ capability = "schedule.read", role = "runner" }]
    "#;
    std::fs::write(world.data().join("policy.toml"), rules).unwrap();
    let added = world.json(&[
        "schedule", "add", "--name", "s", "--agent", "echo", "--prompt", "x", "--every", "1000h",
    ]);
    let id = added["schedule"]["id"].as_str().unwrap().to_owned();
    let _daemon = world.up();
    let run = world.json(&["run", "start", &id])["run"]["id"].as_str().unwrap().to_owned();
    let mut client = Client::legacy(&world, &[]);
    let tools = client.tools();
    let changing = tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == false);
    let mut count = 0;
    for tool in changing {
        let mut arguments = json!({});
        for field in tool["inputSchema"]["required"].as_array().unwrap() {
            let field = field.as_str().unwrap();
            arguments[field] = match field {
                "id" | "schedule_id" => json!(id),
                "run_id" => json!(run),
                "agent" => json!("echo"),
                _ => json!("k"),
            };
        }
        let name = tool["name"].as_str().unwrap();
        assert_eq!(client.refused(name, arguments), "denied", "{name}");
        count += 1;
    }
    assert!(7 <= count, "{count}");
}
