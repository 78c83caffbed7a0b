//! An approved run starts only with the program, directory and environment that were approved.

use std::fs;
use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::Value;

use crate::support::wait::wait_for;
use crate::support::world::World;

/// Variables that choose what code a program runs are not passed on from the daemon's environment, and no agent
/// can name them.
#[test]
fn daemon_environment_does_not_change_what_an_agent_runs() {
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
    let schedule = world.add_daily("look", "ada", "hello");
    let before = world.kinds().len();
    for name in STEERING.iter().chain(&["PATH", "path", "ld_audit", "DYLD_INSERT_LIBRARIES"]) {
        if name.starts_with("HARMLESS") {
            continue;
        }
        let add = ["agent", "add", "eve", "--backend", "command", "--env", name, "--", "true"];
        assert!(world.refused(&add, "invalid_input", 2).contains(name));
        world.refused(&["agent", "edit", "ada", "--env", name], "invalid_input", 2);
    }
    assert_eq!(world.kinds().len(), before, "an agent was registered or changed");

    // Approved under one daemon, started under another with a changed environment.
    world.set("NAMED", "this one");
    let daemon = world.up();
    let run = world.start_run(&schedule);
    let approval = world.wait_for_approval(&run);
    daemon.kill();
    world.approve(&approval);
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

/// A6, A7, A8: the program, its script, its directory or its environment stay the same, or change in one way after the approval.
#[test]
fn approved_run_is_refused_when_its_fingerprint_changed() {
    type Change = fn(&mut World);
    let table: [(&str, Change); 8] = [
        ("", |_| {}),
        ("PATH", |world| {
            let path = format!("{}:/nowhere", search_path(world));
            world.set("PATH", path);
        }),
        ("NAMED", |world| world.set("NAMED", "another canary")),
        ("program", |world| write_program(&world.root().join("bin/tool"), "echo evil")),
        ("job.sh", |world| fs::write(world.root().join("parent/place/job.sh"), "evil").unwrap()),
        // Another program of that name, earlier on the path.
        ("program", |world| write_program(&world.root().join("first/tool"), "echo evil")),
        ("directory", |world| {
            let directory = world.root().join("parent/place");
            fs::rename(&directory, world.root().join("elsewhere")).unwrap();
            fs::create_dir(&directory).unwrap();
            fs::write(directory.join("job.sh"), "what to do").unwrap();
        }),
        ("directory", |world| {
            let (parent, evil) = (world.root().join("parent"), world.root().join("evil"));
            fs::rename(&parent, world.root().join("elsewhere")).unwrap();
            fs::create_dir_all(evil.join("place")).unwrap();
            fs::write(evil.join("place/job.sh"), "what to do").unwrap();
            symlink(evil, parent).unwrap();
        }),
    ];
    for (part, change) in table {
        let mut world = World::new();
        for directory in ["first", "bin", "parent/place"] {
            fs::create_dir_all(world.root().join(directory)).unwrap();
        }
        write_program(&world.root().join("bin/tool"), "echo ran");
        fs::write(world.root().join("parent/place/job.sh"), "what to do").unwrap();
        let path = search_path(&world);
        world.set("PATH", path);
        world.set("NAMED", "the canary");
        let (run, approval) = approved_run(&world);
        change(&mut world);
        let daemon = world.up();
        let has_ended = |run: &Value| run["state"] == "done" || run["state"] == "cancelled";
        let run = world.wait_for_run(&run, has_ended);
        let shown = world.json(&["approval", "show", &approval])["approval"].clone();
        let page = world.ok(&["approval", "show", &approval]);
        let effects = fs::read_to_string(world.root().join("effects")).unwrap_or_default();
        match part {
            "" => {
                assert_eq!((&run["state"], effects.as_str()), (&"done".into(), "ran\n"), "{run}");
                assert!(page.contains("program (unchanged)"), "{page}");
            }
            _ => {
                assert_eq!((&run["reason"], effects.as_str()), (&"plan_changed".into(), ""));
                let message = run["message"].as_str().unwrap();
                assert!(message.ends_with(&format!("changed since the request: {part}")), "{run}");
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
            assert!(
                !text.contains("canary"),
                "{} has the value of a variable",
                file.path().display()
            );
        }
    }
}

/// A run that was approved while no daemon was running.
fn approved_run(world: &World) -> (String, String) {
    let directory = world.root().join("parent/place");
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2", "--env", "NAMED"];
    world.ok(&[&agent[..], &["--cwd", directory.to_str().unwrap(), "--", "tool", "job.sh"]].concat());
    let schedule = world.add_daily("look", "ada", "hello");
    let daemon = world.up();
    let run = world.start_run(&schedule);
    let approval = world.wait_for_approval(&run);
    daemon.kill();
    world.approve(&approval);
    (run, approval)
}

fn search_path(world: &World) -> String {
    let below = |name: &str| world.root().join(name).display().to_string();
    format!("{}:{}:/usr/bin:/bin", below("first"), below("bin"))
}

/// Replaces the program at this path.
fn write_program(path: &Path, command: &str) {
    let new = path.with_extension("new");
    fs::write(&new, format!("#!/bin/sh\n{command} >> \"$HOME/effects\"\n")).unwrap();
    fs::set_permissions(&new, Permissions::from_mode(0o700)).unwrap();
    fs::rename(new, path).unwrap();
}
