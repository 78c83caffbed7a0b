//! A hook gets a text, few variables, and a time limit.

use std::collections::BTreeMap;
use std::time::Duration;

use agents::{HOOK_OUTPUT_BYTES_MAX, Hook, HookResult, Outcome};

use crate::world::{HANG_TIMEOUT, World, describe, is_running};

/// Runs a script for `sh` in the world's directory.
async fn run_hook(world: &World, script: &str, text: &str, time_max: Duration) -> HookResult {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    hook(world, argv).run(text, time_max).await
}

fn hook(world: &World, argv: Vec<String>) -> Hook {
    let home = world.root().to_str().unwrap().to_owned();
    let environment: BTreeMap<String, String> = [
        ("HOME", home.as_str()),
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("SECRET", "hidden"),
        ("MIDWATCH_RUN_ID", "run-7"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into();
    Hook::new(argv, &environment)
}

#[tokio::test]
async fn hook_gets_the_text_and_few_variables() {
    let world = World::new();
    let text = "x".repeat(200_000);
    let result =
        run_hook(&world, "cat > got; env | cut -d= -f1 | sort; pwd", &text, HANG_TIMEOUT).await;
    assert_eq!(result.outcome, Outcome::Done, "{result:?}");
    assert_eq!(std::fs::read_to_string(world.root().join("got")).unwrap(), text);
    assert_eq!(result.output, format!("HOME\nPATH\nPWD\n{}\n", world.root().display()));
}

#[tokio::test]
async fn hook_result_has_failure_and_beginning_of_output() {
    let world = World::new();
    let result =
        run_hook(&world, "cat > /dev/null; echo no way >&2; exit 3", "hi", HANG_TIMEOUT).await;
    assert_eq!(describe(&result.outcome), "exit transient: the program exited with code 3");
    assert_eq!(result.output, "no way\n");
    let result = run_hook(&world, "yes | head -c 1000000", "not read", HANG_TIMEOUT).await;
    assert_eq!(result.outcome, Outcome::Done);
    assert_eq!(result.output.len() as u64, HOOK_OUTPUT_BYTES_MAX);
    let result = hook(&world, vec!["/nowhere/at/all".to_owned()]).run("hi", HANG_TIMEOUT).await;
    assert!(
        describe(&result.outcome).starts_with("not_started transient: `/nowhere/at/all` cannot")
    );
}

#[tokio::test]
async fn hook_and_its_children_are_killed_at_the_time_limit() {
    let world = World::new();
    let script = "echo $$ >> pids; sleep 1000 & echo $! >> pids; wait";
    let result = run_hook(&world, script, "", Duration::from_secs(1)).await;
    assert!(describe(&result.outcome).starts_with("timeout transient"), "{result:?}");
    for pid in world.pids("pids", 2).await {
        crate::world::until(|| !is_running(pid)).await;
    }
}
