//! The MCP server at `/mcp` of the daemon.

use std::io::BufRead;
use std::net::TcpStream;

use serde_json::{Value, json};

use crate::mcp_forged::Forged;
use crate::mcp_web::{LEGACY, Place, borrowed, call, modern, place, token};
use crate::world::{Daemon, PROGRAM, World, wait_for};

#[test]
fn u1_both_eras_are_served_at_one_path() {
    let mut world = World::new();
    let place = place(&mut world);
    let found = place.modern("server/discover", json!({}));
    let server = &found.message()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "midwatch", "{found:?}");
    let asked = json!({"name": "brief", "agent": "echo", "prompt": "hi", "every": "1000h"});
    let added = place.modern("tools/call", call("schedule_create", asked));
    let added = added.message();
    let id = added["result"]["structuredContent"]["schedule"]["id"].as_str().unwrap().to_owned();

    let session = place.hello();
    let asked = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": call("run_start", json!({"schedule_id": id, "idempotency_key": "k"})),
    });
    let more = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LEGACY)];
    let started = place.good(&more, &asked).message();
    let run = started["result"]["structuredContent"]["run"]["id"].as_str().unwrap().to_owned();
    let read = place.modern("tools/call", call("run_wait", json!({"run_id": run})));
    assert_eq!(read.message()["result"]["isError"], false, "{read:?}");
    let events = world.json(&["ledger", "tail", "--limit", "1000"]);
    let added =
        events["events"].as_array().unwrap().iter().find(|it| it["kind"] == "schedule.added");
    assert_eq!(added.unwrap()["actor"], "mcp:mia");
    let called =
        events["events"].as_array().unwrap().iter().filter(|it| it["kind"] == "tool.called");
    let called: Vec<_> = called.map(|it| (&it["id"], &it["actor"])).collect();
    let mia = json!("mcp:mia");
    assert_eq!(called, [(&json!("schedule_create"), &mia), (&json!("run_start"), &mia)]);
    let tools = world.json(&["status", "--tools"]);
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|it| &it["tool"]).collect();
    assert_eq!(names, ["run_start", "run_wait", "schedule_create"], "{tools}");
}

#[test]
fn nobody_is_let_in_without_a_token_that_is_in_force() {
    let mut world = World::new();
    let place = place(&mut world);
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let host = ("Host", place.address.as_str());
    let bearer = place.bearer();
    for shown in [None, Some("Bearer "), Some("Basic abc"), Some("Bearer mw_nonsense")] {
        let headers: Vec<_> =
            [Some(host), shown.map(|it| ("Authorization", it))].into_iter().flatten().collect();
        let reply = place.send(&headers, &body);
        assert_eq!(reply.status, 401, "{shown:?}: {reply:?}");
        assert!(reply.header("www-authenticate").is_some());
    }
    let twice = [host, ("Authorization", &bearer), ("Authorization", "Bearer x")];
    assert_eq!(place.send(&twice, &body).status, 400);
    assert!(world.kinds().contains(&"watch.refused".to_owned()));
    // A token that is revoked is none from then on.
    let tokens = world.json(&["token", "list"]);
    let id = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
    assert_eq!(place.modern("tools/list", json!({})).status, 200);
    world.ok(&["token", "revoke", &id]);
    assert_eq!(place.modern("tools/list", json!({})).status, 401);
}

