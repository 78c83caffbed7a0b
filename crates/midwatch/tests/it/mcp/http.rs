//! MCP over HTTP at `/mcp` of the daemon: sessions, streams, tools.

use std::io::{BufRead, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener};

use serde_json::{Value, json};

use crate::support::approval_attack::ApprovalAttack;
use crate::support::mcp_http::{HttpDaemon, borrowed, call, http_daemon, modern, session_headers};
use crate::support::world::World;

#[test]
fn u1_both_eras_are_served_at_one_path() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let found = daemon.modern("server/discover", json!({}));
    let server = &found.message()["result"]["_meta"]["io.modelcontextprotocol/serverInfo"];
    assert_eq!(server["name"], "midwatch", "{found:?}");
    let id = daemon.add_schedule();

    let session = daemon.open_session();
    let request = json!({
        "jsonrpc": "2.0", "id": 2, "method": "tools/call",
        "params": call("run_start", json!({"schedule_id": id, "idempotency_key": "k"})),
    });
    let started = daemon.post(&session_headers(&session), &request).message();
    let run = started["result"]["structuredContent"]["run"]["id"].as_str().unwrap().to_owned();
    let read = daemon.modern("tools/call", call("run_wait", json!({"run_id": run})));
    assert_eq!(read.message()["result"]["isError"], false, "{read:?}");
    assert_eq!(world.events_of("schedule.added")[0]["actor"], "mcp:mia");
    let called = world.events_of("tool.called");
    let called: Vec<_> = called.iter().map(|it| (&it["id"], &it["actor"])).collect();
    let mia = json!("mcp:mia");
    assert_eq!(called, [(&json!("schedule_create"), &mia), (&json!("run_start"), &mia)]);
    let tools = world.json(&["status", "--tools"]);
    let names: Vec<_> = tools["tools"].as_array().unwrap().iter().map(|it| &it["tool"]).collect();
    assert_eq!(names, ["run_start", "run_wait", "schedule_create"], "{tools}");
}

#[test]
fn sessions_are_limited_for_each_principal_and_in_total() {
    let mut world = World::new();
    let mut daemon = http_daemon(&mut world);
    let tokens = ["ada", "bob", "eve", "max"].map(|name| world.create_mcp_token(name).1);
    let mut sessions = Vec::new();
    for token in tokens {
        daemon.token = token;
        sessions.push((0..16).map(|_| daemon.open_session()).collect::<Vec<String>>());
        let refused = daemon.initialize();
        assert_eq!(refused.status, 503, "{refused:?}");
        assert_eq!(refused.message()["error"]["code"], "limit_reached", "{refused:?}");
    }
    let last = std::mem::replace(&mut daemon.token, world.create_mcp_token("zoe").1);
    let refused = daemon.initialize();
    assert_eq!(refused.status, 503, "{refused:?}");
    daemon.token = last;
    let sessions = sessions.pop().unwrap();
    // Requests of the modern era need no session, and a closed session makes room.
    assert_eq!(daemon.modern("tools/list", json!({})).status, 200);
    let closed = daemon.close_session(&sessions[0]);
    assert_eq!(closed.status, 204, "{closed:?}");
    daemon.open_session();
}

#[test]
fn session_belongs_to_the_token_that_opened_it() {
    let mut world = World::new();
    let mut daemon = http_daemon(&mut world);
    let session = daemon.open_session();
    let (_, runner) = world.create_token("echo", "runner");
    let maintainer = std::mem::replace(&mut daemon.token, runner);
    let list = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list"});
    let headers = session_headers(&session);
    assert_eq!(daemon.post(&headers, &list).status, 404);
    assert_eq!(daemon.close_session(&session).status, 404);
    assert_eq!(daemon.close_session("no-such-session").status, 404);
    daemon.token = maintainer;
    assert_eq!(daemon.post(&headers, &list).status, 200);
    assert_eq!(daemon.close_session(&session).status, 204);
    assert_eq!(daemon.close_session(&session).status, 404, "the session is closed");
}

#[test]
fn wildcard_accept_header_is_served() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let (headers, body) = modern("tools/list", json!({}));
    for accepted in ["*/*", "application/json, */*;q=0.1"] {
        let mut headers = borrowed(&headers);
        headers.push(("Accept", accepted));
        assert_eq!(daemon.post(&headers, &body).status, 200, "{accepted}");
    }
}

