//! People, runs and signatures that the tests of approvals share.

use std::fs;

use serde_json::Value;

use crate::support::world::{World, daily};

/// Appends the id of its run to a file.
const PROGRAM: &str = r#"echo "$MIDWATCH_RUN_ID" >> "$0""#;

/// The document that a command prints for the owner of a token, or for the user of the machine.
pub(crate) fn json_by(world: &World, token: Option<&str>, arguments: &[&str]) -> Value {
    match token {
        Some(token) => world.json_as(token, arguments),
        None => world.json(arguments),
    }
}

/// Adds a person. Returns the secret of their token and the path of their signing key.
pub(crate) fn add_person(
    world: &World,
    by: Option<&str>,
    name: &str,
    role: &str,
) -> (String, String) {
    let file = world.root().join(format!("{name}.key")).display().to_string();
    let made = world.json(&["approval", "key", name, "--out", &file]);
    let key = made["key"]["public"].as_str().unwrap();
    let create = ["token", "create", "--name", name, "--role", role, "--key", key];
    let created = json_by(world, by, &create);
    (created["token"]["secret"].as_str().unwrap_or_else(|| panic!("{created}")).to_owned(), file)
}

/// Adds a tier-2 agent and its schedule, written by this person. Each of its runs appends to `effects`.
pub(crate) fn add_tier_2_schedule(world: &World, by: Option<&str>) -> String {
    let effects = world.root().join("effects").display().to_string();
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2"];
    json_by(world, by, &[&agent[..], &["--", "/bin/sh", "-c", PROGRAM, &effects]].concat());
    let schedule = [&["schedule", "add"], &daily("news", "ada", "tell them")[..]].concat();
    let added = json_by(world, by, &schedule);
    added["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{added}")).to_owned()
}

/// Starts a run that needs approval. Returns the ids of the run and the approval.
pub(crate) fn request_approval(world: &World, schedule: &str) -> (String, String) {
    let run = world.start_run(schedule);
    let approval = world.wait_for_approval(&run);
    (run, approval)
}

/// Signs a pending approval, as `approval show` prints it, with this key.
pub(crate) fn sign(world: &World, approval: &str, key: &str) -> String {
    let shown = world.root().join("shown.json");
    fs::write(&shown, world.ok(&["--json", "approval", "show", approval])).unwrap();
    let signed = world.json(&["approval", "sign", shown.to_str().unwrap(), "--key", key]);
    signed["signature"].as_str().unwrap().to_owned()
}

pub(crate) fn approve_signed<'a>(approval: &'a str, signature: &'a str) -> [&'a str; 5] {
    ["approval", "approve", approval, "--signature", signature]
}

/// The number of runs that took effect.
pub(crate) fn effects(world: &World) -> usize {
    fs::read_to_string(world.root().join("effects")).unwrap_or_default().lines().count()
}

pub(crate) fn code(document: &Value) -> &str {
    document["error"]["code"].as_str().unwrap_or("ok")
}
