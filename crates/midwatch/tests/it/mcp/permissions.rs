//! What a client of the MCP server may do: no tool decides, and policy applies to every change.

use kernel::backend::Tier;
use runtime::capability;
use serde_json::{Value, json};

use crate::support::approval_attack::ApprovalAttack;
use crate::support::mcp_stdio::{
    Client, answer_of, create_schedule, start_run, wait_for_end, wait_for_run,
};
use crate::support::world::World;

#[test]
fn deciding_tools_are_neither_listed_nor_callable() {
    let world = World::with_agent("echo");
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    let _daemon = world.up();
    let mut client =
        Client::modern(&world, &["--toolsets", "core,schedule,run,approval,agent,ledger"]);
    let schedule = json!({"name": "out", "agent": "hook", "prompt": "go", "every": "1000h"});
    let id = create_schedule(&mut client, schedule);
    let run = start_run(&mut client, &id, "k");
    let parked = wait_for_run(&mut client, &run, |it| it["run"]["approval_id"].is_string());
    let approval = parked["run"]["approval_id"].as_str().unwrap().to_owned();
    let waits = client.ok("run_get", json!({"run_id": run}));
    assert!(waits["next_action"].as_str().unwrap().contains("you cannot"), "{waits}");
    let called = client.ok("approval_call_human", json!({"approval_id": approval}));
    assert_eq!(called["waiting"], true, "{called}");

    // Neither listed nor callable by its name.
    let words =
        ["approve", "deny", "decide", "freeze", "thaw", "lease", "token", "config", "settle"];
    let names: Vec<String> =
        client.tools().iter().map(|tool| tool["name"].as_str().unwrap().to_owned()).collect();
    let is_suspicious = |name: &&String| {
        *name != "permission_decide" && words.iter().any(|word| name.contains(word))
    };
    assert_eq!(names.iter().find(is_suspicious), None);
    for name in ["approval_approve", "approval_resolve", "freeze", "lease_renew", "policy_set"] {
        let call = json!({"name": name, "arguments": {"id": approval}});
        let response = client.request("tools/call", call);
        assert_eq!(response["error"]["code"], -32602, "{response}");
    }
    // The ledger records who tried, at most once a minute.
    let [refused] = world.events_of("watch.refused").try_into().unwrap();
    let tried = &refused["body"];
    assert_eq!((&tried["call"], &tried["code"]), (&json!("tool.misuse"), &json!("not_found")));
    assert_eq!(tried["about"], "approval_approve");
    assert!(tried["by"].as_str().unwrap().starts_with("mcp:"), "{tried}");
    // There is no method for it either.
    let response = client.request("approval/decide", json!({"id": approval}));
    assert_eq!(response["error"]["code"], -32601, "{response}");
    let shown = world.json(&["approval", "show", &approval]);
    assert_eq!(shown["approval"]["state"], "pending");
}

/// A model could give its user, or a shell, whatever command it is handed.
#[test]
fn nothing_that_a_model_reads_contains_a_command_that_approves() {
    let world = World::with_agent("echo");
    world.ok(&["agent", "add", "hook", "--backend", "webhook", "--url", "http://127.0.0.1:9/x"]);
    let _daemon = world.up();
    let toolsets: Vec<&str> = ::mcp::Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
    let toolsets = toolsets.join(",");
    for is_modern in [false, true] {
        let mut client = match is_modern {
            true => Client::modern(&world, &["--toolsets", &toolsets]),
            false => Client::legacy(&world, &["--toolsets", &toolsets]),
        };
        let schedule = json!({"name": format!("out-{is_modern}"), "agent": "hook", "prompt": "go", "every": "1000h"});
        let id = create_schedule(&mut client, schedule);
        let run = start_run(&mut client, &id, &format!("k-{is_modern}"));
        let parked = wait_for_run(&mut client, &run, |it| it["run"]["approval_id"].is_string());
        let approval = parked["run"]["approval_id"].clone();
        let mut read = vec![("wait_for_run".to_owned(), parked)];
        for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list"] {
            read.push((method.to_owned(), client.request(method, json!({}))));
        }
        // Every tool that only reads, and the one that calls a human.
        let arguments = json!({
            "run_id": run, "schedule_id": id, "approval_id": approval, "id": approval, "agent": "hook", "name": "hook",
            "about": approval, "wait_ms": 1, "timeout_ms": 1, "at": "2030-01-01T00:00:00Z",
        });
        for tool in client.tools() {
            let name = tool["name"].as_str().unwrap().to_owned();
            let only_reads = tool["annotations"]["readOnlyHint"] == true;
            if !only_reads && name != "approval_call_human" {
                continue;
            }
            let known = tool["inputSchema"]["properties"].as_object().cloned().unwrap_or_default();
            let given = arguments.as_object().unwrap().iter();
            let given: serde_json::Map<String, Value> = given
                .filter(|(key, _)| known.contains_key(*key))
                .map(|(key, value)| (key.clone(), value.clone()))
                .collect();
            let result = client.request("tools/call", json!({"name": name, "arguments": given}));
            read.push((name, result));
        }
        let names: Vec<&str> = read.iter().map(|(name, _)| name.as_str()).collect();
        for expected in ["approval_get", "approval_list", "run_get", "approval_call_human"] {
            let (_, answer) = read.iter().find(|(name, _)| name == expected).expect(expected);
            assert!(answer.to_string().contains(approval.as_str().unwrap()), "{names:?}: {answer}");
        }
        for (name, answer) in &read {
            let answer = answer.to_string();
            for command in
                ["approval approve", "midwatch approve", "approval sign", "approve --plan"]
            {
                assert!(!answer.contains(command), "{name} hands out `{command}`: {answer}");
            }
        }
    }
}

