//! A disk that is full, and one that fails.

use std::path::Path;

use serde_json::Value;

use super::{FLUSHES, add, injected, log};
use crate::world::{Daemon, Outcome, World, wait_for};

fn json(world: &World, arguments: &[&str]) -> Outcome {
    world.run(&[&["--json"], arguments].concat())
}

/// A world with a log, so that the daemon has little to write before it is ready.
fn begun() -> World {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    world.ok(&add("first"));
    world
}

/// The failures begin and end at the given writes of the thread that writes the log; a commit has
/// about ten, so they begin at every part of one.
#[test]
fn a_full_disk_refuses_changes_until_there_is_room() {
    for first in 24..34 {
        let world = begun();
        let when = format!("error=ENOSPC:when={first}..{}", first + 4);
        let daemon = Daemon::start(injected(&world, "pwrite64", &when, &[]).arg("up"));
        let pid = world.json(&["status"])["watch"]["pid"].clone();
        let (mut kept, mut refused, mut since) = (vec!["first".to_owned()], Vec::new(), 0);
        // Until it was full and then worked five times in a row.
        for number in 10..99 {
            let name = format!("agent-{number}");
            let outcome = json(&world, &add(&name));
            if outcome.code == Some(0) {
                kept.push(name);
                since += 1;
            } else {
                let (code, said) = outcome.error();
                assert_eq!((code.as_str(), outcome.code), ("disk_full", Some(1)), "{outcome:?}");
                assert!(said.contains("nothing was changed"), "{said}");
                refused.push(name);
                since = 0;
                assert_eq!(world.json(&["agent", "show", "first"])["agent"]["name"], "first");
            }
            let mut expected = kept.clone();
            expected.sort();
            assert_eq!(world.agents(), expected, "after {number}");
            if !refused.is_empty() && since == 5 {
                break;
            }
        }
        assert!(!refused.is_empty() && since == 5, "{first}: {refused:?}");
        assert_eq!(world.json(&["status"])["watch"]["pid"], pid, "it is the same daemon");
        for name in &refused {
            world.ok(&add(name));
        }
        let (code, said) = daemon.stop();
        assert_eq!(code, Some(0), "{said}");
        let report = world.verified();
        // The first entry, a start, a stop, and the agents.
        assert_eq!(report["entries"], 3 + world.agents().len());
        assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0);
    }
}

/// S10: what was acknowledged stays, reading goes on, a run can be stopped, and all goes on once there is room.
#[test]
fn a_run_can_be_stopped_though_the_disk_is_full() {
    let world = begun();
    let alive = world.data().join("alive");
    let script = format!("echo $$ > {}; sleep 600", alive.display());
    world.ok(&["agent", "add", "sleeper", "--backend", "command", "--", "/bin/sh", "-c", &script]);
    let mut full = injected(&world, "pwrite64", "error=ENOSPC:when=60..140", &[]);
    let daemon = Daemon::start(full.arg("up"));
    let added = ["schedule", "add", "--name", "long", "--every", "1h", "--agent", "sleeper"];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let added = world.json(&[&added[..], &["--prompt", "sleep"]].concat());
    let schedule = text(&added["schedule"]["id"]);
    let id = text(&world.json(&["run", "start", &schedule])["run"]["id"]);
    wait_for(|| alive.exists().then_some(()));
    let shown = || text(&world.json(&["run", "show", &id])["run"]["state"]);

    let agent = |number: u32| json(&world, &add(&format!("agent-{number}")));
    let refused = (0..60).find(|number| agent(*number).code != Some(0));
    assert!(refused.is_some(), "the disk was never full");
    assert_eq!(shown(), "running");
    let (code, said) = json(&world, &["run", "cancel", &id]).error();
    assert_eq!(code, "disk_full");
    assert!(said.contains("the run was told to stop"), "{said}");
    let pid = std::fs::read_to_string(&alive).unwrap();
    wait_for(|| (!Path::new("/proc").join(pid.trim()).exists()).then_some(()));
    assert_eq!(shown(), "running", "how it ended is not written down yet");

    let room = (100..200).find(|number| agent(*number).code == Some(0));
    assert!(room.is_some(), "there was never room again");
    wait_for(|| (shown() == "cancelled").then_some(()));
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    world.verified();
}

