//! `midwatch up`, `status` and `doctor`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{Transcript, plain::plain};
use crate::world::{Daemon, World};

/// The room on the disk is nobody's business here.
fn without_room(text: &str) -> String {
    let lines = text.lines().map(|line| match line.split_once(" MiB free") {
        None => line.to_owned(),
        Some((before, after)) => {
            let kept = before.trim_end_matches(|c: char| c.is_ascii_digit());
            format!("{kept}[N] MiB free{after}")
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn status_and_doctor_without_and_with_a_daemon() {
    let world = World::new();
    let mut transcript = Transcript::new(&world);
    transcript.both(&["doctor"]);
    assert!(!world.data().exists(), "looking makes nothing");
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    transcript.both(&["status"]).both(&["doctor"]);
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"));
    transcript.both(&["status"]).both(&["doctor"]);
    drop(daemon);
    insta::assert_snapshot!("health", without_room(transcript.finish()));
}

#[test]
fn doctor_finds_what_is_wrong_and_says_how_to_mend_it() {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_CHECKPOINT_COPY", world.root().join("copy.txt").to_str().unwrap());
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let mut transcript = Transcript::new(&world);
    fs::set_permissions(world.data(), Permissions::from_mode(0o755)).unwrap();
    transcript.both(&["doctor"]);
    fs::set_permissions(world.data(), Permissions::from_mode(0o700)).unwrap();
    let key = world.data().join("signing.key");
    fs::set_permissions(&key, Permissions::from_mode(0o644)).unwrap();
    transcript.both(&["doctor"]);
    fs::remove_file(&key).unwrap();
    transcript.both(&["doctor"]);
    fs::write(world.data().join("midwatch.toml"), "[log]\nlevle = 1\n").unwrap();
    transcript.both(&["doctor"]);
    insta::assert_snapshot!("doctor", without_room(transcript.finish()));
}

/// The copy is worth something only if the newest checkpoint is in it.
#[test]
fn doctor_compares_the_copy_with_the_log() {
    let with_copy = |path: &Path| {
        let mut world = World::new();
        world.set("MIDWATCH_LEDGER_CHECKPOINT_COPY", path.to_str().unwrap());
        world
    };
    let check = |world: &World, result: &str, detail: &str| {
        let outcome = world.run(&["--json", "doctor"]);
        let answer: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        let copy = answer["checks"].as_array().unwrap().last().unwrap();
        let found = (copy["name"].as_str().unwrap(), copy["result"].as_str().unwrap());
        assert_eq!(found, ("checkpoint copy", result), "{answer}");
        assert!(copy["detail"].as_str().unwrap().contains(detail), "{answer}");
        assert_eq!(outcome.code, Some(if result == "ok" { 0 } else { 1 }), "{answer}");
    };
    let world = with_copy(Path::new("/nonexistent/dir/cp.log"));
    check(&world, "wrong", "cannot be written");
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    check(&world, "wrong", "cannot be written");

    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("cp.log");
    let world = with_copy(&copy);
    check(&world, "ok", copy.to_str().unwrap());
    assert!(!copy.exists(), "looking makes nothing");
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    world.ok(&["ledger", "checkpoint"]);
    check(&world, "ok", copy.to_str().unwrap());
    let first = fs::read(&copy).unwrap();
    world.ok(&["agent", "add", "bob", "--backend", "builtin"]);
    world.ok(&["ledger", "checkpoint"]);
    fs::write(&copy, first).unwrap();
    check(&world, "wrong", "ends at 2 entries, the log is signed up to 3");
    fs::remove_file(&copy).unwrap();
    check(&world, "wrong", "has no checkpoint, the log is signed up to 3");
}

#[test]
fn the_daemon_says_when_it_is_ready() {
    let world = World::new();
    let daemon = world.up();
    let people = plain(&world, &daemon.ready);
    drop(daemon);
    let daemon = Daemon::start(world.command().args(["up", "--json"]));
    let programs = plain(&world, &daemon.ready);
    drop(daemon);
    insta::assert_snapshot!("ready", format!("{people}{programs}"));
}
