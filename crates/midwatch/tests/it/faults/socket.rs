//! Invalid, silent and disconnecting clients of the socket; followers that lose the daemon.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use api::wire::{FRAME_BYTES_MAX, Hello, PROTOCOL};
use runtime::read_last_note;
use rustix::process::Signal;

use super::{FLUSHES, inject_fault};
use crate::support::wait::{wait_for, wait_until};
use crate::support::world::{Daemon, Outcome, World};

fn hello(protocol: u32) -> String {
    let hello = Hello { protocol, ..Hello::new("test") };
    format!("{}\n", serde_json::to_string(&hello).unwrap())
}

/// The frame that registers a builtin agent.
fn add_request(name: &str) -> String {
    let with = format!("{{\"name\":\"{name}\",\"backend\":\"builtin\"}}");
    format!("{{\"request\":{{\"call\":\"agent.add\",\"with\":{with}}}}}\n")
}

fn connect(world: &World) -> UnixStream {
    UnixStream::connect(world.socket()).unwrap()
}

/// What the daemon sends after its hello.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// Nothing: it closes the connection.
    None,
    Refusal,
    /// A refusal, unless the connection broke before it arrived.
    RefusalOrNone,
}

/// Sends bytes, then reads until the daemon closes the connection.
fn exchange(world: &World, bytes: &[u8]) -> String {
    let mut stream = connect(world);
    // The daemon may close the connection before everything was sent.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received);
    String::from_utf8(received).unwrap()
}

#[test]
fn invalid_frames_are_refused_and_the_daemon_continues() {
    let world = World::new();
    let daemon = world.up();
    let (hello, later) = (hello(PROTOCOL), hello(PROTOCOL + 1));
    let too_long = vec![b'x'; FRAME_BYTES_MAX + 1];
    let too_deep = format!("{hello}{}\n", "[".repeat(100_000));
    let unknown = format!("{hello}{{\"request\":{{\"call\":\"no.such\",\"with\":{{}}}}}}\n");
    let more = "\"with\":{\"name\":\"ada\",\"more\":1}";
    let superfluous = format!("{hello}{{\"request\":{{\"call\":\"agent.show\",{more}}}}}\n");
    let state = "\"with\":{\"state\":\"asleep\"}";
    let word = format!("{hello}{{\"request\":{{\"call\":\"run.list\",{state}}}}}\n");
    let cut = format!("{hello}{{\"request\":");
    let long = [hello.as_bytes(), &too_long].concat();
    for (what, bytes, reply) in [
        ("nothing", &b""[..], Reply::None),
        ("an empty line", b"\n", Reply::None),
        ("no hello", b"GET / HTTP/1.1\r\n\r\n", Reply::None),
        ("not UTF-8", b"\xff\xfe\x00\n", Reply::None),
        ("a hello that never ends", &too_long, Reply::None),
        ("a later protocol", later.as_bytes(), Reply::None),
        ("an impossible protocol", b"{\"protocol\":-1,\"version\":\"\"}\n", Reply::None),
        ("no request", format!("{hello}rubbish\n").as_bytes(), Reply::Refusal),
        ("an unknown request", unknown.as_bytes(), Reply::Refusal),
        ("an unknown field", superfluous.as_bytes(), Reply::Refusal),
        ("an unknown word", word.as_bytes(), Reply::Refusal),
        ("half a request", cut.as_bytes(), Reply::Refusal),
        ("a deep request", too_deep.as_bytes(), Reply::Refusal),
        ("a request that never ends", &long, Reply::RefusalOrNone),
    ] {
        let received = exchange(&world, bytes);
        let mut lines = received.lines();
        let greeting = lines.next().and_then(|line| serde_json::from_str::<Hello>(line).ok());
        assert!(greeting.is_some() || received.is_empty(), "{what}: {received}");
        let refused = lines.next().map(|line| line.contains("\"code\":\"invalid_input\""));
        match reply {
            Reply::None => assert_eq!(refused, None, "{what}: {received}"),
            Reply::Refusal => assert_eq!(refused, Some(true), "{what}: {received}"),
            Reply::RefusalOrNone => assert_ne!(refused, Some(false), "{what}: {received}"),
        }
        assert_eq!(lines.next(), None, "{what}: {received}");
        assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid(), "{what}");
    }
    world.add_agent("ada");
    daemon.stop();
    world.verified();
}

#[test]
fn change_is_made_after_its_client_disconnected() {
    let world = World::new();
    let daemon = world.up();
    let hello = hello(PROTOCOL);
    for number in 0..8 {
        let request = add_request(&format!("agent-{number}"));
        let mut stream = BufReader::new(connect(&world));
        stream.read_line(&mut String::new()).unwrap();
        stream.get_mut().write_all(format!("{hello}{request}").as_bytes()).unwrap();
    }
    wait_until(|| world.agents().len() == 8);
    drop(daemon);
    assert_eq!(world.verified()["entries"], 10);
}

