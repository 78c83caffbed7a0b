//! Schedules that call tools of our own, with a real daemon that is killed while they do.

use std::io::{BufRead, BufReader, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::world::{World, wait_for};

const ROUNDS: usize = 8;

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("{value}")).to_owned()
}

/// A schedule that prompts by itself after years, and one that calls a tool on it.
fn scheduled(world: &World, tool: &str) -> (String, String) {
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let target = ["schedule", "add", "--name", "report", "--at", "2090-01-01T00:00:00Z"];
    let target =
        [&target[..], &["--agent", "ada", "--prompt", "Hello.", "--per-day", "99"]].concat();
    let target = text(&world.json(&target)["schedule"]["id"]);
    let payload = match tool {
        "run_start" => json!({"schedule_id": target}).to_string(),
        _ => json!({"id": target}).to_string(),
    };
    let caller = ["schedule", "add", "--name", "call", "--every", "1000h", "--tool", tool];
    let caller = world.json(&[&caller[..], &["--payload", &payload, "--per-day", "99"]].concat());
    (target, text(&caller["schedule"]["id"]))
}

fn runs(world: &World, schedule: &str) -> Vec<Value> {
    let listed = world.json(&["run", "list", "--schedule", schedule, "--limit", "1000"]);
    listed["runs"].as_array().unwrap_or_else(|| panic!("{listed}")).clone()
}

fn once(world: &World, run: &str, state: &str) -> Value {
    wait_for(|| {
        let shown = world.json(&["run", "show", run])["run"].clone();
        (shown["state"] == state).then_some(shown)
    })
}

/// Each run of the one starts the other once, though the daemon dies as soon as that is in the log.
#[test]
fn a_tool_takes_effect_once_for_each_run_whenever_the_daemon_is_killed() {
    let world = World::new();
    let (target, caller) = scheduled(&world, "run_start");
    let queued = "SELECT count(*) FROM entry WHERE kind = 'run.queued' AND actor LIKE 'tool:%'";
    let mut daemon = world.up();
    let database = world.database();
    for round in 1..=ROUNDS {
        let run = text(&world.json(&["run", "start", &caller])["run"]["id"]);
        wait_for(|| {
            let count: usize = database.query_row(queued, (), |row| row.get(0)).unwrap();
            (count == round).then_some(())
        });
        daemon.kill();
        daemon = world.up();
        let done = once(&world, &run, "done");
        let answer: Value = serde_json::from_str(done["output"]["text"].as_str().unwrap()).unwrap();
        let started = runs(&world, &target);
        assert_eq!(started.len(), round, "{started:?}");
        let newest = started.iter().find(|it| it["id"] == answer["run"]["id"]);
        assert!(newest.is_some(), "{answer} is none of {started:?}");
    }
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
}

#[test]
fn a_call_is_shown_with_its_answer_and_in_the_log_with_its_run() {
    let world = World::new();
    let (target, caller) = scheduled(&world, "schedule_pause");
    let shown = world.json(&["schedule", "show", &caller]);
    assert_eq!(shown["orders"]["by_itself"], true, "{shown}");
    let daemon = world.up();
    let run = text(&world.json(&["run", "start", &caller])["run"]["id"]);
    let done = once(&world, &run, "done");
    let answer: Value = serde_json::from_str(done["output"]["text"].as_str().unwrap()).unwrap();
    assert_eq!((&answer["changed"], &answer["schedule"]["id"]), (&json!(true), &json!(target)));
    let paused = &world.json(&["schedule", "show", &target])["schedule"]["paused"];
    assert_eq!(paused["by"], format!("tool:{run}"));
    let explained = world.ok(&["policy", "explain", "--run", &run]);
    assert!(explained.contains("allowed it"), "{explained}");
    // An error of the tool is why its run fails.
    world.ok(&["schedule", "remove", &target]);
    let run = text(&world.json(&["run", "start", &caller])["run"]["id"]);
    assert_eq!(once(&world, &run, "failed")["reason"], "not_found");
    assert_eq!(daemon.stop().0, Some(0));
    world.verified();
}

