//! `/metrics`: who may read it, and what it shows after known events.

use std::collections::BTreeMap;

use crate::support::mcp_http::{HttpDaemon, Reply};
use crate::support::world::World;

/// Scrapes with these headers besides the host.
fn scrape(daemon: &HttpDaemon, method: &str, token: Option<&str>) -> Reply {
    let bearer = token.map(|token| format!("Bearer {token}"));
    let mut headers = vec![("Host", daemon.address.as_str())];
    headers.extend(bearer.as_deref().map(|bearer| ("Authorization", bearer)));
    daemon.request(method, "/metrics", &headers, "")
}

/// The samples of a scrape: name with labels, and value. Every line must be valid, and every sample belong to the family
/// before it.
fn parse(text: &str) -> BTreeMap<String, f64> {
    let mut samples = BTreeMap::new();
    let (mut family, mut kind) = ("", "");
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# HELP ") {
            assert!(rest.split_once(' ').is_some_and(|(_, help)| help.ends_with('.')), "{line}");
            continue;
        }
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            (family, kind) = rest.split_once(' ').unwrap();
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            continue;
        }
        let (series, value) = line.rsplit_once(' ').unwrap_or_else(|| panic!("{line}"));
        let name = series.split('{').next().unwrap();
        let suffix = name.strip_prefix(family).unwrap_or_else(|| panic!("{line} in {family}"));
        let suffixes: &[&str] = match kind {
            "histogram" => &["_bucket", "_sum", "_count"],
            _ => &[""],
        };
        assert!(suffixes.contains(&suffix), "{line} in {family}");
        let value: f64 = value.parse().unwrap_or_else(|_| panic!("{line}"));
        assert!(samples.insert(series.to_owned(), value).is_none(), "{line} is repeated");
    }
    samples
}

fn samples(daemon: &HttpDaemon, token: &str) -> BTreeMap<String, f64> {
    let reply = scrape(daemon, "GET", Some(token));
    assert_eq!(reply.status, 200, "{reply:?}");
    assert_eq!(reply.header("content-type"), Some("text/plain; version=0.0.4; charset=utf-8"));
    parse(&reply.body)
}

#[test]
fn only_holders_of_an_observers_or_a_higher_token_read_the_metrics() {
    let mut world = World::with_agent("echo");
    let (_, assistant) = world.create_mcp_token("mia");
    let daemon = HttpDaemon::new(&mut world, assistant.clone());
    let [observer, runner, operator, maintainer] =
        [("eve", "observer"), ("echo", "runner"), ("ola", "operator"), ("max", "maintainer")]
            .map(|(name, role)| world.create_token(name, role).1);
    let nowhere = daemon.request("GET", "/nowhere", &[("Host", &daemon.address)], "");
    for (method, token, status) in [
        ("GET", None, 401),
        ("POST", None, 401),
        ("GET", Some("mw_nonsense"), 401),
        ("GET", Some(runner.as_str()), 403),
        ("GET", Some(&assistant), 403),
        ("GET", Some(&observer), 200),
        ("HEAD", Some(&observer), 200),
        ("GET", Some(&operator), 200),
        ("GET", Some(&maintainer), 200),
        ("POST", Some(&observer), 404),
    ] {
        let reply = scrape(&daemon, method, token);
        assert_eq!(reply.status, status, "{method} {token:?}");
        if token.is_none() {
            assert_eq!(reply.body, nowhere.body, "{method}");
        }
        assert_eq!(reply.body.contains("midwatch_"), status == 200 && method == "GET", "{method}");
    }
    let foreign = [("Host", "evil.example"), ("Authorization", &format!("Bearer {observer}"))];
    assert_eq!(daemon.request("GET", "/metrics", &foreign, "").status, 403);
    // The unknown token, the agent and the assistant; no refusal of a reader goes unrecorded.
    assert_eq!(world.count_events("watch.refused"), 3);
}

#[test]
fn a_scrape_shows_what_happened_and_names_no_object() {
    let mut world = World::with_agent("echo");
    let daemon = HttpDaemon::new(&mut world, String::new());
    let (_, token) = world.create_token("zoe", "observer");
    let before = samples(&daemon, &token);
    let runs = r#"midwatch_runs_total{outcome="done",backend="builtin",tier="0"}"#;
    assert_eq!(before[runs], 0.0, "a series exists before its first event");
    let schedule = world.add_daily("secret plan", "echo", "hello");
    for _ in 0..2 {
        let run = world.start_run(&schedule);
        world.wait_for_state(&run, "done");
    }
    world.ok(&["freeze"]);
    let after = samples(&daemon, &token);
    for (series, expected) in [
        (runs, 2.0),
        (r#"midwatch_slots_total{disposition="ran",trigger="manual"}"#, 2.0),
        (r#"midwatch_policy_decisions_total{verdict="allow",posture="staging"}"#, 2.0),
        (r#"midwatch_run_duration_seconds_count{outcome="done",backend="builtin",tier="0"}"#, 2.0),
        (r#"midwatch_runs{state="queued"}"#, 0.0),
        ("midwatch_frozen", 1.0),
        ("midwatch_log_check_ok", 1.0),
        ("midwatch_slot_overdue_oldest_seconds", 0.0),
    ] {
        assert_eq!(after.get(series), Some(&expected), "{series}");
    }
    let version = env!("CARGO_PKG_VERSION");
    let build = format!(r#"midwatch_build_info{{version="{version}",posture="staging"}}"#);
    assert_eq!(after.get(&build), Some(&1.0));
    let entries = world.verified()["entries"].as_f64().unwrap();
    assert!(after["midwatch_log_entries_total"] <= entries);
    assert!(before["midwatch_log_entries_total"] < after["midwatch_log_entries_total"]);
    for name in ["midwatch_store_commit_seconds_count", "midwatch_store_commit_batch_count"] {
        assert!(0.0 < after[&format!(r#"{name}{{engine="sqlite"}}"#)], "{name}");
    }
    for series in after.keys() {
        for text in ["secret", "echo", "zoe", &schedule] {
            assert!(!series.contains(text), "{series} contains `{text}`");
        }
    }
}