#[test]
fn b10_other_names_and_pages_of_browsers_are_turned_away_before_anything_is_done() {
    let mut world = World::new();
    let place = place(&mut world);
    let bearer = place.bearer();
    let asked = json!({"name": "x", "agent": "echo", "prompt": "p", "every": "1h"});
    let (more, body) = modern("tools/call", call("schedule_create", asked));
    let body = body.to_string();
    let ours = place.address.as_str();
    let port = ours.rsplit(':').next().unwrap();
    let own_origin = format!("http://{ours}");
    let other_port = format!("http://localhost:1{port}");
    let glued = format!("[::1]evil.example:{port}");
    // The target, the host, the page.
    let send = |target: &str, host: &str, origin: Option<&str>, bearer: Option<&str>| {
        let mut headers = vec![("Host", host), ("Content-Type", "application/json")];
        headers.extend(more.iter().map(|(name, value)| (*name, value.as_str())));
        headers.extend(origin.map(|origin| ("Origin", origin)));
        headers.extend(bearer.map(|bearer| ("Authorization", bearer)));
        place.request("POST", target, &headers, &body)
    };
    let strange = [
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
    for (target, host, origin) in strange {
        for bearer in [Some(bearer.as_str()), None] {
            let reply = send(target, host, origin, bearer);
            assert_eq!(reply.status, 403, "{target} {host} {origin:?}: {reply:?}");
            assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
        }
    }
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
    // The same request that comes from here is done.
    let reply = send("/mcp", ours, Some(&own_origin), Some(&bearer));
    assert_eq!(reply.message()["result"]["isError"], false, "{reply:?}");
    assert_eq!(world.json(&["schedule", "list"])["schedules"].as_array().unwrap().len(), 1);
}

#[test]
fn a_request_whose_length_is_said_twice_is_turned_away() {
    let mut world = World::new();
    let place = place(&mut world);
    let bearer = place.bearer();
    let headers = [
        ("Host", place.address.as_str()),
        ("Authorization", bearer.as_str()),
        ("Transfer-Encoding", "chunked"),
    ];
    let reply = place.send(&headers, "0\r\n\r\n");
    assert!([400, 411].contains(&reply.status), "{reply:?}");
    assert_eq!(reply.header("connection"), Some("close"), "{reply:?}");
}

#[test]
fn there_are_sixty_four_sessions_and_not_one_more() {
    let mut world = World::new();
    let place = place(&mut world);
    let sessions: Vec<String> = (0..64).map(|_| place.hello()).collect();
    let refused = place.greet();
    assert_eq!(refused.status, 503, "{refused:?}");
    assert_eq!(refused.message()["error"]["code"], "limit_reached", "{refused:?}");
    // Those of the later era need none, and one that ends makes room.
    assert_eq!(place.modern("tools/list", json!({})).status, 200);
    let bearer = place.bearer();
    let headers = [
        ("Host", place.address.as_str()),
        ("Authorization", bearer.as_str()),
        ("Mcp-Session-Id", sessions[0].as_str()),
    ];
    let ended = place.request("DELETE", "/mcp", &headers, "");
    assert_eq!(ended.status, 204, "{ended:?}");
    place.hello();
}

#[test]
fn a_session_is_of_the_one_who_began_it() {
    let mut world = World::new();
    let mut place = place(&mut world);
    let session = place.hello();
    let mias = std::mem::replace(&mut place.token, token(&world, "runner", "echo"));
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let more = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LEGACY)];
    let end = |place: &Place, session: &str| {
        let bearer = place.bearer();
        let headers = [
            ("Host", place.address.as_str()),
            ("Authorization", bearer.as_str()),
            ("Mcp-Session-Id", session),
        ];
        place.request("DELETE", "/mcp", &headers, "").status
    };
    assert_eq!(place.good(&more, &list).status, 404);
    assert_eq!(end(&place, &session), 404);
    assert_eq!(end(&place, "no-such-session"), 404);
    place.token = mias;
    assert_eq!(place.good(&more, &list).status, 200);
    assert_eq!(end(&place, &session), 204);
    assert_eq!(end(&place, &session), 404, "it is over");
}

#[test]
fn whoever_understands_anything_is_answered() {
    let mut world = World::new();
    let place = place(&mut world);
    let (more, body) = modern("tools/list", json!({}));
    for accepted in ["*/*", "application/json, */*;q=0.1"] {
        let mut more = borrowed(&more);
        more.push(("Accept", accepted));
        assert_eq!(place.good(&more, &body).status, 200, "{accepted}");
    }
}

