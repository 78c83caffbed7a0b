//! A number has one form wherever a payload comes in, and a number that readers of JSON may round is refused.

use std::fs;

use serde_json::{Value, json};

use super::duplicate_keys::send_request;
use crate::support::mcp_http::http_daemon;
use crate::support::mcp_stdio::{Client, answer_of};
use crate::support::world::World;

/// Numbers, and the form in which each is stored.
const CANONICAL: &[(&str, &str)] = &[
    ("1", "1"),
    ("1.0", "1"),
    ("1e0", "1"),
    ("0", "0"),
    ("-0", "0"),
    ("-0.0", "0"),
    ("1e2", "100"),
    ("0.50", "0.5"),
    ("9007199254740991.0", "9007199254740991"),
];
/// Integers that a reader of JSON may round.
const REFUSED: &[&str] =
    &["9007199254740992", "9007199254740993", "-9007199254740993", "18446744073709551616", "1e300"];
/// Not a number in any reader that uses doubles.
const TOO_LARGE: &str = "1e400";

fn payload(number: &str) -> String {
    format!("{{\"a\": [{number}], \"to\": \"ada\"}}")
}

fn stored(number: &str) -> Value {
    format!("{{\"a\":[{number}],\"to\":\"ada\"}}").into()
}

/// The arguments of a command that schedules a tool that does not exist yet.
fn add<'a>(name: &'a str, payload: &'a str) -> [&'a str; 10] {
    let tool = ["schedule", "add", "--name", name, "--every", "1000h", "--tool", "mail_send"];
    let [a, b, c, d, e, f, g, h] = tool;
    [a, b, c, d, e, f, g, h, "--payload", payload]
}

#[test]
fn numbers_of_a_payload_have_one_form_for_a_tool_that_does_not_exist() {
    let world = World::with_agent("echo");
    for &(number, expected) in CANONICAL {
        let name = format!("n{expected}");
        let plain = world.json(&add(&name, &payload(expected)));
        // The same meaning is the same schedule, whatever form its numbers have.
        let added = world.json(&add(&name, &payload(number)));
        assert_eq!(added["created"], false, "{number}: {added}");
        assert_eq!(added["schedule"]["id"], plain["schedule"]["id"], "{number}");
        assert_eq!(added["schedule"]["action"]["payload"], stored(expected), "{number}");
    }
    let before = world.kinds();
    for &number in REFUSED {
        let message = world.refused(&add("x", &payload(number)), "invalid_input", 2);
        assert!(message.contains("write it as a string"), "{number}: {message}");
    }
    world.refused(&add("x", &payload(TOO_LARGE)), "invalid_input", 2);
    assert_eq!(world.kinds(), before, "something was recorded");
}

#[test]
fn numbers_of_a_payload_have_one_form_in_files_and_on_the_socket() {
    let world = World::new();
    let _daemon = world.up();
    let list = world.root().join("list.json");
    let file = list.to_str().unwrap();
    for (index, &(number, expected)) in CANONICAL.iter().enumerate() {
        let (name, wire_name) = (format!("file {index}"), format!("wire {index}"));
        let action = json!({"tool": "mail_send", "payload": payload(number)});
        let schedule = json!({"name": name, "when": {"every": "1000h"}, "action": action});
        fs::write(&list, json!([schedule]).to_string()).unwrap();
        let added = world.json(&["schedule", "add", "--file", file]);
        let id = &added["schedules"][0]["id"];
        let same = world.json(&add(&name, &payload(expected)));
        assert_eq!((&same["created"], &same["schedule"]["id"]), (&json!(false), id), "{number}");

        let sent = json!({"name": wire_name, "when": {"every": "1000h"}, "action": action});
        send_request(&world, &json!({"call": "schedule.add", "with": sent}));
        let same = world.json(&add(&wire_name, &payload(expected)));
        assert_eq!(same["created"], false, "{number}");
        assert_eq!(same["schedule"]["action"]["payload"], stored(expected), "{number}");
    }
    world.wait_for_event("watch.started");
    let before = world.kinds();
    for number in REFUSED.iter().chain([&TOO_LARGE]) {
        let action = json!({"tool": "mail_send", "payload": payload(number)});
        let schedule = json!({"name": "x", "when": {"every": "1000h"}, "action": action});
        fs::write(&list, json!([schedule]).to_string()).unwrap();
        world.refused(&["schedule", "add", "--file", file], "invalid_input", 2);
        let reply = send_request(&world, &json!({"call": "schedule.add", "with": schedule}));
        assert!(reply.contains("invalid_input"), "{number}: {reply}");
    }
    assert_eq!(world.kinds(), before, "something was recorded");
}

