//! Attacks on the dashboard. Each test fails when the check that stops its attack is removed.

use std::fs;
use std::io::BufRead;

use serde_json::{Value, json};

use super::client::{Client, FORM, Signed, code_of, enter, link, now_ms};
use crate::support::mcp_http::{HttpDaemon, Reply};
use crate::support::wait::wait_for;
use crate::support::world::World;

fn daemon(world: &mut World) -> HttpDaemon {
    HttpDaemon::new(world, String::new())
}

fn is_frozen(world: &World) -> bool {
    world.json(&["status"])["authority"]["frozen"] != Value::Null
}

/// The error that a script gets.
fn code(reply: &Reply) -> String {
    let answer: Value = serde_json::from_str(&reply.body).unwrap_or_default();
    answer["error"]["code"].as_str().unwrap_or_default().to_owned()
}

/// Every form of the dashboard.
const FORMS: [(&str, &str); 22] = [
    ("/status/seen", "until=2026-11-18T00:00:00Z"),
    ("/approvals/apr_1/decide", "decision=approve&plan_hash=00"),
    ("/schedules/add", "name=x&agent=echo&prompt=p&when=every&every=1h"),
    ("/schedules/night/edit", "name=x"),
    ("/schedules/night/pause", ""),
    ("/schedules/night/resume", ""),
    ("/schedules/night/remove", ""),
    ("/schedules/night/fire", ""),
    ("/runs/run_1/cancel", ""),
    ("/runs/run_1/retry", ""),
    ("/runs/run_1/settle", "state=done"),
    ("/agents/add", "name=mallory&backend=builtin"),
    ("/agents/echo/test", ""),
    ("/freeze", ""),
    ("/thaw", "reason=x"),
    ("/lease", ""),
    ("/tokens/otto/revoke", ""),
    ("/devices/dev_1/revoke", ""),
    ("/notices/test", ""),
    ("/config/reload", ""),
    ("/ledger/checkpoint", ""),
    ("/nowhere", ""),
];

#[test]
fn cookie_alone_does_nothing() {
    let mut world = World::with_agent("echo");
    world.add_daily("night", "echo", "x");
    world.create_token("otto", "operator");
    let daemon = daemon(&mut world);
    let client = Client::new(&daemon, &link(&world));
    assert_eq!(client.get(&daemon, "/").status, 200);
    let before = world.kinds();
    for (path, body) in FORMS {
        let reply = client.send_unsigned(&daemon, path, body);
        assert_eq!(reply.status, 403, "{path}: {reply:?}");
        assert!(reply.body.contains("a cookie is not enough"), "{path}: {reply:?}");
    }
    assert_eq!(world.kinds(), before);
    let frozen = client.send(&daemon, &client.sign("/freeze", ""));
    assert_eq!(frozen.status, 200, "{frozen:?}");
    assert!(is_frozen(&world));
    let events = world.events_of("authority.frozen");
    let user = format!("uid:{}", rustix::process::getuid().as_raw());
    assert_eq!(events[0]["actor"], user.as_str());
}

#[test]
fn proof_is_good_for_one_form() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    let client = Client::new(&daemon, &link(&world));
    let form = client.sign("/lease", "reason=a");
    let changed = [
        ("path", Signed { path: "/freeze".to_owned(), ..form.clone() }),
        ("body", Signed { body: "reason=b".to_owned(), ..form.clone() }),
        ("time", Signed { time_ms: form.time_ms + 1, ..form.clone() }),
        ("nonce", Signed { nonce: "0".repeat(32), ..form.clone() }),
    ];
    for (what, changed) in changed {
        let reply = client.send(&daemon, &changed);
        assert_eq!((reply.status, code(&reply).as_str()), (403, "denied"), "{what}: {reply:?}");
    }
    // Signed by a page of another port, and by another browser.
    let elsewhere = Signed { origin: "http://midwatch.localhost:1".to_owned(), ..form.clone() };
    let elsewhere = client.sign_again(&elsewhere);
    let origin = format!("http://{}", daemon.address);
    assert_eq!(client.send_from(&daemon, &elsewhere, &origin, &[]).status, 403);
    let other = Client::new(&daemon, &link(&world));
    assert_eq!(client.send(&daemon, &other.sign("/freeze", "")).status, 403);
    for minutes in [-6, 6] {
        let at = Signed { time_ms: now_ms() + minutes * 60_000, ..form.clone() };
        let stale = client.send(&daemon, &client.sign_again(&at));
        assert!(stale.status == 403 && stale.body.contains("another time"), "{stale:?}");
    }
    assert_eq!(client.send(&daemon, &form).status, 200);
    let again = client.send(&daemon, &form);
    assert!(again.status == 403 && again.body.contains("sent before"), "{again:?}");
    // The numbers of forms sent before a restart are forgotten.
    let form = client.sign("/lease", "reason=a");
    daemon.kill();
    let daemon = HttpDaemon::new(&mut world, String::new());
    let late = client.send_from(&daemon, &form, &format!("http://{}", daemon.address), &[]);
    assert_eq!(late.status, 403, "{late:?}");
    assert!(!is_frozen(&world));
}

