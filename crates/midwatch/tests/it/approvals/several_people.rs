//! Rules that need several people to approve, and limits on how often an agent asks them.

use std::fs;

use ledger::SigningKey;
use serde_json::json;

use super::setup::{add_person, add_tier_2_schedule, code, effects, request_approval};
use crate::support::world::World;

const TWO_PERSONS: &str = r#"
[[rule]]
id = "two"
ask = ["agent.prompt"]
tier = [2]
persons = 2
match = [{ capability = "agent.prompt", tier = 2 }]
not_match = [{ capability = "agent.prompt", tier = 1 }]
"#;

#[test]
fn two_people_cannot_register_the_same_key() {
    let world = World::new();
    world.add_agent("echo");
    let create = |name: &str| {
        let key = SigningKey::from_seed(name, [7; 32]).unwrap().verifying_key().to_text();
        world.json(&["token", "create", "--name", name, "--role", "operator", "--key", &key])
    };
    let first = create("ada")["token"]["id"].as_str().unwrap().to_owned();
    let second = create("ada")["token"]["id"].as_str().unwrap().to_owned();
    let refused = create("bob");
    assert_eq!(code(&refused), "exists", "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("`ada`"), "{refused}");
    for id in [first, second] {
        world.ok(&["token", "revoke", &id]);
    }
    assert!(create("bob")["token"]["id"].is_string());
}

#[test]
fn two_approvers_must_be_different_people() {
    let world = World::new();
    world.add_agent("echo");
    let (eve, _) = add_person(&world, None, "eve", "operator");
    fs::write(world.data().join("policy.toml"), TWO_PERSONS).unwrap();
    let daemon = world.up();
    let (ada, _) = add_person(&world, None, "ada", "operator");
    let (bob, _) = add_person(&world, None, "bob", "operator");
    let schedule = add_tier_2_schedule(&world, Some(&eve));
    let (run, approval) = request_approval(&world, &schedule);
    let plan = world.plan_hash(&approval);
    let approve = ["approval", "approve", &approval, "--plan", &plan];
    assert_eq!(code(&world.json_as(&eve, &approve)), "role_too_low", "she wrote the schedule");
    assert_eq!(code(&world.json(&approve)), "role_too_low", "the local user is not a named person");
    let first = world.json_as(&ada, &approve);
    assert_eq!((&first["changed"], &first["approval"]["state"]), (&json!(true), &json!("pending")));
    let again = world.json_as(&ada, &approve);
    assert_eq!(
        (&again["changed"], &again["approval"]["assents"]),
        (&json!(false), &json!(["ada"]))
    );
    let told = world.command().args(approve).env("MIDWATCH_TOKEN", &ada).output().unwrap();
    let expected = format!("you have already approved `{approval}`: 1 of 2 so far\n");
    assert_eq!(String::from_utf8(told.stdout).unwrap(), expected);
    daemon.kill();
    let daemon = world.up();
    assert_eq!(
        (effects(&world), world.show_run(&run)["state"].clone()),
        (0, json!("waiting_permission"))
    );
    let second = world.json_as(&bob, &approve);
    assert_eq!(
        (&second["changed"], &second["approval"]["state"]),
        (&json!(true), &json!("approved"))
    );
    world.wait_for_state(&run, "done");
    assert_eq!(effects(&world), 1);
    assert_eq!(world.count_events("approval.assented"), 1);
    daemon.stop();
    world.verified();
}

#[test]
fn agent_over_its_limit_of_approval_requests_is_cancelled() {
    let mut world = World::new();
    world.set("MIDWATCH_APPROVAL_PENDING_PER_AGENT", "2");
    world.set("MIDWATCH_APPROVAL_ASKS_PER_AGENT", "3");
    let _daemon = world.up();
    world.ok(&["agent", "add", "ada", "--backend", "builtin", "--tier", "2"]);
    let add = |number| world.add_daily(&format!("news {number}"), "ada", "hello");
    let schedules: Vec<String> = (0..4).map(add).collect();
    let run_of = |number: usize| {
        let run = world.start_run(&schedules[number]);
        world.wait_for_run(&run, |run| run["state"] != "queued")
    };
    let (first, second, third) = (run_of(0), run_of(1), run_of(2));
    assert_eq!(
        (&first["state"], &second["state"]),
        (&json!("waiting_permission"), &json!("waiting_permission"))
    );
    let over_limit = (&json!("cancelled"), &json!("asked_too_much"));
    assert_eq!((&third["state"], &third["reason"]), over_limit, "{third}");
    world.ok(&["approval", "deny", first["approval_id"].as_str().unwrap()]);
    assert_eq!(run_of(2)["state"], "waiting_permission");
    world.ok(&["approval", "deny", second["approval_id"].as_str().unwrap()]);
    let fourth = run_of(3);
    assert_eq!((&fourth["state"], &fourth["reason"]), over_limit, "{fourth}");
}
