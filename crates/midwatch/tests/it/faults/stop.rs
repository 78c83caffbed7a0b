//! A stop that comes while something is on its way to the disk.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

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

/// What was decided while a word that forbids it was on its way to the disk comes after that word in the log.
#[test]
fn nothing_begins_after_a_word_against_it_that_was_written_slowly() {
    // A prompt begins by the commit that queues it, a call by one of its own.
    let prompt = ["--agent", "echo", "--prompt", "go on"];
    let call = ["--tool", "server_health", "--payload", "{}"];
    let words = [
        (prompt, "freeze", "authority.frozen"),
        (prompt, "agent edit echo --tier 2", "agent.changed"),
        (prompt, "agent remove echo", "agent.removed"),
        (prompt, "schedule remove ID", "schedule.removed"),
        (call, "freeze", "authority.frozen"),
        (call, "schedule edit ID --tier 2", "schedule.changed"),
        (call, "schedule remove ID", "schedule.removed"),
    ];
    // They wait for slow flushes, and need not wait for one another.
    thread::scope(|scope| {
        for (action, word, kind) in words {
            scope.spawn(move || check_word(&action, word, kind));
        }
    });
}

fn check_word(action: &[&str], word: &str, kind: &str) {
    let world = World::new();
    world.ok(&super::add("echo"));
    let wal = world.data().join("midwatch.db-wal");
    let mut slow = injected(&world, FLUSHES, "delay_enter=1100ms", &[&wal]);
    let daemon = Daemon::start(slow.arg("up"));
    let when = ["schedule", "add", "--name", "tick", "--every", "1s", "--overlap", "allow"];
    let id = world.json(&[&when[..], action].concat())["schedule"]["id"].clone();
    wait_for(|| world.kinds().iter().any(|kind| kind == "run.started").then_some(()));
    let word = word.replace("ID", id.as_str().unwrap());
    world.ok(&word.split(' ').collect::<Vec<_>>());
    assert_eq!(daemon.stop().0, Some(0));

    let kinds = world.kinds();
    let written = kinds.iter().position(|it| it == kind).expect("it was written");
    let after = &kinds[written..];
    if word == "freeze" && action.contains(&"--prompt") {
        assert!(
            after.iter().any(|kind| kind == "run.queued"),
            "a slot was due meanwhile: {after:?}"
        );
    }
    assert!(after.iter().all(|kind| kind != "run.started"), "{word}: {after:?}");
}