#[test]
fn what_no_schedule_can_call_is_refused_when_it_is_added() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let add = |tool: &str, payload: &str| {
        let add = ["schedule", "add", "--name", "x", "--every", "1h", "--tool", tool];
        world.refused(&[&add[..], &["--payload", payload]].concat(), "invalid_input", 2)
    };
    for (tool, payload, why) in [
        ("run_wait", r#"{"run_id": "run_1"}"#, "it waits for news"),
        ("permission_decide", r#"{"tool_name": "Bash"}"#, "it answers whoever"),
        ("approval_call_human", r#"{"id": "apr_1"}"#, "it gives words to pass on"),
        ("schedule_pause", "{}", "missing field `id`"),
        ("schedule_pause", r#"{"id": "sch_1", "idd": 1}"#, "unknown field `idd`"),
        ("schedule_pause", r#"{"id": 7}"#, "invalid type"),
        ("schedule_pause", r#"{"id": "sch_1", "idempotency_key": "k"}"#, "leave it out"),
        ("schedule_pause", "[]", "the payload is no object"),
        ("mail_send", "not json", "the payload is not JSON"),
    ] {
        let said = add(tool, payload);
        assert!(said.contains(why), "{tool} {payload}: {said}");
    }
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
}

/// A person may write down a tool that a later version has; until then each run says what is missing. An assistant
/// may not: what the tool would do, nobody can judge.
#[test]
fn s2_a_tool_that_is_not_there_yet_is_stored_and_its_runs_fail_with_that_reason() {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let _daemon = world.up();
    let add = ["schedule", "add", "--name", "x", "--every", "1000h", "--tool", "mail_send"];
    let added = world.json(&[&add[..], &["--payload", "{\"to\": \"ada\"}"]].concat());
    assert_eq!(added["created"], true, "{added}");
    let sentence = added["orders"]["sentence"].as_str().unwrap();
    assert!(sentence.contains("there is no tool `mail_send`"), "{sentence}");
    let id = text(&added["schedule"]["id"]);
    let run = text(&world.json(&["run", "start", &id])["run"]["id"]);
    let failed = once(&world, &run, "failed");
    assert_eq!(failed["reason"], "tool_missing", "{failed}");
    let mut client = Client::modern(&world, &[]);
    let asked = json!({"name": "y", "every": "1000h", "tool": "mail_send", "payload": {}});
    assert_eq!(client.refused("schedule_create", asked), "invalid_input");
}

/// A host that speaks lines of the protocol, says these and leaves.
fn calls(world: &World, calls: &[(&str, Value)]) {
    let mut child = world
        .command()
        .args(["mcp", "--toolsets", "core,schedule,run,ledger"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut say = |document: Value| writeln!(input, "{document}").unwrap();
    let info = json!({"name": "story", "version": "1"});
    let hello = json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": info});
    say(json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}));
    output.next().unwrap().unwrap();
    say(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
    for (id, (tool, arguments)) in (1..).zip(calls) {
        let parameters = json!({"name": tool, "arguments": arguments});
        say(json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": parameters}));
        output.next().unwrap().unwrap();
    }
    drop(input);
    child.wait().unwrap();
}

/// Over standard input and output, with a daemon and without one, and by schedules.
#[test]
fn how_tools_do_is_counted_in_one_place_whichever_way_they_are_called() {
    let world = World::new();
    let (target, caller) = scheduled(&world, "schedule_pause");
    let pause = json!({"id": target});
    calls(&world, &[("schedule_pause", pause.clone()), ("status_get", json!({}))]);
    let tools = |world: &World| world.json(&["status", "--tools"])["tools"].clone();
    assert_eq!(tools(&world)[0]["tool"], "schedule_pause", "{}", tools(&world));

    let daemon = world.up();
    world.checked();
    let entries = || world.json(&["status"])["log"]["entries"].as_u64().unwrap();
    let before = entries();
    calls(&world, &[("status_get", json!({})), ("run_list", json!({})), ("run_list", json!({}))]);
    assert_eq!(entries(), before, "looking costs nothing");
    calls(&world, &[("schedule_pause", pause), ("schedule_pause", json!({"idd": "x"}))]);
    let run = text(&world.json(&["run", "start", &caller])["run"]["id"]);
    once(&world, &run, "done");
    let all = tools(&world);
    let of = |name: &str| {
        let found = all.as_array().unwrap().iter().find(|it| it["tool"] == name);
        let today = &found.unwrap_or_else(|| panic!("{name}: {all}"))["today"];
        (today["calls"].as_u64(), today["failures"].as_u64(), today["runs"].as_u64())
    };
    assert_eq!(of("run_list"), (Some(2), Some(0), Some(0)));
    assert_eq!(of("schedule_pause"), (Some(4), Some(1), Some(1)));
    let table = world.ok(&["status", "--tools"]);
    assert!(table.starts_with("TOOL ") && table.contains("1 (25 %)"), "{table}");

    let log = world.json(&["ledger", "tail", "--limit", "1000"]);
    let called = log["events"].as_array().unwrap().iter().filter(|it| it["kind"] == "tool.called");
    let by: Vec<String> = called.map(|it| text(&it["actor"])).collect();
    assert_eq!(by.len(), 4, "{by:?}");
    assert!(by[..3].iter().all(|it| it.starts_with("mcp:uid:")), "{by:?}");
    assert_eq!(by[3], format!("tool:{run}"));
    assert_eq!(daemon.stop().0, Some(0));
    assert_eq!(world.kinds().iter().filter(|kind| *kind == "tool.used").count(), 2);
    world.ok(&["ledger", "rebuild"]);
    assert_eq!(tools(&world), all, "it is all in the log");
    world.verified();
}

/// Each call counts once, whatever it asks for on its way, and one that is refused before it asks for anything counts too.
#[test]
fn every_call_is_counted_once_and_every_change_that_was_asked_for_is_in_the_log() {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "core,run,astra,promptyoself"]);
    let called = |world: &World| {
        let kinds = world.kinds();
        kinds.iter().filter(|kind| *kind == "tool.called").count()
    };
    for (name, arguments, goes_well, is_change) in [
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
        let before = (called(&world), of_tool(&world, name));
        client.ask("tools/call", json!({"name": name, "arguments": arguments}));
        let after = (called(&world), of_tool(&world, name));
        let shown = format!("{name} {arguments}: {before:?} {after:?}");
        assert_eq!(after.0 - before.0, usize::from(is_change), "{shown}");
        assert_eq!(after.1.0 - before.1.0, 1, "{shown}");
        assert_eq!(after.1.1 - before.1.1, u64::from(!goes_well), "{shown}");
    }
}

/// How often it was called today, and failed.
fn of_tool(world: &World, name: &str) -> (u64, u64) {
    let tools = world.json(&["status", "--tools"])["tools"].clone();
    let found = tools.as_array().unwrap().iter().find(|it| it["tool"] == name).cloned();
    let today = &found.unwrap_or_default()["today"];
    (today["calls"].as_u64().unwrap_or(0), today["failures"].as_u64().unwrap_or(0))
}
