//! The tools of the MCP server: every result matches its schema, and hints and annotations are true.

use serde_json::{Value, json};

use crate::support::mcp_stdio::{
    Client, add_concurrent_schedule, add_schedule, create_schedule, start_run, wait_for_end,
    wait_for_run,
};
use crate::support::world::World;

/// Whether a value has the types that a schema names.
fn matches_schema(schema: &Value, value: &Value) -> bool {
    let is_of_type = match schema["type"].as_str() {
        Some("object") => value.is_object(),
        Some("array") => value.is_array(),
        Some("string") => value.is_string(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("boolean") => value.is_boolean(),
        _ => panic!("{schema}"),
    };
    let fields = schema["properties"].as_object().into_iter().flatten();
    let items = value.as_array().into_iter().flatten();
    is_of_type
        && fields
            .into_iter()
            .all(|(name, schema)| value.get(name).is_none_or(|it| matches_schema(schema, it)))
        && schema
            .get("items")
            .is_none_or(|schema| items.into_iter().all(|it| matches_schema(schema, it)))
}

/// A client that checks every result against the output schema of its tool.
struct CheckedClient {
    client: Client,
    tools: Vec<Value>,
}

impl CheckedClient {
    fn ok(&mut self, name: &str, arguments: Value) -> Value {
        let result = self.client.ok(name, arguments);
        let tool = self.tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert!(matches_schema(&tool["outputSchema"], &result), "{tool} returns {result}");
        result
    }
}

/// Starts a run that ends and one that needs approval. Returns the ids of both schedules and runs.
fn start_runs(client: &mut Client) -> [String; 4] {
    let echo = add_schedule(client);
    let done = start_run(client, &echo, "done");
    wait_for_end(client, &done);
    let schedule = json!({"name": "out", "agent": "hook", "prompt": "go", "every": "1000h"});
    let out = create_schedule(client, schedule);
    let parked = start_run(client, &out, "parked");
    wait_for_run(client, &parked, |report| report["run"]["approval_id"].is_string());
    [echo, done, out, parked]
}

fn world_with_webhook() -> World {
    let world = World::with_agent("echo");
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    world
}

#[test]
fn u1_every_tool_result_matches_its_schema() {
    let world = world_with_webhook();
    let _daemon = world.up();
    let groups = ["--toolsets", "core,schedule,run,approval,agent,ledger"];
    let mut client = Client::modern(&world, &groups);
    let [echo, done, out, parked] = start_runs(&mut client);
    let tools = client.tools();
    let mut client = CheckedClient { client, tools };

    let can = client.ok("server_capabilities", json!({}));
    let shown = world.json(&["status", "--capabilities"]);
    assert_eq!(can["capabilities"], shown["capabilities"], "the tool and the command differ");
    assert!(client.ok("budget_get", json!({}))["budget"].is_object());
    let status = client.ok("status_get", json!({}));
    assert_eq!(
        (&status["needs_human"], status["approvals"].as_array().unwrap().len()),
        (&json!(true), 1)
    );

    let edited = client
        .ok("schedule_update", json!({"schedule_id": echo, "name": "renamed", "every": "500h"}));
    assert_eq!(edited["schedule"]["name"], "renamed");
    assert_eq!(
        client.ok("schedule_get", json!({"schedule_id": echo}))["schedule"]["name"],
        "renamed"
    );
    let listed = client.ok("schedule_list", json!({}));
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 2, "{listed}");

    let agents = client.ok("agent_list", json!({}));
    assert_eq!(agents["agents"].as_array().unwrap().len(), 2);
    let agent = client.ok("agent_get", json!({"agent": "hook"}));
    assert_eq!(agent["agent"]["tier"], 2, "{agent}");

    let listed = client.ok("approval_list", json!({}));
    assert_eq!(listed["approvals"][0]["run_id"], parked.as_str());
    let why = client.ok("run_explain", json!({"run_id": parked}));
    assert_eq!(why["ruling"]["verdict"], "ask", "{why}");
    let cancelled = client.ok("run_cancel", json!({"run_id": parked}));
    assert_eq!(cancelled["run"]["state"], "cancelled", "{cancelled}");
    let again = client.ok("run_retry", json!({"run_id": parked, "idempotency_key": "again"}));
    assert_ne!(again["run"]["state"], "cancelled", "{again}");
    assert_eq!(client.ok("run_get", json!({"run_id": done}))["run"]["state"], "done");

    let slot = client.ok("slot_explain", json!({"schedule_id": echo}));
    assert!(slot["sentence"].is_string(), "{slot}");
    let events = client.ok("ledger_query", json!({"after": 0, "limit": 3}));
    let first: Vec<_> = events["events"].as_array().unwrap().iter().map(|it| &it["seq"]).collect();
    assert_eq!(first, [1, 2, 3]);
    let next = client.ok("ledger_query", json!({"after": events["cursor"], "limit": 1}));
    assert_eq!(next["events"][0]["seq"], 4);
    let deleted = client.ok("schedule_delete", json!({"schedule_id": out}));
    let facts = [&deleted["deleted"], &deleted["schedule"]["status"]];
    assert_eq!(facts, [&json!(true), &json!("removed")], "{deleted}");
    assert_eq!(deleted["schedule"]["next_run_at"], Value::Null, "{deleted}");
    assert_eq!(client.ok("schedule_list", json!({}))["schedules"].as_array().unwrap().len(), 1);
    world.verified();
}