/// Whoever listens hears of nothing that happens once their token is revoked, and the stream ends.
#[test]
fn a_stream_ends_with_the_token_that_opened_it() {
    let mut world = World::new();
    let place = place(&mut world);
    let tokens = world.json(&["token", "list"]);
    let token = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
    let filter = json!({"resourceSubscriptions": ["midwatch://status"]});
    let listen = json!({"notifications": filter});
    let stream = place.modern_stream("subscriptions/listen", listen);
    let mut lines = stream.lines().map(|line| line.unwrap());
    let is_news = |line: &String| line.contains("resources/updated");
    assert!(lines.by_ref().any(|line| is_news(&line)), "it is told that it may look");
    world.ok(&["token", "revoke", &token]);
    let rest: Vec<String> = lines.collect();
    assert!(!rest.iter().any(is_news), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("token_invalid")), "{rest:?}");
}

#[test]
fn b02_no_path_for_programs_decides_on_an_approval_whatever_the_token() {
    let mut world = World::new();
    let mut place = place(&mut world);
    let agent = token(&world, "runner", "echo");
    for token in [agent, place.token.clone()] {
        place.token = token;
        let bearer = place.bearer();
        let headers = [("Host", place.address.as_str()), ("Authorization", bearer.as_str())];
        // The page for people takes forms of its own, and a token in them.
        for (path, status) in [
            ("/approvals/apr_1/approve", 403),
            ("/api/approval/decide", 404),
            ("/", 404),
            ("/mcp/approve", 404),
            ("/mcpx", 404),
        ] {
            let reply = place.request("POST", path, &headers, "{}");
            assert_eq!(reply.status, status, "{path}: {reply:?}");
        }
        let decided = place.modern("tools/call", call("approval_approve", json!({"id": "apr_1"})));
        assert_eq!(decided.message()["error"]["code"], -32602, "{decided:?}");
    }
}

#[test]
fn a_session_that_nobody_knows_is_not_found_and_a_restart_loses_no_run() {
    let mut world = World::new();
    let place = place(&mut world);
    let session = place.hello();
    let asked = json!({"name": "brief", "agent": "echo", "prompt": "hi", "every": "1000h"});
    let added = place.modern("tools/call", call("schedule_create", asked)).message();
    let id = added["result"]["structuredContent"]["schedule"]["id"].clone();
    let start = json!({"schedule_id": id, "idempotency_key": "k"});
    let started = place.modern("tools/call", call("run_start", start)).message();
    let run = started["result"]["structuredContent"]["run"]["id"].as_str().unwrap().to_owned();
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    let with = |session: &str| [("Mcp-Session-Id".to_owned(), session.to_owned())];
    let asked = |place: &Place, session: &str| {
        let more = with(session);
        let more: Vec<(&str, &str)> = more.iter().map(|(a, b)| (a.as_str(), b.as_str())).collect();
        place.good(&more, &list).status
    };
    assert_eq!(asked(&place, &session), 200);
    assert_eq!(asked(&place, "no-such-session"), 404);
    let token = place.token.clone();
    drop(place);
    let place = Place::new(&mut world, token);
    assert_eq!(asked(&place, &session), 404);
    let session = place.hello();
    assert_eq!(asked(&place, &session), 200);
    let found = place.modern("tools/call", call("run_get", json!({"run_id": run}))).message();
    assert_eq!(found["result"]["structuredContent"]["run"]["id"], run, "{found}");
}

