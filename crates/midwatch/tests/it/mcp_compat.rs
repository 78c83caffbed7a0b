//! The tools of other programs, as their clients call them.

use std::fmt::Write;

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::world::{World, wait_for};

const ALL: &str = "core,schedule,run,approval,agent,ledger,astra,promptyoself,foundry";
const FOREIGN: &str = "astra,promptyoself,foundry";

/// What was called with what, and what came back.
#[derive(Default)]
struct Transcript(String);

impl Transcript {
    fn call(&mut self, client: &mut Client, name: &str, arguments: Value) -> Value {
        let answer = said(client, name, arguments.clone());
        let shown = serde_json::to_string_pretty(&plain(&answer)).unwrap();
        writeln!(self.0, "> {name} {}\n{shown}\n", plain(&arguments)).unwrap();
        answer
    }
}

/// What a tool answers, in its own words. None of these words is an error of the protocol.
fn said(client: &mut Client, name: &str, arguments: Value) -> Value {
    let answer = client.ask("tools/call", json!({"name": name, "arguments": arguments}));
    let result = &answer["result"];
    assert_eq!(result["isError"], false, "{name}: {answer}");
    assert_eq!(result["content"].as_array().unwrap().len(), 1, "{name}: {answer}");
    let text = result["content"][0]["text"].as_str().unwrap();
    let said: Value = serde_json::from_str(text).unwrap();
    if let Some(structured) = result.get("structuredContent") {
        assert_eq!(*structured, said, "both say the same");
    }
    said
}

/// Without what is another each time.
fn plain(value: &Value) -> Value {
    match value {
        Value::String(text) => Value::String(plain_text(text)),
        Value::Array(items) => items.iter().map(plain).collect(),
        Value::Object(fields) => fields
            .iter()
            .map(|(name, value)| match name.as_str() {
                "duration_ms" if value.is_i64() => (name.clone(), json!("<ms>")),
                "db" => (name.clone(), json!("<data>")),
                _ => (name.clone(), plain(value)),
            })
            .collect(),
        other => other.clone(),
    }
}

fn plain_text(text: &str) -> String {
    let is_instant = text.len() > 18 && text.as_bytes()[10] == b'T' && text.starts_with("20");
    match text {
        _ if is_instant => "<instant>".to_owned(),
        _ if text.starts_with("run_") => "<run>".to_owned(),
        _ if text.starts_with("tool_") && text.len() == 17 => "tool_<id>".to_owned(),
        _ => text.to_owned(),
    }
}

fn names(client: &mut Client) -> Vec<String> {
    client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect()
}

fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    world
}

/// Runs a schedule of an agent to its end, and returns its id.
fn ran(world: &World, agent: &str, state: &str) -> String {
    let add = ["schedule", "add", "--name", agent, "--agent", agent, "--prompt", "go"];
    let when = ["--every", "1000h", "--attempts", "1"];
    let added = world.json(&[&add[..], &when].concat());
    let id = added["schedule"]["id"].as_str().unwrap().to_owned();
    world.ok(&["run", "start", &id]);
    wait_for(|| {
        let runs = world.json(&["run", "list", "--schedule", &id]);
        (runs["runs"][0]["state"] == state).then_some(())
    });
    id
}

