//! A tier that a person gave the schedules of an agent, or with calls of a tool, cannot be avoided by writing another one.

use serde_json::{Value, json};

use crate::support::mcp_stdio::Client;
use crate::support::world::World;

/// Adds a schedule as the user of the machine. Returns its id.
fn add(world: &World, flags: &[&str]) -> String {
    let answer = world.json(&[&["schedule", "add", "--every", "9h"], flags].concat());
    answer["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

fn check(action: &Value, flags: &[&str]) {
    let world = World::with_agent("echo");
    let (_, token) = world.create_token("echo", "runner");
    let daemon = world.up();
    let create = |name: &str, tier: Option<u8>| {
        let mut arguments = action.clone();
        arguments["name"] = json!(name);
        arguments["every"] = json!("8h");
        arguments["tier"] = json!(tier);
        arguments
    };
    let mut assistant = Client::modern(&world, &[]);
    assistant.ok("schedule_create", create("before", None));
    let named = |name| [flags, &["--name", name]].concat();
    let guarded = add(&world, &[&*named("guarded"), &["--tier", "2"]].concat());
    assert_eq!(assistant.refused("schedule_create", create("below", None)), "tier_too_low");
    assert_eq!(assistant.refused("schedule_create", create("below", Some(1))), "tier_too_low");
    assistant.ok("schedule_create", create("equal", Some(2)));
    // Neither an agent nor a restart is a way around it.
    let own = [&["schedule", "add", "--every", "7h"][..], &named("own")].concat();
    let refused = if action["tool"].is_null() { "tier_too_low" } else { "role_too_low" };
    assert_eq!(world.code_as(&token, &own), refused);
    drop(assistant);
    daemon.kill();
    let _daemon = world.up();
    let mut assistant = Client::modern(&world, &[]);
    assert_eq!(assistant.refused("schedule_create", create("below", None)), "tier_too_low");
    // A person may, and ends it.
    add(&world, &named("by-person"));
    world.ok(&["schedule", "edit", &guarded, "--unset", "tier"]);
    assistant.ok("schedule_create", create("below", None));
    assert_eq!(world.rebuild_differences(), 0);
}

#[test]
fn assistant_cannot_avoid_the_tier_that_a_person_gave_an_agents_schedule() {
    let prompt = json!({ "agent": "echo", "prompt": "x" });
    check(&prompt, &["--agent", "echo", "--prompt", "x"]);
}

#[test]
fn assistant_cannot_avoid_the_tier_that_a_person_gave_a_scheduled_tool_call() {
    let call = json!({ "tool": "schedule_list", "payload": {} });
    check(&call, &["--tool", "schedule_list", "--payload", "{}"]);
}
