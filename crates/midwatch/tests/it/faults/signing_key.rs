//! The signing key: missing, foreign, unreadable or readable by others.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use super::inject_fault;
use crate::support::world::{Daemon, Outcome, World, agent_add};

/// Checks that a world with a changed key refuses every change, and works again with its own key.
fn check(change: impl Fn(&Path), reason: &str) {
    let world = World::new();
    world.add_agent("ada");
    let key = world.data().join("signing.key");
    let kept = fs::read(&key).unwrap();
    let before = world.stored_entries();
    change(&key);
    let changed = fs::read(&key).ok();

    for command in
        [&["up"][..], &agent_add("bob"), &["ledger", "checkpoint"], &["ledger", "export"]]
    {
        let message = world.refused(command, "key_missing", 4);
        assert!(
            message.contains(reason) && message.contains("signing.key"),
            "{command:?}: {message}"
        );
    }
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{stderr}");
    let doctor = world.run(&["doctor"]);
    assert_eq!(doctor.code, Some(1), "{doctor:?}");
    assert_eq!(world.verified()["entries"], before.len(), "verifying needed the private key");
    assert_eq!(world.stored_entries(), before);
    assert_eq!(fs::read(&key).ok(), changed, "the key was replaced");

    let _ = fs::remove_file(&key);
    fs::write(&key, kept).unwrap();
    fs::set_permissions(&key, Permissions::from_mode(0o600)).unwrap();
    world.add_agent("bob");
    world.verified();
}

#[test]
fn signing_key_that_cannot_be_written_is_reported() {
    for (errno, code) in [("ENOSPC", "disk_full"), ("EROFS", "read_only"), ("EIO", "failed")] {
        let world = World::new();
        let path = world.data().join("signing.key.new");
        let mut command = inject_fault(&world, "open,openat", &format!("error={errno}"), &[&path]);
        let outcome = Outcome::from(command.arg("--json").args(agent_add("ada")).output().unwrap());
        let (found, message) = outcome.error();
        assert_eq!((found.as_str(), outcome.code), (code, Some(1)), "{outcome:?}");
        assert!(message.contains("signing.key"), "{message}");
        world.add_agent("ada");
    }
}

#[test]
fn missing_signing_key_refuses_changes() {
    check(|key| fs::remove_file(key).unwrap(), "is missing");
}

#[test]
fn signing_key_of_another_ledger_refuses_changes() {
    let other = World::new();
    other.add_agent("eve");
    let theirs = fs::read(other.data().join("signing.key")).unwrap();
    check(|key| fs::write(key, &theirs).unwrap(), "is not the key that signs this ledger");
}

#[test]
fn signing_key_readable_by_others_refuses_changes() {
    for mode in [0o644, 0o640, 0o604, 0o620] {
        check(|key| fs::set_permissions(key, Permissions::from_mode(mode)).unwrap(), "chmod 600");
    }
}

#[test]
fn invalid_signing_key_refuses_changes() {
    for text in ["", "rubbish", "PRIVATE+KEY+midwatch/x+00000000+AAAA"] {
        check(|key| fs::write(key, text).unwrap(), "cannot be read");
    }
    let directory = |key: &Path| {
        fs::remove_file(key).unwrap();
        fs::create_dir(key).unwrap();
    };
    let world = World::new();
    world.add_agent("ada");
    directory(&world.data().join("signing.key"));
    world.refused(&agent_add("bob"), "key_missing", 4);
}

#[test]
fn daemon_creates_files_for_their_owner_only() {
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
