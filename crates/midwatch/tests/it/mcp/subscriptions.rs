//! Subscriptions to the resources of the MCP server.

use serde_json::{Value, json};

use crate::support::mcp_stdio::{Client, add_schedule, create_schedule, start_run, wait_for_end};
use crate::support::world::World;

#[test]
fn unknown_resources_cannot_be_subscribed_to() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    for uri in ["midwatch://schedule/sch_none", "midwatch://run/run_none/events", "midwatch://x"] {
        let response = client.request("resources/subscribe", json!({"uri": uri}));
        assert!(response.get("error").is_some(), "{uri}: {response}");
    }
    let mut client = Client::modern(&world, &[]);
    let status = "midwatch://status";
    let many: Vec<String> = (0..33).map(|n| format!("midwatch://run/run_{n}")).collect();
    for uris in
        [json!(["midwatch://schedule/sch_none"]), json!([status, "midwatch://x"]), json!(many)]
    {
        let filter = json!({"resourceSubscriptions": uris});
        let response = client.request("subscriptions/listen", json!({"notifications": filter}));
        assert!(response.get("error").is_some(), "{uris}: {response}");
    }
    // A request to listen stays open, so their number is limited.
    let filter = json!({"notifications": {"resourceSubscriptions": [status]}});
    for _ in 0..16 {
        client.send("subscriptions/listen", filter.clone());
    }
    let response = client.request("subscriptions/listen", filter);
    let message = response["error"]["message"].as_str().unwrap();
    assert!(message.contains("limit of 16 listening requests"), "{response}");
}

/// Subscribes to resources. In the modern era each of them gets an update at once.
fn subscribe(client: &mut Client, uris: &[String]) {
    if client.modern {
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        client.send("subscriptions/listen", filter);
        let acknowledged = client.read();
        assert!(acknowledged["method"].as_str().unwrap().contains("acknowledged"));
        return wait_for_updates(client, uris);
    }
    for uri in uris {
        let subscribed = client.request("resources/subscribe", json!({"uri": uri}));
        assert!(subscribed.get("error").is_none(), "{subscribed}");
    }
}

/// Reads until each of these resources had an update.
fn wait_for_updates(client: &Client, uris: &[String]) {
    let mut awaited: Vec<&String> = uris.iter().collect();
    while !awaited.is_empty() {
        let read = client.read();
        assert_eq!(read["method"], "notifications/resources/updated", "{read}");
        awaited.retain(|uri| read["params"]["uri"] != **uri);
    }
}

#[test]
fn subscriber_gets_updates_of_a_schedule_in_both_eras() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    for start in [Client::legacy, Client::modern] {
        let mut client = start(&world, &[]);
        let id = add_schedule(&mut client);
        let uris = [format!("midwatch://schedule/{id}"), "midwatch://status".to_owned()];
        subscribe(&mut client, &uris);
        for change in ["pause", "resume"] {
            world.ok(&["schedule", change, &id]);
            wait_for_updates(&client, &uris);
        }
    }
}

#[test]
fn subscriber_gets_updates_of_a_run_and_its_events() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    for (key, start) in ["legacy", "modern"].into_iter().zip([Client::legacy, Client::modern]) {
        let mut client = start(&world, &[]);
        let id = add_schedule(&mut client);
        world.ok(&["freeze", "--reason", "so that it waits"]);
        let run = start_run(&mut client, &id, key);
        let uris = [format!("midwatch://run/{run}"), format!("midwatch://run/{run}/events")];
        subscribe(&mut client, &uris);
        world.ok(&["thaw", "--reason", "on we go"]);
        wait_for_updates(&client, &uris);
    }
}

#[test]
fn unsubscribed_resource_sends_no_more_updates() {
    let world = World::with_agent("echo");
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let id = add_schedule(&mut client);
    let [own, status] = [format!("midwatch://schedule/{id}"), "midwatch://status".to_owned()];
    subscribe(&mut client, &[own.clone(), status.clone()]);
    world.ok(&["schedule", "pause", &id]);
    wait_for_updates(&client, &[own.clone(), status.clone()]);
    let ended = client.request("resources/unsubscribe", json!({"uri": own}));
    assert!(ended.get("error").is_none(), "{ended}");
    // An update of the schedule would arrive before those of the later changes.
    for change in ["resume", "pause", "resume"] {
        world.ok(&["schedule", change, &id]);
        let read = client.read();
        assert_eq!(read["params"]["uri"], status, "{read}");
    }
}

#[test]
fn agent_reads_and_subscribes_only_to_its_own_resources() {
    let mut world = World::with_agent("echo");
    world.add_agent("ada");
    let (_, token) = world.create_token("ada", "runner");
    let other = world.add_daily("not-hers", "echo", "x");
    let _daemon = world.up();
    let others_events = format!("midwatch://run/{}/events", world.start_run(&other));
    world.set("MIDWATCH_TOKEN", token);
    for (key, start) in ["legacy", "modern"].into_iter().zip([Client::legacy, Client::modern]) {
        let mut ada = start(&world, &[]);
        let schedule = json!({"name": key, "agent": "ada", "prompt": "hi", "every": "9h"});
        let own = &create_schedule(&mut ada, schedule);
        let run = start_run(&mut ada, own, key);
        wait_for_end(&mut ada, &run);
        let uri = format!("midwatch://run/{run}/events");
        let read = ada.request("resources/read", json!({"uri": uri}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        let document: Value = serde_json::from_str(text).unwrap();
        let kinds = document["events"].as_array().unwrap().iter().map(|event| &event["kind"]);
        assert_eq!(kinds.collect::<Vec<_>>(), ["run.queued", "run.started", "run.ended"]);
        let read = ada.request("resources/read", json!({"uri": others_events}));
        assert!(read["error"]["message"].as_str().unwrap().contains("does not exist"), "{read}");

        let uris = [format!("midwatch://schedule/{own}"), "midwatch://status".to_owned()];
        subscribe(&mut ada, &uris);
        let subscription = ada.last_id;
        world.ok(&["schedule", "pause", own]);
        wait_for_updates(&ada, &uris);
        // Removing the schedule ends the subscription with an error.
        world.ok(&["schedule", "remove", own]);
        if ada.modern {
            let mut messages = std::iter::repeat_with(|| ada.read());
            let end = messages.find(|message| message["id"] == subscription).unwrap();
            assert_eq!(end["error"]["data"]["error"]["code"], "not_found", "{end}");
        }
    }
}
