//! Places that cannot be written.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt;

use super::{add, injected, log};
use crate::world::{Daemon, Outcome, World};

fn check(outcome: &Outcome, code: &str, place: &str) {
    let (found, said) = outcome.error();
    assert_eq!((found.as_str(), outcome.code), (code, Some(1)), "{outcome:?}");
    assert!(said.contains(place), "{said}");
}

#[test]
fn a_data_directory_below_a_file_is_refused_with_its_path() {
    let world = World::new().with_data("file/data");
    fs::write(world.root().join("file"), "not a directory").unwrap();
    for command in [&["up"][..], &add("ada"), &["agent", "list"], &["ledger", "rebuild"]] {
        let outcome = world.run(&[&["--json"], command].concat());
        check(&outcome, "failed", world.data().to_str().unwrap());
    }
    assert_eq!(fs::read_to_string(world.root().join("file")).unwrap(), "not a directory");
}

/// For root nothing is forbidden, so the file system is made to say no.
#[test]
fn a_read_only_file_system_is_named_and_nothing_is_changed() {
    let world = World::new();
    let mut refused = injected(&world, "mkdir", "error=EROFS", &[]);
    let outcome = Outcome::from(refused.arg("--json").args(add("ada")).output().unwrap());
    check(&outcome, "read_only", world.data().to_str().unwrap());
    assert!(!world.data().exists());

    world.ok(&add("ada"));
    let before = log(&world);
    for file in ["lock", "midwatch.db", "midwatch.db-wal"] {
        let path = world.data().join(file);
        for command in [&["up"][..], &add("bob")] {
            let mut refused = injected(&world, "openat", "error=EROFS", &[&path]);
            let outcome = Outcome::from(refused.arg("--json").args(command).output().unwrap());
            check(&outcome, "read_only", "data directory");
        }
    }
    assert_eq!(log(&world), before);
    world.ok(&add("bob"));
    world.verified();
}

/// The verifier only reads; it must do so on a medium that cannot be written.
#[test]
fn a_log_on_a_read_only_medium_verifies() {
    let world = World::new();
    world.ok(&add("ada"));
    let side = ["midwatch.db-wal", "midwatch.db-shm"].map(|name| world.data().join(name));
    let mut refused = injected(&world, "openat", "error=EROFS", &[&side[0], &side[1]]);
    let command = refused.args(["--json", "ledger", "verify"]);
    let outcome = Outcome::from(command.output().unwrap());
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[test]
fn verifying_leaves_no_file_behind() {
    let world = World::new();
    world.ok(&add("ada"));
    let files = || -> BTreeSet<OsString> {
        fs::read_dir(world.data()).unwrap().map(|entry| entry.unwrap().file_name()).collect()
    };
    let before = files();
    world.verified();
    assert_eq!(files(), before);
}

#[test]
fn permissions_that_forbid_writing_are_told() {
    if rustix::process::getuid().is_root() {
        // For root they forbid nothing; the tests above stand for this one.
        return;
    }
    let world = World::new();
    world.ok(&add("ada"));
    let before = log(&world);
    let set = |mode| fs::set_permissions(world.data(), fs::Permissions::from_mode(mode)).unwrap();
    set(0o500);
    let outcome = world.run(&[&["--json"], &add("bob")[..]].concat());
    let (code, said) = Daemon::fails(world.command().arg("up"));
    set(0o700);
    check(&outcome, "read_only", "data directory");
    assert_eq!(code, Some(1), "{said}");
    assert!(said.contains("[read_only]"), "{said}");
    assert_eq!(log(&world), before);
}
