//! Attacks by what is given to the program, each named after its id in the list of attacks.

use std::fs;
use std::fs::Permissions;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::os::unix::net::UnixStream;
use std::path::Path;

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
    // It is ready a moment before it says in the log that it was started.
    let before = wait_for(|| {
        Some(world.kinds()).filter(|kinds| kinds.contains(&"watch.started".to_owned()))
    });
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

    let when = ["schedule", "add", "--name", "x", "--every", "1h", "--tool", "run_list"];
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
    world.set("NAMED", "this one");
    let daemon = world.up();
    let run = world.json(&["run", "start", added["schedule"]["id"].as_str().unwrap()]);
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"]["approval_id"].clone();
        shown.as_str().map(str::to_owned)
    });
    daemon.kill();
    world.ok(&["approval", "approve", &approval, "--reason", "go"]);
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

/// What an agent is to run stays as it was, or is changed in one way after it was approved.
#[test]
fn a08_what_was_approved_runs_only_on_what_it_stood_on() {
    type Change = fn(&mut World);
    let table: [(&str, Change); 7] = [
        ("", |_| {}),
        ("PATH", |world| {
            let path = format!("{}:/nowhere", path_of(world));
            world.set("PATH", path);
        }),
        ("NAMED", |world| world.set("NAMED", "another canary")),
        ("program", |world| write_program(&world.root().join("bin/tool"), "echo evil")),
        // The same name is found earlier on the same path.
        ("program", |world| write_program(&world.root().join("first/tool"), "echo evil")),
        ("directory", |world| {
            let place = world.root().join("parent/place");
            fs::rename(&place, world.root().join("elsewhere")).unwrap();
            fs::create_dir(&place).unwrap();
        }),
        ("directory", |world| {
            let (parent, evil) = (world.root().join("parent"), world.root().join("evil"));
            fs::rename(&parent, world.root().join("elsewhere")).unwrap();
            fs::create_dir_all(evil.join("place")).unwrap();
            symlink(evil, parent).unwrap();
        }),
    ];
    for (part, change) in table {
        let mut world = World::new();
        for directory in ["first", "bin", "parent/place"] {
            fs::create_dir_all(world.root().join(directory)).unwrap();
        }
        write_program(&world.root().join("bin/tool"), "echo ran");
        let path = path_of(&world);
        world.set("PATH", path);
        world.set("NAMED", "the canary");
        let (run, approval) = approved(&world);
        change(&mut world);
        let daemon = world.up();
        let run = wait_for(|| {
            let shown = world.json(&["run", "show", &run])["run"].clone();
            let is_over = shown["state"] == "done" || shown["state"] == "cancelled";
            is_over.then_some(shown)
        });
        let shown = world.json(&["approval", "show", &approval])["approval"].clone();
        let page = world.ok(&["approval", "show", &approval]);
        let effects = fs::read_to_string(world.root().join("effects")).unwrap_or_default();
        match part {
            "" => {
                assert_eq!((&run["state"], effects.as_str()), (&"done".into(), "ran\n"), "{run}");
                assert!(page.contains("program (as it was)"), "{page}");
            }
            _ => {
                assert_eq!((&run["reason"], effects.as_str()), (&"plan_changed".into(), ""));
                let said = run["message"].as_str().unwrap();
                assert!(said.ends_with(&format!("changed since it was asked: {part}")), "{run}");
                assert_eq!(shown["state"], "changed", "{shown}");
                assert!(page.contains(&format!("{part} (changed)")), "{page}");
                assert!(world.kinds().contains(&"approval.lapsed".to_owned()));
            }
        }
        drop(daemon);
        world.verified();
        for file in fs::read_dir(world.data()).unwrap().flatten() {
            let bytes = fs::read(file.path()).unwrap_or_default();
            let text = String::from_utf8_lossy(&bytes);
            assert!(!text.contains("canary"), "{} holds a value", file.path().display());
        }
    }
}

/// A run that a human has approved while no daemon could begin it.
fn approved(world: &World) -> (String, String) {
    let place = world.root().join("parent/place");
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2", "--env", "NAMED"];
    world.ok(&[&agent[..], &["--cwd", place.to_str().unwrap(), "--", "tool"]].concat());
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "look"], &what[..]].concat());
    let daemon = world.up();
    let run = world.json(&["run", "start", added["schedule"]["id"].as_str().unwrap()]);
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let approval = wait_for(|| {
        let shown = world.json(&["run", "show", &run])["run"]["approval_id"].clone();
        shown.as_str().map(str::to_owned)
    });
    daemon.kill();
    world.ok(&["approval", "approve", &approval]);
    (run, approval)
}

fn path_of(world: &World) -> String {
    let own = |name: &str| world.root().join(name).display().to_string();
    format!("{}:{}:/usr/bin:/bin", own("first"), own("bin"))
}

/// In the place of what is there, if anything is.
fn write_program(path: &Path, words: &str) {
    let new = path.with_extension("new");
    fs::write(&new, format!("#!/bin/sh\n{words} >> \"$HOME/effects\"\n")).unwrap();
    fs::set_permissions(&new, Permissions::from_mode(0o700)).unwrap();
    fs::rename(new, path).unwrap();
}
