//! `register`, `list`, `cancel`, and the commands that send requests to Letta.

use std::fs;

use serde_json::json;

use super::{json_of, letta, list, ok, refused, register, run, world};
use crate::support::http_stub;
use crate::support::world::{Daemon, World};

#[test]
fn prompt_is_registered_listed_and_cancelled_with_and_without_a_daemon() {
    let world = world();
    assert_eq!(ok(&world, &["list"]), json!({"status": "success", "schedules": [], "count": 0}));
    assert!(!world.data().exists(), "`list` created the data directory");
    let first = register(&world, "agent-1", "hi", &["--time", "2030-01-01T00:00:00-05:00"]);
    let expected = json!({
        "status": "success", "id": 1, "next_run": "2030-01-01T05:00:00Z",
        "message": "Prompt scheduled with ID 1",
    });
    assert_eq!(first, expected);
    let daemon = world.up();
    let when = ["--cron", "0 9 1 1 *", "--max-repetitions", "3"];
    let second = register(&world, "agent-2", "happy new year", &when);
    assert_eq!((&second["id"], &second["next_run"]), (&json!(2), &json!("2027-01-01T09:00:00Z")));
    let start = ["--every", "90", "--start-at", "2029-01-01T00:00:00"];
    assert_eq!(register(&world, "agent-1", "again", &start)["id"], 3);

    // Ordered by the next fire, with the text of the caller and an offset.
    let listed = list(&world, &[]);
    let ids: Vec<_> = listed.iter().map(|item| &item["id"]).collect();
    assert_eq!(ids, [2, 3, 1]);
    let mut item = listed[2].clone();
    item.as_object_mut().unwrap().remove("created_at").unwrap();
    let expected = json!({
        "id": 1, "agent_id": "agent-1", "prompt_text": "hi", "schedule_type": "once",
        "schedule_value": "2030-01-01T00:00:00-05:00", "next_run": "2030-01-01T05:00:00Z",
        "active": true, "last_run": null, "max_repetitions": null, "repetition_count": 0,
    });
    assert_eq!(item, expected);
    let kinds: Vec<_> =
        listed.iter().map(|item| (&item["schedule_type"], &item["schedule_value"])).collect();
    assert_eq!(kinds[0], (&json!("cron"), &json!("0 9 1 1 *")));
    assert_eq!(kinds[1], (&json!("interval"), &json!("90")));
    assert_eq!(listed[0]["max_repetitions"], 3);
    assert_eq!(list(&world, &["--agent-id", "agent-2"]).len(), 1);

    // `schedule list` shows the same schedules, and their agents are registered.
    let schedules = world.json(&["schedule", "list"]);
    assert_eq!(schedules["schedules"].as_array().unwrap().len(), 3);
    assert_eq!(world.agents(), ["agent-1", "agent-2"]);

    let cancelled = ok(&world, &["cancel", "--id", "3"]);
    let expected =
        json!({"status": "success", "cancelled_id": 3, "message": "Schedule 3 cancelled"});
    assert_eq!(cancelled, expected);
    daemon.stop();
    assert_eq!(ok(&world, &["cancel", "--schedule-id", "3"])["already_cancelled"], true);
    assert_eq!(list(&world, &[]).len(), 2);
    let all = list(&world, &["--all", "true"]);
    assert_eq!(all.len(), 3);
    assert_eq!((&all[2]["id"], &all[2]["active"]), (&json!(3), &json!(false)));
    assert_eq!(list(&world, &["--all", "false"]).len(), 2);
    // A number is not used twice, and a cancelled prompt can be registered again.
    assert_eq!(register(&world, "agent-1", "again", &start)["id"], 4);
    world.verified();
}

