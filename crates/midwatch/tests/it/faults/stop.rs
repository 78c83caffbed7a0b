//! A stop that comes while something is on its way to the disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::{FLUSHES, injected};
use crate::world::{Daemon, World, wait_for};

/// The commit that queues a run also begins it: whoever is told to stop then still sees it to its end.
#[test]
fn a_run_that_begins_while_the_watch_is_told_to_stop_is_done() {
    let world = World::new();
    let effects = world.root().join("effects");
    let noting = [r#"echo >> "$0""#, effects.to_str().unwrap()];
    let agent = ["agent", "add", "ada", "--backend", "command", "--", "sh", "-c"];
    world.ok(&[&agent[..], &noting[..]].concat());

    let wal = world.data().join("midwatch.db-wal");
    let mut slow = injected(&world, FLUSHES, "delay_enter=500ms", &[&wal]);
    let daemon = Daemon::start(slow.arg("up"));
    let what = ["--every", "2s", "--max-fires", "1", "--agent", "ada", "--prompt", "once"];
    world.ok(&[&["schedule", "add", "--name", "once"], &what[..]].concat());
    let before = written(&wal);
    wait_for(|| (written(&wal) != before).then_some(()));
    // What fires is written, and its flush has half a second to go.
    assert!(!effects.exists());
    assert_eq!(daemon.stop().0, Some(0));

    let runs = world.json(&["run", "list"])["runs"].clone();
    assert_eq!((runs.as_array().unwrap().len(), &runs[0]["state"]), (1, &"done".into()), "{runs}");
    assert_eq!(runs[0]["queued_at"], runs[0]["started_at"], "by one commit");
    assert_eq!(fs::read_to_string(&effects).unwrap().lines().count(), 1);
    world.verified();
}

fn written(file: &Path) -> (u64, i64, i64) {
    let now = fs::metadata(file).unwrap();
    (now.len(), now.mtime(), now.mtime_nsec())
}

/// What was decided while the word that freezes all was on its way to the disk comes after it in the log.
#[test]
fn nothing_begins_after_a_freeze_that_was_written_slowly() {
    let world = World::new();
    world.ok(&super::add("echo"));
    let wal = world.data().join("midwatch.db-wal");
    let mut slow = injected(&world, FLUSHES, "delay_enter=1100ms", &[&wal]);
    let daemon = Daemon::start(slow.arg("up"));
    let what = ["--every", "1s", "--overlap", "allow", "--agent", "echo", "--prompt", "go on"];
    world.ok(&[&["schedule", "add", "--name", "tick"], &what[..]].concat());
    wait_for(|| world.kinds().iter().any(|kind| kind == "run.started").then_some(()));
    world.ok(&["freeze"]);
    assert_eq!(daemon.stop().0, Some(0));

    let kinds = world.kinds();
    let frozen = kinds.iter().position(|kind| kind.contains("frozen")).expect("it was written");
    let after = &kinds[frozen..];
    assert!(after.iter().any(|kind| kind == "run.queued"), "a slot was due meanwhile: {after:?}");
    assert!(after.iter().all(|kind| kind != "run.started"), "{after:?}");
}