#[test]
fn other_sites_and_hosts_are_refused() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    let client = Client::new(&daemon, &link(&world));
    let port = daemon.address.rsplit(':').next().unwrap();
    let own = format!("http://{}", daemon.address);
    // DNS rebinding: the browser sends the name of the attacker.
    for path in ["/", "/enter", "/live?view=/", "/approvals/apr_1"] {
        let rebound = [("Host", "evil.example"), ("Cookie", client.cookie.as_str())];
        assert_eq!(daemon.request("GET", path, &rebound, "").status, 403, "{path}");
    }
    let other_name = format!("http://localhost:{port}");
    let other_port = format!("http://127.0.0.1:1{port}");
    for origin in ["https://evil.example", "null", &other_name, &other_port] {
        let form = client.sign("/freeze", "");
        let signed = client.sign_again(&Signed { origin: origin.to_owned(), ..form });
        let reply = client.send_from(&daemon, &signed, origin, &[]);
        assert_eq!(reply.status, 403, "{origin}: {reply:?}");
        let headers = [("Host", daemon.address.as_str()), ("Origin", origin), FORM];
        let body = format!("code={}", code_of(&link(&world)));
        assert_eq!(daemon.request("POST", "/enter", &headers, body).status, 403, "{origin}");
    }
    for site in ["cross-site", "same-site", "none"] {
        let more = [("Sec-Fetch-Site", site)];
        let form = client.sign("/freeze", "");
        assert_eq!(client.send_from(&daemon, &form, &own, &more).status, 403, "{site}");
        if site != "none" {
            let live = client.get_with(&daemon, "/live?view=/&after=0", &more);
            assert_eq!(live.status, 403, "{site}");
            let more = [("Sec-Fetch-Site", site), ("Sec-Fetch-Mode", "cors")];
            assert_eq!(client.get_with(&daemon, "/", &more).status, 403, "{site}");
        }
    }
    let twice = client.send_unsigned(&daemon, "/freeze", "reason=a&reason=b");
    assert_eq!(twice.status, 400, "{twice:?}");
    assert!(!is_frozen(&world));
}

#[test]
fn link_works_once() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    let link = link(&world);
    let host = [("Host", daemon.address.as_str())];
    let asked = daemon.request("GET", "/", &host, "");
    assert_eq!((asked.status, asked.header("location")), (303, Some("/enter?to=%2F")));
    let page = daemon.request("GET", "/enter", &host, "");
    assert_eq!((page.status, page.header("cache-control")), (200, Some("no-store")));
    let policy = page.header("content-security-policy").unwrap();
    for part in ["script-src 'self'", "require-trusted-types-for 'script'", "report-uri /csp"] {
        assert!(policy.contains(part), "{policy}");
    }
    Client::new(&daemon, &link);
    let reused = enter(&daemon, code_of(&link), "");
    assert_eq!((reused.status, reused.header("set-cookie")), (401, None), "{reused:?}");
    for guess in ["", "x", "AAAAAAAAAAAAAAAAAAAAAA"] {
        assert_eq!(enter(&daemon, guess, "").status, 401, "{guess}");
    }
    assert_eq!(world.count_events("device.added"), 1);
    assert!(world.kinds().contains(&"watch.refused".to_owned()));
    let key = enter(&daemon, code_of(&self::link(&world)), "no-key");
    assert_eq!(key.status, 400, "{key:?}");
    // Of two cookies none is used: a server on another port of this machine can set one.
    let client = Client::new(&daemon, &self::link(&world));
    let planted = format!("midwatch=planted; {}", client.cookie);
    let both = [("Host", daemon.address.as_str()), ("Cookie", &planted)];
    assert_eq!(daemon.request("GET", "/", &both, "").status, 303);
}

