//! Requests to the daemon over HTTP: which it rejects, and before what.

use std::net::TcpStream;

use serde_json::{Value, json};

use crate::support::mcp_http::{HttpDaemon, call, http_daemon, modern};
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, PROGRAM, World, daily};

#[test]
fn request_without_a_valid_token_is_refused() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let host = ("Host", daemon.address.as_str());
    let bearer = daemon.bearer();
    for header in [None, Some("Bearer "), Some("Basic abc"), Some("Bearer mw_nonsense")] {
        let headers: Vec<_> =
            [Some(host), header.map(|it| ("Authorization", it))].into_iter().flatten().collect();
        let reply = daemon.send(&headers, &body);
        assert_eq!(reply.status, 401, "{header:?}: {reply:?}");
        assert!(reply.header("www-authenticate").is_some());
    }
    let twice = [host, ("Authorization", &bearer), ("Authorization", "Bearer x")];
    assert_eq!(daemon.send(&twice, &body).status, 400);
    assert!(world.kinds().contains(&"watch.refused".to_owned()));
    // A revoked token is refused from then on.
    let tokens = world.json(&["token", "list"]);
    let id = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(daemon.modern("tools/list", json!({})).status, 200);
    world.ok(&["token", "revoke", &id]);
    assert_eq!(daemon.modern("tools/list", json!({})).status, 401);
}

#[test]
fn foreign_hosts_and_origins_are_refused_before_the_request_is_executed() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let bearer = daemon.bearer();
    let schedule = json!({"name": "x", "agent": "echo", "prompt": "p", "every": "1h"});
    let (more, body) = modern("tools/call", call("schedule_create", schedule));
    let body = body.to_string();
    let ours = daemon.address.as_str();
    let port = ours.rsplit(':').next().unwrap();
    let own_origin = format!("http://{ours}");
    let other_port = format!("http://localhost:1{port}");
    let glued = format!("[::1]evil.example:{port}");
    let send = |target: &str, host: &str, origin: Option<&str>, bearer: Option<&str>| {
        let mut headers = vec![("Host", host), ("Content-Type", "application/json")];
        headers.extend(more.iter().map(|(name, value)| (*name, value.as_str())));
        headers.extend(origin.map(|origin| ("Origin", origin)));
        headers.extend(bearer.map(|bearer| ("Authorization", bearer)));
        daemon.request("POST", target, &headers, &body)
    };
    let foreign = [
        ("/mcp", "evil.example", None),
        ("/mcp", "0.0.0.0", None),
        ("/mcp", "[::ffff:127.0.0.1]", None),
        ("/mcp", "evil.example:7400", None),
        ("/mcp", &glued, None),
        ("http://evil.example/mcp", ours, None),
        ("/mcp", ours, Some("https://evil.example")),
        ("/mcp", ours, Some("null")),
        ("/mcp", ours, Some("http://localhost")),
        ("/mcp", ours, Some(&other_port)),
    ];
    for (target, host, origin) in foreign {
        for bearer in [Some(bearer.as_str()), None] {
            let reply = send(target, host, origin, bearer);
            assert_eq!(reply.status, 403, "{target} {host} {origin:?}: {reply:?}");
            assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
        }
    }
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
    // The same request with our own host and origin is executed.
    let reply = send("/mcp", ours, Some(&own_origin), Some(&bearer));
    assert_eq!(reply.message()["result"]["isError"], false, "{reply:?}");
    assert_eq!(world.json(&["schedule", "list"])["schedules"].as_array().unwrap().len(), 1);
}

/// The headers of an authenticated request, and one more.
fn authorized<'h>(
    daemon: &'h HttpDaemon,
    bearer: &'h str,
    more: (&'h str, &'h str),
) -> [(&'h str, &'h str); 3] {
    [("Host", &daemon.address), ("Authorization", bearer), more]
}

#[test]
fn request_with_content_length_and_transfer_encoding_is_refused() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let bearer = daemon.bearer();
    let headers = authorized(&daemon, &bearer, ("Transfer-Encoding", "chunked"));
    let reply = daemon.send(&headers, "0\r\n\r\n");
    assert!([400, 411].contains(&reply.status), "{reply:?}");
    assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
}

