//! The lock of the data directory: one process at a time owns it.

use std::fs::{self, File};
use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixListener;
use std::process::{Child, Stdio};

use rustix::fs::{CWD, FileType, Mode, mknodat};

use super::inject_fault;
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, Outcome, World, agent_add};

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
fn second_daemon_is_refused_and_the_first_continues() {
    let world = World::new();
    let daemon = world.up();
    world.add_agent("ada");
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("[already_running]"), "{stderr}");
    assert!(stderr.contains(&format!("process {}", daemon.pid())), "{stderr}");
    world.refused(&["up"], "already_running", 4);

    assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid());
    world.add_agent("bob");
    daemon.stop();
    world.verified();
    let starts = world.count_events("watch.started");
    assert_eq!(starts, 1);
}

#[test]
fn concurrent_commands_without_a_daemon_wait_for_each_other() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|number| format!("agent-{number}")).collect();
    must_succeed(names.iter().map(|name| spawn(&world, &agent_add(name))).collect());
    assert_eq!(world.agents(), names);
    assert_eq!(world.verified()["entries"], 9);
}

#[test]
fn daemon_waits_for_running_commands_and_starts() {
    let world = World::new();
    let names: Vec<String> = (0..8).map(|number| format!("agent-{number}")).collect();
    let children = names.iter().map(|name| spawn(&world, &agent_add(name))).collect();
    let daemon = world.up();
    must_succeed(children);
    assert_eq!(world.agents(), names);
    daemon.stop();
    world.verified();
}

/// The lock file still names the killed daemon, because the command that holds the lock has not written itself yet.
#[test]
fn daemon_does_not_mistake_a_command_for_the_previous_daemon() {
    let world = World::new();
    world.up().kill();
    let mut slow = inject_fault(&world, "openat", "delay_enter=1s", &[&world.data().join("lock")]);
    let slow =
        slow.args(agent_add("ada")).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    wait_until(|| File::open(world.data()).unwrap().try_lock().is_err());
    let daemon = world.up();
    must_succeed(vec![slow]);
    assert_eq!(world.agents(), ["ada"]);
    drop(daemon);
    world.verified();
}

/// A follower that only waits must not block other commands.
#[test]
fn follower_without_a_daemon_does_not_hold_the_lock() {
    let world = World::new();
    world.add_agent("ada");
    let mut follower = spawn(&world, &["ledger", "tail", "--follow"]);
    let mut stdout = BufReader::new(follower.stdout.take().unwrap());
    stdout.read_line(&mut String::new()).unwrap();
    let outcome = world.run(&[&["--json"], &agent_add("bob")[..]].concat());
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert_eq!(outcome.code, Some(0), "{outcome:?}");
}

/// The lock is on the directory, not on a file that a run could remove or replace.
#[test]
fn removing_the_lock_file_lets_no_second_daemon_in() {
    let world = World::new();
    let daemon = world.up();
    let (lock, socket) = (world.data().join("lock"), world.socket());
    fs::remove_file(&lock).unwrap();
    fs::remove_file(&socket).unwrap();
    let (code, stderr) = Daemon::fails(world.command().arg("up"));
    assert_eq!(code, Some(4), "{stderr}");
    assert!(stderr.contains("is in use"), "{stderr}");
    drop(daemon);
    // Nor does a file that cannot be written keep the owner out.
    mknodat(CWD, &lock, FileType::Fifo, Mode::RUSR | Mode::WUSR, 0).unwrap();
    world.up().stop();
}

#[test]
fn leftover_lock_and_socket_are_replaced() {
    let world = World::new();
    world.up().kill();
    assert!(world.socket().exists(), "a killed daemon leaves its socket");
    world.add_agent("ada");
    drop(world.up());

    let write_lock = || {
        let text = format!("{{\"pid\":{},\"kind\":\"daemon\"}}", std::process::id());
        fs::write(world.data().join("lock"), text).unwrap();
    };
    for rubbish in [&b""[..], b"rubbish", b"\xff\xfe"] {
        write_lock();
        let socket = world.socket();
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

/// The path of a socket is limited to about a hundred bytes.
#[test]
fn data_directory_with_a_long_path_works() {
    for length in [60, 80, 108, 109, 200] {
        let mut world = World::new();
        let deep = "d".repeat(length);
        let temporary = world.root().display().to_string();
        world.set("TMPDIR", temporary);
        let world = world.with_data(deep);
        world.add_agent("ada");
        let daemon = world.up();
        assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid(), "{length}");
        world.add_agent("bob");
        assert_eq!(world.agents(), ["ada", "bob"], "{length}");
        world.refused(&["up"], "already_running", 4);
        daemon.stop();
        assert_eq!(world.stored_entries().len(), 5, "{length}");
        world.verified();
    }
}
