//! The process of `midwatch mcp`: hostile input, and when it exits.
#![expect(clippy::disallowed_methods, reason = "measures how long the program takes to exit")]

use std::io::Write;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::support::mcp_stdio::{Client, add_schedule, newest_cursor, start_run};
use crate::support::wait::TIMEOUT;
use crate::support::world::{PROGRAM, World};

#[test]
fn server_without_input_exits_within_a_second() {
    let world = World::with_agent("echo");
    // As long as the machine needs to start the program, and one second.
    let started = Instant::now();
    world.ok(&["--version"]);
    let allowed = started.elapsed() + Duration::from_secs(1);
    let started = Instant::now();
    assert_eq!(world.run(&["mcp"]).code, Some(0));
    assert!(started.elapsed() <= allowed, "{:?} of {allowed:?}", started.elapsed());
}

#[test]
fn every_invalid_line_of_a_flood_gets_an_error() {
    const LINES: usize = 5_000;
    let world = World::with_agent("echo");
    let mut client = Client::legacy(&world, &[]);
    let mut input = client.input.take().unwrap();
    let writer = thread::spawn(move || {
        for number in 0..LINES {
            let line = match number % 4 {
                0 => "{".to_owned(),
                1 => format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":7}}"),
                2 => "[[[[]]]".to_owned(),
                _ => format!("\"{}\"", "x".repeat(number)),
            };
            input.write_all(line.as_bytes()).unwrap();
            input.write_all(b"\n").unwrap();
        }
        input
    });
    for number in 0..LINES {
        let response = client.read();
        assert!(response["error"]["code"].is_i64(), "{number}: {response}");
    }
    client.input = Some(writer.join().unwrap());
    assert!(!client.tools().is_empty());
    assert_eq!(client.close(), 0);
}

#[test]
fn hostile_lines_get_protocol_errors_and_the_server_continues() {
    let world = World::with_agent("echo");
    let mut client = Client::legacy(&world, &[]);
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let long = format!("{{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"{}\"}}", "x".repeat(5 << 20));
    let lines: &[(&str, i64)] = &[
        ("not json", -32700),
        ("{\"jsonrpc\":\"2.0\",", -32700),
        ("[]", -32600),
        ("{\"jsonrpc\":\"1.0\",\"id\":1,\"method\":\"tools/list\"}", -32600),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"tools/list\"}", -32600),
        (&deep, -32700),
        (&long, -32600),
    ];
    for (line, code) in lines {
        client.write(line);
        let response = client.read();
        let shown: String = line.chars().take(60).collect();
        assert_eq!(response["error"]["code"], *code, "{shown}: {response}");
    }
    let input = client.input.as_mut().unwrap();
    input.write_all(b"\xff\xfe{\"jsonrpc\"}\n\n   \n").unwrap();
    assert_eq!(client.read()["error"]["code"], -32700);
    assert_eq!(client.request("no/such", json!({}))["error"]["code"], -32601);
    for (method, parameters) in [
        ("tools/call", json!({"name": 5})),
        ("tools/call", json!([])),
        ("tools/list", json!({"cursor": 7})),
        ("initialize", json!({"protocolVersion": null})),
        ("tools/call", json!({"name": "x".repeat(1 << 20)})),
    ] {
        let wrong = client.request(method, parameters);
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        assert!(wrong.to_string().len() < 1_000, "the error repeats the long value");
    }
    // Invalid arguments are an error of the tool, for the model to correct.
    assert_eq!(client.refused("run_get", json!({"run_id": 5})), "invalid_input");
    assert_eq!(client.refused("run_get", json!({"run_id": "x", "extra": 1})), "invalid_input");
    assert_eq!(
        client.refused("run_wait", json!({"run_id": "x", "cursor": "1.2"})),
        "invalid_input"
    );
    // A client without a handshake is served, too.
    let mut abrupt = Client::start(&world, &[]);
    assert!(!abrupt.tools().is_empty());
    assert_eq!(abrupt.close(), 0);
    assert_eq!(client.close(), 0);
}

