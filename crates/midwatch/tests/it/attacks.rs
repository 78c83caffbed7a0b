//! Attacks by what is given to the program, each named after its id in the list of attacks.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use api::wire::Hello;

use crate::world::{World, wait_for};

/// What the daemon says to these frames, after its hello; empty, if it hangs up.
fn said(world: &World, frames: &[&str]) -> String {
    let stream = UnixStream::connect(world.data().join("midwatch.sock")).unwrap();
    for frame in frames {
        let _ = (&stream).write_all(format!("{frame}\n").as_bytes());
    }
    let mut lines = BufReader::new(stream).lines();
    lines.next().unwrap().unwrap();
    lines.next().and_then(Result::ok).unwrap_or_default()
}

#[test]
fn a05_a_key_that_stands_twice_is_refused_before_anything_looks_at_it() {
    let world = World::new();
    let daemon = world.up();
    let before = world.kinds();
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    for frame in [
        r#"{"request":{"call":"freeze","with":{"note":"a","note":"b"}}}"#,
        r#"{"request":{"call":"freeze","with":{"note":"a","n\u006fte":"b"}}}"#,
        r#"{"request":{"call":"status","call":"freeze","with":{}}}"#,
        r#"{"request":{"call":"freeze","with":{},"with":{"note":"b"}}}"#,
        r#"{"request":{"call":"status","with":{}},"request":{"call":"freeze","with":{}}}"#,
        r#"{"request":{"call":"freeze","with":{}},"key":"a","key":"b"}"#,
    ] {
        let answer = said(&world, &[&hello, frame]);
        assert!(answer.contains("invalid_input") && answer.contains("stands twice"), "{answer}");
    }
    let twice = hello.replacen('{', r#"{"token":"a","token":"b","#, 1);
    let status = r#"{"request":{"call":"status","with":{}}}"#;
    assert_eq!(said(&world, &[&twice, status]), "");
    assert!(said(&world, &[&hello, status]).contains("authority"));

    let when = ["schedule", "add", "--name", "x", "--every", "1h", "--tool", "mail"];
    let list = world.root().join("list.json");
    for payload in [
        r#"{"to":"a","to":"b"}"#,
        r#"{"to":"a","t\u006f":"b"}"#,
        r#"{"x":[{"to":"a","to":"a"}]}"#,
        r#"[[{"":1,"":2}]]"#,
    ] {
        let refused =
            world.refused(&[&when[..], &["--payload", payload]].concat(), "invalid_input", 2);
        assert!(refused.contains("stands twice"), "{refused}");
        // The same where a document holds it as it is, not as text.
        let document = format!(r#"[{{"name":"x","when":{{"every":"1h"}},"action":{payload}}}]"#);
        fs::write(&list, document).unwrap();
        let file = list.to_str().unwrap();
        let refused = world.refused(&["schedule", "add", "--file", file], "invalid_input", 2);
        assert!(refused.contains("stands twice"), "{refused}");
        let request = format!(r#"{{"capability":"net.read","resource":{payload}}}"#);
        let asked = ["policy", "explain", "--request", &request];
        let refused = world.refused(&asked, "invalid_input", 2);
        assert!(refused.contains("stands twice"), "{refused}");
    }
    assert_eq!(world.kinds(), before, "nothing was written, and no rule was asked");
    drop(daemon);
    world.verified();
}

/// What chooses the code of a program is not passed on from the environment of the daemon, whenever it came
/// there; and nobody can ask for it.
#[test]
fn a08_no_variable_of_the_daemon_changes_what_an_agent_runs() {
    const STEERING: [&str; 12] = [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "GIT_CONFIG_COUNT",
        "GIT_SSH_COMMAND",
        "NODE_OPTIONS",
        "PYTHONPATH",
        "RUSTC_WRAPPER",
        "BASH_ENV",
        "PERL5OPT",
        "JAVA_TOOL_OPTIONS",
        "MIDWATCH_TOKEN",
        "HARMLESS_BUT_NOT_NAMED",
    ];
    let mut world = World::new();
    let out = world.root().join("out");
    let script = r#"env > "$0.part"; mv "$0.part" "$0""#;
    let program = ["--", "sh", "-c", script, out.to_str().unwrap()];
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2", "--env", "NAMED"];
    world.ok(&[&agent[..], &program].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "look"], &what[..]].concat());
    let before = world.kinds().len();
    for name in STEERING.iter().chain(&["PATH", "path", "ld_audit", "DYLD_INSERT_LIBRARIES"]) {
        if name.starts_with("HARMLESS") {
            continue;
        }
        let add = ["agent", "add", "eve", "--backend", "command", "--env", name, "--", "true"];
        assert!(world.refused(&add, "invalid_input", 2).contains(name));
        world.refused(&["agent", "edit", "ada", "--env", name], "invalid_input", 2);
    }
    assert_eq!(world.kinds().len(), before, "no agent was registered or changed");

    // Approved under one daemon, begun under another whose environment somebody has changed.
    let daemon = world.up();
    let run = world.json(&["run", "start", added["schedule"]["id"].as_str().unwrap()]);
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"]["approval_id"].clone();
        shown.as_str().map(str::to_owned)
    });
    daemon.kill();
    world.ok(&["approval", "approve", &approval, "--reason", "go"]);
    world.set("NAMED", "this one");
    for name in STEERING.iter().filter(|name| **name != "MIDWATCH_TOKEN") {
        world.set(name, "/nowhere/evil");
    }
    let daemon = world.up();
    let seen = wait_for(|| fs::read_to_string(&out).ok());
    assert!(!seen.contains("evil"), "{seen}");
    assert!(seen.contains("NAMED=this one"), "{seen}");
    drop(daemon);
    assert!(world.kinds().contains(&"approval.consumed".to_owned()));
}
