//! `midwatch up`, `status` and `doctor`.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::transcript::{Transcript, normalize};
use crate::support::world::{Daemon, World};

/// Replaces the free space on the disk.
fn normalize_free_space(text: &str) -> String {
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
    assert!(!world.data().exists(), "`doctor` created a file");
    world.add_agent("ada");
    transcript.both(&["status"]).both(&["doctor"]);
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"));
    transcript.both(&["status"]).both(&["doctor"]);
    drop(daemon);
    insta::assert_snapshot!("health", normalize_free_space(transcript.finish()));
}

#[test]
fn doctor_reports_each_problem_with_a_fix() {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_CHECKPOINT_COPY", world.root().join("copy.txt").to_str().unwrap());
    world.add_agent("ada");
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
    insta::assert_snapshot!("doctor", normalize_free_space(transcript.finish()));
}

/// The checkpoint copy must contain the newest checkpoint.
#[test]
fn doctor_compares_the_checkpoint_copy_with_the_ledger() {
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
    world.add_agent("ada");
    check(&world, "wrong", "cannot be written");

    let elsewhere = tempfile::tempdir().unwrap();
    let copy = elsewhere.path().join("cp.log");
    let world = with_copy(&copy);
    check(&world, "ok", copy.to_str().unwrap());
    assert!(!copy.exists(), "`doctor` created a file");
    world.add_agent("ada");
    world.ok(&["ledger", "checkpoint"]);
    check(&world, "ok", copy.to_str().unwrap());
    let first = fs::read(&copy).unwrap();
    world.add_agent("bob");
    world.ok(&["ledger", "checkpoint"]);
    fs::write(&copy, first).unwrap();
    check(&world, "wrong", "ends at entry 2, but the ledger is signed up to entry 3");
    fs::remove_file(&copy).unwrap();
    check(&world, "wrong", "has no checkpoint, but the ledger is signed up to entry 3");
}

#[test]
fn daemon_prints_when_it_is_ready() {
    let world = World::new();
    let daemon = world.up();
    let people = normalize(&world, &daemon.ready);
    drop(daemon);
    let daemon = Daemon::start(world.command().args(["up", "--json"]));
    let programs = normalize(&world, &daemon.ready);
    drop(daemon);
    insta::assert_snapshot!("ready", format!("{people}{programs}"));
}
