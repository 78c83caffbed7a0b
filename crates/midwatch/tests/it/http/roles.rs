//! Every route with every kind of caller: what each of them may do.

use std::fmt::Write;
use std::fs;

use api::{Method, Route};
use serde_json::{Value, json};

use super::client::ApiClient;
use crate::support::mcp_http::HttpDaemon;
use crate::support::wait::wait_for;
use crate::support::world::World;

/// A request of this route that is valid and finds nothing to change, where there is one.
fn sample(route: &Route) -> (String, String) {
    let path = route.path.replace("{id}", id_of(route)).replace("{name}", "nobody");
    let instant = "2026-01-01T00:00:00Z";
    let body = match route.name {
        "status.seen" => json!({"until": instant}),
        "agent.add" => json!({"name": "nobody", "backend": "none"}),
        "schedule.add" => json!({
            "name": "x", "when": {"every": "1h"}, "dry_run": true,
            "action": {"agent": "nobody", "prompt": "p"},
        }),
        "schedule.add_all" => json!({"schedules": []}),
        "schedule.backfill" => json!({"from": instant, "to": instant}),
        "event.tell" => json!({"name": "nothing/here"}),
        "run.settle" => json!({"state": "done"}),
        "approval.decide" => json!({"decision": "deny"}),
        "policy.decide" => json!({"capability": "run.start"}),
        "policy.replay" => json!({"since": instant}),
        "cleanup" => json!({"dry_run": true}),
        "token.create" => json!({"name": "zed", "role": "observer", "hash": "none"}),
        _ => json!({}),
    };
    let query = match route.name {
        "policy.explain" => "?run=run_00000000000000000000000000",
        _ => "",
    };
    let body = if route.method.has_body() { body.to_string() } else { String::new() };
    (format!("{path}{query}"), body)
}

fn id_of(route: &Route) -> &'static str {
    match route.path.split('/').nth(1) {
        Some("runs") => "run_00000000000000000000000000",
        Some("approvals") => "apr_00000000000000000000000000",
        Some("tokens") => "tok_00000000000000000000000000",
        _ => "sch_00000000",
    }
}

fn headers(route: &Route) -> &'static [(&'static str, &'static str)] {
    match route.method {
        Method::PATCH => &[("If-Match", "\"v1\"")],
        Method::GET | Method::POST | Method::DELETE => &[],
    }
}

/// A program of a run that makes requests with the token of an operator.
const PROGRAM: &str = r#"
import http.client, json, os, sys
address, token, requests, out = sys.argv[1:5]
statuses = []
for method, path, body in json.load(open(requests)):
    connection = http.client.HTTPConnection(address)
    headers = {"Authorization": "Bearer " + token, "If-Match": '"v1"'}
    if body:
        headers["Content-Type"] = "application/json"
    connection.request(method, "/api/v1" + path, body or None, headers)
    statuses.append(connection.getresponse().status)
json.dump(statuses, open(out + ".part", "w"))
os.rename(out + ".part", out)
"#;

/// Statuses of the same requests from a program of a run.
fn statuses_in_a_run(world: &World, daemon: &HttpDaemon, token: &str) -> Vec<u16> {
    let [program, requests, out] =
        ["program.py", "requests.json", "out.json"].map(|name| world.root().join(name));
    fs::write(&program, PROGRAM).unwrap();
    let all: Vec<Value> = Route::all()
        .map(|route| {
            let (path, body) = sample(route);
            json!([route.method.as_str(), path, body])
        })
        .chain([json!(["GET", "/events", ""]), json!(["GET", "/openapi.json", ""])])
        .collect();
    fs::write(&requests, json!(all).to_string()).unwrap();
    let text = |path: &std::path::PathBuf| path.to_str().unwrap().to_owned();
    let argv =
        [text(&program), daemon.address.clone(), token.to_owned(), text(&requests), text(&out)];
    let add = ["agent", "add", "eve", "--backend", "command", "--tier", "1", "--", "python3"];
    let argv: Vec<&str> = argv.iter().map(String::as_str).collect();
    world.ok(&[&add[..], &argv].concat());
    let schedule = world.add_daily("escape", "eve", "go");
    world.start_run(&schedule);
    let statuses = wait_for(|| fs::read_to_string(&out).ok());
    serde_json::from_str(&statuses).unwrap()
}

/// The table below is the answer to "who may do what over HTTP". 401 and 403 are refusals of the caller; another status says
/// that the caller got as far as the request itself.
#[test]
fn every_route_with_every_role() {
    let mut world = World::new();
    world.add_agent("echo");
    let tokens = [
        None,
        Some("mwt_none".to_owned()),
        Some(world.create_token("olga", "observer").1),
        Some(world.create_token("echo", "runner").1),
        Some(world.create_mcp_token("mia").1),
        Some(world.create_token("otto", "operator").1),
        Some(world.create_token("maya", "maintainer").1),
    ];
    let daemon = HttpDaemon::new(&mut world, String::new());
    let operator = tokens[5].clone().unwrap();
    let in_run = statuses_in_a_run(&world, &daemon, &operator);
    let columns: Vec<Vec<String>> = tokens
        .iter()
        .map(|token| {
            let api = ApiClient::new(&daemon.address, token.as_deref());
            let mut statuses: Vec<String> = Route::all()
                .map(|route| {
                    // It would stop the daemon for those who may; see the test below.
                    let may_stop = [&tokens[5], &tokens[6]].contains(&token);
                    if route.name == "daemon.stop" && may_stop {
                        return "-".to_owned();
                    }
                    let (path, body) = sample(route);
                    api.send(route.method.as_str(), &path, headers(route), &body).status.to_string()
                })
                .collect();
            statuses.extend(["/events", "/openapi.json"].map(|it| api.get(it).status.to_string()));
            statuses
        })
        .collect();
    let routes = Route::all().map(|it| format!("{} {}", it.method, it.path));
    let routes = routes.chain(["GET /events".to_owned(), "GET /openapi.json".to_owned()]);
    let mut table = String::new();
    let head = ["none", "wrong", "observer", "agent", "mcp", "operator", "maintainer", "run"];
    writeln!(table, "{:<34}{}", "", head.map(|it| format!("{it:>11}")).concat()).unwrap();
    for (index, route) in routes.enumerate() {
        write!(table, "{route:<34}").unwrap();
        for column in &columns {
            write!(table, "{:>11}", column[index]).unwrap();
        }
        writeln!(table, "{:>11}", in_run[index]).unwrap();
        assert!([401, 403].contains(&in_run[index]), "a run may {route}");
        assert_eq!((&*columns[0][index], &*columns[1][index]), ("401", "401"), "{route}");
    }
    insta::assert_snapshot!("roles", table);
}

#[test]
fn an_operator_stops_the_daemon_and_a_revoked_token_does_nothing() {
    let mut world = World::new();
    world.add_agent("echo");
    let (id, token) = world.create_token("otto", "operator");
    let daemon = HttpDaemon::new(&mut world, String::new());
    let (_, other) = world.create_token("olaf", "operator");
    let revoked = ApiClient::new(&daemon.address, Some(&token));
    assert_eq!(revoked.get("/status").status, 200);
    world.ok(&["token", "revoke", &id]);
    // On the same connection, whose process was already looked at.
    assert_eq!(revoked.get("/status").problem(), (401, "token_invalid".to_owned()));
    let api = ApiClient::new(&daemon.address, Some(&other));
    assert_eq!(api.post("/daemon/stop", &json!({})).status, 200);
}