#[test]
fn hostile_requests_get_an_error_and_the_next_one_an_answer() {
    let mut world = World::new();
    let place = place(&mut world);
    let bearer = place.bearer();
    let headers = [
        ("Host", place.address.as_str()),
        ("Authorization", bearer.as_str()),
        ("Content-Type", "application/json"),
    ];
    let long = format!("\"{}\"", "x".repeat(2 << 20));
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for (body, status) in [
        ("not json", 400),
        ("{\"jsonrpc\":\"2.0\",\"id\":1,\"id\":2,\"method\":\"tools/list\"}", 400),
        (deep.as_str(), 400),
        (long.as_str(), 413),
    ] {
        let reply = place.send(&headers, body);
        assert_eq!(reply.status, status, "{}: {reply:?}", &body[..body.len().min(60)]);
    }
    // What is wrong is said in the words of the protocol, to whoever asked.
    for (body, code, id) in [
        ("", -32700, Value::Null),
        ("null", -32600, Value::Null),
        ("[]", -32600, Value::Null),
        (r#"{"jsonrpc":"2.0","id":1,"method":7}"#, -32600, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}"#, -32602, json!(1)),
        (r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}"#, -32602, json!(1)),
    ] {
        let reply = place.send(&headers, body);
        let said = reply.message();
        assert_eq!((reply.status, &said["error"]["code"]), (400, &json!(code)), "{body}: {said}");
        assert_eq!(said["id"], id, "{body}: {said}");
    }
    let reply = place.send(&headers, b"{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"\xff\xfe\"}");
    assert_eq!((reply.status, &reply.message()["error"]["code"]), (400, &json!(-32700)));
    let mut many: Vec<(&str, &str)> = headers.to_vec();
    many.extend(std::iter::repeat_n(("X-More", "1"), 200));
    assert_eq!(place.send(&many, "{}").status, 431);
    assert_eq!(place.modern("no/such", json!({})).status, 404);
    assert_eq!(place.modern("tools/list", json!({})).status, 200);
}

/// The watch does not let itself be talked to by its own agents, however far those may reach; and what a webhook
/// is signed with opens no door.
#[test]
fn b11_and_g1_an_agents_key_opens_nothing_here_and_its_requests_do_not_come_here() {
    let mut world = World::new();
    world.set("HOOK_KEY", "a-key-for-signing-and-nothing-else");
    let place = place(&mut world);
    let url = format!("http://{}/mcp", place.address);
    let by_name = url.replace("127.0.0.1", "localhost");
    for (name, url) in [("hook", &url), ("named", &by_name)] {
        let add = ["agent", "add", name, "--backend", "webhook", "--url", url, "--tier", "1"];
        world.ok(&[&add[..], &["--allow-private", "--credential", "env:HOOK_KEY"]].concat());
        let add = ["schedule", "add", "--name", name, "--agent", name, "--prompt", "x"];
        let added = world.json(&[&add[..], &["--every", "1000h", "--attempts", "1"]].concat());
        let id = added["schedule"]["id"].as_str().unwrap();
        let run = world.json(&["run", "start", id])["run"]["id"].as_str().unwrap().to_owned();
        let ended = wait_for(|| {
            let run = world.json(&["run", "show", &run])["run"].clone();
            (run["state"] == "failed").then_some(run)
        });
        let message = ended["message"].as_str().unwrap();
        assert!(message.contains("is an address of this machine"), "{ended}");
    }
    let headers = [
        ("Host", place.address.as_str()),
        ("Authorization", "Bearer a-key-for-signing-and-nothing-else"),
    ];
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    assert_eq!(place.send(&headers, &body).status, 401);
}

#[test]
fn the_configuration_chooses_the_tools_and_an_agent_is_who_it_is() {
    let mut world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    world.ok(&["agent", "add", "other", "--backend", "builtin"]);
    let token = token(&world, "runner", "echo");
    world.set("MIDWATCH_HTTP_TOOLSETS", "[\"astra\", \"promptyoself\"]");
    let place = Place::new(&mut world, token);
    let listed = place.modern("tools/list", json!({})).message();
    let names = listed["result"]["tools"].to_string();
    assert!(names.contains("astra.schedule.create") && !names.contains("status_get"), "{names}");
    let health = place.modern("tools/call", call("astra_health", json!({}))).message();
    assert_eq!(health["result"]["structuredContent"]["ok"], true, "{health}");
    let every = |agent: Value| {
        let mut asked = json!({"prompt": "p", "every": "1000h"});
        if !agent.is_null() {
            asked["agent_id"] = agent;
        }
        let said = place.modern("tools/call", call("promptyoself_schedule_every", asked)).message();
        said["result"]["structuredContent"].clone()
    };
    assert_eq!(every(Value::Null)["status"], "success");
    let listed = place.modern("tools/call", call("promptyoself_list", json!({}))).message();
    let listed = &listed["result"]["structuredContent"]["schedules"];
    assert_eq!(listed[0]["agent_id"], "echo", "{listed}");
    // Of the other it learns nothing.
    assert_eq!(every(json!("other"))["error"], "Agent validation failed: Agent other not found");
}

/// A run that waits until the watch is thawed, and a call that waits for news of it.
fn waiting(world: &World, place: &Place) -> (String, Value) {
    let asked = json!({"name": "brief", "agent": "echo", "prompt": "hi", "every": "1000h"});
    let added = place.modern("tools/call", call("schedule_create", asked)).message();
    let schedule = added["result"]["structuredContent"]["schedule"]["id"].clone();
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let start = json!({"schedule_id": schedule, "idempotency_key": "k"});
    let started = place.modern("tools/call", call("run_start", start)).message();
    let run = started["result"]["structuredContent"]["run"]["id"].as_str().unwrap().to_owned();
    let seen = call("run_wait", json!({"run_id": run, "max_wait_s": 0}));
    let seen = place.modern("tools/call", seen).message();
    let cursor = &seen["result"]["structuredContent"]["cursor"];
    let wait = call("run_wait", json!({"run_id": run, "cursor": cursor, "max_wait_s": 5}));
    (run, wait)
}

/// The headers and the body of a call that wants signs of life, in the later and in the earlier era.
fn with_signs_of_life(session: &str, call: &Value) -> [(Vec<(&'static str, String)>, Value); 2] {
    let (headers, mut later) = modern("tools/call", call.clone());
    let mut earlier = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call});
    for body in [&mut later, &mut earlier] {
        body["params"]["_meta"]["progressToken"] = json!("p");
    }
    let legacy = [("Mcp-Session-Id", session), ("MCP-Protocol-Version", LEGACY)];
    [(headers, later), (legacy.map(|(name, value)| (name, value.to_owned())).into(), earlier)]
}

#[test]
fn a_long_call_shows_signs_of_life_in_both_eras() {
    let mut world = World::new();
    let place = place(&mut world);
    let (_, wait) = waiting(&world, &place);
    for (headers, body) in with_signs_of_life(&place.hello(), &wait) {
        let reply = place.good(&borrowed(&headers), &body);
        assert!(reply.body.contains("notifications/progress"), "{reply:?}");
        assert_eq!(reply.message()["result"]["isError"], false, "{reply:?}");
    }
}

#[test]
fn whoever_hangs_up_on_a_call_or_cancels_it_cancels_no_run() {
    let mut world = World::new();
    let place = place(&mut world);
    let (run, mut wait) = waiting(&world, &place);
    wait["arguments"]["max_wait_s"] = json!(25);
    let shown = || world.json(&["run", "show", &run])["run"]["state"].as_str().unwrap().to_owned();
    let session = place.hello();
    let is_sign = |line: &String| line.contains("notifications/progress");
    for (headers, body) in with_signs_of_life(&session, &wait) {
        let mut stream = place.stream(&borrowed(&headers), &body).lines().map(Result::unwrap);
        assert!(stream.any(|line| is_sign(&line)), "it is under way");
        drop(stream);
        assert_eq!(shown(), "queued");
    }
    let [_, (headers, mut body)] = with_signs_of_life(&session, &wait);
    body["id"] = json!(8);
    let mut stream = place.stream(&borrowed(&headers), &body).lines().map(Result::unwrap);
    assert!(stream.any(|line| is_sign(&line)), "it is under way");
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8},
    });
    assert_eq!(place.good(&borrowed(&headers), &cancelled).status, 202);
    // What is cancelled is not answered.
    let rest: Vec<String> = stream.collect();
    assert!(!rest.iter().any(|line| line.contains("\"result\"")), "{rest:?}");
    assert_eq!(shown(), "queued");
    world.ok(&["thaw", "--reason", "on we go"]);
    wait_for(|| (shown() == "done").then_some(()));
}