#[test]
fn page_ends_at_the_size_limit_and_the_next_continues() {
    let world = World::with_agent("echo");
    let mut client = Client::modern(&world, &[]);
    let schedule = |number: usize| {
        json!({
            "name": format!("{number:0>3}{}", "n".repeat(90)), "agent": "echo",
            "prompt": format!("{number} {}", "p".repeat(400)), "every": "1000h",
        })
    };
    for number in 0..100 {
        client.ok("schedule_create", schedule(number));
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let arguments = match &cursor {
            Some(cursor) => json!({"limit": 100, "cursor": cursor}),
            None => json!({"limit": 100}),
        };
        let result = client.tool("schedule_list", arguments);
        assert!(result.to_string().len() <= 64 << 10, "{}", result.to_string().len());
        let page = &result["structuredContent"];
        assert!(page.get("truncated").is_none(), "the page is truncated");
        let names = page["schedules"].as_array().unwrap().iter();
        seen.extend(names.map(|it| it["name"].as_str().unwrap().to_owned()));
        match page["cursor"].as_str() {
            Some(next) => cursor = Some(next.to_owned()),
            None => break,
        }
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 100);
}

#[test]
fn cancelled_call_is_still_executed() {
    let world = world_with_webhook();
    let _daemon = world.up();
    for era in [Client::legacy, Client::modern] {
        let mut client = era(&world, &[]);
        let echo = add_schedule(&mut client);
        // A cancelled call gets no response, but is executed.
        let key = format!("cancelled-{}", client.modern);
        let start = json!({"schedule_id": echo, "idempotency_key": key});
        let id = client.send("tools/call", json!({"name": "run_start", "arguments": start}));
        let cancelled = json!({
            "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
        });
        client.write(&cancelled.to_string());
        let run = client.ok("run_start", start)["run"]["id"].as_str().unwrap().to_owned();
        let id =
            client.send("tools/call", json!({"name": "run_wait", "arguments": {"run_id": run}}));
        client.write(
            &json!({
                "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": id},
            })
            .to_string(),
        );
        assert_eq!(wait_for_end(&mut client, &run)["run"]["state"], "done");
    }
    let runs = world.json(&["run", "list"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "{runs}");
}

#[test]
fn every_resource_and_prompt_can_be_read() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::modern(&world, &[]);
    let read = |client: &mut Client, uri: &str| -> Value {
        let response = client.request("resources/read", json!({"uri": uri}));
        let text = response["result"]["contents"][0]["text"].as_str();
        serde_json::from_str(text.unwrap_or_else(|| panic!("{response}"))).unwrap()
    };
    let listed = client.request("resources/list", json!({}));
    let uris = listed["result"]["resources"].as_array().unwrap().clone();
    for resource in &uris {
        assert!(read(&mut client, resource["uri"].as_str().unwrap()).is_object(), "{resource}");
    }
    assert!(uris.iter().any(|it| it["uri"] == "midwatch://ledger/head"), "{uris:?}");

    let prompts = client.request("prompts/list", json!({}))["result"]["prompts"].clone();
    for prompt in prompts.as_array().unwrap() {
        let names = prompt["arguments"].as_array().cloned().unwrap_or_default();
        let arguments =
            names.iter().map(|it| (it["name"].as_str().unwrap().to_owned(), json!("it")));
        let arguments = Value::Object(arguments.collect());
        let parameters = json!({"name": prompt["name"], "arguments": arguments});
        let response = client.request("prompts/get", parameters);
        let text = &response["result"]["messages"][0]["content"]["text"];
        assert!(text.is_string(), "{response}");
        if !names.is_empty() {
            let missing = client.request("prompts/get", json!({"name": prompt["name"]}));
            assert_eq!(missing["error"]["code"], -32602, "{missing}");
        }
    }
}

