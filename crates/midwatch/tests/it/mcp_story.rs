//! The MCP server on standard input and output: what its tools do, and for whom.
#![expect(
    clippy::disallowed_methods,
    reason = "it waits no longer and no shorter than it was asked to"
)]

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::mcp_client::{Client, ended, schedule, world};
use crate::mcp_forged::Forged;
use crate::world::wait_for;

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

/// Whatever is under way when the daemon is killed gets an answer, and what is asked again is done once.
#[test]
fn calls_that_are_under_way_when_the_daemon_is_killed_are_answered_and_done_once() {
    const CALLS: usize = 40;
    let world = world();
    let daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    // Each has a schedule of its own: many changes of one at once would be told to come again.
    let ids: Vec<Value> = (0..CALLS)
        .map(|number| {
            let name = format!("brief {number}");
            let asked = json!({"name": name, "agent": "echo", "prompt": "hi", "every": "1000h"});
            client.ok("schedule_create", asked)["schedule"]["id"].clone()
        })
        .collect();
    let start = |key: usize| {
        let arguments = json!({"schedule_id": ids[key], "idempotency_key": format!("call-{key}")});
        json!({"name": "run_start", "arguments": arguments})
    };
    let sent: Vec<u64> = (0..CALLS).map(|key| client.send("tools/call", start(key))).collect();
    // Some are answered, some are not.
    let first = client.read();
    daemon.kill();
    let rest: Vec<Value> = (1..CALLS).map(|_| client.read()).collect();
    let answers: Vec<Value> = [vec![first], rest].concat();
    let acknowledged = |key: usize| {
        let answer = answers.iter().find(|answer| answer["id"] == sent[key]).unwrap();
        let said = &answer["result"]["structuredContent"];
        let code = said["error"]["code"].as_str();
        assert!(code.is_none_or(|code| code == "unreachable"), "{answer}");
        said["run"]["id"].as_str().map(str::to_owned)
    };
    let told: Vec<Option<String>> = (0..CALLS).map(acknowledged).collect();
    assert!(told.iter().any(Option::is_some), "none was acknowledged");
    let _daemon = world.up();
    for (key, told) in told.iter().enumerate() {
        let Value::Object(mut call) = start(key) else { unreachable!() };
        let again = client.ok("run_start", call.remove("arguments").unwrap());
        let run = again["run"]["id"].as_str().unwrap();
        assert!(told.as_ref().is_none_or(|told| told == run), "{told:?} {run}");
    }
    let runs = world.json(&["run", "list", "--limit", "1000"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), CALLS, "{runs}");
    world.verified();
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

#[test]
fn b01_no_tool_and_no_method_approves_freezes_renews_or_changes_the_orders() {
    let world = world();
    let _daemon = world.up();
    let (forged, authority) = (Forged::new(&world), world.json(&["status"])["authority"].clone());
    let orders = world.json(&["policy", "check"]);
    let toolsets: Vec<&str> = ::mcp::Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
    let mut client = Client::modern(&world, &["--toolsets", &toolsets.join(",")]);
    for is_later in [false, true] {
        client.modern = is_later;
        forged.try_all(&mut |method, asked| client.ask(method, asked));
    }
    forged.check(&world, &authority);
    assert_eq!(world.json(&["policy", "check"]), orders);
    assert!(!world.kinds().iter().any(|kind| kind.starts_with("token.")));
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
