//! A JSON object that has a key twice is refused before any part of it is used.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;

use api::wire::Hello;
use serde_json::{Value, json};

use crate::support::world::World;

/// Sends frames to the daemon. Returns its response after the hello; empty if it closes the connection.
pub(super) fn send_frames(world: &World, frames: &[&str]) -> String {
    let stream = UnixStream::connect(world.socket()).unwrap();
    for frame in frames {
        let _ = (&stream).write_all(format!("{frame}\n").as_bytes());
    }
    let mut lines = BufReader::new(stream).lines();
    lines.next().unwrap().unwrap();
    lines.next().and_then(Result::ok).unwrap_or_default()
}

/// Sends a request to the daemon. Returns its response.
pub(super) fn send_request(world: &World, request: &Value) -> String {
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    send_frames(world, &[&hello, &json!({"request": request}).to_string()])
}

#[test]
fn duplicate_json_key_is_refused_before_the_request_is_used() {
    let world = World::new();
    let daemon = world.up();
    // The daemon is ready a moment before it records its start.
    world.wait_for_event("watch.started");
    let before = world.kinds();
    let hello = serde_json::to_string(&Hello::new("test")).unwrap();
    for frame in [
        r#"{"request":{"call":"freeze","with":{"note":"a","note":"b"}}}"#,
        r#"{"request":{"call":"freeze","with":{"note":"a","n\u006fte":"b"}}}"#,
        r#"{"request":{"call":"status","call":"freeze","with":{}}}"#,
        r#"{"request":{"call":"freeze","with":{},"with":{"note":"b"}}}"#,
        r#"{"request":{"call":"status","with":{}},"request":{"call":"freeze","with":{}}}"#,
        r#"{"request":{"call":"freeze","with":{}},"key":"a","key":"b"}"#,
    ] {
        let response = send_frames(&world, &[&hello, frame]);
        assert!(
            response.contains("invalid_input") && response.contains("occurs twice"),
            "{response}"
        );
    }
    let twice = hello.replacen('{', r#"{"token":"a","token":"b","#, 1);
    let status = r#"{"request":{"call":"status","with":{}}}"#;
    assert_eq!(send_frames(&world, &[&twice, status]), "");
    assert!(send_frames(&world, &[&hello, status]).contains("authority"));

    let when = ["schedule", "add", "--name", "x", "--every", "1h", "--tool", "run_list"];
    let list = world.root().join("list.json");
    for payload in [
        r#"{"to":"a","to":"b"}"#,
        r#"{"to":"a","t\u006f":"b"}"#,
        r#"{"x":[{"to":"a","to":"a"}]}"#,
        r#"[[{"":1,"":2}]]"#,
    ] {
        let refused =
            world.refused(&[&when[..], &["--payload", payload]].concat(), "invalid_input", 2);
        assert!(refused.contains("occurs twice"), "{refused}");
        // The same where the payload is part of a document.
        let document = format!(r#"[{{"name":"x","when":{{"every":"1h"}},"action":{payload}}}]"#);
        fs::write(&list, document).unwrap();
        let file = list.to_str().unwrap();
        let refused = world.refused(&["schedule", "add", "--file", file], "invalid_input", 2);
        assert!(refused.contains("occurs twice"), "{refused}");
        let request = format!(r#"{{"capability":"net.read","resource":{payload}}}"#);
        let explain = ["policy", "explain", "--request", &request];
        let refused = world.refused(&explain, "invalid_input", 2);
        assert!(refused.contains("occurs twice"), "{refused}");
    }
    assert_eq!(world.kinds(), before, "something was recorded");
    drop(daemon);
    world.verified();
}
