//! With an agent's token, the response for another agent's object equals that for an unknown id: by every tool, resource
//! and prompt of the MCP server, and by commands over the socket.

use serde_json::{Map, Value, json};

use crate::support::mcp_http::HttpDaemon;
use crate::support::mcp_stdio::Client;
use crate::support::world::World;

/// Properties of tools that name no object.
const PLAIN: &[&str] = &[
    "action",
    "again",
    "all",
    "argv",
    "at",
    "backfilled",
    "capability",
    "description",
    "cron",
    "cron_expression",
    "daily",
    "event",
    "every",
    "heartbeat",
    "host",
    "idempotency_key",
    "include_cancelled",
    "input",
    "interval",
    "limit",
    "loop",
    "max_fires",
    "max_repetitions",
    "max_wait_s",
    "mcp_server_id",
    "mcp_server_name",
    "missed",
    "note",
    "on",
    "overlap",
    "path",
    "payload",
    "per_day",
    "per_day_budget",
    "prompt",
    "request_heartbeat",
    "safety_tier",
    "sensitive",
    "since",
    "skip_validation",
    "start_at",
    "state",
    "status",
    "target_tool",
    "tier",
    "time",
    "tool",
    "tool_name",
    "tool_use_id",
    "tz",
    "unique_errors",
];

/// Objects of the agent `quark`.
struct Theirs {
    schedule: String,
    run: String,
    approval: String,
}

impl Theirs {
    fn new(world: &World) -> Theirs {
        world.ok(&["agent", "add", "quark", "--backend", "builtin", "--tier", "2"]);
        let schedule = world.add_daily("theirs", "quark", "x");
        let run = world.start_run(&schedule);
        let approval = world.wait_for_approval(&run);
        Theirs { schedule, run, approval }
    }

    /// The existing object that a property of a tool can name. A property that is not known here fails the test.
    fn named_by(&self, tool: &str, property: &str) -> Option<&str> {
        let is_about = |noun: &str| tool.starts_with(noun);
        match property {
            "schedule_id" | "after" | "task_id" | "resource" => Some(&self.schedule),
            "run_id" | "trace_id" => Some(&self.run),
            "agent" | "agent_id" | "agentId" => Some("quark"),
            "name" | "source_code" if tool == "promptyoself_upload" => None,
            "name" if is_about("schedule_") || is_about("astra.schedule.") => None,
            "approval_id" => Some(&self.approval),
            "cursor" if is_about("schedule_") => Some(&self.schedule),
            "cursor" if is_about("approval_") => Some(&self.approval),
            "cursor" if is_about("agent_") => Some("quark"),
            "cursor" if tool == "run_list" => Some(&self.run),
            // Positions in an output or in the ledger.
            "cursor" if is_about("run_") || is_about("ledger_") => None,
            _ if PLAIN.contains(&property) => None,
            _ => panic!("does `{property}` of `{tool}` name an object?"),
        }
    }
}

/// A well-formed id beside this one, which no object has.
fn unknown(id: &str) -> String {
    let (start, last) = id.split_at(id.len() - 1);
    format!("{start}{}", if last == "0" { "1" } else { "0" })
}

/// The arguments without which a tool does nothing, about objects of `ada`.
fn arguments(tool: &Value, key: usize) -> Map<String, Value> {
    let name = tool["name"].as_str().unwrap();
    let mut arguments = Map::new();
    for required in tool["inputSchema"]["required"].as_array().into_iter().flatten() {
        let required = required.as_str().unwrap();
        let value = match required {
            "idempotency_key" => json!(format!("key-{key}")),
            "cron" | "cron_expression" => json!("0 9 * * *"),
            "every" => json!("1h"),
            "time" => json!("2031-01-01T00:00:00Z"),
            "target_tool" => json!("schedule_list"),
            "payload" => json!({}),
            "action" => json!("health"),
            _ => json!("x"),
        };
        arguments.insert(required.to_owned(), value);
    }
    if matches!(name, "schedule_create" | "schedule_preview") {
        arguments.insert("agent".to_owned(), json!("ada"));
        arguments.insert("prompt".to_owned(), json!("p"));
    }
    if name == "run_wait" {
        arguments.insert("max_wait_s".to_owned(), json!(0));
    }
    arguments
}

/// Compares the responses to a request about an existing and about a missing object.
fn compare(id: &str, what: &str, mut respond: impl FnMut(&str) -> Value) {
    let missing = unknown(id);
    let about = |response: Value, id: &str| {
        json!([response["result"], response["error"]]).to_string().replace(id, "ID")
    };
    let (found, expected) = (about(respond(id), id), about(respond(&missing), &missing));
    assert_eq!(found, expected, "{what}");
}

