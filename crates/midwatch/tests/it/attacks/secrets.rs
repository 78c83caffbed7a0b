//! What an agent can read has no credential of a person.

use std::fs;

use crate::approvals::setup::{add_tier_2_schedule, request_approval};
use crate::support::world::World;

/// Prints what the program can find: its own and the daemon's variables, command lines, and every file of the data
/// directory.
const SEARCH: &str = r#"
env
for process in $$ $PPID; do tr '\0' '\n' < /proc/$process/environ; tr '\0' ' ' < /proc/$process/cmdline; done
find "$1" -type f -exec cat {} +
echo searched
"#;

#[test]
fn b3_program_finds_no_token_of_a_person() {
    let mut world = World::new();
    world.set("MIDWATCH_LOG_LEVEL", "trace");
    world.add_agent("echo");
    let (_, secret) = world.create_token("ada", "maintainer");
    let script = world.root().join("search.sh");
    fs::write(&script, SEARCH).unwrap();
    let daemon = world.up();
    // The token is used for a decision, so it has been everywhere that a token goes.
    let schedule = add_tier_2_schedule(&world, Some(&secret));
    let (run, approval) = request_approval(&world, &schedule);
    let plan = world.plan_hash(&approval);
    let approve = ["approval", "approve", &approval, "--plan", &plan];
    assert_eq!(world.code_as(&secret, &approve), "ok");
    world.wait_for_state(&run, "done");

    let program = ["--", "sh", script.to_str().unwrap(), world.data().to_str().unwrap()];
    world.ok(&[&["agent", "add", "eve", "--backend", "command"], &program[..]].concat());
    let run = world.start_run(&world.add_daily("search", "eve", "hello"));
    let output = world.wait_for_state(&run, "done")["output"].clone();
    let bytes = fs::read(output["file"].as_str().unwrap()).unwrap();
    let found = String::from_utf8_lossy(&bytes);
    assert!(found.trim_end().ends_with("searched"), "the search was cut off");
    assert!(found.contains("MIDWATCH_RUN_ID="), "the search has no variables");
    // The output is redacted too, so look at the files themselves.
    assert!(!found.contains(&secret));
    assert!(!found.contains("mwt_[redacted]"), "a token was found and redacted");
    daemon.stop();
    let files = crate::access::secrets::files_with(world.root(), &secret, &[]);
    assert_eq!(files, Vec::<String>::new());
}