/// `idempotentHint`, `destructiveHint` and `readOnlyHint` describe what each tool does.
#[test]
fn tool_annotations_are_true() {
    let world = World::with_agent("echo");
    let mut client =
        Client::modern(&world, &["--toolsets", "core,schedule,run,approval,agent,ledger"]);
    let added = add_concurrent_schedule(&mut client);
    let [run, ended] = ["run", "ended"].map(|key| start_run(&mut client, &added, key));
    client.ok("run_cancel", json!({"run_id": ended}));
    let changes = || {
        let kinds = world.kinds();
        kinds.iter().filter(|kind| !kind.starts_with("tool.")).count()
    };
    let tools = client.tools();
    let mut changing: Vec<&Value> =
        tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == false).collect();
    // Destructive tools come last.
    changing.sort_by_key(|tool| tool["annotations"]["destructiveHint"] == true);
    let (mut destructive, mut not_idempotent) = (Vec::new(), Vec::new());
    for tool in changing {
        let name = tool["name"].as_str().unwrap();
        let hints = &tool["annotations"];
        let mut arguments = match name {
            "schedule_create" => {
                json!({"name": "more", "agent": "echo", "prompt": "p", "every": "9h"})
            }
            "schedule_update" => json!({"schedule_id": added, "name": "renamed"}),
            "schedule_pause" | "schedule_resume" | "schedule_delete" => {
                json!({"schedule_id": added})
            }
            "run_start" => json!({"schedule_id": added}),
            "run_cancel" => json!({"run_id": run}),
            "run_retry" => json!({"run_id": ended}),
            other => panic!("the test has no arguments for `{other}`"),
        };
        let is_idempotent = hints["idempotentHint"].as_bool().unwrap();
        if !is_idempotent {
            let required = tool["inputSchema"]["required"].as_array().unwrap();
            assert!(required.contains(&json!("idempotency_key")), "{tool}");
            not_idempotent.push(name.to_owned());
            arguments["idempotency_key"] = json!(format!("{name}-once"));
        }
        let before = changes();
        client.ok(name, arguments.clone());
        let once = changes();
        assert!(before < once, "`{name}` changes nothing");
        if !is_idempotent {
            arguments["idempotency_key"] = json!(format!("{name}-again"));
        }
        client.tool(name, arguments);
        assert!(!is_idempotent || once == changes(), "{tool}");
        if hints["destructiveHint"] == true {
            destructive.push(name.to_owned());
        }
    }
    assert_eq!(destructive, ["schedule_delete", "run_cancel"]);
    assert_eq!(not_idempotent, ["run_start", "run_retry"]);
}

#[test]
fn next_actions_and_hints_can_be_followed() {
    let world = World::with_agent("echo");
    let mut client = Client::modern(&world, &["--toolsets", "core,schedule,run,ledger"]);
    let id = add_schedule(&mut client);
    let start = json!({"schedule_id": id, "idempotency_key": "k"});
    let next = |result: Value| result["next_action"].as_str().unwrap().to_owned();
    let action = next(client.ok("run_start", start));
    assert!(action.contains("no daemon is running") && !action.contains("run_wait"), "{action}");
    let _daemon = world.up();
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let schedule = add_concurrent_schedule(&mut client);
    let start = json!({"schedule_id": schedule, "idempotency_key": "frozen"});
    let frozen = client.ok("run_start", start);
    let run = frozen["run"]["id"].clone();
    for action in
        [next(frozen), next(client.ok("run_wait", json!({"run_id": run, "max_wait_s": 0})))]
    {
        assert!(action.contains("a human has frozen Midwatch"), "{action}");
    }
    world.ok(&["thaw", "--reason", "on we go"]);
    wait_for_end(&mut client, run.as_str().unwrap());

    let hint = |client: &mut Client, name: &str, arguments: Value| {
        let refused = client.tool(name, arguments);
        refused["structuredContent"]["error"]["hint"].as_str().unwrap().to_owned()
    };
    let unknown = json!({"run_id": "run_00066079f96c16ad0000179460ebb502"});
    assert_eq!(hint(&mut client, "run_get", unknown), "run_list shows the runs");
    let mut daily = json!({"name": "d", "agent": "echo", "prompt": "p", "daily": "09:00"});
    assert!(hint(&mut client, "schedule_create", daily.clone()).contains("`tz: Europe/Berlin`"));
    for (field, value) in
        [("daily", "09:00"), ("cron", "0 9 * * mon-fri"), ("at", "2090-01-01T09:00")]
    {
        daily.as_object_mut().unwrap().retain(|name, _| name != "daily");
        let mut arguments = daily.clone();
        (arguments[field], arguments["tz"]) = (json!(value), json!("Europe/Berlin"));
        let added = client.ok("schedule_create", arguments);
        assert!(added["next"][0].is_string(), "{added}");
    }

    // A page continues where the last one ended.
    let first = client.ok("ledger_query", json!({"cursor": 0, "limit": 2}));
    let second = client.ok("ledger_query", json!({"cursor": first["cursor"], "limit": 1}));
    assert_eq!(second["events"][0]["seq"], 3, "{second}");

    // The action of a schedule may be a tool.
    let schedule = json!({
        "name": "hush", "every": "900h", "tool": "schedule_pause", "payload": {"schedule_id": id},
    });
    let added = client.ok("schedule_create", schedule)["schedule"].clone();
    assert_eq!(added["action"]["tool"], "schedule_pause", "{added}");
    let changed = json!({"schedule_id": added["id"], "tool": "schedule_resume"});
    let changed = client.ok("schedule_update", changed)["schedule"].clone();
    assert_eq!(changed["action"]["tool"], "schedule_resume", "{changed}");
    let neither = json!({"name": "x", "every": "1h"});
    assert_eq!(client.refused("schedule_create", neither), "invalid_input");
}