#[test]
fn errors_have_the_texts_that_clients_match() {
    let world = world();
    for (arguments, text) in [
        (
            &["register", "--agent-id", "a", "--prompt", ""][..],
            "Missing required arguments: agent-id and prompt",
        ),
        (
            &["register", "--agent-id", "a", "--prompt", "p"],
            "Must specify one of --time, --cron, or --every",
        ),
        (
            &[
                "register",
                "--agent-id",
                "a",
                "--prompt",
                "p",
                "--every",
                "1h",
                "--cron",
                "* * * * *",
            ],
            "Cannot specify multiple scheduling options",
        ),
        (&["cancel", "--id", "five"], "Schedule ID must be a number"),
        (&["cancel", "--id", "99"], "Schedule 99 not found or already cancelled"),
        (&["execute", "--interval", "soon"], "Interval must be a number (seconds)"),
        (&["upload", "--source-code", ""], "Missing required argument: source-code"),
    ] {
        assert_eq!(refused(&world, arguments), text, "{arguments:?}");
    }
    for (when, text) in [
        (&["--time", "2020-01-01T00:00:00Z"][..], "Scheduled time must be in the future"),
        (&["--cron", "bad"], "Invalid cron expression: bad"),
        (&["--every", "5x"], "Invalid interval format: 5x. Use formats like '30s', '5m', '1h'"),
        (
            &["--every", "5m", "--start-at", "2020-01-01T00:00:00Z"],
            "Start time must be in the future",
        ),
        (
            &["--every", "5m", "--max-repetitions", "0"],
            "max-repetitions must be a positive integer",
        ),
        (
            &["--every", "5m", "--max-repetitions", "-1"],
            "max-repetitions must be a positive integer",
        ),
        (
            &["--cron", "* * * * *", "--start-at", "2030-01-01T00:00:00Z"],
            "--start-at can only be used with --every",
        ),
    ] {
        let flags = ["register", "--agent-id", "a", "--prompt", "p", "--skip-validation", "true"];
        assert_eq!(refused(&world, &[&flags, when].concat()), text, "{when:?}");
    }
    assert!(!world.data().exists(), "a refused command created the data directory");
    // A wrong command line prints its usage on stderr, and still a document on stdout.
    let missing = [
        (&["register"][..], "Missing required arguments: agent-id and prompt"),
        (&["register", "--prompt", "p"], "Missing required arguments: agent-id and prompt"),
        (&["cancel"], "Missing required argument: id"),
        (&["upload"], "Missing required argument: source-code"),
    ];
    for (arguments, text) in missing {
        let (code, document) = run(&world, arguments);
        assert_eq!((code, &document["error"]), (Some(2), &json!(text)), "{arguments:?}");
    }
    for arguments in [&["--nonsense"][..], &["fly"], &["list", "--id", "1"], &[]] {
        let (code, document) = run(&world, arguments);
        assert_eq!((code, &document["code"]), (Some(2), &json!("bad_usage")), "{arguments:?}");
        assert!(document["error"].is_string(), "{document}");
    }
}

/// Schedules of other commands have no number, and triggers that promptyoself does not know.
#[test]
fn list_shows_only_prompts_that_have_a_number() {
    let world = world();
    world.add_agent("ada");
    let add = ["schedule", "add", "--name", "x", "--daily", "09:00", "--tz", "UTC"];
    world.ok(&[&add[..], &["--agent", "ada", "--prompt", "hi"]].concat());
    assert_eq!(list(&world, &["--all"]).len(), 0);
    // Any registered agent can be named.
    let register = ["register", "--agent-id", "ada", "--prompt", "p", "--every", "1h"];
    assert_eq!(ok(&world, &register)["id"], 1);
    // `list` shows the current trigger, as one of promptyoself's types.
    let shown = || {
        let item = list(&world, &["--agent-id", "ada"]).into_iter().next().unwrap();
        (item["schedule_type"].clone(), item["schedule_value"].clone())
    };
    assert_eq!(shown(), (json!("interval"), json!("1h")));
    let schedules = world.json(&["schedule", "list"])["schedules"].as_array().unwrap().clone();
    let ours = schedules.iter().find(|it| it["name"] == "promptyoself 1: 1h").unwrap();
    let id = ours["id"].as_str().unwrap();
    world.ok(&["schedule", "edit", id, "--every", "2h"]);
    assert_eq!(shown(), (json!("interval"), json!("2h")));
    world.ok(&["schedule", "edit", id, "--daily", "09:00", "--tz", "UTC"]);
    assert_eq!(shown().0, "cron");
}