#[test]
fn silent_clients_do_not_block_others() {
    let world = World::new();
    let daemon = world.up();
    let silent: Vec<UnixStream> = (0..100).map(|_| connect(&world)).collect();
    assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid());
    daemon.stop();
    drop(silent);
}

#[test]
fn daemon_stopped_as_soon_as_it_is_ready_stops_cleanly() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = World::new();
        world.up().stop_by(signal);
        assert_eq!(world.kinds(), ["genesis", "watch.started", "watch.stopped"]);
        let report = world.verified();
        assert_eq!(report["checkpoints"], 1, "{report}");
    }
}

/// The disk is slow, so that clients send requests while the daemon writes and signs its last entry.
#[test]
fn nothing_is_acknowledged_after_the_stop_is_recorded() {
    let world = World::new();
    let mut slow = inject_fault(&world, FLUSHES, "delay_enter=20ms", &[]);
    let daemon = Daemon::start(slow.arg("up"));
    let clients: Vec<JoinHandle<u32>> = (0..8)
        .map(|client| {
            let mut stream = BufReader::new(connect(&world));
            stream.get_mut().write_all(hello(PROTOCOL).as_bytes()).unwrap();
            stream.read_line(&mut String::new()).unwrap();
            std::thread::spawn(move || add_until_disconnected(&mut stream, client))
        })
        .collect();
    wait_until(|| 8 < world.agents().len());
    daemon.stop();
    let acknowledged: u32 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let kinds: Vec<String> = world.stored_entries().into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds.last().unwrap(), "watch.stopped", "{kinds:?}");
    let registered = kinds.iter().filter(|kind| *kind == "agent.registered").count();
    assert!(acknowledged as usize <= registered, "{acknowledged} {registered}");
    let signed = read_last_note(&world.data().join("checkpoints.log")).unwrap().unwrap();
    assert_eq!(signed.unverified().size, kinds.len() as u64);
}

/// Registers agents until the daemon closes the connection. Returns how many it acknowledged.
fn add_until_disconnected(stream: &mut BufReader<UnixStream>, client: usize) -> u32 {
    for number in 0.. {
        let request = add_request(&format!("a-{client}-{number}"));
        let mut response = String::new();
        let sent = stream.get_mut().write_all(request.as_bytes());
        if sent.and_then(|()| stream.read_line(&mut response)).unwrap_or_default() == 0 {
            return number;
        }
        assert!(response.contains("\"created\":true"), "{response}");
    }
    0
}

#[test]
fn socket_is_for_its_owner_only_and_removed_at_stop() {
    let world = World::new();
    let daemon = world.up();
    let socket = world.socket();
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    daemon.stop();
    assert!(!socket.exists());
}

/// A fake daemon: sends this to each of four clients and closes the connection. Returns the time from the first
/// connection to the last.
#[expect(clippy::disallowed_methods, reason = "measures how often a client connects")]
fn fake_daemon(listener: UnixListener, line: String) -> JoinHandle<Duration> {
    std::thread::spawn(move || {
        let mut connected = Vec::new();
        for stream in listener.incoming().take(4) {
            connected.push(Instant::now());
            let mut stream = BufReader::new(stream.unwrap());
            stream.get_mut().write_all(line.as_bytes()).unwrap();
            // The hello of the client, and its request if it sends one.
            let _ = stream.read_line(&mut String::new());
            let _ = stream.read_line(&mut String::new());
        }
        connected[3] - connected[0]
    })
}

fn follow(world: &World) -> Child {
    let mut command = world.command();
    command.args(["ledger", "tail", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn follower_that_never_reached_the_daemon_fails() {
    let world = World::new();
    world.add_agent("ada");
    let listener = UnixListener::bind(world.socket()).unwrap();
    let finished = fake_daemon(listener, "rubbish\n".to_owned());
    let mut follower = follow(&world);
    let end = wait_for(|| match finished.is_finished() {
        true => Some(None),
        false => follower.try_wait().unwrap().map(Some),
    });
    follower.kill().unwrap();
    let outcome = Outcome::from(follower.wait_with_output().unwrap());
    assert_eq!(end.and_then(|end| end.code()), Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("[unreachable]"), "{outcome:?}");
}

#[test]
fn follower_that_lost_the_daemon_reconnects_at_intervals() {
    let world = World::new();
    world.add_agent("ada");
    let listener = UnixListener::bind(world.socket()).unwrap();
    let finished = fake_daemon(listener, hello(PROTOCOL));
    let mut follower = follow(&world);
    let took = finished.join().unwrap();
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert!(Duration::from_millis(3 * 250) <= took, "four connections in {took:?}");
}
