//! The tools of the MCP server that no other story calls, and that every answer is what its schema says.

use serde_json::{Value, json};

use crate::mcp_client::{Client, ended, schedule, wide_schedule, world};
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

/// What a client is told of a tool is what it does: twice is once where it says so.
#[test]
fn hints_tell_what_a_tool_does() {
    let world = world();
    let mut client =
        Client::modern(&world, &["--toolsets", "core,schedule,run,approval,agent,ledger"]);
    let added = wide_schedule(&mut client);
    let [run, ended] = ["run", "ended"].map(|key| {
        let asked = json!({"schedule_id": added, "idempotency_key": key});
        client.ok("run_start", asked)["run"]["id"].clone()
    });
    client.ok("run_cancel", json!({"run_id": ended}));
    let changes = || {
        let kinds = world.kinds();
        kinds.iter().filter(|kind| !kind.starts_with("tool.")).count()
    };
    let tools = client.tools();
    let mut changing: Vec<&Value> =
        tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == false).collect();
    // What takes something away comes last.
    changing.sort_by_key(|tool| tool["annotations"]["destructiveHint"] == true);
    let (mut destructive, mut each_time) = (Vec::new(), Vec::new());
    for tool in changing {
        let name = tool["name"].as_str().unwrap();
        let hints = &tool["annotations"];
        let mut asked = match name {
            "schedule_create" => {
                json!({"name": "more", "agent": "echo", "prompt": "p", "every": "9h"})
            }
            "schedule_update" => json!({"id": added, "name": "renamed"}),
            "schedule_pause" | "schedule_resume" | "schedule_delete" => json!({"id": added}),
            "run_start" => json!({"schedule_id": added}),
            "run_cancel" => json!({"run_id": run}),
            "run_retry" => json!({"run_id": ended}),
            other => panic!("nobody has said how `{other}` is called"),
        };
        let is_once = hints["idempotentHint"].as_bool().unwrap();
        if !is_once {
            let required = tool["inputSchema"]["required"].as_array().unwrap();
            assert!(required.contains(&json!("idempotency_key")), "{tool}");
            each_time.push(name.to_owned());
            asked["idempotency_key"] = json!(format!("{name}-once"));
        }
        let before = changes();
        client.ok(name, asked.clone());
        let once = changes();
        assert!(before < once, "`{name}` changes nothing");
        if !is_once {
            asked["idempotency_key"] = json!(format!("{name}-again"));
        }
        client.tool(name, asked);
        assert!(!is_once || once == changes(), "{tool}");
        if hints["destructiveHint"] == true {
            destructive.push(name.to_owned());
        }
    }
    assert_eq!(destructive, ["schedule_delete", "run_cancel"]);
    assert_eq!(each_time, ["run_start", "run_retry"]);
}

#[test]
fn what_a_model_is_told_to_do_next_can_be_done() {
    let world = world();
    let mut client = Client::modern(&world, &["--toolsets", "core,schedule,run,ledger"]);
    let id = schedule(&mut client);
    let asked = json!({"schedule_id": id, "idempotency_key": "k"});
    let next = |answer: Value| answer["next_action"].as_str().unwrap().to_owned();
    let told = next(client.ok("run_start", asked.clone()));
    assert!(told.contains("no daemon keeps the watch") && !told.contains("run_wait"), "{told}");
    let _daemon = world.up();
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let asked = json!({"schedule_id": wide_schedule(&mut client), "idempotency_key": "frozen"});
    let frozen = client.ok("run_start", asked);
    let run = frozen["run"]["id"].clone();
    for told in [next(frozen), next(client.ok("run_wait", json!({"run_id": run, "max_wait_s": 0})))]
    {
        assert!(told.contains("a human has frozen the watch"), "{told}");
    }
    world.ok(&["thaw", "--reason", "on we go"]);
    ended(&mut client, run.as_str().unwrap());

    let hint = |client: &mut Client, name: &str, asked: Value| {
        let refused = client.tool(name, asked);
        refused["structuredContent"]["error"]["hint"].as_str().unwrap().to_owned()
    };
    let asked = json!({"run_id": "run_00066079f96c16ad0000179460ebb502"});
    assert_eq!(hint(&mut client, "run_get", asked), "run_list shows the runs");
    let mut daily = json!({"name": "d", "agent": "echo", "prompt": "p", "daily": "09:00"});
    assert!(hint(&mut client, "schedule_create", daily.clone()).contains("`tz: Europe/Berlin`"));
    for (field, value) in
        [("daily", "09:00"), ("cron", "0 9 * * mon-fri"), ("at", "2090-01-01T09:00")]
    {
        daily.as_object_mut().unwrap().retain(|name, _| name != "daily");
        let mut asked = daily.clone();
        (asked[field], asked["tz"]) = (json!(value), json!("Europe/Berlin"));
        let added = client.ok("schedule_create", asked);
        assert!(added["next"][0].is_string(), "{added}");
    }

    // A page goes on where the last one ended.
    let first = client.ok("ledger_query", json!({"cursor": 0, "limit": 2}));
    let second = client.ok("ledger_query", json!({"cursor": first["cursor"], "limit": 1}));
    assert_eq!(second["events"][0]["seq"], 3, "{second}");

    // What a schedule does may be a tool.
    let asked = json!({
        "name": "hush", "every": "900h", "tool": "schedule_pause", "payload": {"id": id},
    });
    let added = client.ok("schedule_create", asked)["schedule"].clone();
    assert_eq!(added["action"]["tool"], "schedule_pause", "{added}");
    let changed = json!({"id": added["id"], "tool": "schedule_resume"});
    let changed = client.ok("schedule_update", changed)["schedule"].clone();
    assert_eq!(changed["action"]["tool"], "schedule_resume", "{changed}");
    let neither = json!({"name": "x", "every": "1h"});
    assert_eq!(client.refused("schedule_create", neither), "invalid_input");
}
