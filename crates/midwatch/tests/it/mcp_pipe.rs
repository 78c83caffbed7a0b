//! The MCP server as a process: what it makes of hostile lines, and when it leaves.
#![expect(
    clippy::disallowed_methods,
    reason = "it waits no longer and no shorter than it was asked to"
)]

use std::io::Write;
use std::sync::mpsc::RecvTimeoutError;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::json;

use crate::mcp_client::{Client, PATIENCE, schedule, world};
use crate::world::PROGRAM;

#[test]
fn without_input_it_ends_within_a_second() {
    let world = world();
    // As long as it takes the machine to start the program at all, and a second.
    let started = Instant::now();
    world.ok(&["--version"]);
    let allowed = started.elapsed() + Duration::from_secs(1);
    let started = Instant::now();
    assert_eq!(world.run(&["mcp"]).code, Some(0));
    assert!(started.elapsed() <= allowed, "{:?} of {allowed:?}", started.elapsed());
}

#[test]
fn a_flood_of_nonsense_is_answered_line_by_line() {
    const LINES: usize = 5_000;
    let world = world();
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
        let answer = client.read();
        assert!(answer["error"]["code"].is_i64(), "{number}: {answer}");
    }
    client.input = Some(writer.join().unwrap());
    assert!(!client.tools().is_empty());
    assert_eq!(client.leave(), 0);
}

#[test]
fn hostile_lines_get_errors_of_the_protocol_and_the_next_one_an_answer() {
    let world = world();
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
        let answer = client.read();
        let shown: String = line.chars().take(60).collect();
        assert_eq!(answer["error"]["code"], *code, "{shown}: {answer}");
    }
    let input = client.input.as_mut().unwrap();
    input.write_all(b"\xff\xfe{\"jsonrpc\"}\n\n   \n").unwrap();
    assert_eq!(client.read()["error"]["code"], -32700);
    assert_eq!(client.ask("no/such", json!({}))["error"]["code"], -32601);
    for (method, parameters) in [
        ("tools/call", json!({"name": 5})),
        ("tools/call", json!([])),
        ("tools/list", json!({"cursor": 7})),
        ("initialize", json!({"protocolVersion": null})),
        ("tools/call", json!({"name": "x".repeat(1 << 20)})),
    ] {
        let wrong = client.ask(method, parameters);
        assert_eq!(wrong["error"]["code"], -32602, "{wrong}");
        assert!(wrong.to_string().len() < 1_000, "what is wrong is not repeated at length");
    }
    // Bad arguments are for the model to mend.
    assert_eq!(client.refused("run_get", json!({"run_id": 5})), "invalid_input");
    assert_eq!(client.refused("run_get", json!({"run_id": "x", "extra": 1})), "invalid_input");
    assert_eq!(
        client.refused("run_wait", json!({"run_id": "x", "cursor": "1.2"})),
        "invalid_input"
    );
    // Without a handshake it is answered all the same.
    let mut rude = Client::start(&world, &[]);
    assert!(!rude.tools().is_empty());
    assert_eq!(rude.leave(), 0);
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_hundred_calls_at_once_are_each_answered() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let mut open: Vec<u64> = (0..100)
        .map(|_| client.send("tools/call", json!({"name": "status_get", "arguments": {}})))
        .collect();
    while !open.is_empty() {
        let answer = client.read();
        let id = answer["id"].as_u64().unwrap();
        assert_eq!(answer["result"]["isError"], false, "{answer}");
        open.retain(|other| *other != id);
    }
}

#[test]
fn it_leaves_when_its_input_ends_and_a_hundred_of_them_leave_nobody_behind() {
    let world = world();
    let _daemon = world.up();
    assert_eq!(world.run(&["mcp"]).code, Some(0), "nothing was asked");
    for _ in 0..100 {
        assert_eq!(Client::start(&world, &[]).leave(), 0);
    }
    // One that waits does not wait for its run.
    let mut client = Client::legacy(&world, &[]);
    let id = schedule(&mut client);
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let run = client.ok("run_start", json!({"schedule_id": id, "idempotency_key": "k"}));
    let run = run["run"]["id"].as_str().unwrap().to_owned();
    let seen = client.ok("run_wait", json!({"run_id": run, "max_wait_s": 0}))["cursor"].clone();
    let wait = json!({"run_id": run, "cursor": seen, "max_wait_s": 25});
    client.send("tools/call", json!({"name": "run_wait", "arguments": wait}));
    assert_eq!(client.leave(), 0);
}

#[test]
fn a_host_that_starts_it_from_a_thread_keeps_it_and_a_host_that_is_killed_does_not() {
    let world = world();
    // The thread that started it is no more, and it answers.
    let mut client =
        thread::scope(|scope| scope.spawn(|| Client::legacy(&world, &[])).join().unwrap());
    assert_eq!(client.ok("server_health", json!({}))["kept"], false);
    assert_eq!(client.leave(), 0);
    // A host that is killed while somebody else holds its end of the pipe.
    let mut shell = world.wrapped("sh");
    shell.args(["-c", "exec 3<&0; \"$0\" \"$@\" <&3 & wait", PROGRAM]);
    let mut client = Client::of(shell, &[]);
    assert!(!client.tools().is_empty());
    client.child.kill().unwrap();
    assert_eq!(client.lines.recv_timeout(PATIENCE), Err(RecvTimeoutError::Disconnected));
}

#[test]
fn a_last_line_without_an_end_is_answered_too() {
    let world = world();
    let mut client = Client::legacy(&world, &[]);
    let asked = json!({"jsonrpc": "2.0", "id": 99, "method": "tools/list"}).to_string();
    let mut input = client.input.take().unwrap();
    input.write_all(asked.as_bytes()).unwrap();
    drop(input);
    assert_eq!(client.read()["id"], 99);
}
