//! Whatever arrives on the socket, the daemon goes on.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::Shutdown;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::process::{Child, Stdio};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use api::wire::{FRAME_BYTES_MAX, Hello, PROTOCOL};
use runtime::last_note;
use rustix::process::Signal;

use super::{FLUSHES, injected, log};
use crate::world::{Daemon, Outcome, World, wait_for};

fn hello(protocol: u32) -> String {
    let hello = Hello { protocol, ..Hello::new("test") };
    format!("{}\n", serde_json::to_string(&hello).unwrap())
}

fn connect(world: &World) -> UnixStream {
    UnixStream::connect(world.data().join("midwatch.sock")).unwrap()
}

/// What the daemon says to a frame, beside its hello.
#[derive(Clone, Copy, Debug)]
enum Reply {
    /// It hangs up.
    None,
    Refusal,
    /// A refusal, unless the connection broke before it arrived.
    Perhaps,
}

/// Sends bytes, then reads what comes until the daemon hangs up or has nothing more to say.
fn converse(world: &World, bytes: &[u8]) -> String {
    let mut stream = connect(world);
    // The daemon may have hung up before all was sent; that is an answer too.
    let _ = stream.write_all(bytes);
    let _ = stream.shutdown(Shutdown::Write);
    let mut said = Vec::new();
    let _ = stream.read_to_end(&mut said);
    String::from_utf8(said).unwrap()
}

#[test]
fn rubbish_is_answered_or_cut_off_and_the_daemon_goes_on() {
    let world = World::new();
    let daemon = world.up();
    let (hello, later) = (hello(PROTOCOL), hello(PROTOCOL + 1));
    let too_long = vec![b'x'; FRAME_BYTES_MAX + 1];
    let too_deep = format!("{hello}{}\n", "[".repeat(100_000));
    let unknown = format!("{hello}{{\"request\":{{\"call\":\"no.such\",\"with\":{{}}}}}}\n");
    let more = "\"with\":{\"name\":\"ada\",\"more\":1}";
    let superfluous = format!("{hello}{{\"request\":{{\"call\":\"agent.show\",{more}}}}}\n");
    let cut = format!("{hello}{{\"request\":");
    let long = [hello.as_bytes(), &too_long].concat();
    for (what, bytes, reply) in [
        ("nothing", &b""[..], Reply::None),
        ("an empty line", b"\n", Reply::None),
        ("no hello", b"GET / HTTP/1.1\r\n\r\n", Reply::None),
        ("no text", b"\xff\xfe\x00\n", Reply::None),
        ("a hello that never ends", &too_long, Reply::None),
        ("a later protocol", later.as_bytes(), Reply::None),
        ("an impossible protocol", b"{\"protocol\":-1,\"version\":\"\"}\n", Reply::None),
        ("no request", format!("{hello}rubbish\n").as_bytes(), Reply::Refusal),
        ("an unknown request", unknown.as_bytes(), Reply::Refusal),
        ("more than is known", superfluous.as_bytes(), Reply::Refusal),
        ("half a request", cut.as_bytes(), Reply::Refusal),
        ("a deep request", too_deep.as_bytes(), Reply::Refusal),
        ("a request that never ends", &long, Reply::Perhaps),
    ] {
        let said = converse(&world, bytes);
        let mut lines = said.lines();
        let greeting = lines.next().and_then(|line| serde_json::from_str::<Hello>(line).ok());
        assert!(greeting.is_some() || said.is_empty(), "{what}: {said}");
        let refused = lines.next().map(|line| line.contains("\"code\":\"invalid_input\""));
        match reply {
            Reply::None => assert_eq!(refused, None, "{what}: {said}"),
            Reply::Refusal => assert_eq!(refused, Some(true), "{what}: {said}"),
            Reply::Perhaps => assert_ne!(refused, Some(false), "{what}: {said}"),
        }
        assert_eq!(lines.next(), None, "{what}: {said}");
        assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid(), "{what}");
    }
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    world.verified();
}

#[test]
fn a_change_happens_although_nobody_waits_for_the_answer() {
    let world = World::new();
    let daemon = world.up();
    let hello = hello(PROTOCOL);
    for number in 0..8 {
        let with = format!("{{\"name\":\"agent-{number}\",\"backend\":\"builtin\"}}");
        let asked = format!("{{\"request\":{{\"call\":\"agent.add\",\"with\":{with}}}}}\n");
        let mut stream = BufReader::new(connect(&world));
        stream.read_line(&mut String::new()).unwrap();
        stream.get_mut().write_all(format!("{hello}{asked}").as_bytes()).unwrap();
    }
    wait_for(|| (world.agents().len() == 8).then_some(()));
    drop(daemon);
    assert_eq!(world.verified()["entries"], 10);
}

/// Clients that connect and say nothing must not keep others out.
#[test]
fn silent_clients_keep_nobody_out() {
    let world = World::new();
    let daemon = world.up();
    let silent: Vec<UnixStream> = (0..100).map(|_| connect(&world)).collect();
    assert_eq!(world.json(&["status"])["watch"]["pid"], daemon.pid());
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    drop(silent);
}

