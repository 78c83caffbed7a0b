//! One agent through every layer, with a crash of the daemon in the middle.

use crate::support::world::World;

#[test]
fn agent_survives_a_daemon_crash_and_the_ledger_verifies() {
    let world = World::new();
    check_crash(&world);
    let timeline = world.ok(&["timeline"]);
    let starts: Vec<&str> =
        timeline.lines().filter_map(|it| it.split_once("daemon started")).map(|it| it.1).collect();
    let [first, second] = starts.as_slice() else { panic!("{timeline}") };
    assert!(!first.contains(';'), "{timeline}");
    assert!(second.contains("; the last"), "{timeline}");
}

#[test]
fn agent_survives_a_daemon_crash_on_postgresql() {
    check_crash(&World::on_postgres());
}

fn check_crash(world: &World) {
    // Without a daemon a command opens the directory itself.
    let added = world.json(&["agent", "add", "ada", "--backend", "letta", "--remote-id", "a-1"]);
    assert_eq!((&added["created"], &added["agent"]["tier"]), (&true.into(), &1.into()));
    assert_eq!(world.json(&["status"])["watch"]["kept"], false);

    // With a daemon, the command sends a request over its socket.
    let daemon = world.up();
    let status = world.json(&["status"]);
    assert_eq!(status["watch"]["kept"], true);
    assert_eq!(status["watch"]["pid"], daemon.pid());
    let bob = ["agent", "add", "bob", "--backend", "command", "--", "echo", "hello"];
    world.ok(&bob);
    world.ok(&["agent", "edit", "ada", "--tier", "2"]);
    daemon.kill();

    // Every acknowledged change is stored, and none is half done.
    assert_eq!(world.agents(), ["ada", "bob"]);
    assert_eq!(world.json(&["agent", "show", "ada"])["agent"]["tier"], 2);
    assert_eq!(world.json(&["ledger", "verify"])["verdict"], "ok");

    // Adding the same agent again changes nothing; a clean stop signs the ledger.
    let daemon = world.up();
    let again = world.json(&["agent", "add", "bob", "--backend", "command", "--", "echo", "hello"]);
    assert_eq!(again["created"], false);
    world.ok(&["agent", "remove", "ada"]);
    daemon.stop();
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
    assert_eq!(
        world.kinds(),
        [
            "genesis",
            "agent.registered",
            "watch.started",
            "agent.registered",
            "agent.changed",
            "watch.started",
            "agent.removed",
            "watch.stopped",
            "ledger.rebuilt",
        ]
    );
}
