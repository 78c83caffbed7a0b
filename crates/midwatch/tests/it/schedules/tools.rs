//! Schedules that call built-in tools: each run takes effect once, across crashes, and every call is counted.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::mcp_stdio::Client;
use crate::support::wait::wait_until;
use crate::support::world::World;

const ROUNDS: usize = 8;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// Adds a schedule that is due in decades, and one that calls a tool on it. Returns both ids.
fn add_schedules(world: &World, tool: &str) -> (String, String) {
    world.add_agent("ada");
    let target = ["schedule", "add", "--name", "report", "--at", "2090-01-01T00:00:00Z"];
    let target =
        [&target[..], &["--agent", "ada", "--prompt", "Hello.", "--per-day", "99"]].concat();
    let target = text(&world.json(&target)["schedule"]["id"]);
    let payload = json!({"schedule_id": target}).to_string();
    let caller = ["schedule", "add", "--name", "call", "--every", "1000h", "--tool", tool];
    let caller = world.json(&[&caller[..], &["--payload", &payload, "--per-day", "99"]].concat());
    (target, text(&caller["schedule"]["id"]))
}

fn runs(world: &World, schedule: &str) -> Vec<Value> {
    let listed = world.json(&["run", "list", "--schedule", schedule, "--limit", "1000"]);
    listed["runs"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
}

/// Each run starts the other schedule once, although the daemon is killed as soon as the ledger has it.
#[test]
fn tool_call_takes_effect_once_per_run_across_daemon_crashes() {
    let world = World::new();
    let (target, caller) = add_schedules(&world, "run_start");
    let queued = "SELECT count(*) FROM entry WHERE kind = 'run.queued' AND actor LIKE 'tool:%'";
    let mut daemon = world.up();
    let database = world.database();
    for round in 1..=ROUNDS {
        let run = world.start_run(&caller);
        let count = || database.query_row(queued, (), |row| row.get::<_, usize>(0)).unwrap();
        wait_until(|| count() == round);
        daemon.kill();
        daemon = world.up();
        let done = world.wait_for_state(&run, "done");
        let answer: Value = serde_json::from_str(done["output"]["text"].as_str().unwrap()).unwrap();
        let started = runs(&world, &target);
        assert_eq!(started.len(), round, "{started:?}");
        let newest = started.iter().find(|it| it["id"] == answer["run"]["id"]);
        assert!(newest.is_some(), "{answer} is not in {started:?}");
    }
    daemon.stop();
    world.verified();
}

#[test]
fn tool_call_shows_its_result_and_is_recorded_with_its_run() {
    let world = World::new();
    let (target, caller) = add_schedules(&world, "schedule_pause");
    let shown = world.json(&["schedule", "show", &caller]);
    assert_eq!(shown["orders"]["by_itself"], true, "{shown}");
    let daemon = world.up();
    let run = world.start_run(&caller);
    let done = world.wait_for_state(&run, "done");
    let answer: Value = serde_json::from_str(done["output"]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&answer["changed"], &answer["schedule"]["id"]), (&json!(true), &json!(target)));
    let paused = &world.json(&["schedule", "show", &target])["schedule"]["paused"];
    assert_eq!(paused["by"], format!("tool:{run}"));
    let explained = world.ok(&["policy", "explain", "--run", &run]);
    assert!(explained.contains("allowed it"), "{explained}");
    // An error of the tool is the reason of the failed run.
    world.ok(&["schedule", "remove", &target]);
    let run = world.start_run(&caller);
    assert_eq!(world.wait_for_state(&run, "failed")["reason"], "not_found");
    daemon.stop();
    world.verified();
}

