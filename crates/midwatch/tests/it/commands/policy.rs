//! Questions about the standing orders, which the files alone answer.

use std::fs;
use std::io::Write;
use std::process::Stdio;

use crate::world::World;

const ADA: &str = r#"{"capability": "agent.prompt", "agent": "ada"}"#;

const NO_ADA: &str = r#"
    [[rule]]
    id = "no-ada"
    deny = ["agent.prompt"]
    agent = ["ada"]
    match = [{ capability = "agent.prompt", agent = "ada" }]
    not_match = [{ capability = "agent.prompt", agent = "eve" }]
"#;

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
    assert!(refused(twice).contains("duplicate field `capability`"));
    assert!(refused(r#"{"capability": "net.read", "x": 1}"#).contains("unknown field `x`"));
    assert!(refused("agent.prompt").contains("not a JSON object"));
    world.refused(&["policy", "explain", "--request", "@nowhere"], "not_found", 3);
    world.refused(&["policy", "explain"], "bad_usage", 2);
    world.refused(&["policy", "explain", "--run", "run_1", "--request", ADA], "bad_usage", 2);
}
