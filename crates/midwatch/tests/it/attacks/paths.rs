//! Paths that lead elsewhere, and files that an agent put in their place.

use std::fs;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt, symlink};

use serde_json::json;

use crate::support::world::{Daemon, World};

/// What the policy says about the use of a path: the verdict, and the reasons.
fn verdict(world: &World, capability: &str, path: &str) -> (String, String) {
    let request = json!({"capability": capability, "path": path, "role": "runner"}).to_string();
    let explained = world.json(&["policy", "explain", "--request", &request]);
    let verdict = explained["ruling"]["verdict"].as_str().or(explained["verdict"].as_str());
    (verdict.unwrap_or_else(|| panic!("{explained}")).to_owned(), explained.to_string())
}

/// C13, D1, D3, D5: no spelling of a path is allowed that leads to our files, out of a directory, or into a process.
#[test]
fn d1_paths_that_lead_elsewhere_are_not_allowed() {
    let world = World::with_agent("ada");
    let allow = "[[rule]]\nid = \"tree\"\nallow = [\"filesystem.*\"]\npath = [\"/srv/tree/*\"]\n\
                 match = [{ capability = \"filesystem.write\", path = \"/srv/tree/a\" }]\n\
                 not_match = [{ capability = \"filesystem.write\", path = \"/srv/other\" }]\n";
    fs::write(world.data().join("policy.toml"), allow).unwrap();
    assert_eq!(verdict(&world, "filesystem.write", "/srv/tree/a").0, "allow");
    assert_eq!(verdict(&world, "filesystem.write", "/srv/tree/%2e%2e%2fb").0, "allow");
    let below_data = |name: &str| world.data().join(name).display().to_string();
    let long = format!("/srv/tree/../{}", "a/".repeat(2_100));
    for path in [
        "/srv/tree/../other",
        "/srv/tree/a/../../other",
        "/srv/tree/./../x",
        "srv/tree/a",
        "~/x",
        "",
        "/srv/tree/a\0b",
        "/srv/tree/a\nb",
        "/srv/tree/a\u{1b}[2Jb",
        "/srv/tree/\u{9b}b",
        &long,
        "/proc/self/root/etc/passwd",
        "/proc/self/fd/3",
        "/dev/fd/3",
        "/dev/stdin",
        "/etc/passwd",
        "/srv/tree/policy.toml",
        "/srv/tree/.git/config",
        &below_data("midwatch.toml"),
        &below_data("approvals/pending/sch_00000000.token"),
        &below_data("stop/freeze"),
    ] {
        let (found, explained) = verdict(&world, "filesystem.write", path);
        assert_ne!(found, "allow", "{path:?}: {explained}");
        if path.contains(char::is_control) {
            assert_eq!(found, "deny", "{path:?}: {explained}");
        }
    }
}

/// The directories that we write to below the data directory are our own: a link leads nowhere.
#[test]
fn d2_linked_directories_of_ours_are_not_followed() {
    let world = World::new();
    let elsewhere = world.root().join("elsewhere");
    let print = "head -c 20000 /dev/zero | tr '\\0' x";
    world.ok(&["agent", "add", "loud", "--backend", "command", "--", "sh", "-c", print]);
    let links = ["outputs", "exports", "logs", "notices", "approvals", "stop"];
    for name in links {
        fs::create_dir_all(elsewhere.join(name)).unwrap();
        let _ = fs::remove_dir_all(world.data().join(name));
        symlink(elsewhere.join(name), world.data().join(name)).unwrap();
    }
    let daemon = world.up();
    let run = world.start_run(&world.add_daily("loud", "loud", "hello"));
    let ended = world.wait_for_state(&run, "done");
    assert_eq!(ended["output"]["file"], json!(null), "{ended}");
    let refused = world.refused(&["ledger", "export"], "failed", 1);
    assert!(refused.contains("it is not a directory"), "{refused}");
    // The kill switch needs its directory, so the link is replaced.
    world.ok(&["freeze"]);
    assert!(!fs::symlink_metadata(world.data().join("stop")).unwrap().is_symlink());
    daemon.stop();
    for name in links {
        let found: Vec<_> = fs::read_dir(elsewhere.join(name)).unwrap().collect();
        assert!(found.is_empty(), "{name}: {found:?}");
    }
    world.verified();
}

/// A data directory whose path is too long for a socket has it in the system's temporary directory.
#[test]
fn d7_temporary_directory_must_be_our_own() {
    let mut world = World::new().with_data("long/".repeat(30));
    let temporary = world.root().join("tmp");
    fs::create_dir(&temporary).unwrap();
    world.set("TMPDIR", temporary.display().to_string());
    let uid = rustix::process::getuid().as_raw();
    let (ours, target) = (temporary.join(format!("midwatch-{uid}")), world.root().join("target"));
    fs::create_dir(&target).unwrap();
    let check_refused = || {
        let (code, stderr) = Daemon::fails(world.command().arg("up"));
        assert_ne!(code, Some(0), "{stderr}");
        assert!(stderr.contains("is not a private directory of this user"), "{stderr}");
    };
    symlink(&target, &ours).unwrap();
    check_refused();
    assert_eq!(fs::read_dir(&target).unwrap().count(), 0);
    fs::remove_file(&ours).unwrap();
    fs::DirBuilder::new().mode(0o700).create(&ours).unwrap();
    fs::set_permissions(&ours, fs::Permissions::from_mode(0o777)).unwrap();
    check_refused();
    fs::set_permissions(&ours, fs::Permissions::from_mode(0o700)).unwrap();
    world.up().stop();
}
