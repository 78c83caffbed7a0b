//! The tools of the MCP server that no other story calls, and that every answer is what its schema says.

use serde_json::{Value, json};

use crate::mcp_client::{Client, ended, schedule, world};
use crate::world::{World, wait_for};

/// Whether a value is of the types that a schema of ours names.
fn fits(schema: &Value, value: &Value) -> bool {
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
            .all(|(name, schema)| value.get(name).is_none_or(|it| fits(schema, it)))
        && schema.get("items").is_none_or(|schema| items.into_iter().all(|it| fits(schema, it)))
}

/// A client, and what it was told that its tools give.
struct Checked {
    client: Client,
    tools: Vec<Value>,
}

impl Checked {
    fn ok(&mut self, name: &str, asked: Value) -> Value {
        let answer = self.client.ok(name, asked);
        let tool = self.tools.iter().find(|tool| tool["name"] == name).unwrap();
        assert!(fits(&tool["outputSchema"], &answer), "{tool} gives {answer}");
        answer
    }
}

/// A world in which one run waits for a human, and one is done.
fn lived_in(client: &mut Client) -> [String; 4] {
    let echo = schedule(client);
    let done = client.ok("run_start", json!({"schedule_id": echo, "idempotency_key": "done"}));
    let done = done["run"]["id"].as_str().unwrap().to_owned();
    ended(client, &done);
    let asked = json!({"name": "out", "agent": "hook", "prompt": "go", "every": "1000h"});
    let out = client.ok("schedule_create", asked)["schedule"]["id"].as_str().unwrap().to_owned();
    let waits = client.ok("run_start", json!({"schedule_id": out, "idempotency_key": "waits"}));
    let waits = waits["run"]["id"].as_str().unwrap().to_owned();
    wait_for(|| {
        let run = client.ok("run_get", json!({"run_id": waits}));
        run["run"]["approval_id"].as_str().map(drop)
    });
    [echo, done, out, waits]
}

fn hooked() -> World {
    let world = world();
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    world
}

#[test]
fn u1_every_tool_does_what_it_says_and_answers_as_its_schema_says() {
    let world = hooked();
    let _daemon = world.up();
    let groups = ["--toolsets", "core,schedule,run,approval,agent,ledger"];
    let mut client = Client::modern(&world, &groups);
    let [echo, done, out, waits] = lived_in(&mut client);
    let tools = client.tools();
    let mut client = Checked { client, tools };

    let can = client.ok("server_capabilities", json!({}));
    let shown = world.json(&["status", "--capabilities"]);
    assert_eq!(can["capabilities"], shown["capabilities"], "both tell the truth");
    assert!(client.ok("budget_get", json!({}))["budget"].is_object());
    let status = client.ok("status_get", json!({}));
    assert_eq!(
        (&status["needs_human"], status["approvals"].as_array().unwrap().len()),
        (&json!(true), 1)
    );

    let edited =
        client.ok("schedule_update", json!({"id": echo, "name": "renamed", "every": "500h"}));
    assert_eq!(edited["schedule"]["name"], "renamed");
    assert_eq!(client.ok("schedule_get", json!({"id": echo}))["schedule"]["name"], "renamed");
    let listed = client.ok("schedule_list", json!({}));
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 2, "{listed}");

    let agents = client.ok("agent_list", json!({}));
    assert_eq!(agents["agents"].as_array().unwrap().len(), 2);
    let agent = client.ok("agent_get", json!({"name": "hook"}));
    assert_eq!(agent["agent"]["tier"], 2, "{agent}");

    let asked = client.ok("approval_list", json!({}));
    assert_eq!(asked["approvals"][0]["run_id"], waits.as_str());
    let why = client.ok("run_explain", json!({"run_id": waits}));
    assert_eq!(why["ruling"]["verdict"], "ask", "{why}");
    let cancelled = client.ok("run_cancel", json!({"run_id": waits}));
    assert_eq!(cancelled["run"]["state"], "cancelled", "{cancelled}");
    let again = client.ok("run_retry", json!({"run_id": waits, "idempotency_key": "again"}));
    assert_ne!(again["run"]["state"], "cancelled", "{again}");
    assert_eq!(client.ok("run_get", json!({"run_id": done}))["run"]["state"], "done");

    let slot = client.ok("slot_explain", json!({"id": echo}));
    assert!(slot["sentence"].is_string(), "{slot}");
    let events = client.ok("ledger_query", json!({"after": 0, "limit": 3}));
    let first: Vec<_> = events["events"].as_array().unwrap().iter().map(|it| &it["seq"]).collect();
    assert_eq!(first, [1, 2, 3]);
    let next = client.ok("ledger_query", json!({"after": events["cursor"], "limit": 1}));
    assert_eq!(next["events"][0]["seq"], 4);
    client.ok("schedule_delete", json!({"id": out}));
    assert_eq!(client.ok("schedule_list", json!({}))["schedules"].as_array().unwrap().len(), 1);
    world.verified();
}