/// Whoever says `ready` can be told to stop.
#[test]
fn a_daemon_that_is_stopped_as_soon_as_it_is_ready_stops_in_order() {
    for signal in [Signal::TERM, Signal::INT] {
        let world = World::new();
        let (code, said) = world.up().signal(signal);
        assert_eq!(code, Some(0), "{signal:?}: {said}");
        assert_eq!(world.kinds(), ["genesis", "watch.started", "watch.stopped"]);
        let report = world.verified();
        assert_eq!(report["checkpoints"], 1, "{report}");
    }
}

/// The disk is slow, so that clients are at work while the daemon writes and signs its last entry.
#[test]
fn nothing_is_acknowledged_after_the_last_entry_of_a_watch() {
    let world = World::new();
    let mut slow = injected(&world, FLUSHES, "delay_enter=20ms", &[]);
    let daemon = Daemon::start(slow.arg("up"));
    let clients: Vec<JoinHandle<u32>> = (0..8)
        .map(|client| {
            let mut stream = BufReader::new(connect(&world));
            stream.get_mut().write_all(hello(PROTOCOL).as_bytes()).unwrap();
            stream.read_line(&mut String::new()).unwrap();
            std::thread::spawn(move || add_until_cut_off(&mut stream, client))
        })
        .collect();
    wait_for(|| (8 < world.agents().len()).then_some(()));
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    let acknowledged: u32 = clients.into_iter().map(|client| client.join().unwrap()).sum();
    let kinds: Vec<String> = log(&world).into_iter().map(|(_, kind, _)| kind).collect();
    assert_eq!(kinds.last().unwrap(), "watch.stopped", "{kinds:?}");
    let registered = kinds.iter().filter(|kind| *kind == "agent.registered").count();
    assert!(acknowledged as usize <= registered, "{acknowledged} {registered}");
    let signed = last_note(&world.data().join("checkpoints.log")).unwrap().unwrap();
    assert_eq!(signed.unverified().size, kinds.len() as u64);
}

/// Registers agents, one after the other. Returns how many were acknowledged.
fn add_until_cut_off(stream: &mut BufReader<UnixStream>, client: usize) -> u32 {
    for number in 0.. {
        let with = format!("{{\"name\":\"a-{client}-{number}\",\"backend\":\"builtin\"}}");
        let asked = format!("{{\"request\":{{\"call\":\"agent.add\",\"with\":{with}}}}}\n");
        let mut answer = String::new();
        let sent = stream.get_mut().write_all(asked.as_bytes());
        if sent.and_then(|()| stream.read_line(&mut answer)).unwrap_or_default() == 0 {
            return number;
        }
        assert!(answer.contains("\"created\":true"), "{answer}");
    }
    0
}

#[test]
fn the_socket_is_for_its_owner_only_and_goes_with_the_daemon() {
    let world = World::new();
    let daemon = world.up();
    let socket = world.data().join("midwatch.sock");
    let mode = std::fs::metadata(&socket).unwrap().permissions().mode();
    assert_eq!(mode & 0o077, 0, "{mode:o}");
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    assert!(!socket.exists());
}

/// In the place of a daemon: says this to each of a few that connect, and hangs up. Returns how long
/// the last came after the first.
#[expect(clippy::disallowed_methods, reason = "measures how often somebody comes")]
fn hang_up(listener: UnixListener, said: String) -> JoinHandle<Duration> {
    std::thread::spawn(move || {
        let mut came = Vec::new();
        for stream in listener.incoming().take(4) {
            came.push(Instant::now());
            let mut stream = BufReader::new(stream.unwrap());
            stream.get_mut().write_all(said.as_bytes()).unwrap();
            // Hello and the request, if it comes to that.
            let _ = stream.read_line(&mut String::new());
            let _ = stream.read_line(&mut String::new());
        }
        came[3] - came[0]
    })
}

fn follow(world: &World) -> Child {
    let mut command = world.command();
    command.args(["ledger", "tail", "--follow"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn a_follower_that_never_reached_the_daemon_says_so() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let listener = UnixListener::bind(world.data().join("midwatch.sock")).unwrap();
    let answered = hang_up(listener, "rubbish\n".to_owned());
    let mut follower = follow(&world);
    let end = wait_for(|| match answered.is_finished() {
        true => Some(None),
        false => follower.try_wait().unwrap().map(Some),
    });
    follower.kill().unwrap();
    let outcome = Outcome::from(follower.wait_with_output().unwrap());
    assert_eq!(end.and_then(|end| end.code()), Some(1), "{outcome:?}");
    assert!(outcome.stderr.contains("[unreachable]"), "{outcome:?}");
}

#[test]
fn a_follower_that_lost_the_daemon_looks_now_and_then() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let listener = UnixListener::bind(world.data().join("midwatch.sock")).unwrap();
    let answered = hang_up(listener, hello(PROTOCOL));
    let mut follower = follow(&world);
    let took = answered.join().unwrap();
    follower.kill().unwrap();
    follower.wait().unwrap();
    assert!(Duration::from_millis(3 * 250) <= took, "four tries in {took:?}");
}
