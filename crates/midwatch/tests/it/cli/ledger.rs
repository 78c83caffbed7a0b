//! `midwatch ledger …`

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::transcript::Transcript;
use crate::support::world::World;

#[test]
fn ledger_is_read_signed_verified_exported_and_rebuilt() {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    world.ok(&["agent", "add", "ada", "--backend", "letta", "--remote-id", "a-1"]);
    let daemon = world.up();
    world.checked();
    daemon.stop();
    world.ok(&["agent", "edit", "ada", "--tier", "2"]);
    let mut transcript = Transcript::new(&world);
    transcript
        .both(&["ledger", "tail"])
        .both(&["ledger", "tail", "--limit", "1"])
        .both(&["ledger", "tail", "--cursor", "4"])
        .both(&["ledger", "tail", "--cursor", "99"])
        .both(&["ledger", "verify"])
        .both(&["ledger", "checkpoint"])
        .run(&["ledger", "checkpoint"])
        .run(&["ledger", "verify"])
        .both(&["ledger", "export"])
        .both(&["ledger", "rebuild"]);
    let exports = world.data().join("exports").display().to_string();
    transcript.both(&["ledger", "verify", "--export", &exports]);
    insta::assert_snapshot!("ledger", normalize_keys(transcript.finish()));

    let restored = World::new();
    let mut transcript = Transcript::new(&restored);
    transcript.run(&["ledger", "rebuild", "--from-export", &exports]);
    let second = World::new();
    let outcome = second.run(&["--json", "ledger", "rebuild", "--from-export", &exports]);
    transcript.add("--json ledger rebuild --from-export", &outcome);
    let text = transcript.finish().replace(&world.root().display().to_string(), "[EXPORTED]");
    insta::assert_snapshot!("ledger_restored", text);
}

/// Replaces the idempotency keys that commands generate.
fn normalize_keys(text: &str) -> String {
    text.replace("\"cause\": \"key:uid:[UID]/[ID]\"", "\"cause\": \"[KEY]\"")
}

#[test]
fn damage_is_reported_to_people_and_as_json() {
    let world = World::new();
    world.add_agent("ada");
    world.ok(&["ledger", "checkpoint"]);
    let mut transcript = Transcript::new(&world);
    world.alter_database("UPDATE entry SET actor = 'eve' WHERE seq = 2");
    transcript.both(&["ledger", "verify"]);
    world.alter_database("DELETE FROM entry WHERE seq = 2");
    transcript.both(&["ledger", "verify"]);
    insta::assert_snapshot!("ledger_damaged", transcript.finish());
}

/// `ledger tail --follow` prints one line per event, as it is recorded.
#[test]
fn follower_gets_each_event_once_and_in_order() {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let daemon = world.up();
    let mut command = world.command();
    command.args(["--json", "ledger", "tail", "--follow", "--cursor", "0"]).stdout(Stdio::piped());
    let mut follower = command.spawn().unwrap();
    let mut lines = BufReader::new(follower.stdout.take().unwrap()).lines();
    let mut next = || {
        let line = lines.next().unwrap().unwrap();
        let event: serde_json::Value = serde_json::from_str(&line).unwrap();
        (event["seq"].as_u64().unwrap(), event["kind"].as_str().unwrap().to_owned())
    };
    assert_eq!(next(), (1, "genesis".into()));
    assert_eq!(next(), (2, "watch.started".into()));
    for number in 3..8 {
        world.add_agent(&format!("agent-{number}"));
        assert_eq!(next(), (number, "agent.registered".into()));
    }
    follower.kill().unwrap();
    follower.wait().unwrap();
    drop(daemon);
}
