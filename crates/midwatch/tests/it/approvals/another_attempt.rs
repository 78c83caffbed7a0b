//! An approved run that fails: what it did is not hidden by the question about another attempt, or by its answer.

use std::fs;

use serde_json::Value;

use crate::support::world::{World, daily};

/// Pays, says so, and fails.
const PROGRAM: &str = r#"echo paid >> "$0"; echo paid 10 EUR; exit 1"#;

/// A schedule of tier 2 whose program pays and fails, with these flags.
fn add_payments(world: &World, flags: &[&str]) -> String {
    let payments = world.root().join("payments").display().to_string();
    let agent = ["agent", "add", "ada", "--backend", "command", "--tier", "2"];
    world.ok(&[&agent[..], &["--", "/bin/sh", "-c", PROGRAM, &payments]].concat());
    let add = [&["schedule", "add"], &daily("invoices", "ada", "pay them")[..], flags].concat();
    world.json(&add)["schedule"]["id"].as_str().unwrap().to_owned()
}

fn payments(world: &World) -> usize {
    fs::read_to_string(world.root().join("payments")).unwrap_or_default().lines().count()
}

#[test]
fn external_work_that_fails_is_not_attempted_again_unless_attempts_are_given() {
    let world = World::new();
    let _daemon = world.up();
    let run = world.start_run(&add_payments(&world, &[]));
    world.approve(&world.wait_for_approval(&run));
    let failed = world.wait_for_state(&run, "failed");
    assert_eq!((&failed["attempt"], &failed["attempts_max"]), (&1.into(), &1.into()), "{failed}");
    assert_eq!(payments(&world), 1);
}

#[test]
fn denying_another_attempt_leaves_the_run_failed_with_its_output() {
    let world = World::new();
    let _daemon = world.up();
    let schedule = add_payments(&world, &["--attempts", "2", "--backoff", "1s:1:1s"]);
    let run = world.start_run(&schedule);
    let first = world.wait_for_approval(&run);
    let approved = world.approve(&first);
    assert_eq!(approved.lines().count(), 1, "{approved}");
    let answer = "approved invoices: its run starts now; `midwatch run watch ";
    assert!(approved.starts_with(answer), "{approved}");

    // The question about the second attempt says what the first one did.
    let asks_again = |run: &Value| run["approval_id"].as_str().is_some_and(|id| id != first);
    let waiting = world.wait_for_run(&run, asks_again);
    let second = waiting["approval_id"].as_str().unwrap();
    let shown = world.json(&["approval", "show", second])["approval"].clone();
    let previous = "attempt 1 ran and failed: the program exited with code 1";
    assert_eq!(shown["previous"], previous, "{shown}");
    let text = world.ok(&["approval", "show", second]);
    assert!(text.contains(&format!("\nran before     {previous}\n")), "{text}");

    let denied = world.ok(&["approval", "deny", second, "--reason", "no more"]);
    let answer = format!("denied invoices ({second}): its run is not attempted again\n");
    assert_eq!(denied, answer);
    let ended = world.show_run(&run);
    assert_eq!((&ended["state"], &ended["reason"]), (&"failed".into(), &"exit".into()));
    assert_eq!(ended["output"]["text"], "paid 10 EUR\n", "{ended}");
    let message = ended["message"].as_str().unwrap();
    assert!(message.contains("exited with code 1; no other attempt: "), "{message}");
    assert!(message.ends_with("denied it: no more"), "{message}");
    let attempts = ended["attempts"].as_array().unwrap();
    assert_eq!((attempts.len(), &ended["attempts_max"]), (1, &2.into()), "{ended}");
    assert_eq!((&attempts[0]["number"], &attempts[0]["outcome"]), (&1.into(), &"failed".into()));
    let [start, end] = ["started_at", "ended_at"].map(|it| attempts[0][it].as_str().unwrap());
    assert!(start < end && end < ended["finished_at"].as_str().unwrap(), "{ended}");
    assert!(world.ok(&["run", "show", &run]).contains("attempt        1 of 2\n"));
    assert_eq!(payments(&world), 1);
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
}