/// Even opening takes a little room. Without it nothing can be done, and the reason is told.
#[test]
fn a_disk_that_was_full_before_the_start_is_called_full() {
    let world = begun();
    let before = log(&world);
    for command in [
        &["up"][..],
        &add("second"),
        &["agent", "list"],
        &["ledger", "rebuild"],
        &["ledger", "checkpoint"],
        &["status"],
    ] {
        let mut full = injected(&world, "pwrite64", "error=ENOSPC", &[]);
        let outcome = Outcome::from(full.arg("--json").args(command).output().unwrap());
        let (code, said) = outcome.error();
        assert_eq!((code.as_str(), outcome.code), ("disk_full", Some(1)), "{command:?}: {said}");
    }
    assert_eq!(log(&world), before);
    world.ok(&add("second"));
    world.verified();
}

/// A write whose fate is not known ends the daemon, whatever it was for.
#[test]
fn a_disk_that_fails_stops_the_daemon_and_loses_nothing() {
    let mut failed = std::collections::BTreeSet::new();
    for (call, nth) in [(FLUSHES, 5), (FLUSHES, 6), (FLUSHES, 7), ("pwrite64", 30)] {
        let world = begun();
        let mut failing = injected(&world, call, &format!("error=EIO:when={nth}"), &[]);
        let mut daemon = Daemon::start(failing.arg("up"));
        let mut kept = vec!["first".to_owned()];
        for number in 10.. {
            assert!(number < 30, "{call} {nth}: it never failed");
            let name = format!("agent-{number}");
            let added = json(&world, &add(&name));
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
        let (code, said) = daemon.wait();
        assert_eq!(code, Some(1), "{call} {nth}: {said}");
        assert!(said.contains("[disk_failed]"), "{call} {nth}: {said}");

        let daemon = world.up();
        assert!(world.checked().starts_with("sound"), "{}", world.checked());
        let found = world.agents();
        assert!(kept.iter().all(|name| found.contains(name)), "{kept:?} {found:?}");
        world.ok(&add("later"));
        drop(daemon);
        world.verified();
    }
    assert_eq!(failed.into_iter().collect::<Vec<_>>(), ["checkpoint", "commit"]);
}

/// A command that works alone says so as well, and what it said it did is there.
#[test]
fn a_disk_that_fails_a_lone_command_is_told() {
    let world = begun();
    let (mut kept, mut failures) = (vec!["first".to_owned()], 0);
    for nth in 1..8 {
        let name = format!("agent-{nth}");
        let mut failing = injected(&world, FLUSHES, &format!("error=EIO:when={nth}"), &[]);
        let outcome = Outcome::from(failing.arg("--json").args(add(&name)).output().unwrap());
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

/// The write-ahead log is copied into the file after an answer, and a failure there is final too.
#[test]
fn a_flush_that_fails_behind_an_answer_stops_the_daemon() {
    let world = begun();
    let file = world.data().join("midwatch.db");
    let mut failing = injected(&world, FLUSHES, "error=EIO", &[&file]);
    // A write-ahead log that is long enough to be copied at the next change.
    let database = world.database();
    database.execute_batch("PRAGMA wal_autocheckpoint = 0").unwrap();
    let long = "INSERT INTO answer VALUES ('long', x'00', zeroblob(20000000), 0)";
    database.execute_batch(long).unwrap();
    let mut daemon = Daemon::start(failing.arg("up"));
    // While somebody reads, only a part is copied and none of it flushed: the next change has the rest copied.
    let (mut number, mut kept) = (0, vec!["first".to_owned()]);
    wait_for(|| {
        number += 1;
        let name = format!("agent-{number}");
        if json(&world, &add(&name)).code == Some(0) {
            kept.push(name);
        }
        daemon.has_ended().then_some(())
    });
    let (code, said) = daemon.wait();
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("[disk_failed]"), "{said}");
    drop(database);
    let daemon = world.up();
    let agents = world.agents();
    assert!(kept.iter().all(|name| agents.contains(name)), "{kept:?} {agents:?}");
    drop(daemon);
    world.verified();
}

/// The disk is full from the given write on, before the change, in it, or when the log is signed
/// after it. What a command says of the change must be so.
#[test]
fn a_lone_command_says_what_became_of_its_change_wherever_the_disk_is_full() {
    let mut seen = std::collections::BTreeSet::new();
    for first in 1..24 {
        let world = World::new();
        // A daemon that is killed has signed nothing.
        world.up().kill();
        let mut full = injected(&world, "pwrite64", &format!("error=ENOSPC:when={first}+"), &[]);
        let outcome = Outcome::from(full.arg("--json").args(add("ada")).output().unwrap());
        let is_there = world.run(&["agent", "show", "ada"]).code == Some(0);
        assert_eq!(outcome.code == Some(0), is_there, "{first}: {outcome:?}");
        let is_signed = !outcome.stderr.contains("the log could not be signed");
        seen.insert((is_there, is_signed));
    }
    assert!(seen.contains(&(true, false)), "the signing never failed: {seen:?}");
}