#[test]
fn no_tool_or_method_approves_freezes_renews_or_changes_policy() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let (attack, authority) =
        (ApprovalAttack::new(&world), world.json(&["status"])["authority"].clone());
    let policy = world.json(&["policy", "check"]);
    let toolsets: Vec<&str> = ::mcp::Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
    let mut client = Client::modern(&world, &["--toolsets", &toolsets.join(",")]);
    for is_modern in [false, true] {
        client.modern = is_modern;
        attack.send_everything(&mut |method, parameters| client.request(method, parameters));
    }
    attack.check_nothing_decided(&world, &authority);
    assert_eq!(world.json(&["policy", "check"]), policy);
    assert!(!world.kinds().iter().any(|kind| kind.starts_with("token.")));
}

#[test]
fn assistant_is_limited_by_policy() {
    let world = World::with_agent("echo");
    std::fs::write(
        world.data().join("policy.toml"),
        "[[rule]]\nid = \"no-new\"\ndeny = [\"schedule.create\"]\nrole = [\"runner\"]\n\
         match = [{ capability = \"schedule.create\", role = \"runner\" }]\n\
         not_match = [{ capability = \"schedule.read\" }]\n\
         [[rule]]\nid = \"ask-first\"\nask = [\"run.start\"]\n\
         match = [{ capability = \"run.start\" }]\nnot_match = [{ capability = \"run.cancel\" }]\n",
    )
    .unwrap();
    let id = world.add_daily("mine", "echo", "x");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let schedule = json!({"name": "new", "agent": "echo", "prompt": "p", "every": "1h"});
    assert_eq!(client.refused("schedule_create", schedule), "denied");
    let start = json!({"schedule_id": id, "idempotency_key": "k"});
    assert_eq!(client.refused("run_start", start), "human_needed");
    assert_eq!(client.ok("schedule_pause", json!({"schedule_id": id}))["changed"], true);
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
    assert_eq!(ruling["ruling"]["verdict"], "ask", "an approval could allow it: {ruling}");
}

/// Claude Code (`--permission-prompt-tool`) refuses an answer with structured content, and one of a tool with an output
/// schema.
#[test]
fn permission_decide_answers_with_one_block_of_text() {
    let world = World::with_agent("echo");
    let read = json!({"tool_name": "Read", "input": {"file_path": "/srv/x"}, "tool_use_id": "t"});
    let shell = json!({"tool_name": "Bash", "input": {"command": "rm -rf /"}, "tool_use_id": "t"});
    for mut client in [Client::legacy(&world, &[]), Client::modern(&world, &[])] {
        let tools = client.tools();
        let without_schema = tools.iter().filter(|tool| tool.get("outputSchema").is_none());
        let names: Vec<&Value> = without_schema.map(|tool| &tool["name"]).collect();
        assert_eq!(names, ["permission_decide"]);
        for (call, is_error, expected) in [
            (&read, false, json!({"behavior": "allow", "updatedInput": {"file_path": "/srv/x"}})),
            (&shell, false, json!({"behavior": "deny"})),
            // What cannot be decided is an error, which the host takes as a denial.
            (&json!({"tool_name": "Read"}), true, json!({})),
        ] {
            let result = client.tool("permission_decide", call.clone());
            let answer = answer_of(&result);
            let block = json!({"type": "text", "text": answer.to_string()});
            assert_eq!(result["content"], json!([block]), "{result}");
            assert_eq!(result.get("structuredContent"), None, "{result}");
            assert_eq!(result["isError"], is_error, "{result}");
            for (name, value) in expected.as_object().unwrap() {
                assert_eq!(&answer[name], value, "{result}");
            }
            assert_eq!(answer.get("updatedInput").is_some(), answer["behavior"] == "allow");
        }
    }
}

