//! Resources of the MCP server that clients read and follow.

use serde_json::{Value, json};

use crate::mcp_client::{Client, ended, schedule, world};
use crate::world::wait_for;

#[test]
fn what_cannot_be_read_cannot_be_subscribed_to() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    for uri in ["midwatch://schedule/sch_none", "midwatch://run/run_none/events", "midwatch://x"] {
        let answer = client.ask("resources/subscribe", json!({"uri": uri}));
        assert!(answer.get("error").is_some(), "{uri}: {answer}");
    }
    let mut client = Client::modern(&world, &[]);
    let status = "midwatch://status";
    let many: Vec<String> = (0..33).map(|n| format!("midwatch://run/run_{n}")).collect();
    for uris in
        [json!(["midwatch://schedule/sch_none"]), json!([status, "midwatch://x"]), json!(many)]
    {
        let filter = json!({"resourceSubscriptions": uris});
        let answer = client.ask("subscriptions/listen", json!({"notifications": filter}));
        assert!(answer.get("error").is_some(), "{uris}: {answer}");
    }
    // Each listens for as long as it wants, so there are not many.
    let filter = json!({"notifications": {"resourceSubscriptions": [status]}});
    for _ in 0..16 {
        client.send("subscriptions/listen", filter.clone());
    }
    let answer = client.ask("subscriptions/listen", filter);
    assert!(answer["error"]["message"].as_str().unwrap().contains("16 requests"), "{answer}");
}

/// Asks for news of these. In the later era that there may be some is the first of them.
fn follow(client: &mut Client, uris: &[String]) {
    if client.modern {
        let filter = json!({"notifications": {"resourceSubscriptions": uris}});
        client.send("subscriptions/listen", filter);
        let acknowledged = client.read();
        assert!(acknowledged["method"].as_str().unwrap().contains("acknowledged"));
        return hear(client, uris);
    }
    for uri in uris {
        let subscribed = client.ask("resources/subscribe", json!({"uri": uri}));
        assert!(subscribed.get("error").is_none(), "{subscribed}");
    }
}

/// Reads until there was news of each of these.
fn hear(client: &Client, uris: &[String]) {
    let mut awaited: Vec<&String> = uris.iter().collect();
    while !awaited.is_empty() {
        let read = client.read();
        assert_eq!(read["method"], "notifications/resources/updated", "{read}");
        awaited.retain(|uri| read["params"]["uri"] != **uri);
    }
}

#[test]
fn news_of_what_happens_come_to_whoever_subscribed_in_both_eras() {
    let world = world();
    let _daemon = world.up();
    for start in [Client::legacy, Client::modern] {
        let mut client = start(&world, &[]);
        let id = schedule(&mut client);
        let uris = [format!("midwatch://schedule/{id}"), "midwatch://status".to_owned()];
        follow(&mut client, &uris);
        for change in ["pause", "resume"] {
            world.ok(&["schedule", change, &id]);
            hear(&client, &uris);
        }
    }
}

#[test]
fn news_of_a_run_and_of_its_events_come_as_it_goes_on() {
    let world = world();
    let _daemon = world.up();
    for (key, start) in ["legacy", "modern"].into_iter().zip([Client::legacy, Client::modern]) {
        let mut client = start(&world, &[]);
        let id = schedule(&mut client);
        world.ok(&["freeze", "--reason", "so that it waits"]);
        let asked = json!({"schedule_id": id, "idempotency_key": key});
        let run = client.ok("run_start", asked)["run"]["id"].as_str().unwrap().to_owned();
        let uris = [format!("midwatch://run/{run}"), format!("midwatch://run/{run}/events")];
        follow(&mut client, &uris);
        world.ok(&["thaw", "--reason", "on we go"]);
        hear(&client, &uris);
    }
}

#[test]
fn whoever_unsubscribes_hears_no_more_of_it() {
    let world = world();
    let _daemon = world.up();
    let mut client = Client::legacy(&world, &[]);
    let id = schedule(&mut client);
    let [own, status] = [format!("midwatch://schedule/{id}"), "midwatch://status".to_owned()];
    follow(&mut client, &[own.clone(), status.clone()]);
    world.ok(&["schedule", "pause", &id]);
    hear(&client, &[own.clone(), status.clone()]);
    let ended = client.ask("resources/unsubscribe", json!({"uri": own}));
    assert!(ended.get("error").is_none(), "{ended}");
    // What there is to hear of the first change is heard before the last.
    for change in ["resume", "pause", "resume"] {
        world.ok(&["schedule", change, &id]);
        let read = client.read();
        assert_eq!(read["params"]["uri"], status, "{read}");
    }
}

#[test]
fn an_agent_hears_and_reads_of_what_is_its_own() {
    let mut world = world();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let token = world.json(&["token", "create", "--role", "runner", "--name", "ada"]);
    let add = ["schedule", "add", "--name", "not-hers", "--agent", "echo", "--prompt", "x"];
    let other = world.json(&[&add[..], &["--every", "9h"]].concat());
    let other = other["schedule"]["id"].as_str().unwrap().to_owned();
    let _daemon = world.up();
    let others_run = world.json(&["run", "start", &other])["run"]["id"].clone();
    let others_events = format!("midwatch://run/{}/events", others_run.as_str().unwrap());
    world.set("MIDWATCH_TOKEN", token["token"]["secret"].as_str().unwrap());
    for (key, start) in ["legacy", "modern"].into_iter().zip([Client::legacy, Client::modern]) {
        let mut ada = start(&world, &[]);
        let asked = json!({"name": key, "agent": "ada", "prompt": "hi", "every": "9h"});
        let own = ada.ok("schedule_create", asked)["schedule"]["id"].clone();
        let asked = json!({"schedule_id": own, "idempotency_key": key});
        let run = ada.ok("run_start", asked)["run"]["id"].as_str().unwrap().to_owned();
        ended(&mut ada, &run);
        let uri = format!("midwatch://run/{run}/events");
        let read = ada.ask("resources/read", json!({"uri": uri}));
        let text = read["result"]["contents"][0]["text"].as_str().unwrap();
        let told: Value = serde_json::from_str(text).unwrap();
        let kinds = told["events"].as_array().unwrap().iter().map(|event| &event["kind"]);
        assert_eq!(kinds.collect::<Vec<_>>(), ["run.queued", "run.started", "run.ended"]);
        let read = ada.ask("resources/read", json!({"uri": others_events}));
        assert!(read["error"]["message"].as_str().unwrap().contains("there is no run"), "{read}");

        let own = own.as_str().unwrap();
        let uris = [format!("midwatch://schedule/{own}"), "midwatch://status".to_owned()];
        follow(&mut ada, &uris);
        let listening = ada.last_id;
        world.ok(&["schedule", "pause", own]);
        hear(&ada, &uris);
        // There is no more news of what is gone, and that is said.
        world.ok(&["schedule", "remove", own]);
        if ada.modern {
            let end = wait_for(|| Some(ada.read()).filter(|read| read["id"] == listening));
            assert_eq!(end["error"]["data"]["error"]["code"], "not_found", "{end}");
        }
    }
}