/// A revoked token gets no more notifications, and its stream ends.
#[test]
fn stream_ends_when_its_token_is_revoked() {
    let mut world = World::new();
    // A heartbeat before the revocation would be one more update.
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let daemon = http_daemon(&mut world);
    // The daemon serves before it records its start, which would be one more update, too.
    world.wait_for_event("watch.started");
    let tokens = world.json(&["token", "list"]);
    let token = tokens["tokens"][0]["id"].as_str().unwrap().to_owned();
    let filter = json!({"resourceSubscriptions": ["midwatch://status"]});
    let listen = json!({"notifications": filter});
    let stream = daemon.modern_stream("subscriptions/listen", listen);
    let mut lines = stream.lines().map(|line| line.unwrap());
    let is_update = |line: &String| line.contains("resources/updated");
    assert!(lines.by_ref().any(|line| is_update(&line)), "no first update");
    world.ok(&["token", "revoke", &token]);
    let rest: Vec<String> = lines.collect();
    assert!(!rest.iter().any(is_update), "{rest:?}");
    assert!(rest.iter().any(|line| line.contains("token_invalid")), "{rest:?}");
}

#[test]
fn unknown_session_is_not_found_and_a_restart_loses_no_run() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let session = daemon.open_session();
    let run = daemon.start_run(&daemon.add_schedule());
    let list = json!({"jsonrpc": "2.0", "id": 3, "method": "tools/list"});
    let status = |daemon: &HttpDaemon, session: &str| {
        daemon.post(&[("Mcp-Session-Id", session)], &list).status
    };
    assert_eq!(status(&daemon, &session), 200);
    assert_eq!(status(&daemon, "no-such-session"), 404);
    let token = daemon.token.clone();
    drop(daemon);
    let daemon = HttpDaemon::new(&mut world, token);
    assert_eq!(status(&daemon, &session), 404);
    let session = daemon.open_session();
    assert_eq!(status(&daemon, &session), 200);
    let found = daemon.tool("run_get", json!({"run_id": run}));
    assert_eq!(found["run"]["id"], run, "{found}");
}

#[test]
fn configured_toolsets_are_served_and_limited_to_the_agent_of_the_token() {
    let mut world = World::new();
    world.add_agent("echo");
    world.add_agent("other");
    let (_, token) = world.create_token("echo", "runner");
    world.set("MIDWATCH_HTTP_TOOLSETS", "[\"astra\", \"promptyoself\"]");
    let daemon = HttpDaemon::new(&mut world, token);
    let listed = daemon.modern("tools/list", json!({})).message();
    let names = listed["result"]["tools"].to_string();
    assert!(names.contains("astra.schedule.create") && !names.contains("status_get"), "{names}");
    let health = daemon.tool("astra_health", json!({}));
    assert_eq!(health["ok"], true, "{health}");
    let every = |agent: Value| {
        let mut arguments = json!({"prompt": "p", "every": "1000h"});
        if !agent.is_null() {
            arguments["agent_id"] = agent;
        }
        daemon.tool("promptyoself_schedule_every", arguments)
    };
    assert_eq!(every(Value::Null)["status"], "success");
    let listed = daemon.tool("promptyoself_list", json!({}));
    assert_eq!(listed["schedules"][0]["agent_id"], "echo", "{listed}");
    // It does not learn that the other agent exists.
    assert_eq!(every(json!("other"))["error"], "Agent validation failed: Agent other not found");
}

/// Starts a run under a freeze. Returns it, and a call of `run_wait` that waits for its next change.
fn start_frozen_run(world: &World, daemon: &HttpDaemon) -> (String, Value) {
    let schedule = daemon.add_schedule();
    world.ok(&["freeze", "--reason", "so that it waits"]);
    let run = daemon.start_run(&schedule);
    let cursor = &daemon.tool("run_wait", json!({"run_id": run, "max_wait_s": 0}))["cursor"];
    let wait = call("run_wait", json!({"run_id": run, "cursor": cursor, "max_wait_s": 5}));
    (run, wait)
}

