//! The MCP tools of Astra, promptyoself and Foundry, as their clients call them.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::support::http_stub;
use crate::support::mcp_stdio::Client;
use crate::support::world::World;

const ALL: &str = "core,schedule,run,approval,agent,ledger,astra,promptyoself,foundry";
const FOREIGN: &str = "astra,promptyoself,foundry";

/// Tool calls with their arguments and results, for a snapshot.
#[derive(Default)]
struct Calls(String);

impl Calls {
    fn call(&mut self, client: &mut Client, name: &str, arguments: Value) -> Value {
        let result = call(client, name, arguments.clone());
        let shown = serde_json::to_string_pretty(&normalize(&result)).unwrap();
        writeln!(self.0, "> {name} {}\n{shown}\n", normalize(&arguments)).unwrap();
        result
    }
}

/// Calls a tool. Returns its document, which reports errors itself and is never an error of the protocol.
fn call(client: &mut Client, name: &str, arguments: Value) -> Value {
    let response = client.request("tools/call", json!({"name": name, "arguments": arguments}));
    let result = &response["result"];
    assert_eq!(result["isError"], false, "{name}: {response}");
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{name}: {response}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let document: Value = serde_json::from_str(text).unwrap();
    if let Some(structured) = result.get("structuredContent") {
        assert_eq!(*structured, document, "text and structured content differ");
    }
    document
}

/// Replaces what differs from run to run.
fn normalize(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(normalize_text(text)),
        Value::Array(items) => items.iter().map(normalize).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match name.as_str() {
                "duration_ms" if value.is_i64() => (name.clone(), json!("<ms>")),
                "db" => (name.clone(), json!("<data>")),
                _ => (name.clone(), normalize(value)),
            })
            .collect(),
        other => other.clone(),
    }
}

fn normalize_text(text: &str) -> String {
    let is_instant = text.len() > 18 && text.as_bytes()[10] == b'T' && text.starts_with("20");
    match text {
        _ if is_instant => "<instant>".to_owned(),
        _ if text.starts_with("run_") => "<run>".to_owned(),
        _ if text.starts_with("tool_") && text.len() == 17 => "tool_<id>".to_owned(),
        _ => text.to_owned(),
    }
}