#[test]
fn a_client_of_astra_schedules_tools_and_sees_what_became_of_them() {
    let world = world();
    world.ok(&["agent", "add", "fails", "--backend", "command", "--", "false"]);
    let daemon = world.up();
    let task = ran(&world, "echo", "done");
    ran(&world, "fails", "failed");
    let mut client = Client::legacy(&world, &["--toolsets", "astra"]);
    let mut story = Transcript::default();
    story.call(&mut client, "astra.health", json!({}));

    let create = json!({
        "name": "autonomous_coding", "cron_expression": "0 9 * * 1 30", "target_tool": "status_get",
        "payload": {}, "safety_tier": 1,
    });
    story.call(&mut client, "astra.schedule.create", json!({"name": "n", "payload": {}}));
    let created = story.call(&mut client, "astra.schedule.create", create.clone());
    let id = created["schedule_id"].as_str().unwrap().to_owned();
    story.call(&mut client, "astra_schedule_create", create.clone());
    let mut other = create.clone();
    other["per_day_budget"] = json!(9);
    story.call(&mut client, "astra.schedule.create", other);
    let mut never = create.clone();
    never["cron_expression"] = json!("0 0 31 2 *");
    story.call(&mut client, "astra.schedule.create", never);

    let modify = json!({"schedule_id": id, "cron_expression": "0 */6 * * *", "per_day_budget": 2});
    story.call(&mut client, "astra.schedule.modify", modify);
    story.call(&mut client, "astra.schedule.modify", json!({"schedule_id": id}));
    story.call(&mut client, "astra.schedule.pause", json!({}));
    story.call(&mut client, "astra.schedule.pause", json!({"schedule_id": id}));
    story.call(&mut client, "astra.schedule.pause", json!({"schedule_id": "sch_00000000"}));
    assert_eq!(client.leave(), 0);

    // The id is known to whoever comes next, also after a crash.
    daemon.kill();
    let _daemon = world.up();
    let mut client = Client::modern(&world, &["--toolsets", "astra"]);
    story.call(&mut client, "astra.schedule.list", json!({"status": "paused"}));
    story.call(&mut client, "astra_schedule_resume", json!({"schedule_id": id}));
    let listed = story.call(&mut client, "astra.schedule.list", json!({"status": "active"}));
    assert_eq!(listed["schedules"][0]["id"], id);

    let done = story.call(&mut client, "tasks_list", json!({"task_id": task, "status": "success"}));
    let trace = done["executions"][0]["trace_id"].clone();
    story.call(&mut client, "tasks_by_trace", json!({"trace_id": trace}));
    story.call(&mut client, "tasks_last_failed", json!({"unique_errors": true}));
    story.call(&mut client, "tasks_list", json!({"since": "2199-01-01"}));
    story.call(&mut client, "tasks_list", json!({"status": "odd"}));
    // It is the same schedule on every surface.
    let shown = world.json(&["schedule", "list"]);
    let named = format!("autonomous_coding ({id})");
    let is_named = |schedule: &&Value| schedule["name"] == named.as_str();
    assert!(shown["schedules"].as_array().unwrap().iter().any(|it| is_named(&it)), "{shown}");
    insta::assert_snapshot!("astra", story.0.replace(&task, "<schedule>"));
    world.verified();
}

