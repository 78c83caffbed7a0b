//! The MCP server at `/mcp` of the daemon.

use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use crate::world::{Daemon, World, wait_for};

const PATIENCE: Duration = Duration::from_secs(60);
const MODERN: &str = "2026-07-28";
const LEGACY: &str = "2025-11-25";

/// What came back.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    head: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        let lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.filter(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value).next()
    }

    /// The message, plain or as the last of a stream.
    fn message(&self) -> Value {
        let is_stream = self.header("content-type").is_some_and(|it| it.contains("event-stream"));
        let text = match is_stream {
            true => {
                let data = self.body.lines().filter_map(|line| line.strip_prefix("data:"));
                data.map(str::trim).rfind(|it| !it.is_empty()).unwrap_or_default()
            }
            false => &self.body,
        };
        serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }
}

/// A daemon, where it listens, and the token that is shown there.
pub(crate) struct Place {
    pub(crate) address: String,
    pub(crate) token: String,
    daemon: Daemon,
}

impl Place {
    pub(crate) fn new(world: &mut World, token: String) -> Place {
        world.set("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0");
        let daemon = Daemon::start(world.command().args(["--json", "up"]));
        let ready: Value = serde_json::from_str(&daemon.ready).unwrap();
        let url = ready["ready"]["http"].as_str().unwrap();
        let address = url.strip_prefix("http://").unwrap().to_owned();
        Place { address, token, daemon }
    }

    /// With -9.
    pub(crate) fn kill(self) {
        self.daemon.kill();
    }

    /// Sends exactly these headers and this body, and reads until the other side has done.
    fn send(&self, headers: &[(&str, &str)], body: &str) -> Reply {
        self.request("POST", "/mcp", headers, body)
    }

    pub(crate) fn request(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Reply {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let mut text = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            write!(text, "{name}: {value}\r\n").unwrap();
        }
        write!(text, "Content-Length: {}\r\n\r\n{body}", body.len()).unwrap();
        stream.write_all(text.as_bytes()).unwrap();
        let mut answer = Vec::new();
        // What was turned away early may be cut off.
        let _ = stream.read_to_end(&mut answer);
        let answer = String::from_utf8(answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap_or((&answer, ""));
        let status = head.split(' ').nth(1).and_then(|it| it.parse().ok()).unwrap_or(0);
        Reply { status, head: head.to_owned(), body: unchunked(head, body) }
    }

    fn bearer(&self) -> String {
        format!("Bearer {}", self.token)
    }

    /// With everything that a good client sends, and more.
    fn good(&self, more: &[(&str, &str)], body: &Value) -> Reply {
        let bearer = self.bearer();
        let mut headers = vec![
            ("Host", self.address.as_str()),
            ("Authorization", bearer.as_str()),
            ("Content-Type", "application/json"),
        ];
        headers.extend_from_slice(more);
        self.send(&headers, &body.to_string())
    }

    fn modern(&self, method: &str, parameters: Value) -> Reply {
        let (headers, body) = modern(method, parameters);
        let headers: Vec<_> = headers.iter().map(|(name, value)| (*name, value.as_str())).collect();
        self.good(&headers, &body)
    }

    fn greet(&self) -> Reply {
        let parameters = json!({
            "protocolVersion": LEGACY,
            "capabilities": {},
            "clientInfo": {"name": "story", "version": "1"},
        });
        let asked =
            json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": parameters});
        self.good(&[], &asked)
    }

    fn hello(&self) -> String {
        let hello = self.greet();
        assert_eq!(hello.status, 200, "{hello:?}");
        assert_eq!(hello.message()["result"]["protocolVersion"], LEGACY, "{hello:?}");
        let session = hello.header("mcp-session-id").unwrap().to_owned();
        let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        assert_eq!(self.good(&[("Mcp-Session-Id", &session)], &initialized).status, 202);
        session
    }
}

/// A complete request of the later era: its headers and its body.
fn modern(method: &str, mut parameters: Value) -> (Vec<(&'static str, String)>, Value) {
    let named = parameters["name"].as_str().map(str::to_owned);
    parameters["_meta"] = json!({
        "io.modelcontextprotocol/protocolVersion": MODERN,
        "io.modelcontextprotocol/clientInfo": {"name": "story", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let mut headers =
        vec![("MCP-Protocol-Version", MODERN.to_owned()), ("Mcp-Method", method.to_owned())];
    headers.extend(named.map(|named| ("Mcp-Name", named)));
    (headers, json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": parameters}))
}

fn unchunked(head: &str, body: &str) -> String {
    if !head.to_ascii_lowercase().contains("transfer-encoding: chunked") {
        return body.to_owned();
    }
    let (mut whole, mut rest) = (String::new(), body);
    while let Some((size, after)) = rest.split_once("\r\n") {
        let size = usize::from_str_radix(size.trim(), 16).unwrap_or(0);
        if size == 0 || after.len() < size {
            break;
        }
        whole.push_str(&after[..size]);
        rest = after[size..].trim_start_matches("\r\n");
    }
    whole
}

pub(crate) fn token(world: &World, role: &str, name: &str) -> String {
    let created = world.json(&["token", "create", "--role", role, "--name", name]);
    created["token"]["secret"].as_str().unwrap().to_owned()
}

/// A daemon with an agent and the token of a person.
fn place(world: &mut World) -> Place {
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let token = token(world, "maintainer", "mia");
    Place::new(world, token)
}

fn call(name: &str, arguments: Value) -> Value {
    json!({"name": name, "arguments": arguments})
}

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
        let mut more: Vec<_> = more.iter().map(|(name, value)| (*name, value.as_str())).collect();
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
    let (more, body) = modern("subscriptions/listen", json!({"notifications": filter}));
    let body = body.to_string();
    let mut text = format!("POST /mcp HTTP/1.1\r\nHost: {}\r\n", place.address);
    write!(text, "Authorization: {}\r\nContent-Type: application/json\r\n", place.bearer())
        .unwrap();
    for (name, value) in &more {
        write!(text, "{name}: {value}\r\n").unwrap();
    }
    write!(text, "Connection: close\r\nContent-Length: {}\r\n\r\n{body}", body.len()).unwrap();
    let mut stream = TcpStream::connect(&place.address).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.write_all(text.as_bytes()).unwrap();
    let mut lines = BufReader::new(stream).lines().map(|line| line.unwrap());
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