fn tool_names(client: &mut Client) -> Vec<String> {
    client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

/// Adds a schedule of an agent and runs it until it ends in this state. Returns the id of the schedule.
fn run_schedule(world: &World, agent: &str, state: &str) -> String {
    let add = ["--name", agent, "--agent", agent, "--prompt", "go"];
    let when = ["--every", "1000h", "--attempts", "1"];
    let schedule = world.add_schedule(&[&add[..], &when].concat());
    world.wait_for_state(&world.start_run(&schedule), state);
    schedule
}

#[test]
fn astra_client_schedules_tools_and_reads_their_runs() {
    let world = World::with_agent("echo");
    world.ok(&["agent", "add", "fails", "--backend", "command", "--", "false"]);
    let daemon = world.up();
    let task = run_schedule(&world, "echo", "done");
    run_schedule(&world, "fails", "failed");
    let mut client = Client::legacy(&world, &["--toolsets", "astra"]);
    let mut calls = Calls::default();
    calls.call(&mut client, "astra.health", json!({}));

    let create = json!({
        "name": "autonomous_coding", "cron_expression": "0 9 * * 1 30", "target_tool": "status_get",
        "payload": {}, "safety_tier": 1,
    });
    calls.call(&mut client, "astra.schedule.create", json!({"name": "n", "payload": {}}));
    let created = calls.call(&mut client, "astra.schedule.create", create.clone());
    let id = created["schedule_id"].as_str().unwrap().to_owned();
    calls.call(&mut client, "astra_schedule_create", create.clone());
    let mut other = create.clone();
    other["per_day_budget"] = json!(9);
    calls.call(&mut client, "astra.schedule.create", other);
    let mut never = create.clone();
    never["cron_expression"] = json!("0 0 31 2 *");
    calls.call(&mut client, "astra.schedule.create", never);

    let modify = json!({"schedule_id": id, "cron_expression": "0 */6 * * *", "per_day_budget": 2});
    calls.call(&mut client, "astra.schedule.modify", modify);
    calls.call(&mut client, "astra.schedule.modify", json!({"schedule_id": id}));
    calls.call(&mut client, "astra.schedule.pause", json!({}));
    calls.call(&mut client, "astra.schedule.pause", json!({"schedule_id": id}));
    calls.call(&mut client, "astra.schedule.pause", json!({"schedule_id": "sch_00000000"}));
    assert_eq!(client.close(), 0);

    // The next client finds the same id, also after a crash.
    daemon.kill();
    let _daemon = world.up();
    let mut client = Client::modern(&world, &["--toolsets", "astra"]);
    calls.call(&mut client, "astra.schedule.list", json!({"status": "paused"}));
    calls.call(&mut client, "astra_schedule_resume", json!({"schedule_id": id}));
    let listed = calls.call(&mut client, "astra.schedule.list", json!({"status": "active"}));
    assert_eq!(listed["schedules"][0]["id"], id);

    let done = calls.call(&mut client, "tasks_list", json!({"task_id": task, "status": "success"}));
    let trace = done["executions"][0]["trace_id"].clone();
    calls.call(&mut client, "tasks_by_trace", json!({"trace_id": trace}));
    calls.call(&mut client, "tasks_last_failed", json!({"unique_errors": true}));
    calls.call(&mut client, "tasks_list", json!({"since": "2199-01-01"}));
    calls.call(&mut client, "tasks_list", json!({"status": "odd"}));
    // The command line shows the same schedule.
    let shown = world.json(&["schedule", "list"]);
    let named = format!("autonomous_coding ({id})");
    let is_named = |schedule: &&Value| schedule["name"] == named.as_str();
    assert!(shown["schedules"].as_array().unwrap().iter().any(|it| is_named(&it)), "{shown}");
    insta::assert_snapshot!("astra", calls.0.replace(&task, "<schedule>"));
    world.verified();
}

#[test]
fn promptyoself_client_schedules_lists_and_cancels() {
    let mut world = World::with_agent("echo");
    world.add_agent("other");
    world.set("LETTA_AGENT_ID", "echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let mut calls = Calls::default();
    calls.call(&mut client, "health", json!({}));
    calls.call(&mut client, "promptyoself_agents", json!({"request_heartbeat": true}));
    calls.call(&mut client, "promptyoself_executor_status", json!({}));
    calls.call(&mut client, "promptyoself_get_scoped_default_agent", json!({}));

    let time = json!({"prompt": "Hello", "time": "2199-01-01T00:00:00-05:00", "agentId": "other",
                      "mcp_server_name": "x", "skip_validation": true});
    calls.call(&mut client, "promptyoself_schedule_time", time);
    let cron = json!({"prompt": "Hi", "cron": "0 9 * * 1-5", "max_repetitions": 3});
    calls.call(&mut client, "promptyoself_schedule_cron", cron);
    let every = json!({"prompt": "Look", "every": "1000h", "idempotency_key": "once"});
    let first = calls.call(&mut client, "promptyoself_schedule_every", every.clone());
    let again = calls.call(&mut client, "promptyoself_schedule_every", every);
    assert_eq!(first["id"], again["id"], "the same key returned another schedule");
    let other = json!({"prompt": "Else", "every": "1000h", "idempotency_key": "once"});
    calls.call(&mut client, "promptyoself_schedule_every", other);
    for wrong in [
        json!({"prompt": "p", "every": "soon"}),
        json!({"every": "5m"}),
        json!({"prompt": "p", "every": "5m", "max_repetitions": 0}),
        json!({"prompt": "p", "every": "5m", "agent_id": "nope", "skip_validation": true}),
    ] {
        calls.call(&mut client, "promptyoself_schedule_every", wrong);
    }
    let past = json!({"prompt": "p", "time": "2020-01-01T00:00:00Z"});
    calls.call(&mut client, "promptyoself_schedule_time", past);

    calls.call(&mut client, "promptyoself_list", json!({"agent_id": "echo"}));
    calls.call(&mut client, "promptyoself_cancel", json!({"schedule_id": 1}));
    calls.call(&mut client, "promptyoself_cancel", json!({"id": "1"}));
    calls.call(&mut client, "promptyoself_cancel", json!({"schedule_id": 99}));
    calls.call(&mut client, "promptyoself_cancel", json!({}));
    calls.call(&mut client, "promptyoself_execute", json!({"loop": true, "interval": 60}));
    calls.call(&mut client, "promptyoself_execute", json!({"interval": "often"}));
    calls.call(&mut client, "promptyoself_inference_diagnostics", json!({}));
    insta::assert_snapshot!("promptyoself", calls.0);

    // The command line lists the same prompts under the same numbers.
    let outcome = world.run(&["promptyoself", "list", "--all"]);
    let listed: Value = serde_json::from_str(&outcome.stdout).unwrap();
    let numbers: Vec<u64> = listed["schedules"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["id"].as_u64().unwrap())
        .collect();
    assert!(numbers.contains(&1) && numbers.contains(&2), "{listed}");
    assert!(numbers.contains(&first["id"].as_u64().unwrap()), "{listed}");
    // A number derived from a key does not affect the counted ones.
    let third = json!({"prompt": "Third", "every": "1000h"});
    assert_eq!(call(&mut client, "promptyoself_schedule_every", third)["id"], 3);
    world.verified();
}

/// What is chosen holds for the client of this server; `null` and `None` name no agent.
#[test]
fn promptyoself_client_chooses_its_default_agent() {
    let mut world = World::with_agent("echo");
    world.add_agent("other");
    world.set("LETTA_AGENT_ID", "echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let agent_of = |client: &mut Client, named: Value| {
        let arguments = json!({"prompt": "p", "every": "1000h", "agent_id": named});
        let id = call(client, "promptyoself_schedule_every", arguments)["id"].clone();
        let listed = call(client, "promptyoself_list", json!({"agent_id": "None"}));
        let items = listed["schedules"].as_array().unwrap();
        items.iter().find(|item| item["id"] == id).unwrap()["agent_id"].clone()
    };
    for none in [json!("null"), json!("None"), json!(" "), json!(null)] {
        assert_eq!(agent_of(&mut client, none.clone()), "echo", "{none}");
    }
    for tool in ["promptyoself_set_default_agent", "promptyoself_set_scoped_default_agent"] {
        let missing = call(&mut client, tool, json!({"agent_id": "nope"}));
        assert_eq!(missing["error"], "Agent validation failed: Agent nope not found");
        assert_eq!(call(&mut client, tool, json!({}))["error"], "agent_id is required");
        let chosen = call(&mut client, tool, json!({"agent_id": "other"}));
        assert_eq!(chosen, json!({"status": "success", "agent_id": "other"}));
        assert_eq!(agent_of(&mut client, json!("None")), "other");
        let shown = call(&mut client, "promptyoself_get_scoped_default_agent", json!({}));
        let expected = json!({"status": "ok", "scope": "scoped-default", "agent_id": "other"});
        assert_eq!(shown, expected);
        client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
        assert_eq!(agent_of(&mut client, json!(null)), "echo", "another client");
    }
}

#[test]
fn promptyoself_client_tests_the_letta_server_and_uploads_nothing() {
    let mut world = World::with_agent("echo");
    let (url, requests) =
        http_stub::serve(std::iter::repeat(http_stub::ok(r#"[{"id": "agent-1", "name": "Ada"}]"#)));
    world.set("LETTA_BASE_URL", &url);
    world.set("LETTA_API_KEY", "hunter2");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let health = call(&mut client, "health", json!({}));
    let facts = ["letta_base_url", "auth_set", "executor_interval"].map(|name| &health[name]);
    assert_eq!(facts, [&json!(url), &json!(true), &json!(0)]);
    // Agents that are not registered are not shown to an assistant.
    let tested = call(&mut client, "promptyoself_test", json!({}));
    let expected = json!({
        "status": "success", "message": "Connection to Letta server successful", "agent_count": 0,
    });
    assert_eq!(tested, expected);
    assert!(requests.recv().unwrap().0.starts_with("get /v1/agents/"));
    world.ok(&["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-1"]);
    assert_eq!(call(&mut client, "promptyoself_test", json!({}))["agent_count"], 1);
    let sent = requests.try_iter().count();
    let upload = json!({"source_code": "def roll(): ...", "name": "roll"});
    let refused = call(&mut client, "promptyoself_upload", upload);
    assert_eq!(refused["error"], "Only an operator may upload a tool to the Letta server");
    assert!(1 <= sent && requests.try_iter().count() == 0, "the tool was sent");
}

#[test]
fn promptyoself_self_only_client_cannot_schedule_for_or_see_others() {
    let mut world = World::with_agent("echo");
    world.add_agent("other");
    let _daemon = world.up();
    let mut free = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let arguments = |agent: &str| json!({"prompt": "p", "every": "1000h", "agent_id": agent});
    let theirs = call(&mut free, "promptyoself_schedule_every", arguments("other"))["id"].clone();
    world.set("LETTA_AGENT_ID", "echo");
    world.set("PROMPTYOSELF_SELF_ONLY", "1");
    let mut client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let refused = call(&mut client, "promptyoself_schedule_every", arguments("other"));
    assert_eq!(refused["code"], "role_too_low", "{refused}");
    assert_eq!(
        call(&mut client, "promptyoself_schedule_every", arguments("echo"))["status"],
        "success"
    );
    let listed = call(&mut client, "promptyoself_list", json!({}));
    assert_eq!(listed["count"], 1, "{listed}");
    let cancelled = call(&mut client, "promptyoself_cancel", json!({"schedule_id": theirs}));
    assert_eq!(cancelled["code"], "not_found", "{cancelled}");
    let agents = call(&mut client, "promptyoself_agents", json!({}));
    assert_eq!((&agents["count"], &agents["agents"][0]["id"]), (&json!(1), &json!("echo")));
}

#[test]
fn foundry_client_gets_an_envelope_for_every_request() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "foundry"]);
    let mut calls = Calls::default();
    for arguments in [
        json!({"action": "capabilities"}),
        json!({"action": " Health "}),
        json!({"action": "tools"}),
        json!({}),
        json!({"action": 5}),
    ] {
        calls.call(&mut client, "server", arguments);
    }
    insta::assert_snapshot!("foundry", calls.0);
    assert_eq!(tool_names(&mut client), ["server"]);
}

#[test]
fn policy_applies_to_compatible_tools() {
    let world = World::with_agent("echo");
    std::fs::write(
        world.data().join("policy.toml"),
        "[[rule]]\nid = \"no-new\"\ndeny = [\"schedule.create\"]\nrole = [\"runner\"]\n\
         match = [{ capability = \"schedule.create\", role = \"runner\" }]\n\
         not_match = [{ capability = \"schedule.read\" }]\n",
    )
    .unwrap();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", FOREIGN]);
    let create = json!({"name": "n", "cron_expression": "@daily", "target_tool": "status_get",
                        "payload": {}});
    let refused = call(&mut client, "astra.schedule.create", create);
    assert_eq!((&refused["success"], &refused["code"]), (&json!(false), &json!("denied")));
    let every = json!({"prompt": "p", "every": "1h", "agent_id": "echo"});
    let refused = call(&mut client, "promptyoself_schedule_every", every);
    assert_eq!((&refused["status"], &refused["code"]), (&json!("error"), &json!("denied")));
    assert_eq!(refused["error"], refused["message"], "{refused}");
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
}

#[test]
fn dotted_tool_names_are_listed_with_a_warning_and_hidden_when_read_only() {
    let world = World::with_agent("echo");
    let outcome = world.run(&["mcp", "--toolsets", "astra"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    assert!(outcome.stderr.contains("tools contain dots"), "{}", outcome.stderr);
    let outcome = world.run(&["mcp", "--toolsets", "promptyoself,foundry"]);
    assert_eq!(outcome.stderr, "");

    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    assert!(tool_names(&mut client).iter().all(|name| !name.contains('.') && name != "server"));
    let mut client = Client::modern(&world, &["--toolsets", FOREIGN]);
    assert!(tool_names(&mut client).contains(&"astra.schedule.create".to_owned()));
    let mut client = Client::legacy(&world, &["--toolsets", FOREIGN, "--read-only"]);
    let listed = tool_names(&mut client);
    assert!(listed.contains(&"server".to_owned()), "{listed:?}");
    let health = call(&mut client, "astra_health", json!({}));
    assert!(!health["tools"].to_string().contains("create"), "{health}");
    for name in ["astra.schedule.create", "astra_schedule_pause", "promptyoself_cancel"] {
        assert!(!listed.contains(&name.to_owned()), "{name}");
        let response = client.request("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
}

#[test]
fn no_toolset_has_a_tool_that_approves() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    for toolsets in [ALL, "astra", "promptyoself", "foundry"] {
        let mut client = Client::legacy(&world, &["--toolsets", toolsets]);
        for noun in ["approval", "run", "astra.approval", "astra.schedule", "promptyoself", "task"]
        {
            for verb in ["approve", "deny", "decide", "resolve", "waive", "grant", "freeze"] {
                for name in [format!("{noun}.{verb}"), format!("{noun}_{verb}"), verb.to_owned()] {
                    for name in [name.replace('.', "_"), name] {
                        let call = json!({"name": name, "arguments": {"id": "apr_0"}});
                        let response = client.request("tools/call", call);
                        assert_eq!(response["error"]["code"], -32602, "{name}: {response}");
                    }
                }
            }
        }
        let listed = tool_names(&mut client);
        assert!(!listed.iter().any(|name| name.contains("approve")), "{listed:?}");
        assert_eq!(client.close(), 0);
    }
}

/// Whether a result has the shape that clients of its toolset expect.
fn is_well_formed(tool: &str, result: &Value) -> bool {
    let text = |name: &str| result[name].as_str().is_some_and(|text| !text.is_empty());
    match tool {
        "server" => {
            let fields: Vec<&String> = result.as_object().unwrap().keys().collect();
            let has_fields = fields == ["data", "error", "meta", "success"];
            has_fields && (result["success"] == true || text("error"))
        }
        tool if tool.starts_with("promptyoself") || tool == "health" => {
            text("status") && (result["status"] != "error" || text("error") && text("message"))
        }
        _ => result["success"] == true || result["success"] == false && text("error"),
    }
}

#[test]
fn hostile_arguments_get_a_well_formed_result_and_change_nothing() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", FOREIGN]);
    let values = [
        json!(null),
        json!(5),
        json!(-1),
        json!(1.5e300),
        json!(true),
        json!([[]]),
        json!({"a": {"b": []}}),
        json!(""),
        json!("a\0b"),
        json!("x".repeat(200_000)),
    ];
    for tool in client.tools() {
        let name = tool["name"].as_str().unwrap();
        let fields: Vec<&String> =
            tool["inputSchema"]["properties"].as_object().unwrap().keys().collect();
        let mut cases = vec![json!({"no_such_field": 1}), json!({"force": true})];
        for value in &values {
            let all = fields.iter().map(|field| ((*field).clone(), value.clone()));
            cases.push(Value::Object(all.collect()));
        }
        for arguments in cases {
            let result = call(&mut client, name, arguments.clone());
            let shown = arguments.to_string();
            let shown = shown.get(..200).unwrap_or(&shown);
            assert!(is_well_formed(name, &result), "{name} {shown}: {result}");
        }
        // Arguments that are not an object are an error of the protocol.
        let response = client.request("tools/call", json!({"name": name, "arguments": [1]}));
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
    // Calls with one invalid value.
    let create = json!({"name": "a\0b", "cron_expression": "@daily", "target_tool": "status_get",
                        "payload": {}});
    assert_eq!(call(&mut client, "astra.schedule.create", create)["success"], false);
    let long = json!({"name": "n", "cron_expression": "@daily", "target_tool": "status_get",
                      "payload": {"x": "x".repeat(100_000)}});
    assert_eq!(call(&mut client, "astra.schedule.create", long)["success"], false);
    let every = json!({"prompt": "x".repeat(100_000), "every": "1h", "agent_id": "echo"});
    assert_eq!(call(&mut client, "promptyoself_schedule_every", every)["status"], "error");
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]), "a schedule was added");
    assert_eq!(client.close(), 0);
    world.verified();
}
