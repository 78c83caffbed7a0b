//! `midwatch policy …`

use std::fs;
use std::io::Write;
use std::process::Stdio;

use serde_json::json;

use crate::support::rules::DENY_ADA;
use crate::support::world::World;

const ADA: &str = r#"{"capability": "agent.prompt", "agent": "ada"}"#;

/// `policy explain` decides as the daemon would.
#[test]
fn policy_explain_protects_the_data_directory() {
    let world = World::new();
    world.add_agent("ada");
    for file in ["approvals/pending/x.token", "sealing.key", "node", "new/one"] {
        let path = world.data().canonicalize().unwrap().join(file);
        let request = json!({ "capability": "filesystem.write", "path": path }).to_string();
        let ruling = world.json(&["policy", "explain", "--request", &request])["ruling"].clone();
        assert_eq!(ruling["verdict"], "ask", "{file}: {ruling}");
        assert!(ruling["rules"].as_array().unwrap().contains(&json!("@protected")), "{ruling}");
    }
}

#[test]
fn policy_explain_needs_no_installation() {
    let mut world = World::new();
    let output = world.ok(&["policy", "explain", "--request", ADA]);
    assert!(output.starts_with(
        "the policy allows it because of `baseline/agents` in staging (policy version "
    ));
    let ruling = world.json(&["policy", "explain", "--request", ADA])["ruling"].clone();
    assert_eq!((&ruling["verdict"], &ruling["posture"]), (&"allow".into(), &"staging".into()));
    assert!(!world.data().exists());

    // A denial is not an error.
    fs::create_dir(world.data()).unwrap();
    fs::write(world.data().join("policy.toml"), DENY_ADA).unwrap();
    let file = world.root().join("request.json");
    fs::write(&file, ADA).unwrap();
    let from_file = format!("@{}", file.display());
    let output = world.ok(&["policy", "explain", "--request", &from_file]);
    assert!(
        output.contains("denies it because of `policy.toml/no-ada`, `baseline/agents`"),
        "{output}"
    );
    let checked = world.json(&["policy", "check"]);
    let explained = world.json(&["policy", "explain", "--request", ADA]);
    assert_eq!(explained["ruling"]["policy"], checked["policy"]);
    assert_eq!(explained["ruling"]["verdict"], "deny");

    world.set("MIDWATCH_POSTURE", "strict-prod");
    let read = r#"{"capability": "net.read", "host": "example.org"}"#;
    let ruling = world.json(&["policy", "explain", "--request", read])["ruling"].clone();
    assert_eq!((&ruling["verdict"], &ruling["posture"]), (&"deny".into(), &"strict-prod".into()));
    let output = world.ok(&["policy", "explain", "--request", read]);
    assert!(
        output.starts_with("the policy denies it because of `@default` (no rule matches)"),
        "{output}"
    );
    assert_eq!(fs::read_dir(world.data()).unwrap().count(), 1, "a file was created");
}

#[test]
fn policy_explain_reads_a_request_from_stdin() {
    let world = World::new();
    let mut command = world.command();
    command.args(["policy", "explain", "--request", "-"]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(ADA.as_bytes()).unwrap();
    let done = child.wait_with_output().unwrap();
    assert!(done.status.success());
    assert!(String::from_utf8_lossy(&done.stdout).contains("allows it"));
}

#[test]
fn policy_explain_refuses_invalid_and_double_requests() {
    let world = World::new();
    let refused = |request: &str| {
        world.refused(&["policy", "explain", "--request", request], "invalid_input", 2)
    };
    let twice = r#"{"capability": "agent.prompt", "capability": "net.read"}"#;
    assert!(refused(twice).contains("the key `capability` occurs twice"));
    assert!(refused(r#"{"capability": "net.read", "x": 1}"#).contains("unknown field `x`"));
    assert!(refused("agent.prompt").contains("not a JSON object"));
    world.refused(&["policy", "explain", "--request", "@nowhere"], "not_found", 3);
    world.refused(&["policy", "explain"], "bad_usage", 2);
    world.refused(&["policy", "explain", "--run", "run_1", "--request", ADA], "bad_usage", 2);
}

#[test]
fn policy_replay_compares_other_rules_with_past_decisions() {
    let world = World::new();
    let daemon = world.up();
    world.add_agent("ada");
    let schedule = world.add_daily("news", "ada", "hello");
    let run = world.start_run(&schedule);
    world.wait_for_state(&run, "done");

    let file = world.root().join("tried.toml");
    fs::write(&file, DENY_ADA).unwrap();
    let replay = ["policy", "replay", "--since", "1h", "--with", file.to_str().unwrap()];
    let found = world.json(&replay);
    assert_eq!((&found["decisions"], &found["counts"]["allow_to_deny"]), (&1.into(), &1.into()));
    let changed = &found["changed"][0];
    assert_eq!((&changed["run_id"], &changed["rule"]), (&run.into(), &"policy.toml/no-ada".into()));
    assert!(world.ok(&replay).contains("1 of 1 decisions since"));

    // The same without a daemon; the active rules would decide as they did.
    daemon.stop();
    assert_eq!(world.json(&replay)["changed"], found["changed"]);
    assert!(world.ok(&["policy", "replay"]).starts_with("none of 1 decisions since"));
    let strict = world.json(&["policy", "replay", "--posture", "strict-prod"]);
    assert_eq!((&strict["posture"], &strict["changed"]), (&"strict-prod".into(), &json!([])));
    world.refused(&["policy", "replay", "--posture", "loose"], "invalid_input", 2);
    world.refused(&["policy", "replay", "--with", "nowhere.toml"], "not_found", 3);
    fs::write(&file, "x = 1").unwrap();
    world.refused(&replay, "policy_invalid", 2);
}

#[test]
fn policy_list_shows_every_active_rule_with_its_origin() {
    let world = World::with_agent("ada");
    fs::write(world.data().join("policy.toml"), format!("# mine\n{DENY_ADA}")).unwrap();
    let listed = world.json(&["policy", "list"]);
    let rules = listed["rules"].as_array().unwrap();
    let own = &rules[0];
    assert_eq!(
        own,
        &json!({
            "name": "policy.toml/no-ada", "origin": "policy.toml", "line": 3, "effect": "deny",
            "classes": ["agent.prompt"], "conditions": [{"key": "agent", "values": ["ada"]}],
        })
    );
    let effect = |name: &str| {
        let rule = rules.iter().find(|rule| rule["name"] == name);
        rule.map(|rule| rule["effect"].as_str().unwrap().to_owned())
    };
    for (name, expected) in [
        ("baseline/agents", "allow"),
        ("baseline/reading", "allow"),
        ("@default", "ask"),
        ("@tier-2", "ask"),
        ("@protected", "ask"),
    ] {
        assert_eq!(effect(name).as_deref(), Some(expected), "{name}: {listed}");
    }
    assert_eq!(listed["policy"], world.json(&["policy", "check"])["policy"]);
    let text = world.ok(&["policy", "list"]);
    let first =
        "deny  policy.toml/no-ada (line 3)\n      agent.prompt\n      only if agent is ada\n";
    assert!(text.starts_with(first), "{text}");

    // A running daemon lists what it uses, not what the file says by now.
    let daemon = world.up();
    fs::remove_file(world.data().join("policy.toml")).unwrap();
    assert_eq!(world.json(&["policy", "list"])["rules"][0]["name"], "policy.toml/no-ada");
    world.ok(&["config", "reload"]);
    assert_ne!(world.json(&["policy", "list"])["rules"][0]["name"], "policy.toml/no-ada");
    daemon.stop();
}