/// Calls the tools of an MCP server: the first argument is the name of a tool, the second its arguments.
fn check_mcp(world: &World, mut call: impl FnMut(&str, Value) -> Value) {
    let number = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    for &(text, expected) in CANONICAL {
        // What the host of an agent is told to call is what the policy has seen.
        let input = json!({"a": [number(text)]});
        let own_tool = json!({"tool_name": "mcp__midwatch__schedule_list", "input": input});
        let decided = call("permission_decide", own_tool);
        let allowed = &decided["updatedInput"]["a"][0];
        assert_eq!(allowed.to_string(), expected, "{text}: {decided}");
    }
    for &text in REFUSED {
        let input = json!({"command": "ls", "a": [number(text)]});
        let decided = call("permission_decide", json!({"tool_name": "Bash", "input": input}));
        assert_eq!(decided["error"]["code"], "invalid_input", "{text}: {decided}");
        let limit = json!({"limit": number(text)});
        let create = json!({
            "name": "x", "every": "1000h", "tool": "run_list", "payload": limit,
            "idempotency_key": "x",
        });
        let refused = call("schedule_create", create);
        assert_eq!(refused["error"]["code"], "invalid_input", "{text}: {refused}");
    }
    let mut create = |limit: Value| {
        let arguments = json!({
            "name": "limit", "every": "1000h", "tool": "run_list", "payload": {"limit": limit},
            "idempotency_key": format!("limit {limit}").replace(' ', "-"),
        });
        call("schedule_create", arguments)["schedule"]["id"].clone()
    };
    let id = create(json!(1.0));
    assert_eq!(create(json!(1)), id);
    let shown = world.json(&["schedule", "show", id.as_str().unwrap()]);
    assert_eq!(shown["schedule"]["action"]["payload"], r#"{"limit":1}"#);
}

#[test]
fn numbers_in_arguments_of_mcp_tools_have_one_form_over_stdio() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::modern(&world, &["--toolsets", "core,schedule"]);
    check_mcp(&world, |tool, arguments| answer_of(&client.tool(tool, arguments)));
}

#[test]
fn numbers_in_arguments_of_mcp_tools_have_one_form_over_http() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    check_mcp(&world, |tool, arguments| daemon.tool(tool, arguments));
}

#[test]
fn a_plan_does_not_depend_on_the_form_of_its_numbers() {
    let world = World::new();
    let _daemon = world.up();
    let add = ["schedule", "add", "--name", "x", "--every", "1000h", "--tool", "run_list"];
    let flags = ["--payload", r#"{"limit": 1.0}"#, "--tier", "2"];
    let added = world.json(&[&add[..], &flags].concat());
    let id = added["schedule"]["id"].as_str().unwrap();
    let approval = world.wait_for_approval(&world.start_run(id));
    let plan = world.plan_hash(&approval);
    let shown = world.json(&["approval", "show", &approval]);
    assert_eq!(shown["approval"]["plan"]["prompt"], r#"{"limit":1}"#, "{shown}");
    world.ok(&["schedule", "edit", id, "--payload", r#"{"limit": 1e0}"#]);
    assert_eq!(world.plan_hash(&approval), plan);
    world.ok(&["approval", "approve", &approval, "--plan", &plan]);
}
