//! The kill switch and the lease, as people use them: a freeze ends what is at work within moments, holds
//! through a kill -9, and lets go when it is told to.

use std::fs;

use crate::world::{World, wait_for};

/// Starts another that leaves its group, says who both are, and then hangs until it is stopped.
const PROGRAM: &str =
    r#"setsid sleep 1000 & echo $! >> "$0.strays"; echo $$ >> "$0"; exec sleep 1000"#;

#[test]
fn a_freeze_stops_everything_and_outlives_the_daemon() {
    story(&World::new());
}

#[test]
fn a_freeze_stops_everything_on_postgresql() {
    story(&World::on_postgres());
}

fn story(world: &World) {
    let pids = world.root().join("pids");
    let begun = || -> Vec<String> {
        fs::read_to_string(&pids).unwrap_or_default().lines().map(str::to_owned).collect()
    };
    let state = |run: &str| world.json(&["run", "show", run])["run"]["state"].clone();
    let daemon = world.up();
    let file = pids.to_str().unwrap();
    let agent = ["agent", "add", "ada", "--backend", "command", "--", "sh", "-c", PROGRAM, file];
    world.ok(&agent);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "go"];
    let added = world.json(&[&["schedule", "add", "--name", "nightly"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let start =
        || world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();

    let first = start();
    wait_for(|| (begun().len() == 1).then_some(()));
    let frozen = world.json(&["freeze", "--reason", "a strange bill"]);
    assert_eq!(frozen["changed"], true, "{frozen}");
    wait_for(|| (state(&first) == "cancelled").then_some(()));
    let stray = fs::read_to_string(world.root().join("pids.strays")).unwrap();
    for pid in [&begun()[0], stray.trim()] {
        wait_for(|| (!fs::exists(format!("/proc/{pid}")).unwrap()).then_some(()));
    }

    let second = start();
    daemon.kill();
    let daemon = world.up();
    let said = world.ok(&["status"]);
    assert!(said.contains("frozen by uid:") && said.contains("a strange bill"), "{said}");
    assert_eq!(world.json(&["freeze"])["changed"], false);
    assert_eq!((state(&second), begun().len()), ("queued".into(), 1));

    assert_eq!(world.json(&["thaw"])["changed"], true);
    wait_for(|| (begun().len() == 2).then_some(()));
    world.ok(&["run", "cancel", &second]);
    wait_for(|| (state(&second) == "cancelled").then_some(()));
    world.ok(&["freeze"]);
    let strays = fs::read_to_string(world.root().join("pids.strays")).unwrap();
    let last = format!("/proc/{}", strays.lines().last().unwrap());
    wait_for(|| (!fs::exists(&last).unwrap()).then_some(()));
    assert_eq!(daemon.stop().0, Some(0));
    let kinds = world.kinds();
    let count = |kind: &str| kinds.iter().filter(|it| *it == kind).count();
    assert_eq!((count("authority.frozen"), count("authority.thawed")), (2, 1), "{kinds:?}");
    world.verified();
    assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0);
}

/// Whatever a run has started cannot give the watch its authority back, nor keep it going.
#[test]
fn a_run_can_neither_freeze_nor_thaw_nor_renew() {
    let world = World::new();
    let _daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "hello"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let run = world.json(&["run", "start", schedule])["run"]["id"].as_str().unwrap().to_owned();
    for arguments in [&["freeze"][..], &["thaw"], &["lease", "renew"]] {
        let mut command = world.command();
        command.arg("--json").args(arguments).env("MIDWATCH_RUN_ID", &run);
        let refused: serde_json::Value =
            serde_json::from_slice(&command.output().unwrap().stdout).unwrap();
        assert_eq!(refused["error"]["code"], "role_too_low", "{arguments:?}: {refused}");
    }
    let before = world.json(&["status"])["authority"]["lease"]["renewed"].clone();
    assert_eq!(before["by"], "midwatch", "{before}");
    let renewed = world.json(&["lease", "renew", "--reason", "back from holiday"]);
    assert_eq!(renewed["authority"]["lease"]["step"], "full", "{renewed}");
    assert_ne!(renewed["authority"]["lease"]["renewed"], before);
}
