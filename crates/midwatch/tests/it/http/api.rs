//! The HTTP API: what a client of it sees.

use serde_json::{Value, json};

use super::client::ApiClient;
use crate::support::mcp_http::{HttpDaemon, http_daemon};
use crate::support::world::World;

/// A daemon, and a client with the token of an operator.
fn operator(world: &mut World) -> (HttpDaemon, ApiClient) {
    let daemon = http_daemon(world);
    let (_, token) = world.create_token("otto", "operator");
    let client = ApiClient::new(&daemon.address, Some(&token));
    (daemon, client)
}

fn schedule(name: &str) -> Value {
    json!({
        "name": name, "when": {"every": "1000h"}, "action": {"agent": "echo", "prompt": "hi"},
    })
}

#[test]
fn a_person_does_over_http_what_the_command_line_does() {
    let mut world = World::new();
    let (daemon, api) = operator(&mut world);
    let added = api.post("/schedules", &schedule("brief")).ok();
    let id = added["schedule"]["id"].as_str().unwrap();
    assert_eq!(added["created"], true, "{added}");
    // What it prints is what `--json` prints.
    let shown = api.get(&format!("/schedules/{id}")).ok();
    assert_eq!(shown["schedule"], world.json(&["schedule", "show", id])["schedule"]);
    assert_eq!(api.get("/schedules/brief").ok()["schedule"], shown["schedule"], "by its name");
    let started = api.post(&format!("/schedules/{id}/fire"), &json!({})).ok();
    let run = started["run"]["id"].as_str().unwrap();
    world.wait_for_state(run, "done");
    let watched = api.send("POST", &format!("/runs/{run}/watch"), &[], "").ok();
    assert_eq!(watched["run"]["state"], "done", "{watched}");
    let runs = api.get("/runs?state=done&limit=10").ok();
    assert_eq!(runs["runs"][0]["id"], *run, "{runs}");
    assert_eq!(api.send("DELETE", &format!("/schedules/{id}"), &[], "").status, 200);
    assert_eq!(api.get("/schedules").ok()["schedules"], json!([]));
    // The person is the actor, not an assistant.
    assert_eq!(world.events_of("schedule.removed")[0]["actor"], "otto");
    drop(daemon);
    world.verified();
}