#[test]
fn hundred_concurrent_calls_each_get_a_response() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let mut open: Vec<u64> = (0..100)
        .map(|_| client.send("tools/call", json!({"name": "status_get", "arguments": {}})))
        .collect();
    while !open.is_empty() {
        let response = client.read();
        let id = response["id"].as_u64().unwrap();
        assert_eq!(response["result"]["isError"], false, "{response}");
        open.retain(|other| *other != id);
    }
}

#[test]
fn server_exits_when_its_input_ends() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    assert_eq!(world.run(&["mcp"]).code, Some(0), "the server failed without a request");
    for _ in 0..100 {
        assert_eq!(Client::start(&world, &[]).close(), 0);
    }
    // A pending call does not delay the exit.
    let mut client = Client::legacy(&world, &[]);
    let id = add_schedule(&mut client);
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let run = start_run(&mut client, &id, "k");
    let cursor = newest_cursor(&mut client, &run);
    let wait = json!({"run_id": run, "cursor": cursor, "max_wait_s": 25});
    client.send("tools/call", json!({"name": "run_wait", "arguments": wait}));
    assert_eq!(client.close(), 0);
}

#[test]
fn server_outlives_the_thread_that_started_it_and_exits_with_a_killed_host() {
    let world = World::with_agent("echo");
    // The thread that started the server has ended, and the server responds.
    let mut client =
        thread::scope(|scope| scope.spawn(|| Client::legacy(&world, &[])).join().unwrap());
    assert_eq!(client.ok("server_health", json!({}))["kept"], false);
    assert_eq!(client.close(), 0);
    // The host is killed while another process holds its end of the pipe.
    let mut shell = world.wrapped("sh");
    shell.args(["-c", "exec 3<&0; \"$0\" \"$@\" <&3 & wait", PROGRAM]);
    let mut client = Client::spawn(shell, &[]);
    assert!(!client.tools().is_empty());
    client.child.kill().unwrap();
    assert_eq!(client.lines.recv_timeout(TIMEOUT), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn last_line_without_a_line_break_gets_a_response() {
    let world = World::with_agent("echo");
    let mut client = Client::legacy(&world, &[]);
    let request = json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list"}).to_string();
    let mut input = client.input.take().unwrap();
    input.write_all(request.as_bytes()).unwrap();
    drop(input);
    assert_eq!(client.read()["id"], 99);
}

/// Starts a program with a terminal as its input, reads its first line on stderr, and presses ctrl-c.
const IN_A_TERMINAL: &str = r#"
import os, pty, select, subprocess, sys
leader, follower = pty.openpty()
pipe = subprocess.PIPE
child = subprocess.Popen(sys.argv[1:], stdin=follower, stdout=pipe, stderr=pipe, preexec_fn=lambda: (
    os.setsid(), __import__("fcntl").ioctl(0, __import__("termios").TIOCSCTTY, 0)))
if select.select([child.stderr], [], [], 60)[0]:
    sys.stdout.write(child.stderr.readline().decode())
os.write(leader, b"\x03")
sys.stdout.write(str(child.wait(60)))
"#;

#[test]
fn server_in_a_terminal_says_that_it_waits_and_ends_on_ctrl_c() {
    let world = World::with_agent("echo");
    let mut python = world.wrapped("python3");
    let output = python.args(["-c", IN_A_TERMINAL, PROGRAM, "mcp"]).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    let expected = "waiting for an MCP client on stdin; ctrl-c ends it. A client starts this command itself: \
                    `claude mcp add midwatch -- midwatch mcp`\n-2";
    assert_eq!(shown, expected, "{}", String::from_utf8_lossy(&output.stderr));
    // A client's pipe is no terminal.
    assert_eq!(world.run(&["mcp"]).stderr, "");
}
