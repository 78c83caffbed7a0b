//! Data directories that cannot be written.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::inject_fault;
use crate::support::world::{Daemon, Outcome, World, agent_add};

fn check(outcome: &Outcome, code: &str, path: &str) {
    let (found, message) = outcome.error();
    assert_eq!((found.as_str(), outcome.code), (code, Some(1)), "{outcome:?}");
    assert!(message.contains(path), "{message}");
}

#[test]
fn data_directory_below_a_file_is_refused_with_its_path() {
    let world = World::new().with_data("file/data");
    fs::write(world.root().join("file"), "not a directory").unwrap();
    for command in [&["up"][..], &agent_add("ada"), &["agent", "list"], &["ledger", "rebuild"]] {
        let outcome = world.run(&[&["--json"], command].concat());
        check(&outcome, "failed", world.data().to_str().unwrap());
    }
    assert_eq!(fs::read_to_string(world.root().join("file")).unwrap(), "not a directory");
}

/// Permissions do not stop root, so the error is injected.
#[test]
fn read_only_file_system_is_reported_and_nothing_changed() {
    let world = World::new();
    let mut refused = inject_fault(&world, "mkdir", "error=EROFS", &[]);
    let outcome = Outcome::from(refused.arg("--json").args(agent_add("ada")).output().unwrap());
    check(&outcome, "read_only", world.data().to_str().unwrap());
    assert!(!world.data().exists());

    world.add_agent("ada");
    let before = world.stored_entries();
    for file in ["midwatch.db", "midwatch.db-wal"] {
        let path = world.data().join(file);
        for command in [&["up"][..], &agent_add("bob")] {
            let mut refused = inject_fault(&world, "openat", "error=EROFS", &[&path]);
            let outcome = Outcome::from(refused.arg("--json").args(command).output().unwrap());
            check(&outcome, "read_only", "data directory");
        }
    }
    assert_eq!(world.stored_entries(), before);
    world.add_agent("bob");
    world.verified();
}

/// The verifier only reads, so it must work on a read-only medium.
#[test]
fn ledger_on_a_read_only_medium_verifies() {
    let world = World::new();
    world.add_agent("ada");
    let side = ["midwatch.db-wal", "midwatch.db-shm"].map(|name| world.data().join(name));
    let mut refused = inject_fault(&world, "openat", "error=EROFS", &[&side[0], &side[1]]);
    let command = refused.args(["--json", "ledger", "verify"]);
    let outcome = Outcome::from(command.output().unwrap());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

/// The socket is in a directory of another user. Whether a daemon runs there is unknown.
#[test]
fn missing_permission_is_not_reported_as_an_unreachable_daemon() {
    let world = World::new();
    world.add_agent("ada");
    for command in [&["status"][..], &agent_add("bob"), &["stop"]] {
        let mut refused = inject_fault(&world, "connect", "error=EACCES", &[]);
        let outcome = Outcome::from(refused.arg("--json").args(command).output().unwrap());
        check(&outcome, "read_only", world.data().to_str().unwrap());
        let (_, message) = outcome.error();
        assert!(message.contains("you have no access"), "{message}");
        assert!(message.contains("--data DIR") && !message.contains("may or may not"), "{message}");
    }
    assert_eq!(world.agents(), ["ada"]);
}

#[test]
fn verify_creates_no_files() {
    let world = World::new();
    world.add_agent("ada");
    let files = || -> BTreeSet<OsString> {
        fs::read_dir(world.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = files();
    world.verified();
    assert_eq!(files(), before);
}

#[test]
fn missing_write_permission_is_reported() {
    if rustix::process::getuid().is_root() {
        // Permissions do not stop root; the tests above cover this case.
        return;
    }
    let world = World::new();
    world.add_agent("ada");
    let before = world.stored_entries();
    let set = |mode| fs::set_permissions(world.data(), fs::Permissions::from_mode(mode)).unwrap();
    set(0o500);
    let outcome = world.run(&[&["--json"], &agent_add("bob")[..]].concat());
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    set(0o700);
    check(&outcome, "read_only", "data directory");
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("[read_only]"), "{stderr}");
    assert_eq!(world.stored_entries(), before);
}
