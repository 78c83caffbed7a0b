//! A stop or a change that arrives while a commit is being flushed.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::thread;

use rustix::process::Signal;

use super::{FLUSHES, inject_fault};
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, World};

/// The commit that queues a run also starts it; a daemon that is stopped then completes the run.
#[test]
fn run_that_starts_while_the_daemon_stops_is_completed() {
    let world = World::new();
    let effects = world.root().join("effects");
    let append = [r#"echo >> "$0""#, effects.to_str().unwrap()];
    let agent = ["agent", "add", "ada", "--backend", "command", "--", "sh", "-c"];
    world.ok(&[&agent[..], &append[..]].concat());

    let wal = world.data().join("midwatch.db-wal");
    let mut slow = inject_fault(&world, FLUSHES, "delay_enter=500ms", &[&wal]);
    let daemon = Daemon::start(slow.arg("up"));
    let flags = ["--every", "2s", "--max-fires", "1", "--agent", "ada", "--prompt", "once"];
    world.add_schedule(&[&["--name", "once"], &flags[..]].concat());
    let before = modified(&wal);
    wait_until(|| modified(&wal) != before);
    // The commit of the fire is written, and its flush takes half a second.
    assert!(!effects.exists());
    daemon.stop();

    let runs = world.json(&["run", "list"])["runs"].clone();
    assert_eq!((runs.as_array().unwrap().len(), &runs[0]["state"]), (1, &"done".into()), "{runs}");
    assert_eq!(runs[0]["queued_at"], runs[0]["started_at"], "not by one commit");
    assert_eq!(fs::read_to_string(&effects).unwrap().lines().count(), 1);
    world.verified();
}

fn modified(file: &Path) -> (u64, i64, i64) {
    let now = fs::metadata(file).unwrap();
    (now.len(), now.mtime(), now.mtime_nsec())
}

/// A start that is decided while a change that forbids it is being flushed must not follow that change in the
/// ledger.
#[test]
fn nothing_starts_after_a_slowly_flushed_change_that_forbids_it() {
    // A prompt starts in the commit that queues it, a tool call in its own.
    let prompt = ["--agent", "echo", "--prompt", "go on"];
    let call = ["--tool", "server_health", "--payload", "{}"];
    let changes = [
        (prompt, "freeze", "authority.frozen"),
        (prompt, "agent edit echo --tier 2", "agent.changed"),
        (prompt, "agent remove echo", "agent.removed"),
        (prompt, "schedule remove ID", "schedule.removed"),
        (call, "freeze", "authority.frozen"),
        (call, "schedule edit ID --tier 2", "schedule.changed"),
        (call, "schedule remove ID", "schedule.removed"),
    ];
    // Each case waits for slow flushes, so they run in parallel.
    thread::scope(|scope| {
        for (action, change, kind) in changes {
            scope.spawn(move || check_change(&action, change, kind));
        }
    });
}

fn check_change(action: &[&str], change: &str, kind: &str) {
    let world = World::new();
    world.add_agent("echo");
    let wal = world.data().join("midwatch.db-wal");
    let mut slow = inject_fault(&world, FLUSHES, "delay_enter=1100ms", &[&wal]);
    let daemon = Daemon::start(slow.arg("up"));
    let when = ["--name", "tick", "--every", "1s", "--overlap", "allow"];
    let id = world.add_schedule(&[&when[..], action].concat());
    world.wait_for_event("run.started");
    let change = change.replace("ID", &id);
    world.ok(&change.split(' ').collect::<Vec<_>>());
    let kinds_since_change = || {
        let kinds = world.kinds();
        kinds.iter().position(|it| it == kind).map(|recorded| kinds[recorded..].to_vec())
    };
    if change == "freeze" && action.contains(&"--prompt") {
        // A frozen installation still queues the slots that are due.
        wait_until(|| kinds_since_change().is_some_and(|it| it.contains(&"run.queued".into())));
    }
    daemon.stop();

    let after = kinds_since_change().expect("the change is recorded");
    assert!(after.iter().all(|kind| kind != "run.started"), "{change}: {after:?}");
}

/// The last entries cannot be written, because another process holds the write lock of the database.
#[test]
fn daemon_stops_although_the_store_does_not_answer() {
    let mut world = World::new();
    world.set("MIDWATCH_RUNS_DRAIN", "0s");
    world.add_agent("echo");
    let mut daemon = world.up();
    let lock = world.database();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    daemon.signal(Signal::TERM);
    let (code, stderr) = daemon.wait();
    assert_eq!(code, Some(1), "{stderr}");
    lock.execute_batch("ROLLBACK").unwrap();
    world.up().stop();
    world.verified();
}