/// B1, by every door of HTTP: no tool, no method and no answer to a question decides.
#[test]
fn b01_nothing_that_is_sent_to_the_door_approves_freezes_renews_or_changes_the_orders() {
    let mut world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let toolsets: Vec<&str> = ::mcp::Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
    world.set("MIDWATCH_HTTP_TOOLSETS", json!(toolsets).to_string());
    let (maintainers, runners) =
        (token(&world, "maintainer", "mia"), token(&world, "runner", "echo"));
    let mut place = Place::new(&mut world, maintainers);
    let (forged, authority) = (Forged::new(&world), world.json(&["status"])["authority"].clone());
    let session = place.hello();
    let more = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LEGACY)];
    forged.try_all(&mut |method, asked| {
        let asked = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": asked});
        place.good(&more, &asked).message()
    });
    forged.try_all(&mut |method, asked| place.modern(method, asked).message());
    place.token = runners;
    forged.try_all(&mut |method, asked| place.modern(method, asked).message());
    forged.check(&world, &authority);
    let tokens = world.json(&["token", "list"])["tokens"].as_array().unwrap().len();
    assert_eq!(tokens, 2, "nobody has made a token");
}

#[test]
fn whoever_only_looks_changes_nothing() {
    let mut world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let token = token(&world, "observer", "olga");
    let place = Place::new(&mut world, token);
    let health = place.modern("tools/call", call("server_health", json!({}))).message();
    assert_eq!(health["result"]["structuredContent"]["ok"], true, "{health}");
    let asked = json!({"name": "x", "agent": "echo", "prompt": "p", "every": "1h"});
    let refused = place.modern("tools/call", call("schedule_create", asked)).message();
    let error = &refused["result"]["structuredContent"]["error"];
    assert_eq!(error["code"], "role_too_low", "{refused}");
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
}

