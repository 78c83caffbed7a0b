//! `backup create|verify|restore`: one file that brings an installation back, on this machine or another.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::support::wait::wait_until;
use crate::support::world::{POSTGRES, World};

/// Longer than what the ledger keeps of an output.
const LONG_OUTPUT: &str = "i=0; while [ $i -lt 3000 ]; do echo \"line $i\"; i=$((i+1)); done";

fn path_of(world: &World, name: &str) -> String {
    world.root().join(name).display().to_string()
}

/// The names in a directory except that of the lock, sorted.
fn names(directory: &Path) -> Vec<String> {
    let Ok(found) = fs::read_dir(directory) else { return Vec::new() };
    let mut names: Vec<String> =
        found.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.retain(|name| name != "lock");
    names.sort();
    names
}

/// What a person sees of an installation.
fn contents(world: &World) -> Vec<Value> {
    vec![
        world.json(&["agent", "list"])["agents"].clone(),
        world.json(&["schedule", "list"])["schedules"].clone(),
        world.json(&["run", "list"])["runs"].clone(),
        world.json(&["approval", "list"])["approvals"].clone(),
    ]
}

fn back_up(world: &World, flags: &[&str]) -> PathBuf {
    let file = world.root().join("backup.tar.gz");
    let arguments = [&["backup", "create", file.to_str().unwrap()], flags].concat();
    assert_eq!(world.json(&arguments)["backup"]["file"], file.to_str().unwrap());
    file
}

#[test]
fn backup_of_a_running_daemon_is_restored_elsewhere_with_everything_and_nothing_fires_twice() {
    let world = World::new();
    fs::create_dir_all(world.data()).unwrap();
    fs::write(world.data().join("midwatch.toml"), "[budget]\nruns = 77\n").unwrap();
    fs::write(world.data().join("policy.toml"), "").unwrap();
    let effects = path_of(&world, "effects");
    let script = format!("echo \"$MIDWATCH_RUN_ID\" >> '{effects}'; {LONG_OUTPUT}");
    let smith = ["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", &script];
    world.ok(&smith);
    let poster = ["agent", "add", "poster", "--backend", "builtin", "--tier", "2"];
    world.ok(&poster);
    let daemon = world.up();
    let every = ["--name", "often", "--every", "1d", "--agent", "smith", "--prompt", "go"];
    let often = world.add_schedule(&every);
    let run = world.start_run(&often);
    world.wait_for_state(&run, "done");
    let post = world.add_daily("post", "poster", "tell them");
    let parked = world.start_run(&post);
    let approval = world.wait_for_approval(&parked);

    let before = contents(&world);
    let file = back_up(&world, &["--keys"]);
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(names(world.data()).iter().filter(|name| name.starts_with("backup-")).count(), 0);
    let verified = world.json(&["backup", "verify", file.to_str().unwrap()]);
    assert_eq!(verified["backup"]["outputs"], 1, "{verified}");
    daemon.kill();

    let there = World::new();
    let restored = there.json(&["backup", "restore", file.to_str().unwrap()])["restored"].clone();
    assert_eq!(
        (&restored["key_kept"], &restored["outputs"]),
        (&true.into(), &1.into()),
        "{restored}"
    );
    assert_eq!(contents(&there), before);
    assert_eq!(
        fs::read(there.data().join("midwatch.toml")).unwrap(),
        fs::read(world.data().join("midwatch.toml")).unwrap()
    );
    assert!(there.data().join("policy.toml").exists());
    assert!(!there.data().join("ledger").exists());

    // The output is read from where it is now, even after the old directory is gone.
    let outputs = world.data().join("outputs");
    fs::rename(&outputs, world.root().join("gone")).unwrap();
    let output = there.ok(&["run", "output", &run]);
    assert!(output.contains("line 2999"), "{output}");

    // Nothing runs again. An approval is for one data directory, so it starts nothing here, and is requested again.
    let effects_before = fs::read_to_string(&effects).unwrap();
    let daemon = there.up();
    assert!(there.checked().starts_with("sound"), "{}", there.checked());
    assert_eq!(there.show_run(&run)["attempt"], 1);
    there.approve(&approval);
    assert_eq!(there.wait_for_state(&parked, "cancelled")["reason"], "plan_changed");
    there.ok(&["run", "retry", &parked]);
    there.approve(&there.wait_for_approval(&parked));
    assert_eq!(there.wait_for_state(&parked, "done")["attempt"], 1);
    assert_eq!(fs::read_to_string(&effects).unwrap(), effects_before);
    assert_eq!(effects_before.lines().count(), 1);
    assert_eq!(there.json(&["run", "list"])["runs"].as_array().unwrap().len(), 2);
    daemon.stop();
    there.verified();
    assert_eq!(there.rebuild_differences(), 0);
}

