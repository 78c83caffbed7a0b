//! `midwatch up`, `status` and `doctor`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;

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
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    world.set("MIDWATCH_LEDGER_CHECKPOINT_COPY", world.root().join("copy.txt").to_str().unwrap());
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