/// Headers and body of a call that requests progress, in the modern and in the legacy era.
fn with_progress<'s>(session: &'s str, call: &Value) -> [(Vec<(&'s str, String)>, Value); 2] {
    let (headers, mut modern) = modern("tools/call", call.clone());
    let mut legacy = json!({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call});
    for body in [&mut modern, &mut legacy] {
        body["params"]["_meta"]["progressToken"] = json!("p");
    }
    let session = session_headers(session).map(|(name, value)| (name, value.to_owned()));
    [(headers, modern), (session.into(), legacy)]
}

#[test]
fn long_call_sends_progress_in_both_eras() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let (_, wait) = start_frozen_run(&world, &daemon);
    for (headers, body) in with_progress(&daemon.open_session(), &wait) {
        let reply = daemon.post(&borrowed(&headers), &body);
        assert!(reply.body.contains("notifications/progress"), "{reply:?}");
        assert_eq!(reply.message()["result"]["isError"], false, "{reply:?}");
    }
}

#[test]
fn disconnecting_or_cancelling_a_call_cancels_no_run() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let (run, mut wait) = start_frozen_run(&world, &daemon);
    wait["arguments"]["max_wait_s"] = json!(25);
    let state = || world.show_run(&run)["state"].clone();
    let session = daemon.open_session();
    let is_progress = |line: &String| line.contains("notifications/progress");
    for (headers, body) in with_progress(&session, &wait) {
        let mut stream = daemon.stream(&borrowed(&headers), &body).lines().map(Result::unwrap);
        assert!(stream.any(|line| is_progress(&line)), "no progress");
        drop(stream);
        assert_eq!(state(), "queued");
    }
    let [_, (headers, mut body)] = with_progress(&session, &wait);
    body["id"] = json!(8);
    let mut stream = daemon.stream(&borrowed(&headers), &body).lines().map(Result::unwrap);
    assert!(stream.any(|line| is_progress(&line)), "no progress");
    let cancelled = json!({
        "jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 8},
    });
    assert_eq!(daemon.post(&borrowed(&headers), &cancelled).status, 202);
    // A cancelled call gets no response.
    let rest: Vec<String> = stream.collect();
    assert!(!rest.iter().any(|line| line.contains("\"result\"")), "{rest:?}");
    assert_eq!(state(), "queued");
    world.ok(&["thaw", "--reason", "on we go"]);
    world.wait_for_state(&run, "done");
}

/// B1 over HTTP: no tool, no method and no response to an elicitation decides.
#[test]
fn no_http_request_approves_freezes_renews_or_changes_policy() {
    let mut world = World::new();
    world.add_agent("echo");
    let toolsets: Vec<&str> = ::mcp::Toolset::ALL.iter().map(|toolset| toolset.name()).collect();
    world.set("MIDWATCH_HTTP_TOOLSETS", json!(toolsets).to_string());
    let (_, assistant) = world.create_mcp_token("mia");
    let (_, runner) = world.create_token("echo", "runner");
    let mut daemon = HttpDaemon::new(&mut world, assistant);
    let (attack, authority) =
        (ApprovalAttack::new(&world), world.json(&["status"])["authority"].clone());
    let session = daemon.open_session();
    attack.send_everything(&mut |method, parameters| {
        let request = json!({"jsonrpc": "2.0", "id": 5, "method": method, "params": parameters});
        daemon.post(&session_headers(&session), &request).message()
    });
    attack.send_everything(&mut |method, parameters| daemon.modern(method, parameters).message());
    daemon.token = runner;
    attack.send_everything(&mut |method, parameters| daemon.modern(method, parameters).message());
    attack.check_nothing_decided(&world, &authority);
    let tokens = world.json(&["token", "list"])["tokens"].as_array().unwrap().len();
    assert_eq!(tokens, 2, "a token was created");
}

