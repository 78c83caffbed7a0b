//! Questions about the standing orders.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::world::{World, wait_for};

const ADA: &str = r#"{"capability": "agent.prompt", "agent": "ada"}"#;

const NO_ADA: &str = r#"
    [[rule]]
    id = "no-ada"
    deny = ["agent.prompt"]
    agent = ["ada"]
    match = [{ capability = "agent.prompt", agent = "ada" }]
    not_match = [{ capability = "agent.prompt", agent = "eve" }]
"#;

/// Whatever is asked, the answer is that of the watch.
#[test]
fn what_is_the_watchs_own_is_protected_also_where_it_is_only_asked_about() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    for file in ["approvals/pending/x.token", "sealing.key", "node", "new/one"] {
        let path = world.data().canonicalize().unwrap().join(file);
        let request = json!({ "capability": "filesystem.write", "path": path }).to_string();
        let ruling = world.json(&["policy", "explain", "--request", &request])["ruling"].clone();
        assert_eq!(ruling["verdict"], "ask", "{file}: {ruling}");
        assert!(ruling["rules"].as_array().unwrap().contains(&json!("@protected")), "{ruling}");
    }
}

#[test]
fn a_request_is_explained_without_a_watch() {
    let mut world = World::new();
    let said = world.ok(&["policy", "explain", "--request", ADA]);
    assert!(
        said.starts_with("the standing orders allow it by `baseline/agents` in staging (version ")
    );
    let ruling = world.json(&["policy", "explain", "--request", ADA])["ruling"].clone();
    assert_eq!((&ruling["verdict"], &ruling["posture"]), (&"allow".into(), &"staging".into()));
    assert!(!world.data().exists());

    // A denial is an answer like any other.
    fs::create_dir(world.data()).unwrap();
    fs::write(world.data().join("policy.toml"), NO_ADA).unwrap();
    let file = world.root().join("request.json");
    fs::write(&file, ADA).unwrap();
    let from_file = format!("@{}", file.display());
    let said = world.ok(&["policy", "explain", "--request", &from_file]);
    assert!(said.contains("do not allow it by `policy.toml/no-ada`, `baseline/agents`"), "{said}");
    let checked = world.json(&["policy", "check"]);
    let explained = world.json(&["policy", "explain", "--request", ADA]);
    assert_eq!(explained["ruling"]["policy"], checked["policy"]);
    assert_eq!(explained["ruling"]["verdict"], "deny");

    world.set("MIDWATCH_POSTURE", "strict-prod");
    let read = r#"{"capability": "net.read", "host": "example.org"}"#;
    let ruling = world.json(&["policy", "explain", "--request", read])["ruling"].clone();
    assert_eq!((&ruling["verdict"], &ruling["posture"]), (&"deny".into(), &"strict-prod".into()));
    assert_eq!(fs::read_dir(world.data()).unwrap().count(), 1, "nothing was made");
}

#[test]
fn a_request_may_come_from_stdin() {
    let world = World::new();
    let mut command = world.command();
    command.args(["policy", "explain", "--request", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(ADA.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    assert!(String::from_utf8_lossy(&done.stdout).contains("allow it"));
}

#[test]
fn what_is_no_request_or_two_questions_is_refused() {
    let world = World::new();
    let refused = |request: &str| {
        world.refused(&["policy", "explain", "--request", request], "invalid_input", 2)
    };
    let twice = r#"{"capability": "agent.prompt", "capability": "net.read"}"#;
    assert!(refused(twice).contains("the key `capability` stands twice"));
    assert!(refused(r#"{"capability": "net.read", "x": 1}"#).contains("unknown field `x`"));
    assert!(refused("agent.prompt").contains("not a JSON object"));
    world.refused(&["policy", "explain", "--request", "@nowhere"], "not_found", 3);
    world.refused(&["policy", "explain"], "bad_usage", 2);
    world.refused(&["policy", "explain", "--run", "run_1", "--request", ADA], "bad_usage", 2);
}

#[test]
fn rules_are_tried_on_what_was_decided_before_they_are_used() {
    let world = World::new();
    let daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    wait_for(|| (world.json(&["run", "show", &run])["run"]["state"] == "done").then_some(()));

    let file = world.root().join("tried.toml");
    fs::write(&file, NO_ADA).unwrap();
    let replay = ["policy", "replay", "--since", "1h", "--with", file.to_str().unwrap()];
    let found = world.json(&replay);
    assert_eq!((&found["decisions"], &found["counts"]["allow_to_deny"]), (&1.into(), &1.into()));
    let changed = &found["changed"][0];
    assert_eq!((&changed["run_id"], &changed["rule"]), (&run.into(), &"policy.toml/no-ada".into()));
    assert!(world.ok(&replay).contains("1 of 1 decisions since"));

    // The same without a daemon; and what is in force would decide as it did.
    assert_eq!(daemon.stop().0, Some(0));
    assert_eq!(world.json(&replay)["changed"], found["changed"]);
    assert!(world.ok(&["policy", "replay"]).starts_with("none of 1 decisions since"));
    let strict = world.json(&["policy", "replay", "--posture", "strict-prod"]);
    assert_eq!((&strict["posture"], &strict["changed"]), (&"strict-prod".into(), &json!([])));
    world.refused(&["policy", "replay", "--posture", "loose"], "invalid_input", 2);
    world.refused(&["policy", "replay", "--with", "nowhere.toml"], "not_found", 3);
    fs::write(&file, "x = 1").unwrap();
    world.refused(&replay, "policy_invalid", 2);
}
