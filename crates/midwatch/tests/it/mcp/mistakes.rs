//! What a model is told after a mistake, and what to do next: tools and arguments that it has, and nothing else.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::http_stub;
use crate::support::mcp_stdio::{Client, create_schedule, start_run};
use crate::support::world::World;

/// Calls in which a run that prints three lines is followed to its end. Without a cursor, a call returns at once, and
/// there would be thousands.
const CALLS_MAX: usize = 40;

/// A call, and the error that it must get, for a snapshot.
fn mistake(client: &mut Client, shown: &mut String, name: &str, arguments: Value) -> Value {
    let result = client.tool(name, arguments.clone());
    assert_eq!(result["isError"], true, "{name} {arguments}: {result}");
    // `permission_decide` answers with one block of text, which is the same document.
    let document = match &result["structuredContent"] {
        Value::Null => {
            serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap()
        }
        structured => structured.clone(),
    };
    let error = document["error"].clone();
    let text = |field: &str| error[field].as_str().unwrap_or_default().to_owned();
    let (message, hint) = (text("message"), text("hint"));
    assert!(!hint.is_empty(), "{name} {arguments}: {error}");
    for foreign in ["midwatch ", "--", "MIDWATCH_", "DIR"] {
        assert!(!hint.contains(foreign), "{name} {arguments}: {hint}");
    }
    writeln!(shown, "> {name} {arguments}\n{}: {message}\n  {hint}\n", text("code")).unwrap();
    error
}

#[test]
fn errors_say_what_was_meant_and_name_only_tools_and_arguments() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::modern(&world, &[]);
    let mut shown = String::new();
    let morning = json!({"name": "morning", "agent": "echo", "prompt": "p", "every": "900h"});
    create_schedule(&mut client, morning);
    let prompted = |other: Value| {
        let mut arguments = json!({"name": "n", "agent": "echo", "prompt": "p"});
        for (name, value) in other.as_object().unwrap() {
            arguments[name] = value.clone();
        }
        arguments
    };
    let creations = [
        prompted(json!({"agent": "ecko", "every": "1h"})),
        prompted(json!({"agent": "somebody", "every": "1h"})),
        prompted(json!({})),
        prompted(json!({"every": "1h", "after": "morning"})),
        json!({"name": "n", "agent": "echo", "every": "1h"}),
        json!({"name": "n", "prompt": "p", "every": "1h"}),
        json!({"name": "n", "every": "1h"}),
        json!({"name": "n", "every": "1h", "payload": {}}),
        prompted(json!({"tool": "status_get", "every": "1h"})),
        prompted(json!({"daily": "09:00"})),
        prompted(json!({"at": "2020-01-01T00:00:00Z"})),
        prompted(json!({"cron": "@every 10m"})),
        prompted(json!({"cron": "0 0 31 2 *", "tz": "UTC"})),
        prompted(json!({"every": "1h", "on": "failure"})),
        prompted(json!({"after": "morning", "on": "friday"})),
        prompted(json!({"after": "mornign"})),
        prompted(json!({"every": "1h", "tier": 9})),
        prompted(json!({"every": "1h", "max_fires": 0})),
        prompted(json!({"every": "1h", "prompts": "p"})),
        json!({"name": "n", "every": "1h", "tool": "run_strat", "payload": {}}),
        json!({"name": "n", "every": "1h", "tool": "schedule_pause", "payload": {}}),
        json!({"name": "n", "every": "1h", "tool": "run_wait", "payload": {"run_id": "run_1"}}),
        json!({"every": "1h"}),
    ];
    for arguments in creations {
        mistake(&mut client, &mut shown, "schedule_create", arguments);
    }
    for (name, arguments) in [
        ("schedule_get", json!({"schedule_id": "mornign"})),
        ("schedule_get", json!({"schedule_id": "sch_00000000"})),
        ("schedule_get", json!({"schedul_id": "morning"})),
        ("schedule_get", json!({"schedule_id": "morning", "verbose": true})),
        ("schedule_get", json!({})),
        ("schedule_update", json!({"schedule_id": "morning", "agent": "ecko"})),
        ("schedule_update", json!({"schedule_id": "morning", "cron": "0 9 * * *", "every": "1h"})),
        ("agent_get", json!({"agent": "ecko"})),
        ("run_get", json!({"run_id": "run_00066079f96c16ad0000179460ebb502"})),
        ("run_get", json!({"id": "x"})),
        ("run_start", json!({"schedule_id": "morning"})),
        ("run_wait", json!({"run_id": "run_1", "cursor": "first"})),
        ("run_list", json!({"limit": 1000})),
        ("approval_get", json!({"approval_id": "apr_1"})),
        ("permission_decide", json!({})),
        ("status_get", json!({"all": true})),
    ] {
        mistake(&mut client, &mut shown, name, arguments);
    }
    insta::assert_snapshot!("mistakes", shown);
}

