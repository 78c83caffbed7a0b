//! A hook is a program that gets a text, sees little, and comes to its end.

use std::collections::BTreeMap;
use std::time::Duration;

use agents::{Given, HOOK_SAID_BYTES_MAX, Hook, Outcome};

use crate::world::{HANGING, World, is_alive, said};

/// A script for `sh` in a directory of its own.
async fn give(world: &World, script: &str, text: &str, time_max: Duration) -> Given {
    let argv = ["sh", "-c", script].map(str::to_owned).to_vec();
    hook(world, argv).give(text, time_max).await
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
async fn it_gets_the_text_and_sees_few_variables() {
    let world = World::new();
    let text = "x".repeat(200_000);
    let given = give(&world, "cat > got; env | cut -d= -f1 | sort; pwd", &text, HANGING).await;
    assert_eq!(given.outcome, Outcome::Done, "{given:?}");
    assert_eq!(std::fs::read_to_string(world.root().join("got")).unwrap(), text);
    assert_eq!(given.said, format!("HOME\nPATH\nPWD\n{}\n", world.root().display()));
}

#[tokio::test]
async fn how_it_failed_is_known_and_the_beginning_of_what_it_said() {
    let world = World::new();
    let given = give(&world, "cat > /dev/null; echo no way >&2; exit 3", "hi", HANGING).await;
    assert_eq!(said(&given.outcome), "exit passing: the program ended with code 3");
    assert_eq!(given.said, "no way\n");
    let given = give(&world, "yes | head -c 1000000", "not read", HANGING).await;
    assert_eq!(given.outcome, Outcome::Done);
    assert_eq!(given.said.len() as u64, HOOK_SAID_BYTES_MAX);
    let given = hook(&world, vec!["/nowhere/at/all".to_owned()]).give("hi", HANGING).await;
    assert!(said(&given.outcome).starts_with("not_started passing: `/nowhere/at/all` cannot"));
}

#[tokio::test]
async fn it_ends_when_its_time_is_over_with_all_that_it_started() {
    let world = World::new();
    let script = "echo $$ >> pids; sleep 1000 & echo $! >> pids; wait";
    let given = give(&world, script, "", Duration::from_secs(1)).await;
    assert!(said(&given.outcome).starts_with("timeout passing"), "{given:?}");
    for pid in world.pids("pids", 2).await {
        crate::world::until(|| !is_alive(pid)).await;
    }
}