#[test]
fn revoked_device_loses_its_open_stream() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    let client = Client::new(&daemon, &link(&world));
    let (status, stream) = client.live(&daemon, "%2F");
    assert_eq!(status, 200);
    let mut lines = stream.lines().map_while(Result::ok);
    assert!(lines.any(|line| line == "event: beat"), "the stream does not begin");
    let devices = world.json(&["device", "list"]);
    let id = devices["devices"][0]["id"].as_str().unwrap();
    assert_eq!(devices["devices"][0]["browser"], "a browser");
    let form = client.sign("/freeze", "");
    world.ok(&["device", "revoke", id]);
    assert!(lines.any(|line| line == "event: gone"), "the stream goes on");
    assert_eq!(lines.filter(|line| line.starts_with("event:")).count(), 0, "it goes on after that");
    assert_eq!(client.get(&daemon, "/").status, 303);
    assert_eq!(client.get(&daemon, "/live?view=/&after=0").status, 401);
    assert_eq!(client.send(&daemon, &form).status, 401);
    assert!(!is_frozen(&world));
    let ended = world.json(&["device", "list"])["devices"][0]["ended"].clone();
    assert_eq!(ended, "revoked");
}

#[test]
fn device_has_four_streams_at_most() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    let client = Client::new(&daemon, &link(&world));
    let mut open: Vec<_> = (0..4).map(|_| client.live(&daemon, "%2F")).collect();
    assert!(open.iter().all(|(status, _)| *status == 200));
    assert_eq!(client.live(&daemon, "%2F").0, 204);
    assert_eq!(client.get(&daemon, "/").status, 200, "pages still load");
    let other = Client::new(&daemon, &link(&world));
    assert_eq!(other.live(&daemon, "%2F").0, 200, "another device has its own");
    open.pop();
    // When the daemon sees that a connection is closed is not observable.
    wait_for(|| (client.live(&daemon, "%2F").0 == 200).then_some(()));
}

#[test]
fn device_has_no_more_rights_than_its_person() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    // Without a terminal the device can only view.
    let opened = world.json(&["open"]);
    let client = Client::new(&daemon, opened["url"].as_str().unwrap());
    assert_eq!(client.get(&daemon, "/").status, 200);
    for path in ["/freeze", "/lease", "/config/reload"] {
        let refused = client.send(&daemon, &client.sign(path, ""));
        assert_eq!((refused.status, code(&refused).as_str()), (403, "role_too_low"), "{path}");
    }
    // What operators see alone.
    world.create_token("ada", "observer");
    let tokens = client.get(&daemon, "/settings/tokens");
    assert!(!tokens.body.contains("tok_"), "{tokens:?}");
    assert!(tokens.body.contains("operator"), "{tokens:?}");
    let (_, stream) = client.live(&daemon, "%2Fsettings%2Ftokens");
    let lines = stream.lines().map_while(Result::ok);
    let shown: Vec<_> =
        lines.take_while(|line| !["event: beat", "event: gone"].contains(&line.as_str())).collect();
    assert!(shown.iter().all(|line| !line.contains("tok_")), "{shown:?}");

    // A token opens a device of its person, which ends with the token.
    let (id, secret) = world.create_token("otto", "operator");
    world.set("MIDWATCH_TOKEN", &secret);
    let otto = Client::new(&daemon, &link(&world));
    world.set("MIDWATCH_TOKEN", "");
    let thaw = otto.send(&daemon, &otto.sign("/thaw", "reason=x"));
    assert_eq!((thaw.status, code(&thaw).as_str()), (403, "role_too_low"));
    let form = otto.sign("/freeze", "");
    assert_eq!(otto.get(&daemon, "/").status, 200);
    world.ok(&["token", "revoke", &id]);
    assert_eq!(otto.get(&daemon, "/").status, 303);
    assert_eq!(otto.send(&daemon, &form).status, 401);
    assert!(!is_frozen(&world));
}