#[test]
fn unknown_tools_are_answered_with_a_similar_one() {
    let world = World::with_agent("echo");
    let mut client = Client::modern(&world, &["--toolsets", "core,run"]);
    for (name, expected) in [
        ("run_strat", "there is no tool `run_strat`; did you mean `run_start`?"),
        (
            "schedule_create",
            "the tool `schedule_create` is not offered here; tools/list returns all that are",
        ),
        ("frobnicate", "there is no tool `frobnicate`; tools/list returns all tools"),
    ] {
        let response = client.request("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(response["error"]["message"], expected, "{response}");
    }
}

/// Neither the command that starts a daemon nor a directory is something that a tool takes.
#[test]
fn without_an_installation_a_model_is_told_to_tell_its_user() {
    let world = World::new();
    let mut client = Client::modern(&world, &[]);
    let error = mistake(&mut client, &mut String::new(), "status_get", json!({}));
    assert_eq!(error["code"], "not_found", "{error}");
    assert_eq!(error["hint"], "only a human can do something about it: tell your user");
}

/// The arguments that `next_action` names: `Call run_wait with run_id X and cursor Y.`
fn named_arguments(next_action: &str) -> Option<Value> {
    let named = next_action.strip_prefix("Call run_wait with ")?;
    let words: Vec<&str> = named.split([' ', ',']).collect();
    let after = |name: &str| {
        let at = words.iter().position(|word| *word == name)?;
        words.get(at + 1).map(|value| value.trim_end_matches('.').to_owned())
    };
    let mut arguments = json!({"run_id": after("run_id")?});
    if named.contains(" and cursor ") {
        // A cursor has dots in it.
        let cursor = named.split(" and cursor ").nth(1)?.strip_suffix('.')?;
        arguments["cursor"] = json!(cursor);
    }
    Some(arguments)
}

#[test]
fn following_next_action_word_by_word_waits_for_a_run() {
    let world = World::with_agent("echo");
    let script = "for word in one two three; do echo $word; sleep 0.3; done";
    let add =
        ["agent", "add", "slow", "--backend", "command", "--tier", "1", "--", "/bin/sh", "-c"];
    world.ok(&[&add[..], &[script]].concat());
    let _daemon = world.up();
    for era in [Client::legacy, Client::modern] {
        let mut client = era(&world, &[]);
        let name = format!("slow {}", client.modern);
        let schedule = json!({"name": name, "agent": "slow", "prompt": "p", "every": "900h"});
        let id = create_schedule(&mut client, schedule);
        let start = json!({"schedule_id": id, "idempotency_key": name.replace(' ', "-")});
        let mut answer = client.ok("run_start", start);
        let (mut calls, mut said) = (0, String::new());
        while let Some(arguments) = named_arguments(answer["next_action"].as_str().unwrap()) {
            answer = client.ok("run_wait", arguments);
            said.push_str(answer["said"].as_str().unwrap());
            calls += 1;
            assert!(calls <= CALLS_MAX, "a call returns at once: {answer}");
        }
        assert_eq!((&answer["ended"], said.as_str()), (&json!(true), "one\ntwo\nthree\n"));
        let action = answer["next_action"].as_str().unwrap();
        assert!(action.contains("nothing to wait for"), "{action}");
    }
}

#[test]
fn next_action_of_a_parked_run_names_its_approval() {
    let world = World::with_agent("echo");
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    let _daemon = world.up();
    let mut client = Client::modern(&world, &[]);
    let schedule = json!({"name": "out", "agent": "hook", "prompt": "p", "every": "900h"});
    let schedule = create_schedule(&mut client, schedule);
    let run = start_run(&mut client, &schedule, "k");
    let approval = world.wait_for_approval(&run);
    let action = |client: &mut Client, tool: &str, arguments: Value| {
        client.ok(tool, arguments)["next_action"].as_str().unwrap().to_owned()
    };
    let parked = action(&mut client, "run_get", json!({"run_id": run}));
    let named = format!("Call approval_call_human once with approval_id {approval}");
    assert!(parked.contains(&named), "{parked}");
    let pending = action(&mut client, "approval_get", json!({"approval_id": approval}));
    assert!(pending.ends_with(&format!("with approval_get, approval_id {approval}.")), "{pending}");
    // A server without these tools does not name them.
    let mut few = Client::modern(&world, &["--toolsets", "run"]);
    let parked = action(&mut few, "run_get", json!({"run_id": run}));
    assert!(!parked.contains("approval_") && parked.contains("Tell your user"), "{parked}");

    world.ok(&["run", "cancel", &run]);
    let closed = action(&mut client, "approval_get", json!({"approval_id": approval}));
    assert!(closed.contains(&format!("run_get with run_id {run}")), "{closed}");
}

#[test]
fn six_field_cron_expressions_are_created_with_a_warning() {
    let world = World::with_agent("echo");
    let mut client = Client::modern(&world, &[]);
    let schedule = json!({
        "name": "n", "agent": "echo", "prompt": "p", "cron": "0 9 * * 1-5 *", "tz": "UTC",
    });
    let expected =
        "of six fields the first is the seconds; if the first is the minute, write `0 9 * * 1-5`";
    for tool in ["schedule_preview", "schedule_create"] {
        let answer = client.ok(tool, schedule.clone());
        assert_eq!(answer["warnings"][0], expected, "{answer}");
    }
    let updated = json!({"schedule_id": "n", "cron": "0 9 * * 1-5", "tz": "UTC"});
    assert_eq!(client.ok("schedule_update", updated)["warnings"], Value::Null);
    // The command line has the same warning.
    let next = world.ok(&["schedule", "next", "--cron", "0 9 * * 1-5 *", "--tz", "UTC"]);
    assert!(next.contains(&format!("warning: {expected}")), "{next}");
}

#[test]
fn schedule_can_fire_after_failed_runs_only() {
    let world = World::with_agent("echo");
    let mut client = Client::modern(&world, &[]);
    let first = json!({"name": "first", "agent": "echo", "prompt": "p", "every": "900h"});
    create_schedule(&mut client, first);
    let follower = |on: &str| {
        json!({"name": format!("then {on}"), "agent": "echo", "prompt": "p", "after": "first",
               "on": on})
    };
    for on in ["success", "failure", "any"] {
        let added = client.ok("schedule_create", follower(on))["schedule"].clone();
        assert_eq!(added["trigger"]["on"], on, "{added}");
    }
    let again = json!({"name": "again", "agent": "echo", "prompt": "p", "again": "10m"});
    let added = client.ok("schedule_create", again)["schedule"].clone();
    let changed =
        json!({"schedule_id": added["id"], "daily": "09:00", "on": "mon-fri", "tz": "UTC"});
    let changed = client.ok("schedule_update", changed)["schedule"].clone();
    assert_eq!(changed["describe"], "at 09:00 on Monday to Friday", "{changed}");
}

#[test]
fn permission_decide_says_what_is_wrong_with_a_request() {
    let world = World::with_agent("echo");
    let mut client = Client::modern(&world, &[]);
    for (arguments, expected) in [
        (
            json!({"capability": "shell.run", "argv": ["ls", "-l"]}),
            "`argv` must begin with the absolute path of a program, without `.` and `..`",
        ),
        (
            json!({"tool_name": "Read", "input": {"file_path": "notes.txt"}}),
            "`path` must be absolute, without `.` and `..`",
        ),
    ] {
        let decided = client.ok("permission_decide", arguments);
        assert_eq!(decided["behavior"], "deny", "{decided}");
        assert!(decided["message"].as_str().unwrap().ends_with(expected), "{decided}");
    }
}

/// As in the earlier program, the Letta server is asked about an agent unless the caller does not want that.
#[test]
fn promptyoself_validates_an_agent_unless_validation_is_skipped() {
    let mut world = World::with_agent("echo");
    let (url, requests) =
        http_stub::serve(std::iter::repeat(http_stub::ok(r#"[{"id": "agent-1", "name": "Ada"}]"#)));
    world.set("LETTA_BASE_URL", &url);
    let letta = |name: &str, id: &str| {
        let add = ["agent", "add", name, "--backend", "letta", "--url", &url, "--remote-id", id];
        world.ok(&add);
    };
    letta("ada", "agent-1");
    letta("gone", "agent-2");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    // Registering an agent also asks the server.
    requests.try_iter().for_each(drop);
    let mut schedule = |agent: &str, skip: Value| {
        let arguments =
            json!({"prompt": "p", "every": "1000h", "agent_id": agent, "skip_validation": skip});
        client.ok("promptyoself_schedule_every", arguments)
    };
    assert_eq!(schedule("agent-1", json!(null))["status"], "success");
    assert_eq!(requests.try_iter().count(), 1, "the server was not asked");
    let refused = schedule("agent-2", json!(false));
    assert_eq!(refused["error"], "Agent validation failed: Agent agent-2 not found", "{refused}");
    assert_eq!(requests.try_iter().count(), 1);
    assert_eq!(schedule("agent-2", json!(true))["status"], "success");
    // An agent that is not on a Letta server is not validated there.
    assert_eq!(schedule("echo", json!(null))["status"], "success");
    assert_eq!(requests.try_iter().count(), 0, "the server was asked");
    // A schedule that promptyoself did not make has no number, so it is not listed.
    world.add_daily("standup", "echo", "hi");
    let unknown = schedule("agent-3", json!(true));
    assert_eq!(unknown["error"], "Agent agent-3 is not registered", "{unknown}");
    let hint = unknown["hint"].as_str().unwrap();
    assert!(hint.starts_with("did you mean `agent-1`?"), "{hint}");
    let listed = client.ok("promptyoself_list", json!({"include_cancelled": true}));
    assert_eq!(listed["count"], 3, "{listed}");
}
