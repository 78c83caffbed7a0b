//! Pages of a list join without gap or overlap.

use api::{Call, Response};
use serde_json::Value;

use crate::support::world::World;

/// All items of a list, page by page, with the sizes of the pages.
fn pages(world: &World, command: &[&str], items: &str, limit: u64) -> (Vec<Value>, Vec<usize>) {
    let (mut found, mut sizes, mut cursor) = (Vec::new(), Vec::new(), None::<String>);
    loop {
        let limit = limit.to_string();
        let mut arguments = [command, &["--limit", &limit]].concat();
        if let Some(cursor) = &cursor {
            arguments.extend(["--cursor", cursor]);
        }
        let page = world.json(&arguments);
        let new = page[items].as_array().unwrap_or_else(|| panic!("{arguments:?}: {page}"));
        sizes.push(new.len());
        found.extend(new.iter().cloned());
        assert!(sizes.len() < 1_000, "too many pages: {page}");
        cursor = match &page["cursor"] {
            Value::Null => return (found, sizes),
            Value::String(cursor) => Some(cursor.clone()),
            // The ledger grows, so its end is an empty page.
            Value::Number(_) if new.is_empty() => return (found, sizes),
            Value::Number(cursor) => Some(cursor.to_string()),
            other => panic!("not a cursor: {other}"),
        };
    }
}

fn check(world: &World) {
    let whole = world.json(&["agent", "list", "--limit", "1000"]);
    assert_eq!(whole["cursor"], Value::Null);
    let whole = whole["agents"].as_array().unwrap();
    assert_eq!(whole.len(), 23);
    for (limit, expected) in [
        (1, vec![1; 23]),
        (10, vec![10, 10, 3]),
        (22, vec![22, 1]),
        (23, vec![23]),
        (24, vec![23]),
        (1_000, vec![23]),
    ] {
        let (found, sizes) = pages(world, &["agent", "list"], "agents", limit);
        assert_eq!((&found, &sizes), (whole, &expected), "{limit}");
    }

    let newest = world.json(&["ledger", "tail", "--limit", "1000"]);
    let newest = newest["events"].as_array().unwrap();
    for limit in [1, 7, 1_000] {
        let tail = ["ledger", "tail", "--cursor", "0"];
        let first = world.json(&[&tail[..], &["--limit", &limit.to_string()]].concat());
        assert_eq!(first["events"][0]["seq"], 1);
        let rest = pages_after(world, &first, limit);
        assert_eq!(&rest, newest, "{limit}");
    }
    let last = world.json(&["ledger", "tail", "--limit", "3"]);
    let last = last["events"].as_array().unwrap();
    assert_eq!(last[..], newest[newest.len() - 3..]);
}

/// The events of a page and of all that follow it.
fn pages_after(world: &World, first: &Value, limit: u64) -> Vec<Value> {
    let (mut found, mut page) = (Vec::new(), first.clone());
    loop {
        let events = page["events"].as_array().unwrap_or_else(|| panic!("{page}"));
        if events.is_empty() {
            return found;
        }
        found.extend(events.iter().cloned());
        let (limit, cursor) = (limit.to_string(), page["cursor"].to_string());
        page = world.json(&["ledger", "tail", "--limit", &limit, "--cursor", &cursor]);
    }
}

#[test]
fn pages_join_without_gap_or_overlap_with_and_without_a_daemon() {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let daemon = world.up();
    for number in 0..25 {
        world.add_agent(&format!("agent-{number}"));
    }
    world.ok(&["agent", "remove", "agent-3"]);
    world.ok(&["agent", "remove", "agent-19"]);
    check(&world);
    drop(daemon);
    check(&world);
}

#[test]
fn cursor_stays_valid_after_its_item_was_removed() {
    let world = World::new();
    for name in ["ada", "bob", "cleo", "dora"] {
        world.add_agent(name);
    }
    let cursor = world.json(&["agent", "list", "--limit", "2"])["cursor"].clone();
    world.ok(&["agent", "remove", cursor.as_str().unwrap()]);
    let next = world.json(&["agent", "list", "--cursor", cursor.as_str().unwrap()]);
    let names: Vec<&str> =
        next["agents"].as_array().unwrap().iter().map(|it| it["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["cleo", "dora"]);
}

/// The list is longer than one frame of the daemon's socket.
#[test]
fn list_longer_than_a_frame_is_paged() {
    let world = World::new();
    let daemon = world.up();
    let names: Vec<String> = (100..260).map(|number| format!("agent-{number}")).collect();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let socket = super::idempotency::connect(&world).await;
        for name in &names {
            let request = api::AgentAdd {
                name: name.clone(),
                backend: "command".into(),
                settings: api::AgentSettings {
                    argv: vec!["x".repeat(32_000)],
                    ..api::AgentSettings::default()
                },
                look: false,
            };
            let answer = api::Handle::call(&socket, Call::new(request)).await;
            assert!(matches!(answer, Ok(Response::AgentAdd(_))), "{answer:?}");
        }
    });
    let (found, _) = pages(&world, &["agent", "list"], "agents", 1_000);
    let found: Vec<&str> = found.iter().map(|agent| agent["name"].as_str().unwrap()).collect();
    assert_eq!(found, names);
    let first = world.json(&["ledger", "tail", "--cursor", "0", "--limit", "1000"]);
    assert_eq!(pages_after(&world, &first, 1_000).len(), names.len() + 2);
    drop(daemon);
}
