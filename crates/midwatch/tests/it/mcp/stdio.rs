//! The MCP server on standard input and output: schedules, runs, waits, restarts of the daemon, long results.
#![expect(clippy::disallowed_methods, reason = "measures how long a call waits")]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::mcp_stdio::{
    Client, add_schedule, create_schedule, newest_cursor, start_run, wait_for_end, wait_for_run,
};
use crate::support::world::World;

#[test]
fn u1_client_schedules_runs_and_reads_in_both_eras() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    for (number, start) in [Client::legacy, Client::modern].into_iter().enumerate() {
        let mut client = start(&world, &[]);
        assert_eq!(client.ok("server_health", json!({}))["ok"], true);
        let id = add_schedule(&mut client);
        let key = format!("era-{number}");
        let arguments = json!({"schedule_id": id, "idempotency_key": key});
        let started = client.ok("run_start", arguments.clone());
        let run = started["run"]["id"].as_str().unwrap().to_owned();
        assert_eq!(started.get("replayed"), None);
        let again = client.ok("run_start", arguments);
        assert_eq!(again["run"]["id"], run, "the same key started another run");
        assert_eq!(again["replayed"], true);
        let report = wait_for_end(&mut client, &run);
        assert_eq!(report["run"]["state"], "done", "{report}");
        assert_eq!(report["run"]["output"]["text"], "say hello");
        let listed = client.ok("run_list", json!({"schedule_id": id}));
        assert_eq!(listed["runs"].as_array().unwrap().len(), number + 1, "{listed}");
        let read =
            client.request("resources/read", json!({"uri": format!("midwatch://run/{run}")}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        assert!(text.contains("say hello"), "{read}");
        let prompt = json!({"name": "follow_run", "arguments": {"run_id": run}});
        let prompt = client.request("prompts/get", prompt);
        assert!(
            prompt["result"]["messages"][0]["content"]["text"].as_str().unwrap().contains(&run)
        );
        assert_eq!(client.close(), 0);
    }
    let added = &world.events_of("schedule.added")[0];
    assert!(added["actor"].as_str().unwrap().starts_with("mcp:uid:"), "{added}");
    world.verified();
}

#[test]
fn client_reconnects_to_a_restarted_daemon_and_loses_nothing() {
    let world = World::with_agent("echo");
    let daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let id = add_schedule(&mut client);
    let arguments = json!({"schedule_id": id, "idempotency_key": "once"});
    let run = client.ok("run_start", arguments.clone())["run"]["id"].clone();
    daemon.kill();
    // Without a daemon the server opens the data directory itself, and the same key returns the same run.
    assert_eq!(client.ok("run_start", arguments.clone())["run"]["id"], run);
    assert_eq!(client.ok("server_health", json!({}))["kept"], false);
    let _daemon = world.up();
    assert_eq!(client.ok("run_start", arguments)["run"]["id"], run);
    assert_eq!(client.ok("server_health", json!({}))["kept"], true);
    let report = wait_for_end(&mut client, run.as_str().unwrap());
    assert!(["done", "unknown"].contains(&report["run"]["state"].as_str().unwrap()), "{report}");
    let runs = world.json(&["run", "list"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 1, "{runs}");
}

/// Every call gets a response, and repeating it with the same key starts no second run.
#[test]
fn calls_in_flight_when_the_daemon_is_killed_get_a_response_and_run_once() {
    const CALLS: usize = 40;
    let world = World::with_agent("echo");
    let daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    // One schedule per call, because concurrent changes of one schedule would conflict.
    let ids: Vec<String> = (0..CALLS)
        .map(|number| {
            let name = format!("brief {number}");
            let schedule = json!({"name": name, "agent": "echo", "prompt": "hi", "every": "1000h"});
            create_schedule(&mut client, schedule)
        })
        .collect();
    let start = |key: usize| {
        let arguments = json!({"schedule_id": ids[key], "idempotency_key": format!("call-{key}")});
        json!({"name": "run_start", "arguments": arguments})
    };
    let sent: Vec<u64> = (0..CALLS).map(|key| client.send("tools/call", start(key))).collect();
    // Some calls have a response by now, some have not.
    let first = client.read();
    daemon.kill();
    let rest: Vec<Value> = (1..CALLS).map(|_| client.read()).collect();
    let responses: Vec<Value> = [vec![first], rest].concat();
    let acknowledged = |key: usize| {
        let response = responses.iter().find(|response| response["id"] == sent[key]).unwrap();
        let result = &response["result"]["structuredContent"];
        let code = result["error"]["code"].as_str();
        assert!(code.is_none_or(|code| code == "unreachable"), "{response}");
        result["run"]["id"].as_str().map(str::to_owned)
    };
    let runs: Vec<Option<String>> = (0..CALLS).map(acknowledged).collect();
    assert!(runs.iter().any(Option::is_some), "no call was acknowledged");
    let _daemon = world.up();
    for (key, acknowledged) in runs.iter().enumerate() {
        let Value::Object(mut call) = start(key) else { unreachable!() };
        let again = client.ok("run_start", call.remove("arguments").unwrap());
        let run = again["run"]["id"].as_str().unwrap();
        let is_same = acknowledged.as_ref().is_none_or(|acknowledged| acknowledged == run);
        assert!(is_same, "{acknowledged:?} {run}");
    }
    let runs = world.json(&["run", "list", "--limit", "1000"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), CALLS, "{runs}");
    world.verified();
}

#[test]
fn long_call_sends_progress_when_requested() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let id = add_schedule(&mut client);
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let run = start_run(&mut client, &id, "k");
    let cursor = newest_cursor(&mut client, &run);
    let wait = json!({"run_id": run, "cursor": cursor, "max_wait_s": 5});
    let call = json!({"name": "run_wait", "arguments": wait, "_meta": {"progressToken": "p"}});
    let id = client.send("tools/call", call);
    let mut progress = Vec::new();
    let response = loop {
        let read = client.read();
        if read["id"] == id {
            break read;
        }
        assert_eq!(read["method"], "notifications/progress", "{read}");
        assert_eq!(read["params"]["progressToken"], "p", "{read}");
        progress.push(read["params"]["progress"].as_f64().unwrap());
    };
    assert_eq!(response["result"]["isError"], false, "{response}");
    assert!(!progress.is_empty() && progress.is_sorted_by(|a, b| a < b), "{progress:?}");
}

#[test]
fn ids_are_completed_and_foreign_cursors_refused() {
    let world = World::with_agent("echo");
    let mut client = Client::legacy(&world, &[]);
    let id = add_schedule(&mut client);
    let run = start_run(&mut client, &id, "k");
    let references = [
        (json!({"type": "ref/resource", "uri": "midwatch://schedule/{id}"}), "id", "sch_", &id),
        (json!({"type": "ref/resource", "uri": "midwatch://run/{id}/events"}), "id", "run_", &run),
        (json!({"type": "ref/prompt", "name": "follow_run"}), "run_id", &run[..8], &run),
    ];
    for (reference, name, prefix, expected) in references {
        for (value, expected) in [(prefix, json!([expected])), ("no such", json!([]))] {
            let argument = json!({"name": name, "value": value});
            let parameters = json!({"ref": reference, "argument": argument});
            let response = client.request("completion/complete", parameters);
            assert_eq!(response["result"]["completion"]["values"], expected, "{response}");
        }
    }
    let unknown =
        json!({"ref": {"type": "ref/prompt", "name": "x"}, "argument": {"name": "y", "value": ""}});
    assert_eq!(client.request("completion/complete", unknown)["error"]["code"], -32602);
    let lists = ["tools/list", "prompts/list", "resources/list", "resources/templates/list"];
    for list in lists {
        assert!(client.request(list, json!({}))["result"].get("nextCursor").is_none(), "{list}");
        let response = client.request(list, json!({"cursor": "made up"}));
        assert_eq!(response["error"]["code"], -32602, "{list}: {response}");
    }
}

/// Starts a run that needs approval. Returns it, and the cursor after all that is known of it.
fn start_parked_run(client: &mut Client) -> (String, Value) {
    let schedule = json!({"name": "out", "agent": "hook", "prompt": "go", "every": "1000h"});
    let id = create_schedule(client, schedule);
    let run = start_run(client, &id, "k");
    wait_for_run(client, &run, |report| report["run"]["state"] == "waiting_permission");
    let cursor = newest_cursor(client, &run);
    (run, cursor)
}

#[test]
fn waiting_calls_block_neither_operators_nor_other_calls() {
    let world = World::with_agent("echo");
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let (run, cursor) = start_parked_run(&mut client);
    let wait = json!({"run_id": run, "cursor": cursor, "max_wait_s": 25});
    let wait = json!({"name": "run_wait", "arguments": wait});
    let mut open: Vec<u64> = (0..200).map(|_| client.send("tools/call", wait.clone())).collect();
    assert_eq!(client.ok("server_health", json!({}))["ok"], true);
    assert_eq!(world.json(&["freeze"])["changed"], true);
    world.ok(&["run", "cancel", &run]);
    while !open.is_empty() {
        let response = client.read();
        assert_eq!(response["result"]["isError"], false, "{response}");
        let id = response["id"].as_u64().unwrap();
        open.retain(|other| *other != id);
    }
}

#[test]
fn run_wait_without_a_daemon_waits_and_returns_changes() {
    let world = World::with_agent("echo");
    let mut client = Client::legacy(&world, &[]);
    let id = add_schedule(&mut client);
    let run = start_run(&mut client, &id, "k");
    let cursor = client.ok("run_wait", json!({"run_id": run}))["cursor"].clone();
    let started = Instant::now();
    let wait = json!({"run_id": run, "cursor": cursor, "max_wait_s": 2});
    assert_eq!(client.ok("run_wait", wait)["cursor"], cursor);
    assert!(Duration::from_secs(2) <= started.elapsed(), "the call did not wait");
    let wait = json!({"run_id": run, "cursor": cursor, "max_wait_s": 25});
    client.send("tools/call", json!({"name": "run_wait", "arguments": wait}));
    world.ok(&["run", "cancel", &run]);
    let response = client.read();
    let state = &response["result"]["structuredContent"]["run"]["state"];
    assert_eq!(state, "cancelled", "{response}");
}

#[test]
fn long_result_is_truncated_and_readable_as_a_resource() {
    let world = World::with_agent("echo");
    let mut client = Client::legacy(&world, &[]);
    let prompt = "\"".repeat(60_000);
    let arguments = json!({"name": "long", "agent": "echo", "prompt": prompt, "every": "1000h"});
    let added = client.ok("schedule_create", arguments);
    assert!(added.to_string().len() <= 65_536, "{}", added.to_string().len());
    assert_eq!(added["truncated"], true);
    let uri = format!("midwatch://schedule/{}", added["schedule"]["id"].as_str().unwrap());
    assert_eq!(added["resource"], uri);
    let read = client.request("resources/read", json!({"uri": uri}));
    let text = read["result"]["contents"][0]["text"].as_str().unwrap();
    assert!(60_000 < text.len() && text.contains(&"\\\"".repeat(60_000)), "{}", text.len());
    let shown = client.tool("schedule_get", json!({"schedule_id": added["schedule"]["id"]}));
    assert_eq!(shown["content"][1]["uri"], uri, "{shown}");
    assert!(shown.to_string().len() <= 65_536, "{}", shown.to_string().len());
}

/// Long output is read in pieces, each of which fits into a result.
#[test]
fn run_output_is_read_in_pieces() {
    let world = World::with_agent("echo");
    let loud = "yes \"h\u{e4}\u{1f600}\t\" | head -c 239994";
    let add = ["agent", "add", "loud", "--backend", "command", "--", "sh", "-c", loud];
    world.ok(&add);
    let daemon = world.up();
    let mut client = Client::modern(&world, &[]);
    let schedule = json!({"name": "loud", "agent": "loud", "prompt": "x", "every": "1000h"});
    let id = create_schedule(&mut client, schedule);
    let run = start_run(&mut client, &id, "once");
    let report = wait_for_end(&mut client, &run);
    assert!(report["next_action"].as_str().unwrap().contains("run_output"), "{report}");
    let (mut output, mut cursor) = (String::new(), None);
    loop {
        let arguments = match cursor {
            None => json!({"run_id": run}),
            Some(cursor) => json!({"run_id": run, "cursor": cursor}),
        };
        let piece = client.tool("run_output", arguments);
        assert!(piece.to_string().len() <= 65_536, "{}", piece.to_string().len());
        let piece = &piece["structuredContent"];
        output += piece["text"].as_str().unwrap();
        cursor = piece["cursor"].as_str().map(str::to_owned);
        if cursor.is_none() {
            break;
        }
    }
    assert!(output == "h\u{e4}\u{1f600}\t\n".repeat(26_666), "{} bytes", output.len());
    assert_eq!(world.ok(&["run", "output", &run]).trim_end(), output.trim_end());
    assert_eq!(
        client.refused("run_output", json!({"run_id": run, "cursor": "x"})),
        "invalid_input"
    );
    daemon.stop();
}
