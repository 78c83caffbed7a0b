//! The signing key: without the right one nothing is done under another.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::{add, injected, log};
use crate::world::{Daemon, Outcome, World};

/// A world whose key was spoiled refuses everything that opens it, and works again with its key.
fn check(spoil: impl Fn(&Path), words: &str) {
    let world = World::new();
    world.ok(&add("ada"));
    let key = world.data().join("signing.key");
    let kept = fs::read(&key).unwrap();
    let before = log(&world);
    spoil(&key);
    let spoilt = fs::read(&key).ok();

    for command in [&["up"][..], &add("bob"), &["ledger", "checkpoint"], &["ledger", "export"]] {
        let said = world.refused(command, "key_missing", 4);
        assert!(said.contains(words) && said.contains("signing.key"), "{command:?}: {said}");
    }
    let (code, said) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{said}");
    let doctor = world.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert_eq!(world.verified()["entries"], before.len(), "verifying needs no private key");
    assert_eq!(log(&world), before);
    assert_eq!(fs::read(&key).ok(), spoilt, "a key is never replaced in silence");

    let _ = fs::remove_file(&key);
    fs::write(&key, kept).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    world.ok(&add("bob"));
    world.verified();
}

#[test]
fn a_new_key_that_cannot_be_written() {
    for (errno, code) in [("ENOSPC", "disk_full"), ("EROFS", "read_only"), ("EIO", "failed")] {
        let world = World::new();
        let path = world.data().join(".signing.key.new");
        let mut command = injected(&world, "openat", &format!("error={errno}"), &[&path]);
        let outcome = Outcome::from(command.arg("--json").args(add("ada")).output().unwrap());
        let (found, said) = outcome.error();
        assert_eq!((found.as_str(), outcome.code), (code, Some(1)), "{outcome:?}");
        assert!(said.contains("signing.key"), "{said}");
        world.ok(&add("ada"));
    }
}

#[test]
fn a_missing_key() {
    check(|key| fs::remove_file(key).unwrap(), "is missing");
}

#[test]
fn the_key_of_another_log() {
    let other = World::new();
    other.ok(&add("eve"));
    let theirs = fs::read(other.data().join("signing.key")).unwrap();
    check(|key| fs::write(key, &theirs).unwrap(), "is not the key that signs this log");
}

#[test]
fn a_key_that_others_can_read() {
    for mode in [0o644, 0o640, 0o604, 0o620] {
        check(|key| fs::set_permissions(key, Permissions::from_mode(mode)).unwrap(), "chmod 600");
    }
}

#[test]
fn a_key_that_is_none() {
    for text in ["", "rubbish", "PRIVATE+KEY+midwatch/x+00000000+AAAA"] {
        check(|key| fs::write(key, text).unwrap(), "cannot be read");
    }
    let directory = |key: &Path| {
        fs::remove_file(key).unwrap();
        fs::create_dir(key).unwrap();
    };
    let world = World::new();
    world.ok(&add("ada"));
    directory(&world.data().join("signing.key"));
    world.refused(&add("bob"), "key_missing", 4);
}

#[test]
fn a_new_key_is_for_its_owner_only() {
    let world = World::new();
    let daemon = world.up();
    world.ok(&["ledger", "checkpoint"]);
    world.ok(&["ledger", "export"]);
    drop(daemon);
    let mut folders = vec![world.data().to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).unwrap().map(Result::unwrap) {
            let found = entry.metadata().unwrap();
            assert_eq!(found.permissions().mode() & 0o077, 0, "{:?}", entry.path());
            if found.is_dir() {
                folders.push(entry.path());
            }
        }
    }
    assert_eq!(fs::metadata(world.data()).unwrap().permissions().mode() & 0o077, 0);
}