#[test]
fn a_page_ends_where_the_answer_is_full_and_the_next_goes_on_there() {
    let world = world();
    let mut client = Client::modern(&world, &[]);
    let wide = |number: usize| {
        json!({
            "name": format!("{number:0>3}{}", "n".repeat(90)), "agent": "echo",
            "prompt": format!("{number} {}", "p".repeat(400)), "every": "1000h",
        })
    };
    for number in 0..100 {
        client.ok("schedule_create", wide(number));
    }
    let (mut seen, mut cursor) = (Vec::new(), None);
    loop {
        let asked = match &cursor {
            Some(cursor) => json!({"limit": 100, "cursor": cursor}),
            None => json!({"limit": 100}),
        };
        let answer = client.tool("schedule_list", asked);
        assert!(answer.to_string().len() <= 64 << 10, "{}", answer.to_string().len());
        let page = &answer["structuredContent"];
        assert!(page.get("truncated").is_none(), "nothing of it is cut");
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
fn whoever_gives_up_on_a_call_takes_nothing_back() {
    let world = hooked();
    let _daemon = world.up();
    for era in [Client::legacy, Client::modern] {
        let mut client = era(&world, &[]);
        let echo = schedule(&mut client);
        // Of what is cancelled nothing is answered, but it is carried out.
        let key = format!("given-up-{}", client.modern);
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
        assert_eq!(ended(&mut client, &run)["run"]["state"], "done");
    }
    let runs = world.json(&["run", "list"]);
    assert_eq!(runs["runs"].as_array().unwrap().len(), 2, "{runs}");
}

#[test]
fn every_resource_is_read_and_every_prompt_is_given() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::modern(&world, &[]);
    let read = |client: &mut Client, uri: &str| -> Value {
        let answer = client.ask("resources/read", json!({"uri": uri}));
        let text = answer["result"]["contents"][0]["text"].as_str();
        serde_json::from_str(text.unwrap_or_else(|| panic!("{answer}"))).unwrap()
    };
    let listed = client.ask("resources/list", json!({}));
    let uris = listed["result"]["resources"].as_array().unwrap().clone();
    for resource in &uris {
        assert!(read(&mut client, resource["uri"].as_str().unwrap()).is_object(), "{resource}");
    }
    assert!(uris.iter().any(|it| it["uri"] == "midwatch://ledger/head"), "{uris:?}");

    let prompts = client.ask("prompts/list", json!({}))["result"]["prompts"].clone();
    for prompt in prompts.as_array().unwrap() {
        let names = prompt["arguments"].as_array().cloned().unwrap_or_default();
        let given = names.iter().map(|it| (it["name"].as_str().unwrap().to_owned(), json!("it")));
        let given = Value::Object(given.collect());
        let asked = json!({"name": prompt["name"], "arguments": given});
        let told = client.ask("prompts/get", asked);
        assert!(told["result"]["messages"][0]["content"]["text"].is_string(), "{told}");
        if !names.is_empty() {
            let missing = client.ask("prompts/get", json!({"name": prompt["name"]}));
            assert_eq!(missing["error"]["code"], -32602, "{missing}");
        }
    }
}
