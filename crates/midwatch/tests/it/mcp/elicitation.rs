//! `approval_call_human`: a client that can open links is asked to open the approval page; its response decides
//! nothing.

use serde_json::{Value, json};

use crate::support::mcp_stdio::Client;
use crate::support::world::{Daemon, World};

/// A daemon that serves the approval page, and a pending approval.
fn request_approval() -> (World, Daemon, String) {
    let mut world = World::new();
    world.set("MIDWATCH_HTTP_LISTEN", "127.0.0.1:0");
    let daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let run = world.start_run(&world.add_daily("news", "ada", "tell them"));
    let approval = world.wait_for_approval(&run);
    (world, daemon, approval)
}

fn link(world: &World, approval: &str) -> Value {
    world.json(&["approval", "show", approval])["approval"]["link"].clone()
}

fn call(approval: &str) -> Value {
    json!({"name": "approval_call_human", "arguments": {"approval_id": approval}})
}

/// Checks the result of the tool: the approval is still pending, and the link names its page.
fn check_result(world: &World, approval: &str, response: &Value) {
    let result = &response["result"]["structuredContent"];
    assert_eq!(result["waiting"], true, "{response}");
    assert_eq!(result["link"], link(world, approval), "{response}");
    assert_eq!(world.json(&["approval", "show", approval])["approval"]["state"], "pending");
}

/// The capability of a client that can open links.
fn url() -> Value {
    json!({"elicitation": {"url": {}}})
}

#[test]
fn u1_modern_client_is_asked_to_open_the_link_and_calls_again() {
    let (world, _daemon, approval) = request_approval();
    let mut client = Client::modern_with(&world, url());
    let first = client.request("tools/call", call(&approval));
    assert_eq!(first["result"]["resultType"], "input_required", "{first}");
    let elicitation = &first["result"]["inputRequests"]["human"];
    assert_eq!(elicitation["method"], "elicitation/create", "{first}");
    let shown = &elicitation["params"];
    assert_eq!((&shown["mode"], &shown["url"]), (&"url".into(), &link(&world, &approval)));
    assert!(first["result"].get("requestState").is_none(), "a client could forge the state");
    // The client accepts by itself, and claims a decision.
    for response in [
        json!({"action": "accept"}),
        json!({"action": "accept", "content": {"decision": "approve"}}),
    ] {
        let mut again = call(&approval);
        again["inputResponses"] = json!({"human": response});
        check_result(&world, &approval, &client.request("tools/call", again));
    }
}

#[test]
fn u1_legacy_client_is_asked_to_open_the_link_during_the_call() {
    let (world, _daemon, approval) = request_approval();
    let mut client = Client::legacy_with(&world, url());
    for action in ["accept", "decline", "cancel"] {
        let id = client.send("tools/call", call(&approval));
        let elicitation = client.read();
        assert_eq!(elicitation["method"], "elicitation/create", "{elicitation}");
        let shown = &elicitation["params"];
        assert_eq!((&shown["mode"], &shown["url"]), (&"url".into(), &link(&world, &approval)));
        assert_eq!(shown["elicitationId"], approval.as_str(), "{elicitation}");
        let reply =
            json!({"jsonrpc": "2.0", "id": elicitation["id"], "result": {"action": action}});
        client.write(&reply.to_string());
        let response = client.read();
        assert_eq!(response["id"], id, "{response}");
        check_result(&world, &approval, &response);
    }
}

#[test]
fn decided_approval_has_no_link() {
    let (world, _daemon, approval) = request_approval();
    world.ok(&["approval", "deny", &approval, "--reason", "not now"]);
    let mut client = Client::modern_with(&world, url());
    let result = client.ok("approval_call_human", json!({"approval_id": approval}));
    assert_eq!(result["waiting"], false, "{result}");
    assert!(result.get("approve").is_none() && result.get("link").is_none(), "{result}");
}

#[test]
fn client_that_does_not_respond_still_gets_the_result() {
    let (world, _daemon, approval) = request_approval();
    let mut client = Client::legacy_with(&world, url());
    let id = client.send("tools/call", call(&approval));
    let elicitation = client.read();
    let error = json!({"code": -32603, "message": "no browser"});
    client.write(&json!({"jsonrpc": "2.0", "id": elicitation["id"], "error": error}).to_string());
    let response = client.read();
    assert_eq!(response["id"], id, "{response}");
    check_result(&world, &approval, &response);
    // The client does not respond at all; the elicitation is not withdrawn.
    let id = client.send("tools/call", call(&approval));
    assert_eq!(client.read()["method"], "elicitation/create");
    let response = client.read();
    assert_eq!(response["id"], id, "the elicitation was withdrawn: {response}");
    check_result(&world, &approval, &response);
}

#[test]
fn client_without_url_elicitation_gets_the_result_at_once() {
    let (world, daemon, approval) = request_approval();
    let form = || json!({"elicitation": {"form": {}}});
    for capabilities in [json!({}), form()] {
        let mut client = Client::modern_with(&world, capabilities.clone());
        check_result(&world, &approval, &client.request("tools/call", call(&approval)));
        let mut client = Client::legacy_with(&world, capabilities);
        check_result(&world, &approval, &client.request("tools/call", call(&approval)));
    }
    // Without a daemon there is no page, only the commands.
    drop(daemon);
    let mut client = Client::modern_with(&world, url());
    let response = client.request("tools/call", call(&approval));
    let result = &response["result"]["structuredContent"];
    assert!(result.get("link").is_none(), "{result}");
    assert_eq!(result["look"], format!("midwatch approval show {approval}"));
}
