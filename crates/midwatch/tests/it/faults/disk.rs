//! A full disk, and a failing one.

use std::path::Path;

use super::{FLUSHES, inject_fault};
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, Outcome, World, agent_add};

fn json(world: &World, arguments: &[&str]) -> Outcome {
    world.run(&[&["--json"], arguments].concat())
}

/// A world with a ledger, so that the daemon has little to write before it is ready.
fn world_with_ledger() -> World {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    world.add_agent("first");
    world
}

/// The failures start and end at given writes of the thread that commits. A commit has about ten writes, so they
/// start at every part of one.
#[test]
fn full_disk_refuses_changes_until_there_is_space() {
    for first in 24..34 {
        let world = world_with_ledger();
        let when = format!("error=ENOSPC:when={first}..{}", first + 4);
        let daemon = Daemon::start(inject_fault(&world, "pwrite64", &when, &[]).arg("up"));
        let pid = world.json(&["status"])["watch"]["pid"].clone();
        let (mut kept, mut refused, mut succeeded) = (vec!["first".to_owned()], Vec::new(), 0);
        // Until the disk was full and then five changes in a row succeeded.
        for number in 10..99 {
            let name = format!("agent-{number}");
            let outcome = json(&world, &agent_add(&name));
            if outcome.code == Some(0) {
                kept.push(name);
                succeeded += 1;
            } else {
                let (code, message) = outcome.error();
                assert_eq!((code.as_str(), outcome.code), ("disk_full", Some(1)), "{outcome:?}");
                assert!(message.contains("nothing was changed"), "{message}");
                refused.push(name);
                succeeded = 0;
                assert_eq!(world.json(&["agent", "show", "first"])["agent"]["name"], "first");
            }
            let mut expected = kept.clone();
            expected.sort();
            assert_eq!(world.agents(), expected, "after {number}");
            if !refused.is_empty() && succeeded == 5 {
                break;
            }
        }
        assert!(!refused.is_empty() && succeeded == 5, "{first}: {refused:?}");
        assert_eq!(world.json(&["status"])["watch"]["pid"], pid, "the daemon was restarted");
        for name in &refused {
            world.add_agent(name);
        }
        daemon.stop();
        let report = world.verified();
        // Genesis, a start, a stop, and the agents.
        assert_eq!(report["entries"], 3 + world.agents().len());
        assert_eq!(world.rebuild_differences(), 0);
    }
}

/// S10: acknowledged changes stay, reads work, a run can be cancelled, and everything continues with free space.
#[test]
fn run_can_be_cancelled_on_a_full_disk() {
    let world = world_with_ledger();
    let pid_file = world.data().join("pid");
    let script = format!("echo $$ > {}; sleep 600", pid_file.display());
    world.ok(&["agent", "add", "sleeper", "--backend", "command", "--", "/bin/sh", "-c", &script]);
    let mut full = inject_fault(&world, "pwrite64", "error=ENOSPC:when=60..140", &[]);
    let daemon = Daemon::start(full.arg("up"));
    let id = world.start_run(&world.add_daily("long", "sleeper", "sleep"));
    wait_until(|| pid_file.exists());
    let state = || world.show_run(&id)["state"].clone();

    let add = |number: u32| json(&world, &agent_add(&format!("agent-{number}")));
    let refused = (0..60).find(|number| add(*number).code != Some(0));
    assert!(refused.is_some(), "the disk was never full");
    assert_eq!(state(), "running");
    let page = world.ok(&["status"]);
    let full = "ATTENTION      nothing can be recorded, so no run starts: the disk is full";
    assert!(page.contains(full), "{page}");
    let cancelled = world.json(&["run", "cancel", &id]);
    assert_eq!((&cancelled["changed"], &cancelled["recorded"]), (&true.into(), &false.into()));
    let pid = std::fs::read_to_string(&pid_file).unwrap();
    wait_until(|| !Path::new("/proc").join(pid.trim()).exists());
    assert_eq!(state(), "running", "the outcome was recorded on a full disk");

    let room = (100..200).find(|number| add(*number).code == Some(0));
    assert!(room.is_some(), "there was never free space again");
    world.wait_for_state(&id, "cancelled");
    assert!(!world.ok(&["status"]).contains("the disk is full"));
    daemon.stop();
    world.verified();
}

/// Opening the database takes some space, so no command works, and each reports why.
#[test]
fn disk_full_before_the_start_is_reported() {
    let world = world_with_ledger();
    let before = world.stored_entries();
    for command in [
        &["up"][..],
        &agent_add("second"),
        &["agent", "list"],
        &["ledger", "rebuild"],
        &["ledger", "checkpoint"],
        &["status"],
    ] {
        let mut full = inject_fault(&world, "pwrite64", "error=ENOSPC", &[]);
        let outcome = Outcome::from(full.arg("--json").args(command).output().unwrap());
        let (code, message) = outcome.error();
        assert_eq!((code.as_str(), outcome.code), ("disk_full", Some(1)), "{command:?}: {message}");
    }
    assert_eq!(world.stored_entries(), before);
    world.add_agent("second");
    world.verified();
}