/// As with the earlier program, a flag may be cut off where it stays unique.
#[test]
fn flags_may_be_abbreviated() {
    let world = world();
    let flags =
        ["register", "--agent", "agent-1", "--pro", "hi", "--ev", "1h", "--skip", "--max", "3"];
    assert_eq!(ok(&world, &flags)["id"], 1);
    assert_eq!(list(&world, &["--agent", "agent-1"])[0]["max_repetitions"], 3);
    assert_eq!(run(&world, &["register", "--s", "x"]).0, Some(2), "`--s` could be two flags");
}

/// Seconds come last in promptyoself, and first in Midwatch.
#[test]
fn cron_expression_with_seconds_is_registered() {
    let world = world();
    register(&world, "agent-1", "hi", &["--cron", "0 9 1 1 * 30"]);
    let item = &list(&world, &[])[0];
    assert_eq!(
        (&item["schedule_type"], &item["schedule_value"]),
        (&json!("cron"), &json!("0 9 1 1 * 30"))
    );
    assert!(item["next_run"].as_str().unwrap().ends_with("-01-01T09:00:30Z"), "{item}");
}

/// Both names of this machine are the same server, so the message names no other.
#[test]
fn loopback_names_are_one_server() {
    let mut world = World::new();
    world.set("LETTA_BASE_URL", "http://localhost:8283");
    register(&world, "agent-1", "hi", &["--every", "1h"]);
    world.set("LETTA_BASE_URL", "http://127.0.0.1:8283");
    let again = register(&world, "agent-1", "again", &["--every", "1h"]);
    assert_eq!(again["message"], "Prompt scheduled with ID 2");
    world.set("LETTA_BASE_URL", "http://127.0.0.1:8284");
    let other = register(&world, "agent-1", "third", &["--every", "1h"]);
    assert!(other["message"].as_str().unwrap().contains("not to LETTA_BASE_URL"), "{other}");
}