#[test]
fn a_client_of_promptyoself_schedules_lists_and_cancels() {
    let mut world = world();
    world.ok(&["agent", "add", "other", "--backend", "builtin"]);
    world.set("LETTA_AGENT_ID", "echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let mut story = Transcript::default();
    story.call(&mut client, "health", json!({}));
    story.call(&mut client, "promptyoself_agents", json!({"request_heartbeat": true}));
    story.call(&mut client, "promptyoself_executor_status", json!({}));
    story.call(&mut client, "promptyoself_get_scoped_default_agent", json!({}));

    let time = json!({"prompt": "Hello", "time": "2199-01-01T00:00:00-05:00", "agentId": "other",
                      "mcp_server_name": "x", "skip_validation": true});
    story.call(&mut client, "promptyoself_schedule_time", time);
    let cron = json!({"prompt": "Hi", "cron": "0 9 * * 1-5", "max_repetitions": 3});
    story.call(&mut client, "promptyoself_schedule_cron", cron);
    let every = json!({"prompt": "Look", "every": "1000h", "idempotency_key": "once"});
    let first = story.call(&mut client, "promptyoself_schedule_every", every.clone());
    let again = story.call(&mut client, "promptyoself_schedule_every", every);
    assert_eq!(first["id"], again["id"], "the same key, the same prompt");
    let other = json!({"prompt": "Else", "every": "1000h", "idempotency_key": "once"});
    story.call(&mut client, "promptyoself_schedule_every", other);
    for wrong in [
        json!({"prompt": "p", "every": "soon"}),
        json!({"every": "5m"}),
        json!({"prompt": "p", "every": "5m", "max_repetitions": 0}),
        json!({"prompt": "p", "every": "5m", "agent_id": "nope", "skip_validation": true}),
    ] {
        story.call(&mut client, "promptyoself_schedule_every", wrong);
    }
    let past = json!({"prompt": "p", "time": "2020-01-01T00:00:00Z"});
    story.call(&mut client, "promptyoself_schedule_time", past);

    story.call(&mut client, "promptyoself_list", json!({"agent_id": "echo"}));
    story.call(&mut client, "promptyoself_cancel", json!({"schedule_id": 1}));
    story.call(&mut client, "promptyoself_cancel", json!({"id": "1"}));
    story.call(&mut client, "promptyoself_cancel", json!({"schedule_id": 99}));
    story.call(&mut client, "promptyoself_cancel", json!({}));
    story.call(&mut client, "promptyoself_execute", json!({"loop": true, "interval": 60}));
    story.call(&mut client, "promptyoself_execute", json!({"interval": "often"}));
    story.call(&mut client, "promptyoself_inference_diagnostics", json!({}));
    insta::assert_snapshot!("promptyoself", story.0);

    // The command line sees the same prompts under the same numbers.
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
    // A number that follows from a key does not move those that are counted.
    let third = json!({"prompt": "Third", "every": "1000h"});
    assert_eq!(said(&mut client, "promptyoself_schedule_every", third)["id"], 3);
    world.verified();
}

#[test]
fn whoever_is_held_to_itself_schedules_and_sees_nothing_of_others() {
    let mut world = world();
    world.ok(&["agent", "add", "other", "--backend", "builtin"]);
    let _daemon = world.up();
    let mut free = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let asked = |agent: &str| json!({"prompt": "p", "every": "1000h", "agent_id": agent});
    let theirs = said(&mut free, "promptyoself_schedule_every", asked("other"))["id"].clone();
    world.set("LETTA_AGENT_ID", "echo");
    world.set("PROMPTYOSELF_SELF_ONLY", "1");
    let mut client = Client::legacy(&world, &["--toolsets", "promptyoself"]);
    let refused = said(&mut client, "promptyoself_schedule_every", asked("other"));
    assert_eq!(refused["code"], "role_too_low", "{refused}");
    assert_eq!(
        said(&mut client, "promptyoself_schedule_every", asked("echo"))["status"],
        "success"
    );
    let listed = said(&mut client, "promptyoself_list", json!({}));
    assert_eq!(listed["count"], 1, "{listed}");
    let cancelled = said(&mut client, "promptyoself_cancel", json!({"schedule_id": theirs}));
    assert_eq!(cancelled["code"], "not_found", "{cancelled}");
    let agents = said(&mut client, "promptyoself_agents", json!({}));
    assert_eq!((&agents["count"], &agents["agents"][0]["id"]), (&json!(1), &json!("echo")));
}

#[test]
fn a_client_of_foundry_gets_envelopes_whatever_it_asks() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &["--toolsets", "foundry"]);
    let mut story = Transcript::default();
    for arguments in [
        json!({"action": "capabilities"}),
        json!({"action": " Health "}),
        json!({"action": "tools"}),
        json!({}),
        json!({"action": 5}),
    ] {
        story.call(&mut client, "server", arguments);
    }
    insta::assert_snapshot!("foundry", story.0);
    assert_eq!(names(&mut client), ["server"]);
}

#[test]
fn standing_orders_judge_what_comes_in_other_words() {
    let world = world();
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
    let refused = said(&mut client, "astra.schedule.create", create);
    assert_eq!((&refused["success"], &refused["code"]), (&json!(false), &json!("denied")));
    let every = json!({"prompt": "p", "every": "1h", "agent_id": "echo"});
    let refused = said(&mut client, "promptyoself_schedule_every", every);
    assert_eq!((&refused["status"], &refused["code"]), (&json!("error"), &json!("denied")));
    assert_eq!(refused["error"], refused["message"], "{refused}");
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
}