/// The daemon exits after a write whose outcome is unknown.
#[test]
fn failing_disk_stops_the_daemon_and_loses_nothing() {
    let mut failed = std::collections::BTreeSet::new();
    for (call, nth) in [(FLUSHES, 5), (FLUSHES, 6), (FLUSHES, 7), ("pwrite64", 30)] {
        let world = world_with_ledger();
        let mut failing = inject_fault(&world, call, &format!("error=EIO:when={nth}"), &[]);
        let mut daemon = Daemon::start(failing.arg("up"));
        let mut kept = vec!["first".to_owned()];
        for number in 10.. {
            assert!(number < 30, "{call} {nth}: no change failed");
            let name = format!("agent-{number}");
            let added = json(&world, &agent_add(&name));
            if added.code == Some(0) {
                kept.push(name);
            } else {
                assert_eq!((added.error().0.as_str(), added.code), ("disk_failed", Some(1)));
                failed.insert("commit");
                break;
            }
            let signed = json(&world, &["ledger", "checkpoint"]);
            if signed.code != Some(0) {
                assert_eq!((signed.error().0.as_str(), signed.code), ("disk_failed", Some(1)));
                failed.insert("checkpoint");
                break;
            }
        }
        let (code, stderr) = daemon.wait();
        assert_eq!(code, Some(1), "{call} {nth}: {stderr}");
        assert!(stderr.contains("[disk_failed]"), "{call} {nth}: {stderr}");

        let daemon = world.up();
        assert!(world.checked().starts_with("sound"), "{}", world.checked());
        let found = world.agents();
        assert!(kept.iter().all(|name| found.contains(name)), "{kept:?} {found:?}");
        world.add_agent("later");
        drop(daemon);
        world.verified();
    }
    assert_eq!(failed.into_iter().collect::<Vec<_>>(), ["checkpoint", "commit"]);
}

/// A command without a daemon reports the failure, and every change that it acknowledged is stored.
#[test]
fn failing_disk_is_reported_by_a_command_without_a_daemon() {
    let world = world_with_ledger();
    let (mut kept, mut failures) = (vec!["first".to_owned()], 0);
    for nth in 1..8 {
        let name = format!("agent-{nth}");
        let mut failing = inject_fault(&world, FLUSHES, &format!("error=EIO:when={nth}"), &[]);
        let outcome = Outcome::from(failing.arg("--json").args(agent_add(&name)).output().unwrap());
        match outcome.code {
            Some(0) => kept.push(name),
            _ => {
                assert_eq!((outcome.error().0.as_str(), outcome.code), ("disk_failed", Some(1)));
                failures += 1;
            }
        }
        world.verified();
    }
    assert!(0 < failures && 1 < kept.len(), "{failures} {kept:?}");
    let found = world.agents();
    assert!(kept.iter().all(|name| found.contains(name)), "{kept:?} {found:?}");
}

/// A failure while the write-ahead log is copied into the file, after the response, is fatal, too.
#[test]
fn failed_flush_after_the_response_stops_the_daemon() {
    let world = world_with_ledger();
    let file = world.data().join("midwatch.db");
    let mut failing = inject_fault(&world, FLUSHES, "error=EIO", &[&file]);
    // Makes the write-ahead log long enough to be copied at the next change.
    let database = world.database();
    database.execute_batch("PRAGMA wal_autocheckpoint = 0").unwrap();
    let long = "INSERT INTO answer VALUES ('long', x'00', zeroblob(20000000), 0)";
    database.execute_batch(long).unwrap();
    let mut daemon = Daemon::start(failing.arg("up"));
    // While another connection reads, only a part is copied, without a flush; a later change copies the rest.
    let (mut number, mut kept) = (0, vec!["first".to_owned()]);
    wait_until(|| {
        number += 1;
        let name = format!("agent-{number}");
        if json(&world, &agent_add(&name)).code == Some(0) {
            kept.push(name);
        }
        daemon.has_ended()
    });
    let (code, stderr) = daemon.wait();
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("[disk_failed]"), "{stderr}");
    drop(database);
    let daemon = world.up();
    let agents = world.agents();
    assert!(kept.iter().all(|name| agents.contains(name)), "{kept:?} {agents:?}");
    drop(daemon);
    world.verified();
}

/// The disk is full from the given write on: before the change, in it, or when the ledger is signed after it. The
/// command must report correctly whether the change was made.
#[test]
fn command_on_a_full_disk_reports_whether_its_change_was_made() {
    let mut seen = std::collections::BTreeSet::new();
    for first in 1..24 {
        let world = World::new();
        // A killed daemon has signed nothing.
        world.up().kill();
        let mut full =
            inject_fault(&world, "pwrite64", &format!("error=ENOSPC:when={first}+"), &[]);
        let outcome = Outcome::from(full.arg("--json").args(agent_add("ada")).output().unwrap());
        let is_stored = world.run(&["agent", "show", "ada"]).code == Some(0);
        assert_eq!(outcome.code == Some(0), is_stored, "{first}: {outcome:?}");
        let is_signed = !outcome.stderr.contains("failed to sign the ledger");
        seen.insert((is_stored, is_signed));
    }
    assert!(seen.contains(&(true, false)), "signing never failed: {seen:?}");
}