#[test]
fn schedule_add_refuses_tools_and_payloads_it_cannot_call() {
    let world = World::new();
    world.add_agent("ada");
    let add = |tool: &str, payload: &str| {
        let add = ["schedule", "add", "--name", "x", "--every", "1h", "--tool", tool];
        world.refused(&[&add[..], &["--payload", payload]].concat(), "invalid_input", 2)
    };
    for (tool, payload, why) in [
        ("run_wait", r#"{"run_id": "run_1"}"#, "it only waits"),
        ("permission_decide", r#"{"tool_name": "Bash"}"#, "its answer is for the host of an agent"),
        (
            "approval_call_human",
            r#"{"approval_id": "apr_1"}"#,
            "its answer is for a user who is present",
        ),
        ("schedule_pause", "{}", "`schedule_id` is missing"),
        ("schedule_pause", r#"{"schedule_id": "sch_1", "idd": 1}"#, "unknown argument `idd`"),
        ("schedule_pause", r#"{"schedule_id": 7}"#, "invalid type"),
        ("schedule_pause", r#"{"schedule_id": "sch_1", "idempotency_key": "k"}"#, "omit it"),
        ("schedule_pause", "[]", "the payload is not an object"),
        ("mail_send", "not json", "the payload is not JSON"),
    ] {
        let message = add(tool, payload);
        assert!(message.contains(why), "{tool} {payload}: {message}");
    }
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
}

/// A person may schedule a tool of a later version; until then each run fails. An assistant may not, because
/// policy cannot decide on an unknown tool.
#[test]
fn s2_unknown_tool_is_stored_and_its_runs_fail_with_that_reason() {
    let world = World::new();
    world.add_agent("echo");
    let _daemon = world.up();
    let add = ["schedule", "add", "--name", "x", "--every", "1000h", "--tool", "mail_send"];
    let added = world.json(&[&add[..], &["--payload", "{\"to\": \"ada\"}"]].concat());
    assert_eq!(added["created"], true, "{added}");
    let sentence = added["orders"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("there is no tool `mail_send`"), "{sentence}");
    let id = text(&added["schedule"]["id"]);
    let run = world.start_run(&id);
    let failed = world.wait_for_state(&run, "failed");
    assert_eq!(failed["reason"], "tool_missing", "{failed}");
    let mut client = Client::modern(&world, &[]);
    let arguments = json!({"name": "y", "every": "1000h", "tool": "mail_send", "payload": {}});
    assert_eq!(client.refused("schedule_create", arguments), "invalid_input");
}

/// Starts an MCP server on stdio, calls these tools, and closes it.
fn call_tools(world: &World, calls: &[(&str, Value)]) {
    let mut child = world
        .command()
        .args(["mcp", "--toolsets", "core,schedule,run,ledger"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut send = |document: Value| writeln!(input, "{document}").unwrap();
    let info = json!({"name": "story", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    send(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
    output.next().unwrap().unwrap();
    send(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (id, (tool, arguments)) in (1..).zip(calls) {
        let parameters = json!({"name": tool, "arguments": arguments});
        send(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters}));
        output.next().unwrap().unwrap();
    }
    drop(input);
    child.wait().unwrap();
}

/// Calls over stdio with and without a daemon, and calls by schedules.
#[test]
fn tool_metrics_count_calls_from_every_entry_point() {
    let world = World::new();
    let (target, caller) = add_schedules(&world, "schedule_pause");
    let pause = json!({"schedule_id": target});
    call_tools(&world, &[("schedule_pause", pause.clone()), ("status_get", json!({}))]);
    let metrics = |world: &World| world.json(&["status", "--tools"])["tools"].clone();
    assert_eq!(metrics(&world)[0]["tool"], "schedule_pause", "{}", metrics(&world));

    let daemon = world.up();
    world.checked();
    let entries = || world.json(&["status"])["log"]["entries"].as_u64().unwrap();
    let before = entries();
    call_tools(
        &world,
        &[("status_get", json!({})), ("run_list", json!({})), ("run_list", json!({}))],
    );
    assert_eq!(entries(), before, "a read-only call was recorded");
    call_tools(&world, &[("schedule_pause", pause), ("schedule_pause", json!({"idd": "x"}))]);
    let run = world.start_run(&caller);
    world.wait_for_state(&run, "done");
    let all = metrics(&world);
    let of = |name: &str| {
        let found = all.as_array().unwrap().iter().find(|it| it["tool"] == name);
        let today = &found.unwrap_or_else(|| panic!("{name}: {all}"))["today"];
        (today["calls"].as_u64(), today["failures"].as_u64(), today["runs"].as_u64())
    };
    assert_eq!(of("run_list"), (Some(2), Some(0), Some(0)));
    assert_eq!(of("schedule_pause"), (Some(4), Some(1), Some(1)));
    let table = world.ok(&["status", "--tools"]);
    assert!(table.starts_with("TOOL ") && table.contains("1 (25 %)"), "{table}");

    let called = world.events_of("tool.called");
    let by: Vec<String> = called.iter().map(|it| text(&it["actor"])).collect();
    assert_eq!(by.len(), 4, "{by:?}");
    assert!(by[..3].iter().all(|it| it.starts_with("mcp:uid:")), "{by:?}");
    assert_eq!(by[3], format!("tool:{run}"));
    daemon.stop();
    assert_eq!(world.count_events("tool.used"), 2);
    world.ok(&["ledger", "rebuild"]);
    assert_eq!(metrics(&world), all, "the ledger does not have every count");
    world.verified();
}

/// Each call counts once, however many requests it makes, and also if it is refused before the first.
#[test]
fn tool_metrics_count_each_call_once_and_the_ledger_has_each_change() {
    let world = World::new();
    world.add_agent("echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "core,run,astra,promptyoself"]);
    let called = |world: &World| world.count_events("tool.called");
    for (name, arguments, succeeds, is_change) in [
        ("astra.schedule.create", json!({}), false, true),
        ("astra.schedule.modify", json!({"schedule_id": "sch_00000000", "cron": "x"}), false, true),
        ("astra.schedule.pause", json!({"schedule_id": "sch_00000000"}), false, true),
        (
            "promptyoself_schedule_cron",
            json!({"agent_id": "no", "prompt": "p", "cron": "* * * * *"}),
            false,
            true,
        ),
        (
            "promptyoself_schedule_every",
            json!({"agent_id": "echo", "prompt": "p", "every": "9h"}),
            true,
            true,
        ),
        ("promptyoself_cancel", json!({"schedule_id": 99}), false, true),
        ("promptyoself_cancel", json!({"schedule_id": 1}), true, true),
        ("promptyoself_list", json!({}), true, false),
        ("run_list", json!({"limit": 1000}), false, false),
        ("permission_decide", json!({"tool_name": "Bash"}), false, false),
        ("permission_decide", json!({"tool_name": "mcp__midwatch__run_list"}), true, false),
    ] {
        let before = (called(&world), counts_of(&world, name));
        client.request("tools/call", json!({"name": name, "arguments": arguments}));
        let after = (called(&world), counts_of(&world, name));
        let shown = format!("{name} {arguments}: {before:?} {after:?}");
        assert_eq!(after.0 - before.0, usize::from(is_change), "{shown}");
        assert_eq!(after.1.0 - before.1.0, 1, "{shown}");
        assert_eq!(after.1.1 - before.1.1, u64::from(!succeeds), "{shown}");
    }
}

/// How often the tool was called today, and how often it failed.
fn counts_of(world: &World, name: &str) -> (u64, u64) {
    let tools = world.json(&["status", "--tools"])["tools"].clone();
    let found = tools.as_array().unwrap().iter().find(|it| it["tool"] == name).cloned();
    let today = &found.unwrap_or_default()["today"];
    (today["calls"].as_u64().unwrap_or(0), today["failures"].as_u64().unwrap_or(0))
}
