//! One process at a time owns a data directory.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};

use super::{add, injected, log};
use crate::world::{Daemon, Outcome, World, wait_for};

fn spawn(world: &World, arguments: &[&str]) -> Child {
    let mut command = world.command();
    command.args(arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
}

fn must_succeed(children: Vec<Child>) {
    for child in children {
        let outcome = Outcome::from(child.wait_with_output().unwrap());
        assert_eq!(outcome.code, Some(0), "{outcome:?}");
    }
}

#[test]
fn a_second_daemon_is_refused_and_the_first_goes_on() {
    let world = World::new();
    let daemon = world.up();
    world.ok(&add("ada"));
    let (code, said) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{said}");
    assert!(said.contains("[already_running]"), "{said}");
    assert!(said.contains(&format!("process {}", daemon.pid())), "{said}");
    world.refused(&["up"], "already_running", 4);

    assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid());
    world.ok(&add("bob"));
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    world.verified();
    let starts = world.kinds().into_iter().filter(|kind| kind == "watch.started").count();
    assert_eq!(starts, 1);
}

#[test]
fn commands_at_once_without_a_daemon_take_turns() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|number| format!("agent-{number}")).collect();
    must_succeed(names.iter().map(|name| spawn(&world, &add(name))).collect());
    assert_eq!(world.agents(), names);
    assert_eq!(world.verified()["entries"], 9);
}

#[test]
fn a_daemon_that_starts_among_commands_waits_and_comes_up() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|number| format!("agent-{number}")).collect();
    let children = names.iter().map(|name| spawn(&world, &add(name))).collect();
    let daemon = world.up();
    must_succeed(children);
    assert_eq!(world.agents(), names);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    world.verified();
}

/// The lock file still names a daemon that was killed while a command has taken the lock and not
/// written yet who it is.
#[test]
fn a_daemon_does_not_take_a_command_for_the_daemon_before_it() {
    let world = World::new();
    world.up().kill();
    let mut slow = injected(&world, "ftruncate", "delay_enter=1s", &[&world.data().join("lock")]);
    let slow = slow.args(add("ada")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_for(|| File::open(world.data().join("lock")).unwrap().try_lock().err());
    let daemon = world.up();
    must_succeed(vec![slow]);
    assert_eq!(world.agents(), ["ada"]);
    drop(daemon);
    world.verified();
}

/// Nothing can happen there, so it may not keep others from making it happen.
#[test]
fn a_follower_without_a_daemon_does_not_hold_the_directory() {
    let world = World::new();
    world.ok(&add("ada"));
    let mut follower = spawn(&world, &["ledger", "tail", "--follow"]);
    let mut stdout = BufReader::new(follower.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let outcome = world.run(&[&["--json"], &add("bob")[..]].concat());
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

#[test]
fn what_an_earlier_life_left_behind_is_in_nobodys_way() {
    let world = World::new();
    world.up().kill();
    assert!(world.data().join("midwatch.sock").exists(), "a killed daemon leaves its socket");
    world.ok(&add("ada"));
    drop(world.up());

    let leave_lock = || {
        let text = format!("{{\"pid\":{},\"kind\":\"daemon\"}}", std::process::id());
        fs::write(world.data().join("lock"), text).unwrap();
    };
    for rubbish in [&b""[..], b"rubbish", b"\xff\xfe"] {
        leave_lock();
        let socket = world.data().join("midwatch.sock");
        let _ = fs::remove_file(&socket);
        drop(UnixListener::bind(&socket).unwrap());
        world.ok(&["agent", "list"]);
        let daemon = world.up();
        assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid());
        daemon.kill();

        fs::remove_file(&socket).unwrap();
        fs::write(&socket, "a file where the socket was").unwrap();
        fs::write(world.data().join("lock"), rubbish).unwrap();
        world.ok(&["agent", "list"]);
        let daemon = world.up();
        assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid());
    }
    world.verified();
}

/// A socket's path may have about a hundred bytes.
#[test]
fn a_data_directory_with_a_long_path_works() {
    for length in [60, 80, 108, 109, 200] {
        let mut world = World::new();
        let deep = "d".repeat(length);
        let temporary = world.root().display().to_string();
        world.set("TMPDIR", temporary);
        let world = world.with_data(deep);
        world.ok(&add("ada"));
        let daemon = world.up();
        assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid(), "{length}");
        world.ok(&add("bob"));
        assert_eq!(world.agents(), ["ada", "bob"], "{length}");
        world.refused(&["up"], "already_running", 4);
        let (code, said) = daemon.stop();
        assert_eq!(code, Some(0), "{length}: {said}");
        assert_eq!(log(&world).len(), 5, "{length}");
        world.verified();
    }
}