/// Compares every tool, resource, prompt and completion.
fn compare_all(theirs: &Theirs, request: &mut dyn FnMut(&str, Value) -> Value) {
    let listed = request("tools/list", json!({}));
    let tools = listed["result"]["tools"].as_array().unwrap();
    let (mut key, mut compared) = (0, 0);
    for tool in tools {
        let name = tool["name"].as_str().unwrap();
        let properties = tool["inputSchema"]["properties"].as_object();
        for property in properties.into_iter().flat_map(Map::keys) {
            let Some(id) = theirs.named_by(name, property) else { continue };
            compare(id, &format!("{property} of {name}"), |id| {
                key += 1;
                let mut arguments = arguments(tool, key);
                if property != "after" && name.starts_with("schedule_") {
                    let takes_time = properties.is_some_and(|it| it.contains_key("every"));
                    takes_time.then(|| arguments.insert("every".to_owned(), json!("7h")));
                }
                arguments.insert(property.clone(), json!(id));
                request("tools/call", json!({ "name": name, "arguments": arguments }))
            });
            compared += 1;
        }
    }
    assert!(20 < compared, "{compared}");
    let Theirs { schedule, run, .. } = theirs;
    for (id, uri) in [(run, "run/ID"), (run, "run/ID/events"), (schedule, "schedule/ID")] {
        compare(id, uri, |id| {
            let uri = format!("midwatch://{}", uri.replace("ID", id));
            request("resources/read", json!({ "uri": uri }))
        });
    }
    for (id, uri) in [(run, "midwatch://run/{id}"), (schedule, "midwatch://schedule/{id}")] {
        compare(id, "completion", |id| {
            let argument = json!({ "name": "id", "value": &id[..id.len() - 1] });
            let reference = json!({ "type": "ref/resource", "uri": uri });
            request("completion/complete", json!({ "ref": reference, "argument": argument }))
        });
    }
}

fn toolsets() -> String {
    let names: Vec<&str> = ::mcp::Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
    names.join(",")
}

#[test]
fn every_tool_answers_about_another_agents_object_as_about_an_unknown_one() {
    let mut world = World::with_agent("ada");
    let (_, token) = world.create_token("ada", "runner");
    let http = HttpDaemon::new(&mut world, token.clone());
    let theirs = Theirs::new(&world);
    compare_all(&theirs, &mut |method, parameters| http.modern(method, parameters).message());
    world.set("MIDWATCH_TOKEN", token);
    let mut stdio = Client::legacy(&world, &["--toolsets", &toolsets()]);
    compare_all(&theirs, &mut |method, parameters| stdio.request(method, parameters));
}

#[test]
fn every_command_answers_about_another_agents_object_as_about_an_unknown_one() {
    let world = World::with_agent("ada");
    let (_, token) = world.create_token("ada", "runner");
    let _daemon = world.up();
    let Theirs { schedule, run, approval } = Theirs::new(&world);
    let (schedule, run, approval) = (schedule.as_str(), run.as_str(), approval.as_str());
    for (id, command) in [
        ("quark", &["agent", "show", "ID"][..]),
        ("quark", &["agent", "edit", "ID", "--tier", "1"]),
        ("quark", &["agent", "remove", "ID"]),
        ("quark", &["agent", "test", "ID"]),
        ("quark", &["schedule", "list", "--agent", "ID"]),
        ("quark", &["run", "list", "--agent", "ID"]),
        (
            "quark",
            &["schedule", "add", "--name", "n", "--every", "1h", "--agent", "ID", "--prompt", "p"],
        ),
        (
            schedule,
            &["schedule", "add", "--name", "n", "--after", "ID", "--agent", "ada", "--prompt", "p"],
        ),
        (schedule, &["schedule", "show", "ID"]),
        (schedule, &["schedule", "edit", "ID", "--name", "mine"]),
        (schedule, &["schedule", "pause", "ID"]),
        (schedule, &["schedule", "resume", "ID"]),
        (schedule, &["schedule", "remove", "ID"]),
        (schedule, &["run", "start", "ID"]),
        (schedule, &["run", "list", "--schedule", "ID"]),
        (schedule, &["why", "ID"]),
        (run, &["run", "show", "ID"]),
        (run, &["run", "output", "ID"]),
        (run, &["run", "watch", "ID"]),
        (run, &["run", "events", "ID"]),
        (run, &["run", "cancel", "ID"]),
        (run, &["run", "retry", "ID"]),
        (run, &["run", "settle", "ID", "--as", "done"]),
        (run, &["policy", "explain", "--run", "ID"]),
        (approval, &["approval", "show", "ID"]),
        (approval, &["approval", "approve", "ID", "--plan", "00000000"]),
        (approval, &["approval", "deny", "ID"]),
    ] {
        compare(id, &command.join(" "), |id| {
            let arguments: Vec<&str> =
                command.iter().map(|word| if *word == "ID" { id } else { word }).collect();
            json!({ "result": world.json_as(&token, &arguments) })
        });
    }
}

/// A suggestion would tell an agent the names of others.
#[test]
fn names_of_other_agents_and_their_schedules_are_not_suggested() {
    let mut world = World::with_agent("ada");
    let (_, token) = world.create_token("ada", "runner");
    let _daemon = world.up();
    Theirs::new(&world);
    world.add_daily("mine too", "ada", "x");
    let hint = |client: &mut Client, tool: &str, arguments: Value| {
        let refused = client.tool(tool, arguments);
        refused["structuredContent"]["error"]["hint"].as_str().unwrap().to_owned()
    };
    let asked = [
        ("schedule_get", json!({"schedule_id": "theirz"}), "did you mean `theirs`?"),
        ("agent_get", json!({"agent": "quarc"}), "did you mean `quark`?"),
    ];
    let mine = json!({"schedule_id": "mine to"});
    let mut assistant = Client::legacy(&world, &[]);
    for (tool, arguments, suggestion) in &asked {
        let hint = hint(&mut assistant, tool, arguments.clone());
        assert!(hint.starts_with(suggestion), "{hint}");
    }
    world.set("MIDWATCH_TOKEN", token);
    let mut agent = Client::legacy(&world, &[]);
    for (tool, arguments, _) in &asked {
        let hint = hint(&mut agent, tool, arguments.clone());
        assert!(!hint.contains("did you mean"), "{hint}");
    }
    assert!(hint(&mut agent, "schedule_get", mine).starts_with("did you mean `mine too`?"));
}