/// The configuration of an MCP client is no place for a token that can approve.
#[test]
fn token_that_can_approve_is_refused_and_one_for_mcp_is_not() {
    let mut world = World::new();
    world.add_agent("echo");
    let (_, operator) = world.create_token("mia", "operator");
    let (_, assistant) = world.create_mcp_token("mia");
    let mut daemon = HttpDaemon::new(&mut world, operator.clone());
    let refused = daemon.modern("tools/list", json!({}));
    assert_eq!(refused.status, 403, "{refused:?}");
    let error = refused.message()["error"].clone();
    assert_eq!(error["code"], "token_not_for_mcp", "{error}");
    assert!(error.to_string().contains("token create --for mcp --name mia"), "{error}");
    let recorded = world.events_of("watch.refused");
    assert_eq!(
        (&recorded[0]["body"]["by"], &recorded[0]["body"]["code"]),
        (&json!("mcp:mia"), &json!("token_not_for_mcp")),
        "{recorded:?}"
    );

    daemon.token = assistant.clone();
    assert_eq!(daemon.tool("server_health", json!({}))["ok"], true);
    // It is her assistant everywhere.
    let refused = world.json_as(&assistant, &["freeze"]);
    assert_eq!(refused["error"]["code"], "role_too_low", "{refused}");
    assert!(refused.to_string().contains("mcp:mia"), "{refused}");
    world.create_token("ada", "runner");
    world.refused(&["token", "create", "--name", "ada", "--for", "mcp"], "exists", 4);
}

/// Another process must not answer in the daemon's place at `localhost`.
#[test]
fn port_is_taken_at_both_loopback_addresses() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let port = daemon.address.parse::<SocketAddr>().unwrap().port();
    for address in [IpAddr::V4(Ipv4Addr::LOCALHOST), IpAddr::V6(Ipv6Addr::LOCALHOST)] {
        let taken = TcpListener::bind((address, port)).unwrap_err();
        assert_eq!(taken.kind(), ErrorKind::AddrInUse, "{address}");
    }
}

#[test]
fn observer_token_reads_and_changes_nothing() {
    let mut world = World::new();
    world.add_agent("echo");
    let (_, token) = world.create_token("olga", "observer");
    let daemon = HttpDaemon::new(&mut world, token);
    let health = daemon.tool("server_health", json!({}));
    assert_eq!(health["ok"], true, "{health}");
    let schedule = json!({"name": "x", "agent": "echo", "prompt": "p", "every": "1h"});
    let refused = daemon.tool("schedule_create", schedule);
    assert_eq!(refused["error"]["code"], "role_too_low", "{refused}");
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
}

/// The next message of this method in a stream.
fn next_message(lines: &mut impl Iterator<Item = String>, method: &str) -> Value {
    let messages =
        lines.filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
    messages.into_iter().find(|message: &Value| message["method"] == method).unwrap()
}

#[test]
fn u1_session_gets_updates_of_its_subscriptions() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let session = daemon.open_session();
    let headers = session_headers(&session);
    let mut lines = daemon.session_stream(&session).lines().map(Result::unwrap);
    let subscribe = json!({
        "jsonrpc": "2.0", "id": 2, "method": "resources/subscribe",
        "params": {"uri": "midwatch://status"},
    });
    let subscribed = daemon.post(&headers, &subscribe).message();
    assert!(subscribed.get("error").is_none(), "{subscribed}");
    world.add_agent("more");
    let update = next_message(&mut lines, "notifications/resources/updated");
    assert_eq!(update["params"]["uri"], "midwatch://status", "{update}");
}

#[test]
fn u1_session_with_url_elicitation_is_asked_during_the_call() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let attack = ApprovalAttack::new(&world);
    let session = daemon.open_session_with(json!({"elicitation": {"url": {}}}));
    let headers = session_headers(&session);
    let call = call("approval_call_human", json!({"approval_id": attack.approval}));
    let request = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call});
    let mut lines = daemon.stream(&headers, &request).lines().map(Result::unwrap);
    let elicitation = next_message(&mut lines, "elicitation/create");
    let link = world.json(&["approval", "show", &attack.approval])["approval"]["link"].clone();
    assert_eq!(elicitation["params"]["url"], link, "{elicitation}");
    let reply = json!({"jsonrpc": "2.0", "id": elicitation["id"], "result": {"action": "accept"}});
    assert_eq!(daemon.post(&headers, &reply).status, 202);
    let result = lines.find(|line| line.contains("\"waiting\":true"));
    assert!(result.is_some(), "the call got no result");
    let state = world.json(&["approval", "show", &attack.approval])["approval"]["state"].clone();
    assert_eq!(state, "pending");
}