#[test]
fn bad_requests_are_problems_with_stable_codes() {
    let mut world = World::new();
    let (daemon, api) = operator(&mut world);
    let agent = json!({"name": "ada", "backend": "builtin"}).to_string();
    let json = ("Content-Type", "application/json");
    let long = format!("{{\"note\": \"{}\"}}", "x".repeat(1 << 20));
    for (method, path, headers, body, status, code) in [
        ("GET", "/nowhere", &[][..], "", 404, "not_found"),
        ("GET", "/schedules/sch_00000000", &[], "", 404, "not_found"),
        ("DELETE", "/schedules", &[], "", 405, "invalid_input"),
        ("GET", "/schedules", &[("Accept", "text/html")], "", 406, "invalid_input"),
        ("GET", "/schedules?limit=x", &[], "", 400, "invalid_input"),
        ("GET", "/schedules?limit=0", &[], "", 400, "invalid_input"),
        ("GET", "/schedules?limit=1&limit=1", &[], "", 400, "invalid_input"),
        ("GET", "/schedules?more=1", &[], "", 400, "invalid_input"),
        ("GET", "/schedules?cursor=x", &[], "", 400, "invalid_input"),
        ("GET", "/schedules", &[], "{}", 400, "invalid_input"),
        ("GET", "/schedules/%ff", &[], "", 400, "invalid_input"),
        ("POST", "/agents", &[], "", 400, "invalid_input"),
        ("POST", "/ledger/exports", &[], r#"{"dir": "exports"}"#, 400, "invalid_input"),
        ("POST", "/agents", &[], "not json", 400, "invalid_input"),
        ("POST", "/agents", &[], "[]", 400, "invalid_input"),
        ("POST", "/agents", &[], r#"{"name": "a", "name": "b"}"#, 400, "invalid_input"),
        ("POST", "/agents?name=ada", &[], &agent, 400, "invalid_input"),
        ("POST", "/agents", &[("Content-Type", "text/plain")], &agent, 415, "invalid_input"),
        ("POST", "/agents", &[json, json], &agent, 400, "invalid_input"),
        ("POST", "/authority/freeze", &[], &long, 413, "invalid_input"),
        ("POST", "/authority/thaw", &[], "", 403, "role_too_low"),
        ("POST", "/agents", &[("Idempotency-Key", "two words")], &agent, 400, "invalid_input"),
        ("GET", "/agents", &[("Idempotency-Key", "k")], "", 400, "invalid_input"),
        ("GET", "/agents", &[("If-Match", "\"v1\"")], "", 400, "invalid_input"),
    ] {
        let reply = api.send(method, path, headers, body);
        let found = reply.problem();
        assert_eq!(found, (status, code.to_owned()), "{method} {path} {headers:?}: {reply:?}");
    }
    assert_eq!(api.send("DELETE", "/schedules", &[], "").header("allow"), Some("GET,HEAD,POST"));
    assert_eq!(world.agents(), ["echo"], "a refused request changed something");
    // A request that carries a cookie and no token is nobody's.
    let nobody = ApiClient::new(&daemon.address, None);
    let cookie = format!("token={}", daemon.token);
    let refused = nobody.send("GET", "/status", &[("Cookie", &cookie)], "");
    assert_eq!(refused.problem(), (401, "token_invalid".to_owned()));
    assert_eq!(refused.header("www-authenticate"), Some("Bearer"));
    let foreign = nobody.send("GET", "/status", &[("Origin", "http://evil.example")], "");
    assert_eq!(foreign.problem(), (403, "denied".to_owned()));
}

#[test]
fn a_request_with_the_same_key_is_done_once() {
    let mut world = World::new();
    let (_daemon, api) = operator(&mut world);
    let id = api.post("/schedules", &schedule("brief")).ok()["schedule"]["id"].clone();
    let path = format!("/schedules/{}/fire", id.as_str().unwrap());
    let key = [("Idempotency-Key", "report-1")];
    let first = api.send("POST", &path, &key, "");
    assert_eq!(first.header("idempotent-replayed"), None, "{first:?}");
    let again = api.send("POST", &path, &key, "");
    assert_eq!(again.header("idempotent-replayed"), Some("true"), "{again:?}");
    assert_eq!(first.ok()["run"]["id"], again.ok()["run"]["id"]);
    assert_eq!(world.count_events("run.queued"), 1);
    // For another request, the key is taken.
    let other = api.send("POST", "/schedules", &key, &schedule("other").to_string());
    assert_eq!(other.problem(), (409, "key_taken".to_owned()));
}

#[test]
fn an_edit_names_the_version_that_it_changes() {
    let mut world = World::new();
    let (_daemon, api) = operator(&mut world);
    let id = api.post("/schedules", &schedule("brief")).ok()["schedule"]["id"].clone();
    let names = |name: &str| json!({"name": name}).to_string();
    let prices = |price: &str| json!({"price_run": price}).to_string();
    for (path, edits) in [
        (format!("/schedules/{}", id.as_str().unwrap()), ["one", "two", "three"].map(names)),
        ("/agents/echo".to_owned(), ["0.1", "0.2", "0.3"].map(prices)),
    ] {
        let [first, second, third] = &edits;
        let edit = |tag: &str, body: &str| api.send("PATCH", &path, &[("If-Match", tag)], body);
        let tag = api.get(&path).header("etag").unwrap().to_owned();
        let without = api.send("PATCH", &path, &[], first);
        assert_eq!(without.problem(), (428, "version_needed".to_owned()));
        for invalid in ["*", "v1", "\"1\"", "W/\"v1\"", "\"v1\", \"v2\""] {
            assert_eq!(edit(invalid, first).problem().0, 400, "{invalid}");
        }
        let edited = edit(&tag, first);
        let new = edited.header("etag").unwrap_or_else(|| panic!("{edited:?}")).to_owned();
        assert_ne!(new, tag, "{edited:?}");
        // The version that was read is gone.
        assert_eq!(edit(&tag, second).problem(), (412, "stale".to_owned()));
        assert_eq!(api.get(&path).header("etag"), Some(&*new), "a stale edit changed it");
        assert_eq!(edit(&new, third).status, 200);
        // An edit that is repeated with its key is made once, though it made its version stale.
        let tag = api.get(&path).header("etag").unwrap().to_owned();
        let headers = [("If-Match", tag.as_str()), ("Idempotency-Key", path.as_str())];
        let made = api.send("PATCH", &path, &headers, first);
        let repeated = api.send("PATCH", &path, &headers, first);
        assert_eq!(repeated.header("idempotent-replayed"), Some("true"), "{repeated:?}");
        assert_eq!(repeated.header("etag"), made.header("etag"), "{repeated:?}");
    }
}

/// Of edits that read the same version, one is made.
#[test]
fn concurrent_edits_of_one_version_are_not_lost() {
    let mut world = World::new();
    let (daemon, api) = operator(&mut world);
    let added = api.post("/schedules", &schedule("brief")).ok();
    let path = format!("/schedules/{}", added["schedule"]["id"].as_str().unwrap());
    let (_, token) = world.create_token("olaf", "operator");
    for round in 0..5 {
        let tag = api.get(&path).header("etag").unwrap().to_owned();
        let statuses: Vec<u16> = std::thread::scope(|scope| {
            let edits: Vec<_> = (0..6)
                .map(|index| {
                    let (path, tag, token, address) = (&path, &tag, &token, &daemon.address);
                    scope.spawn(move || {
                        let api = ApiClient::new(address, Some(token));
                        let body = json!({"name": format!("n{round}-{index}")}).to_string();
                        api.send("PATCH", path, &[("If-Match", tag)], &body).status
                    })
                })
                .collect();
            edits.into_iter().map(|edit| edit.join().unwrap()).collect()
        });
        let made = statuses.iter().filter(|status| **status == 200).count();
        assert_eq!(made, 1, "{statuses:?}");
        let others = statuses.iter().filter(|status| [412, 409].contains(*status)).count();
        assert_eq!(others, 5, "{statuses:?}");
    }
    assert_eq!(world.count_events("schedule.changed"), 5);
}

#[test]
fn lists_say_at_which_position_they_were_read() {
    let mut world = World::new();
    let (_daemon, api) = operator(&mut world);
    for name in ["one", "two", "three"] {
        assert_eq!(api.post("/schedules", &schedule(name)).status, 200);
    }
    let page = api.get("/schedules?limit=2&by_id=true").ok();
    assert_eq!(page["schedules"].as_array().unwrap().len(), 2);
    let rest = format!("/schedules?limit=2&by_id=true&cursor={}", page["cursor"].as_str().unwrap());
    assert_eq!(api.get(&rest).ok()["schedules"].as_array().unwrap().len(), 1);
    let at = page["at"].as_u64().unwrap();
    assert_eq!(at, world.events().last().unwrap()["seq"].as_u64().unwrap());
    assert_eq!(api.post("/schedules", &schedule("four")).status, 200);
    let after = api.get(&format!("/events?after={at}")).ok();
    let kinds: Vec<_> = after["events"].as_array().unwrap().iter().map(|it| &it["kind"]).collect();
    assert!(kinds.contains(&&json!("schedule.added")), "{after}");
}

#[test]
fn probes_need_no_token_and_say_whether_it_can_write() {
    let mut world = World::new();
    let daemon = http_daemon(&mut world);
    let host = [("Host", daemon.address.as_str())];
    for (path, text) in [("/healthz", "alive\n"), ("/readyz", "ready\n")] {
        let reply = daemon.request("GET", path, &host, "");
        assert_eq!((reply.status, reply.body.as_str()), (200, text), "{reply:?}");
    }
    daemon.kill();
    // What an earlier process writes that found damage. The daemon verifies it, so the damage must be there.
    world.alter_database("UPDATE entry SET actor = 'somebody' WHERE seq = 2");
    std::fs::write(world.data().join("damaged"), "entry 2 was changed").unwrap();
    let daemon = HttpDaemon::new(&mut world, String::new());
    let host = [("Host", daemon.address.as_str())];
    assert_eq!(daemon.request("GET", "/healthz", &host, "").status, 200);
    let reply = daemon.request("GET", "/readyz", &host, "");
    assert_eq!((reply.status, &*reply.body), (503, "not ready: log_damaged\n"), "{reply:?}");
}

#[test]
fn requests_of_one_caller_are_limited_and_stops_are_not() {
    let mut world = World::new();
    let (daemon, api) = operator(&mut world);
    let limited = (0..2_000).map(|_| api.get("/agents/echo")).find(|reply| reply.status != 200);
    let limited = limited.expect("reads are not limited");
    assert_eq!(limited.problem(), (429, "limit_reached".to_owned()));
    assert_eq!(limited.header("retry-after"), Some("1"), "{limited:?}");
    assert_eq!(api.post("/authority/freeze", &json!({})).status, 200);
    let other = ApiClient::new(&daemon.address, Some(&daemon.token));
    assert_eq!(other.get("/agents/echo").status, 200, "another caller is limited, too");
}

#[test]
fn the_document_of_all_routes_is_served() {
    let mut world = World::new();
    let (_daemon, api) = operator(&mut world);
    let document = api.get("/openapi.json").ok();
    assert_eq!(document, api::openapi::document());
    assert_eq!(document["openapi"], "3.1.0");
}