#[test]
fn token_in_the_form_must_be_that_of_a_person() {
    let mut world = World::with_agent("echo");
    let (_, runner) = world.create_token("robo", "runner");
    let (_, program) = world.create_mcp_token("otto");
    let (_, person) = world.create_token("otto", "operator");
    let daemon = daemon(&mut world);
    let client = Client::new(&daemon, &link(&world));
    for (token, status) in [("mwt_none", 401), (runner.as_str(), 403), (&program, 403)] {
        let reply = client.send_unsigned(&daemon, "/freeze", &format!("token={token}"));
        assert_eq!(reply.status, status, "{token}: {reply:?}");
    }
    assert!(!is_frozen(&world));
    // A token opens no page.
    let bearer = format!("Bearer {person}");
    let headers = [("Host", daemon.address.as_str()), ("Authorization", &bearer)];
    assert_eq!(daemon.request("GET", "/", &headers, "").status, 303);
    // A cookie opens nothing that is for programs.
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).to_string();
    let cookie = [("Host", daemon.address.as_str()), ("Cookie", client.cookie.as_str())];
    assert_eq!(daemon.request("POST", "/mcp", &cookie, body).status, 401);
    let frozen = client.send_unsigned(&daemon, "/freeze", &format!("token={person}"));
    assert_eq!((frozen.status, frozen.header("location")), (303, Some("/freeze")), "{frozen:?}");
    assert!(is_frozen(&world));
    assert_eq!(world.events_of("authority.frozen")[0]["actor"], "otto");
}

/// Shows a page with the cookie that it has found, and asks for a link of its own.
const RUN: &str = r#"
import http.client, subprocess, sys
program, address, cookie, out = sys.argv[1:]
connection = http.client.HTTPConnection(address)
connection.request("GET", "/", headers={"Cookie": cookie})
statuses = [str(connection.getresponse().status)]
connection = http.client.HTTPConnection(address)
connection.request("GET", "/live?view=/&after=0", headers={"Cookie": cookie})
statuses.append(str(connection.getresponse().status))
opened = subprocess.run([program, "--json", "open"], capture_output=True, text=True)
statuses.append("opened" if "/enter#" in opened.stdout else "refused")
with open(out + ".part", "w") as file: file.write(" ".join(statuses))
import os; os.rename(out + ".part", out)
"#;

#[test]
fn run_that_has_found_the_cookie_sees_nothing() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    let client = Client::new(&daemon, &link(&world));
    let out = world.root().join("out");
    let program = crate::support::world::PROGRAM;
    let argv = [RUN, program, &daemon.address, &client.cookie, out.to_str().unwrap()];
    let add = ["agent", "add", "eve", "--backend", "command", "--", "python3", "-c"];
    world.ok(&[&add[..], &argv].concat());
    world.start_run(&world.add_daily("attack", "eve", "hello"));
    let found = wait_for(|| fs::read_to_string(&out).ok());
    assert_eq!(found, "403 403 refused");
    assert_eq!(client.get(&daemon, "/").status, 200);
}

#[test]
fn reports_of_browsers_are_logged() {
    let mut world = World::new();
    let daemon = daemon(&mut world);
    let report = json!({"csp-report": {"violated-directive": "script-src\u{1b}[2J", "blocked-uri": "inline"}});
    let headers = [("Host", daemon.address.as_str()), ("Content-Type", "application/csp-report")];
    assert_eq!(daemon.request("POST", "/csp", &headers, report.to_string()).status, 204);
    let long = "x".repeat(20_000);
    assert_eq!(daemon.request("POST", "/csp", &headers, long).status, 204);
    let log = super::dashboard::log(&world);
    assert!(log.contains("content security policy") && log.contains("inline"), "{log}");
    assert!(!log.contains('\u{1b}'), "{log}");
}