#[test]
fn agent_token_reaches_only_its_own_schedules() {
    let mut world = World::with_agent("echo");
    world.add_agent("ada");
    let (_, token) = world.create_token("ada", "runner");
    let other = world.add_daily("not-hers", "echo", "x");
    let _daemon = world.up();
    world.set("MIDWATCH_TOKEN", token);
    let mut ada = Client::legacy(&world, &[]);
    assert_eq!(ada.refused("schedule_get", json!({"schedule_id": other})), "not_found");
    let fired = json!({"schedule_id": other, "idempotency_key": "k"});
    assert_eq!(ada.refused("run_start", fired), "not_found");
    let schedule = json!({"name": "own", "agent": "ada", "prompt": "hi", "every": "9h"});
    let own = create_schedule(&mut ada, schedule);
    let run = start_run(&mut ada, &own, "k2");
    assert_eq!(wait_for_end(&mut ada, &run)["run"]["state"], "done");
    assert_eq!(ada.ok("schedule_list", json!({}))["schedules"].as_array().unwrap().len(), 1);
    assert_eq!(ada.refused("schedule_resume", json!({"schedule_id": own})), "role_too_low");
}

#[test]
fn directory_reads_are_denied_if_a_path_below_is_denied() {
    let world = World::with_agent("echo");
    let decide = |client: &mut Client, tool: &str, input: Value| {
        let request = json!({"tool_name": tool, "input": input});
        client.ok("permission_decide", request)["behavior"].as_str().unwrap().to_owned()
    };
    let reads = [
        ("Grep", json!({"pattern": "key", "path": "/srv"})),
        ("Glob", json!({"pattern": "/srv/secret/**"})),
        ("Glob", json!({"pattern": "../secret/*", "path": "/srv/x"})),
        ("LS", json!({"path": "/srv"})),
    ];
    let mut client = Client::legacy(&world, &[]);
    for (tool, input) in &reads {
        assert_eq!(decide(&mut client, tool, input.clone()), "allow", "{tool}");
    }
    std::fs::write(
        world.data().join("policy.toml"),
        "[[rule]]\nid = \"secret\"\ndeny = [\"filesystem.read\"]\npath = [\"/srv/secret/*\"]\n\
         match = [{ capability = \"filesystem.read\", path = \"/srv/secret/x\" }]\n\
         not_match = [{ capability = \"filesystem.read\", path = \"/srv/x\" }]\n",
    )
    .unwrap();
    for (tool, input) in reads {
        assert_eq!(decide(&mut client, tool, input), "deny", "{tool}");
    }
    let notebook = json!({"notebook_path": "/srv/secret/x.ipynb"});
    assert_eq!(decide(&mut client, "NotebookRead", notebook), "deny");
    assert_eq!(decide(&mut client, "NotebookRead", json!({"notebook_path": "/srv/x"})), "allow");
    assert_eq!(decide(&mut client, "Read", json!({"file_path": "/srv/x"})), "allow");
    let both = json!({"tool_name": "Bash", "capability": "filesystem.read"});
    assert_eq!(client.refused("permission_decide", both), "invalid_input");
}

#[test]
fn read_only_server_lists_and_calls_only_reading_tools() {
    let world = World::with_agent("echo");
    let mut client = Client::legacy(&world, &["--read-only"]);
    for tool in client.tools() {
        assert_eq!(tool["annotations"]["readOnlyHint"], true, "{tool}");
    }
    let schedule = json!({"name": "x", "agent": "echo", "prompt": "p", "every": "1h"});
    let call = json!({"name": "schedule_create", "arguments": schedule});
    let response = client.request("tools/call", call);
    assert_eq!(response["error"]["code"], -32602, "{response}");
    assert_eq!(client.ok("schedule_preview", schedule)["dry_run"], true);
    let tools = client.tools();
    let preview = tools.iter().find(|tool| tool["name"] == "schedule_preview").unwrap();
    assert!(preview["inputSchema"]["properties"].get("prompt").is_some(), "{preview}");
    assert!(preview["inputSchema"]["properties"].get("idempotency_key").is_none(), "{preview}");
    assert_eq!(client.ok("schedule_list", json!({}))["schedules"], json!([]));
    world.refused(&["mcp", "--toolsets", "nonsense"], "bad_usage", 2);
}

#[test]
fn every_changing_tool_is_decided_by_policy() {
    let world = World::with_agent("echo");
    let changing = capability::ALL.iter().filter(|it| Tier::ReadOnly < it.tier);
    let changing: Vec<&str> = changing.map(|it| it.name).collect();
    let rules = format!(
        r#"
        [[rule]]
        id = "hands-off"
        deny = {changing:?}
        role = ["runner"]
        match = [{{ capability = "run.cancel", role = "runner" }}]
        not_match = [{{ capability = "schedule.read", role = "runner" }}]
        "#
    );
    std::fs::write(world.data().join("policy.toml"), rules).unwrap();
    let id = world.add_daily("s", "echo", "x");
    let _daemon = world.up();
    let run = world.start_run(&id);
    let mut client = Client::legacy(&world, &[]);
    let tools = client.tools();
    let changing = tools.iter().filter(|tool| tool["annotations"]["readOnlyHint"] == false);
    let mut count = 0;
    for tool in changing {
        let mut arguments = json!({});
        for field in tool["inputSchema"]["required"].as_array().unwrap() {
            let field = field.as_str().unwrap();
            arguments[field] = match field {
                "schedule_id" => json!(id),
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