/// An answer in several pieces does not wait until the first is acknowledged.
#[test]
fn answers_are_sent_at_once() {
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
    wait_for(|| std::fs::read_to_string(&trace).ok().filter(|it| it.contains("TCP_NODELAY, [1]")));
}

/// The next message of a stream that is of this method.
fn next_of(lines: &mut impl Iterator<Item = String>, method: &str) -> Value {
    let messages =
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
    messages.into_iter().find(|message: &Value| message["method"] == method).unwrap()
}

#[test]
fn u1_a_session_hears_of_what_it_has_subscribed_to() {
    let mut world = World::new();
    let place = place(&mut world);
    let session = place.hello();
    let more = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LEGACY)];
    let mut lines = place.heard(&session).lines().map(Result::unwrap);
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe",
        "params": {"uri": "midwatch://status"},
    });
    let subscribed = place.good(&more, &subscribe).message();
    assert!(subscribed.get("error").is_none(), "{subscribed}");
    world.ok(&["agent", "add", "more", "--backend", "builtin"]);
    let news = next_of(&mut lines, "notifications/resources/updated");
    assert_eq!(news["params"]["uri"], "midwatch://status", "{news}");
}

#[test]
fn u1_a_session_that_can_open_links_is_asked_to_during_the_call() {
    let mut world = World::new();
    let place = place(&mut world);
    let forged = Forged::new(&world);
    let session = place.hello_with(json!({"elicitation": {"url": {}}}));
    let more = [("Mcp-Session-Id", session.as_str()), ("MCP-Protocol-Version", LEGACY)];
    let asked = call("approval_call_human", json!({"id": forged.approval}));
    let asked = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": asked});
    let mut lines = place.stream(&more, &asked).lines().map(Result::unwrap);
    let question = next_of(&mut lines, "elicitation/create");
    let link = world.json(&["approval", "show", &forged.approval])["approval"]["link"].clone();
    assert_eq!(question["params"]["url"], link, "{question}");
    let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept"}});
    assert_eq!(place.good(&more, &reply).status, 202);
    let told = lines.find(|line| line.contains("\"waiting\":true"));
    assert!(told.is_some(), "the call is answered");
    let state = world.json(&["approval", "show", &forged.approval])["approval"]["state"].clone();
    assert_eq!(state, "pending");
}