#[test]
fn backup_without_keys_continues_under_a_new_key_and_says_what_is_missing() {
    let mut world = World::new();
    world.set("LETTA_KEY", "hush-hush-hush");
    let ada = ["agent", "add", "ada", "--backend", "letta", "--remote-id", "agent-1"];
    world.ok(&[&ada[..], &["--credential", "env:LETTA_KEY"]].concat());
    world.add_agent("echo");
    let daily = ["schedule", "add", "--name", "secret", "--daily", "03:00", "--tz", "UTC"];
    world.ok(&[&daily[..], &["--agent", "echo", "--prompt", "psst", "--sensitive"]].concat());
    let file = back_up(&world, &[]);
    let bytes = fs::read(&file).unwrap();
    assert!(!bytes.windows(4).any(|found| found == b"hush"));

    let there = World::new();
    let outcome = there.run(&["backup", "restore", file.to_str().unwrap()]);
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
    for expected in [
        "so a new one was created and recorded in the ledger",
        "the backup has no sealing key: sensitive schedules fail until",
        "env:LETTA_KEY for agent `ada` (MISSING here)",
        "make sure that the old installation is stopped, then: `midwatch up --data",
    ] {
        assert!(outcome.stdout.contains(expected), "{expected}: {}", outcome.stdout);
    }
    assert!(there.kinds().contains(&"ledger.key_replaced".to_owned()));
    assert_eq!(there.agents(), world.agents());
    there.verified();
    // With the right key given, the backup counts as its own; with another one it does not.
    let key = |world: &World| world.json(&["status"])["log"]["key"].as_str().unwrap().to_owned();
    let verify = ["backup", "verify", file.to_str().unwrap(), "--vkey"];
    world.ok(&[&verify[..], &[&key(&world)]].concat());
    world.refused(&[&verify[..], &[&key(&there)]].concat(), "log_damaged", 4);
}

#[test]
fn backup_moves_an_installation_from_postgresql_to_a_file_and_back() {
    let url = POSTGRES.create_database().unwrap();
    let mut world = World::new();
    world.set("MIDWATCH_STORE_URL", &url);
    world.add_agent("ada");
    world.add_daily("news", "ada", "hello");
    let daemon = world.up();
    let file = back_up(&world, &["--keys"]);
    drop(daemon);
    let before = contents(&world);

    let there = World::new();
    there.ok(&["backup", "restore", file.to_str().unwrap()]);
    assert_eq!(contents(&there), before);
    there.verified();

    let again = back_up(&there, &["--keys"]);
    let mut home = World::new();
    home.set("MIDWATCH_STORE_URL", POSTGRES.create_database().unwrap());
    home.ok(&["backup", "restore", again.to_str().unwrap()]);
    assert_eq!(contents(&home), before);
    home.verified();

    // A database with a ledger is not overwritten, and the directory stays empty.
    let mut taken = World::new();
    taken.set("MIDWATCH_STORE_URL", url);
    taken.refused(&["backup", "restore", file.to_str().unwrap()], "exists", 4);
    assert!(!taken.data().exists());
}

#[test]
fn backup_and_restore_overwrite_nothing() {
    let world = World::with_agent("ada");
    let file = back_up(&world, &[]);
    let before = fs::read(&file).unwrap();
    world.refused(&["backup", "create", file.to_str().unwrap()], "exists", 4);
    assert_eq!(fs::read(&file).unwrap(), before);
    world.refused(&["backup", "create", &path_of(&world, "no/such/folder")], "not_found", 3);

    let entries = world.stored_entries();
    let message = world.refused(&["backup", "restore", file.to_str().unwrap()], "exists", 4);
    assert!(message.contains("is not empty"), "{message}");
    assert_eq!(world.stored_entries(), entries);
    // Neither are files of something else, nor is a lock left beside them.
    let other = World::new();
    fs::create_dir(other.data()).unwrap();
    fs::write(other.data().join("letter.txt"), "dear").unwrap();
    other.refused(&["backup", "restore", file.to_str().unwrap()], "exists", 4);
    assert_eq!(fs::read_dir(other.data()).unwrap().count(), 1);

    let none = World::new();
    none.refused(&["backup", "create", &path_of(&none, "b")], "not_found", 3);
    assert!(!none.root().join("b").exists());
}

/// Attack D6, and a file that was cut off: nothing stays behind.
#[test]
fn hostile_or_damaged_backup_leaves_an_empty_directory() {
    let world = World::with_agent("ada");
    let file = back_up(&world, &["--keys"]);
    let whole = fs::read(&file).unwrap();
    let there = World::new();
    for (what, bytes) in [
        ("empty", &[][..]),
        ("text", b"not a backup"),
        ("cut off", &whole[..whole.len() / 2]),
        ("cut off at the end", &whole[..whole.len() - 4]),
    ] {
        let broken = there.root().join("broken");
        fs::write(&broken, bytes).unwrap();
        let path = broken.to_str().unwrap();
        there.refused(&["backup", "restore", path], "backup_invalid", 4);
        assert!(!there.data().exists(), "{what}");
        there.refused(&["backup", "verify", path], "backup_invalid", 4);
    }
    there.refused(&["backup", "restore", &path_of(&there, "missing")], "not_found", 3);
    assert!(!there.data().exists());
    // An existing directory stays, and stays empty.
    fs::create_dir(there.data()).unwrap();
    there.refused(&["backup", "restore", &path_of(&there, "missing")], "not_found", 3);
    assert_eq!(names(there.data()), Vec::<String>::new());
    there.ok(&["backup", "restore", file.to_str().unwrap()]);
    assert_eq!(there.agents(), ["ada"]);
}

#[test]
fn backup_is_complete_while_the_daemon_writes() {
    let world = World::with_agent("ada");
    let daemon = world.up();
    let flags = ["--name", "busy", "--every", "1s", "--agent", "ada", "--prompt", "go"];
    world.add_schedule(&flags);
    wait_until(|| 2 <= world.count_events("run.ended"));
    let file = back_up(&world, &[]);
    world.ok(&["backup", "verify", file.to_str().unwrap()]);
    let there = World::new();
    there.ok(&["backup", "restore", file.to_str().unwrap()]);
    assert!(2 <= there.count_events("run.ended"));
    daemon.stop();
    world.verified();
}
