//! The keel: one thing through every layer, with a kill -9 in the middle.

use crate::world::World;

#[test]
fn an_agent_survives_a_killed_daemon_and_the_log_verifies() {
    story(&World::new());
}

#[test]
fn an_agent_survives_a_killed_daemon_on_postgresql() {
    story(&World::on_postgres());
}

fn story(world: &World) {
    // Without a daemon a command opens the directory itself.
    let added = world.json(&["agent", "add", "ada", "--backend", "letta", "--remote-id", "a-1"]);
    assert_eq!((&added["created"], &added["agent"]["tier"]), (&true.into(), &1.into()));
    assert_eq!(world.json(&["status"])["watch"]["kept"], false);

    // With one it speaks to the daemon over its socket.
    let daemon = world.up();
    let status = world.json(&["status"]);
    assert_eq!(status["watch"]["kept"], true);
    assert_eq!(status["watch"]["pid"], daemon.pid());
    let bob = ["agent", "add", "bob", "--backend", "command", "--", "echo", "hello"];
    world.ok(&bob);
    world.ok(&["agent", "edit", "ada", "--tier", "2"]);
    daemon.kill();

    // What was acknowledged is there, and nothing is half done.
    let agents = world.json(&["agent", "list"]);
    let names: Vec<&str> = agents["agents"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| it["name"].as_str().unwrap())
        .collect();
    assert_eq!(names, ["ada", "bob"]);
    assert_eq!(world.json(&["agent", "show", "ada"])["agent"]["tier"], 2);
    assert_eq!(world.json(&["ledger", "verify"])["verdict"], "ok");

    // The same again is no change; a clean stop leaves a signed log.
    let daemon = world.up();
    let again = world.json(&["agent", "add", "bob", "--backend", "command", "--", "echo", "hello"]);
    assert_eq!(again["created"], false);
    world.ok(&["agent", "remove", "ada"]);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    let report = world.json(&["ledger", "verify"]);
    assert_eq!(report["verdict"], "ok", "{report}");
    assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0);
    let kinds = world.json(&["ledger", "tail", "--limit", "100"]);
    let kinds: Vec<&str> =
        kinds["events"].as_array().unwrap().iter().map(|it| it["kind"].as_str().unwrap()).collect();
    assert_eq!(
        kinds,
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