#[test]
fn names_with_dots_are_listed_when_chosen_with_a_warning_and_gone_where_nothing_is_changed() {
    let world = world();
    let outcome = world.run(&["mcp", "--toolsets", "astra"]);
    assert_eq!((outcome.code, outcome.stdout.as_str()), (Some(0), ""));
    assert!(outcome.stderr.contains("dots in their names"), "{}", outcome.stderr);
    let outcome = world.run(&["mcp", "--toolsets", "promptyoself,foundry"]);
    assert_eq!(outcome.stderr, "");

    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    assert!(names(&mut client).iter().all(|name| !name.contains('.') && name != "server"));
    let mut client = Client::modern(&world, &["--toolsets", FOREIGN]);
    assert!(names(&mut client).contains(&"astra.schedule.create".to_owned()));
    let mut client = Client::legacy(&world, &["--toolsets", FOREIGN, "--read-only"]);
    let listed = names(&mut client);
    assert!(listed.contains(&"server".to_owned()), "{listed:?}");
    let health = said(&mut client, "astra_health", json!({}));
    assert!(!health["tools"].to_string().contains("create"), "{health}");
    for name in ["astra.schedule.create", "astra_schedule_pause", "promptyoself_cancel"] {
        assert!(!listed.contains(&name.to_owned()), "{name}");
        let answer = client.ask("tools/call", json!({"name": name, "arguments": {}}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
}

#[test]
fn b01_nothing_that_approves_is_a_tool_under_any_name() {
    let world = world();
    let _daemon = world.up();
    for toolsets in [ALL, "astra", "promptyoself", "foundry"] {
        let mut client = Client::legacy(&world, &["--toolsets", toolsets]);
        for noun in ["approval", "run", "astra.approval", "astra.schedule", "promptyoself", "task"]
        {
            for verb in ["approve", "deny", "decide", "resolve", "waive", "grant", "freeze"] {
                for name in [format!("{noun}.{verb}"), format!("{noun}_{verb}"), verb.to_owned()] {
                    for name in [name.replace('.', "_"), name] {
                        let asked = json!({"name": name, "arguments": {"id": "apr_0"}});
                        let answer = client.ask("tools/call", asked);
                        assert_eq!(answer["error"]["code"], -32602, "{name}: {answer}");
                    }
                }
            }
        }
        let listed = names(&mut client);
        assert!(!listed.iter().any(|name| name.contains("approve")), "{listed:?}");
        assert_eq!(client.leave(), 0);
    }
}

/// Whether an answer is in the words of its toolset.
fn is_of_dialect(tool: &str, said: &Value) -> bool {
    let text = |name: &str| said[name].as_str().is_some_and(|text| !text.is_empty());
    match tool {
        "server" => {
            let fields: Vec<&String> = said.as_object().unwrap().keys().collect();
            let is_well = fields == ["data", "error", "meta", "success"];
            is_well && (said["success"] == true || text("error"))
        }
        tool if tool.starts_with("promptyoself") || tool == "health" => {
            text("status") && (said["status"] != "error" || text("error") && text("message"))
        }
        _ => said["success"] == true || said["success"] == false && text("error"),
    }
}

#[test]
fn hostile_arguments_are_answered_in_the_same_words_and_break_nothing() {
    let world = world();
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
        let mut asked = vec![json!({"no_such_field": 1}), json!({"force": true})];
        for value in &values {
            let all = fields.iter().map(|field| ((*field).clone(), value.clone()));
            asked.push(Value::Object(all.collect()));
        }
        for arguments in asked {
            let said = said(&mut client, name, arguments.clone());
            let shown = arguments.to_string();
            let shown = shown.get(..200).unwrap_or(&shown);
            assert!(is_of_dialect(name, &said), "{name} {shown}: {said}");
        }
        // What is not even an object of arguments is for the protocol.
        let answer = client.ask("tools/call", json!({"name": name, "arguments": [1]}));
        assert_eq!(answer["error"]["code"], -32602, "{answer}");
    }
    // Whole calls with one thing wrong.
    let create = json!({"name": "a\0b", "cron_expression": "@daily", "target_tool": "status_get",
                        "payload": {}});
    assert_eq!(said(&mut client, "astra.schedule.create", create)["success"], false);
    let long = json!({"name": "n", "cron_expression": "@daily", "target_tool": "status_get",
                      "payload": {"x": "x".repeat(100_000)}});
    assert_eq!(said(&mut client, "astra.schedule.create", long)["success"], false);
    let every = json!({"prompt": "x".repeat(100_000), "every": "1h", "agent_id": "echo"});
    assert_eq!(said(&mut client, "promptyoself_schedule_every", every)["status"], "error");
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]), "nothing was added");
    assert_eq!(client.leave(), 0);
    world.verified();
}
