//! A client that can open a link is asked to open the page where a human decides; what it answers decides nothing.

use serde_json::{Value, json};

use crate::mcp_client::Client;
use crate::world::{Daemon, World, wait_for};

/// A daemon with a page, and the approval for which a run waits.
fn asked() -> (World, Daemon, String) {
    let mut world = World::new();
    world.set("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0");
    let daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let what = ["--daily", "03:00", "--tz", "UTC", "--agent", "ada", "--prompt", "tell them"];
    let added = world.json(&[&["schedule", "add", "--name", "news"], &what[..]].concat());
    world.ok(&["run", "start", added["schedule"]["id"].as_str().unwrap()]);
    let approval = wait_for(|| {
        let listed = world.json(&["approval", "list"]);
        listed["approvals"][0]["id"].as_str().map(str::to_owned)
    });
    (world, daemon, approval)
}

fn link(world: &World, approval: &str) -> Value {
    world.json(&["approval", "show", approval])["approval"]["link"].clone()
}

fn call(approval: &str) -> Value {
    json!({"name": "approval_call_human", "arguments": {"id": approval}})
}

/// What the tool says in the end, whatever the client made of the link.
fn check_told(world: &World, approval: &str, answer: &Value) {
    let told = &answer["result"]["structuredContent"];
    assert_eq!(told["waiting"], true, "{answer}");
    assert_eq!(told["link"], link(world, approval), "{answer}");
    assert_eq!(world.json(&["approval", "show", approval])["approval"]["state"], "pending");
}

fn url() -> Value {
    json!({"elicitation": {"url": {}}})
}

#[test]
fn u1_a_client_of_the_later_era_is_asked_to_open_the_link_and_calls_again() {
    let (world, _daemon, approval) = asked();
    let mut client = Client::modern_with(&world, url());
    let first = client.ask("tools/call", call(&approval));
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let question = &first["result"]["inputRequests"]["human"];
    assert_eq!(question["method"], "elicitation/create", "{first}");
    let shown = &question["params"];
    assert_eq!((&shown["mode"], &shown["url"]), (&"url".into(), &link(&world, &approval)));
    assert!(first["result"].get("requestState").is_none(), "there is no state to forge");
    // The host says yes by itself, and more than it was asked.
    for answer in [
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {"decision": "approve"}}),
    ] {
        let mut again = call(&approval);
        again["inputResponses"] = json!({"human": answer});
        check_told(&world, &approval, &client.ask("tools/call", again));
    }
}

#[test]
fn u1_a_client_of_the_earlier_era_is_asked_to_open_the_link_during_the_call() {
    let (world, _daemon, approval) = asked();
    let mut client = Client::legacy_with(&world, url());
    for answer in ["accept", "decline", "cancel"] {
        let id = client.send("tools/call", call(&approval));
        let question = client.read();
        assert_eq!(question["method"], "elicitation/create", "{question}");
        let shown = &question["params"];
        assert_eq!((&shown["mode"], &shown["url"]), (&"url".into(), &link(&world, &approval)));
        assert_eq!(shown["elicitationId"], approval.as_str(), "{question}");
        let reply = json!({"jsonrpc": "2.0", "id": question["id"], "result": {"action": answer}});
        client.write(&reply.to_string());
        let told = client.read();
        assert_eq!(told["id"], id, "{told}");
        check_told(&world, &approval, &told);
    }
}

#[test]
fn of_an_approval_that_waits_for_nobody_there_is_nothing_to_decide() {
    let (world, _daemon, approval) = asked();
    world.ok(&["approval", "deny", &approval, "--reason", "not now"]);
    let mut client = Client::modern_with(&world, url());
    let told = client.ok("approval_call_human", json!({"id": approval}));
    assert_eq!(told["waiting"], false, "{told}");
    assert!(told.get("approve").is_none() && told.get("link").is_none(), "{told}");
}

#[test]
fn a_client_that_does_not_answer_is_told_all_the_same() {
    let (world, _daemon, approval) = asked();
    let mut client = Client::legacy_with(&world, url());
    let id = client.send("tools/call", call(&approval));
    let question = client.read();
    let error = json!({"code": -32603, "message": "no browser"});
    client.write(&json!({"jsonrpc": "2.0", "id": question["id"], "error": error}).to_string());
    let told = client.read();
    assert_eq!(told["id"], id, "{told}");
    check_told(&world, &approval, &told);
    // Nobody is there; the question stays for whoever comes back.
    let id = client.send("tools/call", call(&approval));
    assert_eq!(client.read()["method"], "elicitation/create");
    let told = client.read();
    assert_eq!(told["id"], id, "nothing is taken back: {told}");
    check_told(&world, &approval, &told);
}

#[test]
fn a_client_that_opens_no_links_is_told_at_once() {
    let (world, daemon, approval) = asked();
    let form = || json!({"elicitation": {"form": {}}});
    for able in [json!({}), form()] {
        let mut client = Client::modern_with(&world, able.clone());
        check_told(&world, &approval, &client.ask("tools/call", call(&approval)));
        let mut client = Client::legacy_with(&world, able);
        check_told(&world, &approval, &client.ask("tools/call", call(&approval)));
    }
    // Without a daemon there is no page, and the commands remain.
    drop(daemon);
    let mut client = Client::modern_with(&world, url());
    let told = client.ask("tools/call", call(&approval));
    let told = &told["result"]["structuredContent"];
    assert!(told.get("link").is_none(), "{told}");
    assert_eq!(told["look"], format!("midwatch approval show {approval}"));
}
