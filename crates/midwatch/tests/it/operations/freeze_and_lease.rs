//! `freeze`, `thaw` and `lease renew`: a freeze cancels running runs at once and survives a crash of the daemon.

use std::fs;

use crate::support::wait::wait_until;
use crate::support::world::World;

/// Starts a process that leaves its group, writes both process ids, and hangs.
const PROGRAM: &str =
    r#"setsid sleep 1000 & echo $! >> "$0.leftover"; echo $$ >> "$0"; exec sleep 1000"#;

#[test]
fn freeze_cancels_every_run_and_survives_a_daemon_crash() {
    check_freeze(&World::new());
}

#[test]
fn freeze_cancels_every_run_on_postgresql() {
    check_freeze(&World::on_postgres());
}

fn check_freeze(world: &World) {
    let pids = world.root().join("pids");
    let started = || -> Vec<String> {
        fs::read_to_string(&pids).unwrap_or_default().lines().map(str::to_owned).collect()
    };
    let state = |run: &str| world.show_run(run)["state"].clone();
    let daemon = world.up();
    let file = pids.to_str().unwrap();
    let agent = ["agent", "add", "ada", "--backend", "command", "--", "sh", "-c", PROGRAM, file];
    world.ok(&agent);
    let schedule = world.add_daily("nightly", "ada", "go");
    let start = || world.start_run(&schedule);

    let first = start();
    wait_until(|| started().len() == 1);
    let frozen = world.json(&["freeze", "--reason", "a strange bill"]);
    assert_eq!(frozen["changed"], true, "{frozen}");
    world.wait_for_state(&first, "cancelled");
    let leftover = fs::read_to_string(world.root().join("pids.leftover")).unwrap();
    for pid in [&started()[0], leftover.trim()] {
        wait_until(|| !fs::exists(format!("/proc/{pid}")).unwrap());
    }

    let second = start();
    daemon.kill();
    let daemon = world.up();
    let output = world.ok(&["status"]);
    assert!(output.contains("frozen by uid:") && output.contains("a strange bill"), "{output}");
    assert_eq!(world.json(&["freeze"])["changed"], false);
    assert_eq!((state(&second), started().len()), ("queued".into(), 1));

    assert_eq!(world.json(&["thaw"])["changed"], true);
    wait_until(|| started().len() == 2);
    world.ok(&["run", "cancel", &second]);
    world.wait_for_state(&second, "cancelled");
    world.ok(&["freeze"]);
    let leftover = fs::read_to_string(world.root().join("pids.leftover")).unwrap();
    let last = format!("/proc/{}", leftover.lines().last().unwrap());
    wait_until(|| !fs::exists(&last).unwrap());
    daemon.stop();
    let counts = ["authority.frozen", "authority.thawed"].map(|kind| world.count_events(kind));
    assert_eq!(counts, [2, 1], "{:?}", world.kinds());
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
}

/// A process of a run can neither take authority away nor restore or extend it.
#[test]
fn run_cannot_freeze_thaw_or_renew_the_lease() {
    let world = World::new();
    let _daemon = world.up();
    world.add_agent("ada");
    let schedule = world.add_daily("news", "ada", "hello");
    let run = world.start_run(&schedule);
    for arguments in [&["freeze"][..], &["thaw"], &["lease", "renew"]] {
        let refused = world.json_with(&[("MIDWATCH_RUN_ID", &run)], arguments);
        assert_eq!(refused["error"]["code"], "role_too_low", "{arguments:?}: {refused}");
    }
    let before = world.json(&["status"])["authority"]["lease"]["renewed"].clone();
    assert_eq!(before["by"], "midwatch", "{before}");
    let renewed = world.json(&["lease", "renew", "--reason", "back from holiday"]);
    assert_eq!(renewed["authority"]["lease"]["step"], "full", "{renewed}");
    assert_ne!(renewed["authority"]["lease"]["renewed"], before);
}