#[test]
fn concurrent_registrations_get_different_numbers() {
    let world = world();
    let daemon = world.up();
    let children: Vec<_> = (0..8)
        .map(|n| {
            let mut command = world.command();
            let flags = ["promptyoself", "register", "--agent-id", "agent-1", "--skip-validation"];
            command.args(flags).args(["--every", "1h", "--prompt", &format!("prompt {n}")]);
            command.stdout(std::process::Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let mut ids: Vec<u64> = list(&world, &[]).iter().map(|it| it["id"].as_u64().unwrap()).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3, 4, 5, 6, 7, 8]);
    daemon.stop();
}

#[test]
fn register_validates_the_agent_at_letta_with_a_dummy_token() {
    let mut world = World::new();
    let (url, requests) =
        letta(r#"[{"id": "agent-1", "name": "Ada", "created_at": "2026-01-01"}]"#);
    world.set("LETTA_BASE_URL", &url);
    let register = |agent| ["register", "--agent-id", agent, "--prompt", "p", "--every", "1h"];
    ok(&world, &register("agent-1"));
    let (head, _) = requests.recv().unwrap();
    assert!(head.starts_with("get /v1/agents/?limit=100 "), "{head}");
    assert!(head.contains("authorization: bearer dummy-token-for-unsecured-server"), "{head}");
    let text = refused(&world, &register("nope"));
    assert_eq!(text, "Agent validation failed: Agent nope not found");
    assert_eq!(world.agents(), ["agent-1"]);
    let tested = ok(&world, &["test"]);
    let expected = json!({
        "status": "success", "message": "Connection to Letta server successful", "agent_count": 1,
    });
    assert_eq!(tested, expected);
    let agents = ok(&world, &["agents"]);
    let ada =
        json!({"id": "agent-1", "name": "Ada", "created_at": "2026-01-01", "last_updated": null});
    assert_eq!(agents, json!({"status": "success", "agents": [ada], "count": 1}));
    // Without a server, every command that needs one reports that.
    world.set("LETTA_BASE_URL", "http://127.0.0.1:9");
    assert!(refused(&world, &["test"]).starts_with("the Letta server cannot be reached"));
    let text = refused(&world, &register("agent-2"));
    assert!(text.starts_with("Agent validation failed: the Letta server"), "{text}");
}

#[test]
fn upload_sends_the_key_of_the_environment() {
    let mut world = World::new();
    let (url, requests) = letta(r#"{"id": "tool-1", "name": "roll"}"#);
    world.set("LETTA_BASE_URL", &url);
    world.set("LETTA_API_KEY", "hunter2");
    let uploaded = ok(&world, &["upload", "--source-code", "def roll(): ...", "--name", "roll"]);
    assert_eq!(uploaded, json!({"status": "success", "tool_id": "tool-1", "name": "roll"}));
    let (head, body) = requests.recv().unwrap();
    assert!(head.starts_with("put /v1/tools/ "), "{head}");
    assert!(head.contains("authorization: bearer hunter2"), "{head}");
    let body: serde_json::Value = serde_json::from_str(&body).unwrap();
    assert_eq!(body, json!({"source_code": "def roll(): ..."}), "Letta refuses a name");
    // The hint follows the status, and the text of the server is shown.
    for (status, hint) in [(422, "does not accept this request"), (401, "LETTA_API_KEY")] {
        let body = r#"{"detail": "name: extra fields"}"#;
        let answer = format!(
            "HTTP/1.1 {status} No\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
            body.len()
        );
        let (url, _requests) = http_stub::serve(std::iter::repeat(answer.into_bytes()));
        world.set("LETTA_BASE_URL", &url);
        let (code, document) = run(&world, &["upload", "--source-code", "x"]);
        assert_eq!(code, Some(1));
        assert!(document["hint"].as_str().unwrap().contains(hint), "{document}");
        assert!(document["error"].as_str().unwrap().contains("extra fields"), "{document}");
    }
}

#[test]
fn register_stores_a_reference_to_the_key() {
    for (variables, url, credential) in [
        (&[][..], "http://localhost:8283", json!(null)),
        (&[("LETTA_API_KEY", "k")], "https://api.letta.com", json!("env:LETTA_API_KEY")),
        (
            &[("LETTA_SERVER_PASSWORD", "p"), ("LETTA_BASE_URL", "http://letta:8283/")],
            "http://letta:8283",
            json!("env:LETTA_SERVER_PASSWORD"),
        ),
    ] {
        let mut world = World::new();
        variables.iter().for_each(|(name, value)| world.set(name, *value));
        register(&world, "agent-1", "p", &["--every", "1h"]);
        let agent = world.json(&["agent", "show", "agent-1"])["agent"].clone();
        assert_eq!((&agent["url"], &agent["credential"]), (&json!(url), &credential), "{agent}");
        assert_eq!((&agent["backend"], &agent["tier"]), (&json!("letta"), &json!(1)));
    }
}

#[test]
fn env_file_applies_to_variables_that_are_not_set() {
    let check = |variable: Option<(&str, &str)>, url: &str| {
        let mut world = World::new();
        variable.into_iter().for_each(|(name, value)| world.set(name, value));
        let file = "LETTA_BASE_URL=http://from-file:1\nLETTA_SERVER_PASSWORD=other\n";
        fs::write(world.root().join(".env"), file).unwrap();
        let mut command = world.command();
        command.current_dir(world.root()).args(["promptyoself", "register", "--prompt", "p"]);
        command.args(["--agent-id", "agent-1", "--every", "1h", "--skip-validation"]);
        assert_eq!(json_of(&mut command).0, Some(0));
        assert_eq!(world.json(&["agent", "show", "agent-1"])["agent"]["url"], url);
    };
    check(None, "http://from-file:1");
    check(Some(("LETTA_BASE_URL", "http://from-shell:1")), "http://from-shell:1");
    // The server of the file does not get the password of the environment.
    check(Some(("LETTA_SERVER_PASSWORD", "p")), "http://localhost:8283");
}

#[test]
fn self_only_agent_schedules_only_for_itself() {
    let mut world = world();
    register(&world, "agent-2", "theirs", &["--every", "1h"]);
    world.set("PROMPTYOSELF_SELF_ONLY", "1");
    assert!(refused(&world, &["list"]).contains("LETTA_AGENT_ID"));
    world.set("LETTA_AGENT_ID", "agent-1");
    assert_eq!(register(&world, "agent-1", "mine", &["--every", "1h"])["id"], 2);
    let other = ["register", "--agent-id", "agent-2", "--prompt", "p", "--every", "1h"];
    let text = refused(&world, &other);
    assert_eq!(text, "Agent agent-1 may schedule prompts only for itself, not for agent-2");
    let ids: Vec<_> = list(&world, &["--all"]).iter().map(|item| item["id"].clone()).collect();
    assert_eq!(ids, [2]);
    let text = refused(&world, &["cancel", "--id", "1"]);
    assert_eq!(text, "Schedule 1 not found or already cancelled");
    ok(&world, &["cancel", "--id", "2"]);
}

/// The token of an agent has its name; Midwatch, not the command, decides what it may do.
#[test]
fn agent_token_schedules_only_for_that_agent() {
    let mut world = world();
    for id in ["agent-1", "agent-2"] {
        let add = ["agent", "add", id, "--backend", "letta", "--remote-id", id];
        world.ok(&add);
    }
    register(&world, "agent-2", "theirs", &["--every", "1h"]);
    let (_, secret) = world.create_token("agent-1", "runner");
    world.set("MIDWATCH_TOKEN", secret);
    for has_daemon in [false, true] {
        let daemon = has_daemon
            .then(|| Daemon::start(world.command().arg("up").env_remove("MIDWATCH_TOKEN")));
        let mine = register(&world, "agent-1", "mine", &["--every", "1h"])["id"].to_string();
        ok(&world, &["cancel", "--id", &mine]);
        for agent in ["agent-2", "agent-3"] {
            let flags = ["register", "--agent-id", agent, "--prompt", "p", "--every", "1h"];
            let (code, document) = run(&world, &[&flags[..], &["--skip-validation"]].concat());
            assert_eq!((code, &document["code"]), (Some(1), &json!("role_too_low")), "{document}");
        }
        daemon.into_iter().for_each(|daemon| drop(daemon.stop()));
    }
    // The agent does not see the schedules of others.
    assert_eq!(list(&world, &[]).len(), 0);
    let theirs =
        world.json_with(&[("MIDWATCH_TOKEN", "")], &["schedule", "list", "--agent", "agent-2"]);
    assert_eq!(theirs["schedules"][0]["status"], "active", "{theirs}");
}

/// The key in the environment belongs to the operator, so a self-only agent may not use it.
#[test]
fn self_only_agent_uploads_no_tool_and_sees_only_itself() {
    let mut world = World::new();
    let (url, requests) = letta(r#"[{"id": "agent-1"}, {"id": "agent-2"}]"#);
    world.set("LETTA_BASE_URL", &url);
    world.set("LETTA_API_KEY", "hunter2");
    let upload = ["upload", "--source-code", "def roll(): ..."];
    let ids = |world: &World| {
        let agents = ok(world, &["agents"])["agents"].as_array().unwrap().clone();
        agents.iter().map(|it| it["id"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let check_self_only = |world: &World| {
        let (code, document) = run(world, &upload);
        assert_eq!((code, &document["code"]), (Some(1), &json!("role_too_low")), "{document}");
        assert_eq!(document["error"], document["message"]);
        assert_eq!(ids(world), ["agent-1"]);
        assert_eq!(ok(world, &["test"])["agent_count"], 1);
    };
    assert_eq!(ids(&world), ["agent-1", "agent-2"]);
    // An unknown token, without and with an installation that could know it.
    world.set("MIDWATCH_TOKEN", "mw_0");
    let all = [&upload[..], &["agents"], &["test"]];
    all.iter().for_each(|flags| drop(refused(&world, flags)));
    world.set("MIDWATCH_TOKEN", "");
    world.ok(&["agent", "add", "one", "--backend", "letta", "--remote-id", "agent-1"]);
    world.set("MIDWATCH_TOKEN", "mw_0");
    all.iter().for_each(|flags| drop(refused(&world, flags)));
    world.set("MIDWATCH_TOKEN", "");
    let (_, secret) = world.create_token("one", "runner");
    world.set("MIDWATCH_TOKEN", secret);
    check_self_only(&world);
    world.set("MIDWATCH_TOKEN", "");
    world.set("PROMPTYOSELF_SELF_ONLY", "1");
    for flags in all {
        assert!(refused(&world, flags).contains("LETTA_AGENT_ID"));
    }
    world.set("LETTA_AGENT_ID", "agent-1");
    check_self_only(&world);
    assert!(requests.try_iter().all(|(head, _)| head.starts_with("get ")));
}

/// A caller that does not see all schedules never takes the number of one that it does not see.
#[test]
fn numbers_are_unique_across_callers_with_different_views() {
    let mut world = world();
    world.ok(&["agent", "add", "one", "--backend", "letta", "--remote-id", "agent-1"]);
    assert_eq!(register(&world, "agent-2", "theirs", &["--every", "1h"])["id"], 1);
    let (_, secret) = world.create_token("one", "runner");
    world.set("MIDWATCH_TOKEN", secret);
    let mine = |prompt: &str| {
        register(&world, "agent-1", prompt, &["--every", "1h"])["id"].as_u64().unwrap()
    };
    let mut ids = vec![mine("a"), mine("b"), mine("b")];
    ok(&world, &["cancel", "--id", &ids[1].to_string()]);
    ids.push(mine("c"));
    assert!(ids.iter().all(|id| 1 << 32 <= *id), "{ids:?}");
    world.set("MIDWATCH_TOKEN", "");
    ids.extend([
        1,
        register(&world, "agent-2", "more", &["--every", "1h"])["id"].as_u64().unwrap(),
    ]);
    assert_eq!(ids.last(), Some(&2));
    ids.sort_unstable();
    let mut listed: Vec<u64> =
        list(&world, &["--all"]).iter().map(|item| item["id"].as_u64().unwrap()).collect();
    listed.sort_unstable();
    assert_eq!(listed, ids);
    listed.dedup();
    assert_eq!(listed, ids);
}

/// Agents of Letta are identified by their id, whatever their registered name.
#[test]
fn letta_ids_with_the_same_agent_name_stay_distinct() {
    let world = world();
    for id in ["Agent B", "agent-b", "AGENT-B"] {
        register(&world, id, id, &["--every", "1h"]);
        register(&world, id, id, &["--every", "2h"]);
    }
    let listed = list(&world, &[]);
    assert_eq!(listed.len(), 6);
    assert!(listed.iter().all(|item| item["agent_id"] == item["prompt_text"]), "{listed:?}");
}

#[test]
fn register_says_when_an_agent_is_registered_at_another_server() {
    let mut world = World::new();
    world.set("LETTA_BASE_URL", "http://first.example");
    register(&world, "agent-1", "p", &["--every", "1h"]);
    world.set("LETTA_BASE_URL", "http://second.example/");
    let message = register(&world, "agent-1", "p", &["--every", "1h"])["message"].clone();
    let message = message.as_str().unwrap();
    assert!(message.starts_with("Prompt scheduled with ID 2. It is sent to http://first.example,"));
    world.set("LETTA_BASE_URL", "http://first.example/");
    let message = register(&world, "agent-1", "p", &["--every", "1h"])["message"].clone();
    assert_eq!(message, "Prompt scheduled with ID 3");
}

/// The error is the one that clients know, not that of a wrong command line.
#[test]
fn value_that_starts_with_a_dash_gets_the_known_error() {
    let world = world();
    let start = ["register", "--agent-id", "a", "--prompt", "p", "--skip-validation"];
    for (flags, text) in [
        (&["--time", "-5"][..], "Invalid time: -5."),
        (&["--cron", "-5"], "Invalid cron expression: -5"),
        (&["--every", "5m", "--start-at", "-5"], "Invalid time: -5."),
    ] {
        let found = refused(&world, &[&start, flags].concat());
        assert!(found.starts_with(text), "{found}");
    }
}