#[test]
fn hostile_requests_get_an_error_and_the_daemon_continues() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let bearer = daemon.bearer();
    let headers = authorized(&daemon, &bearer, ("Content-Type", "application/json"));
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, status) in [
        ("not json", 400),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"tools/list\"}", 400),
        (deep.as_str(), 400),
        (long.as_str(), 413),
    ] {
        let reply = daemon.send(&headers, body);
        assert_eq!(reply.status, status, "{}: {reply:?}", &body[..body.len().min(60)]);
    }
    // Other errors are JSON-RPC errors with the id of the request.
    for (body, code, id) in [
        ("", -32700, Value::Null),
        ("null", -32600, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, -32602, json!(1)),
    ] {
        let reply = daemon.send(&headers, body);
        let message = reply.message();
        let found = (reply.status, &message["error"]["code"]);
        assert_eq!(found, (400, &json!(code)), "{body}: {message}");
        assert_eq!(message["id"], id, "{body}: {message}");
    }
    let reply = daemon.send(&headers, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}");
    assert_eq!((reply.status, &reply.message()["error"]["code"]), (400, &json!(-32700)));
    let mut many: Vec<(&str, &str)> = headers.to_vec();
    many.extend(std::iter::repeat_n(("X-More", "1"), 200));
    assert_eq!(daemon.send(&many, "{}").status, 431);
    assert_eq!(daemon.modern("no/such", json!({})).status, 404);
    assert_eq!(daemon.modern("tools/list", json!({})).status, 200);
}

#[test]
fn no_path_for_programs_decides_an_approval() {
    let mut world = World::new();
    let mut daemon = http_daemon(&mut world);
    let (_, agent) = world.create_token("echo", "runner");
    for token in [agent, daemon.token.clone()] {
        daemon.token = token;
        let bearer = daemon.bearer();
        let headers = [("Host", daemon.address.as_str()), ("Authorization", bearer.as_str())];
        // The approval page accepts only its form, with a token in it.
        for (path, status) in [
            ("/approvals/apr_1/approve", 403),
            ("/api/approval/decide", 404),
            ("/", 404),
            ("/mcp/approve", 404),
            ("/mcpx", 404),
        ] {
            let reply = daemon.request("POST", path, &headers, "{}");
            assert_eq!(reply.status, status, "{path}: {reply:?}");
        }
        let decided = daemon.modern("tools/call", call("approval_approve", json!({"id": "apr_1"})));
        assert_eq!(decided.message()["error"]["code"], -32602, "{decided:?}");
    }
}

/// An agent's webhook cannot call the daemon itself, even with `--allow-private`, and the key that signs a webhook
/// is not a token.
#[test]
fn g1_webhook_cannot_reach_the_daemon_and_its_key_is_not_a_token() {
    let mut world = World::new();
    world.set("HOOK_KEY", "a-key-for-signing-and-nothing-else");
    let daemon = http_daemon(&mut world);
    let url = format!("http://{}/mcp", daemon.address);
    let by_name = url.replace("127.0.0.1", "localhost");
    for (name, url) in [("hook", &url), ("named", &by_name)] {
        let add = ["agent", "add", name, "--backend", "webhook", "--url", url, "--tier", "1"];
        world.ok(&[&add[..], &["--allow-private", "--credential", "env:HOOK_KEY"]].concat());
        let schedule = [&daily(name, name, "x")[..], &["--attempts", "1"]].concat();
        let run = world.start_run(&world.add_schedule(&schedule));
        let ended = world.wait_for_state(&run, "failed");
        let message = ended["message"].as_str().unwrap();
        assert!(message.contains("is an address of this machine"), "{ended}");
    }
    let headers = [
        ("Host", daemon.address.as_str()),
        ("Authorization", "Bearer a-key-for-signing-and-nothing-else"),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(daemon.send(&headers, &body).status, 401);
}

/// A response in several pieces does not wait for the acknowledgement of the first.
#[test]
fn connections_have_tcp_nodelay() {
    let mut world = World::new();
    world.set("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0");
    let trace = world.root().join("trace");
    let mut traced = world.wrapped("strace");
    traced.args(["--daemonize", "--follow-forks", "-qq", "--trace=setsockopt", "--output"]);
    traced.arg(&trace).arg(PROGRAM).args(["--json", "up"]);
    let daemon = Daemon::start(&mut traced);
    let ready: Value = serde_json::from_str(&daemon.ready).unwrap();
    let address = ready["ready"]["http"].as_str().unwrap().strip_prefix("http://").unwrap();
    let _connection = TcpStream::connect(address).unwrap();
    let is_set = |trace: String| trace.contains("TCP_NODELAY, [1]");
    wait_until(|| std::fs::read_to_string(&trace).is_ok_and(is_set));
}
