//! What the program of a run may do with the command line.

use serde_json::{Value, json};

use crate::support::world::{PROGRAM, World};

/// Runs a shell script as the program of an agent. Returns the ended run.
fn run_script(world: &World, script: &str) -> Value {
    world.ok(&["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", script]);
    let add = ["--agent", "smith", "--prompt", "go", "--attempts", "1", "--every", "30d"];
    let schedule = world.add_schedule(&[&["--name", "maker"], &add[..]].concat());
    let run = world.start_run(&schedule);
    world.wait_for_run(&run, |run| ["done", "failed"].contains(&run["state"].as_str().unwrap()))
}

#[test]
fn run_may_add_ten_schedules_and_change_nothing_else() {
    let world = World::new();
    let midwatch = format!("{} --data {}", PROGRAM, world.data().display());
    let script = format!(
        "for n in 1 2 3 4 5 6 7 8 9 10 11; do
             {midwatch} schedule add --name made-$n --every 1h --agent smith --prompt hello --json
         done
         {midwatch} schedule pause sch_00000000
         {midwatch} agent remove smith
         {midwatch} status"
    );
    world.add_agent("ada");
    let daemon = world.up();
    let run = run_script(&world, &script);
    let output = run["output"]["text"].as_str().unwrap();
    assert_eq!(run["state"], "done", "{output}");
    assert!(output.contains("a run may add at most 10 schedules"), "{output}");
    assert!(output.contains("schedule `sch_00000000` does not exist"), "{output}");
    assert_eq!(output.matches("needs the role `operator`").count(), 1, "{output}");
    let listed = world.json(&["schedule", "list"])["schedules"].clone();
    let made = listed.as_array().unwrap().iter().filter(|it| it["made_by"].is_object());
    let made: Vec<&Value> = made.collect();
    assert_eq!(made.len(), 10, "{listed}");
    assert_eq!(made[0]["made_by"], json!({"run": run["id"], "agent": "smith"}));
    drop(daemon);

    // The same without a daemon; an operator has no such limit.
    let mut command = world.command();
    command.env("MIDWATCH_RUN_ID", run["id"].as_str().unwrap());
    let removed = command.args(["schedule", "remove", made[0]["id"].as_str().unwrap()]).output();
    assert_eq!(removed.unwrap().status.code(), Some(4));
    world.ok(&["schedule", "remove", made[0]["id"].as_str().unwrap()]);
    // The run of another installation is unknown here, so its variable has no effect.
    let mut command = world.command();
    command.env("MIDWATCH_RUN_ID", "run_00000000000000000000000000000001");
    let removed = command.args(["schedule", "remove", made[1]["id"].as_str().unwrap()]).output();
    assert_eq!(removed.unwrap().status.code(), Some(0));
    world.verified();
}
