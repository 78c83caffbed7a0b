//! What a program may do that a run has started.

use serde_json::{Value, json};

use crate::world::{World, wait_for};

/// An agent whose program is this shell script, and a run of it that has ended.
fn run(world: &World, script: &str) -> Value {
    world.ok(&["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", script]);
    let add = ["--agent", "smith", "--prompt", "go", "--attempts", "1", "--every", "30d"];
    let added = world.json(&[&["schedule", "add", "--name", "maker"], &add[..]].concat());
    let id = added["schedule"]["id"].as_str().unwrap().to_owned();
    let started = world.json(&["run", "start", &id]);
    let run = started["run"]["id"].as_str().unwrap();
    wait_for(|| {
        let run = world.json(&["run", "show", run])["run"].clone();
        ["done", "failed"].contains(&run["state"].as_str().unwrap()).then_some(run)
    })
}

#[test]
fn a_run_adds_few_schedules_and_may_do_nothing_else() {
    let world = World::new();
    let midwatch = format!("{} --data {}", env!("CARGO_BIN_EXE_midwatch"), world.data().display());
    let script = format!(
        "for n in 1 2 3 4 5 6 7 8 9 10 11; do
             {midwatch} schedule add --name made-$n --every 1h --agent smith --prompt hello --json
         done
         {midwatch} schedule pause sch_00000000
         {midwatch} agent remove smith
         {midwatch} status"
    );
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let daemon = world.up();
    let run = run(&world, &script);
    let said = run["output"]["text"].as_str().unwrap();
    assert_eq!(run["state"], "done", "{said}");
    assert!(said.contains("a run adds at most 10 schedules"), "{said}");
    assert_eq!(said.matches("needs the role `operator`").count(), 2, "{said}");
    let listed = world.json(&["schedule", "list"])["schedules"].clone();
    let made = listed.as_array().unwrap().iter().filter(|it| it["made_by"].is_object());
    let made: Vec<&Value> = made.collect();
    assert_eq!(made.len(), 10, "{listed}");
    assert_eq!(made[0]["made_by"], json!({"run": run["id"], "agent": "smith"}));
    drop(daemon);

    // Nor without a daemon, and a human is not held to it.
    let mut command = world.command();
    command.env("MIDWATCH_RUN_ID", run["id"].as_str().unwrap());
    let removed = command.args(["schedule", "remove", made[0]["id"].as_str().unwrap()]).output();
    assert_eq!(removed.unwrap().status.code(), Some(4));
    world.ok(&["schedule", "remove", made[0]["id"].as_str().unwrap()]);
    // A run of another watch is nobody here.
    let mut command = world.command();
    command.env("MIDWATCH_RUN_ID", "run_00000000000000000000000000000001");
    let removed = command.args(["schedule", "remove", made[1]["id"].as_str().unwrap()]).output();
    assert_eq!(removed.unwrap().status.code(), Some(0));
    world.verified();
}
