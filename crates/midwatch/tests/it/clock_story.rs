//! The clock: one schedule from `add` through fire, a kill -9 in the middle of its effect, `unknown`,
//! `why`, a human's word, and a log that verifies.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::world::{World, wait_for};

/// Notes that it took effect, and the first time never ends.
const PROGRAM: &str = r#"echo $$ >> "$0"; [ $(wc -l < "$0") -gt 1 ] || exec sleep 1000"#;

#[test]
fn a_run_that_is_cut_off_is_unknown_and_never_repeated() {
    story(&World::new());
}

#[test]
fn a_run_that_is_cut_off_is_unknown_on_postgresql() {
    story(&World::on_postgres());
}

/// Over two real minutes: every slot, where it was promised, and none drifts.
#[test]
fn a_ten_second_schedule_keeps_time() {
    const SLOTS: usize = 12;
    let world = World::new();
    world.ok(&["agent", "add", "echo", "--backend", "builtin"]);
    let daemon = world.up();
    let what = ["--every", "10s", "--agent", "echo", "--prompt", "still here"];
    let added = world.json(&[&["schedule", "add", "--name", "tick"], &what[..]].concat());
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let mut tail = world.command();
    tail.args(["--json", "ledger", "tail", "--follow"]).stdout(Stdio::piped());
    let mut tail = tail.spawn().unwrap();
    let lines = BufReader::new(tail.stdout.take().unwrap()).lines();
    let ended = lines.map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    assert_eq!(ended.filter(|event| event["kind"] == "run.ended").take(SLOTS).count(), SLOTS);
    tail.kill().unwrap();
    tail.wait().unwrap();
    drop(daemon);

    let runs = world.json(&["run", "list", "--schedule", schedule])["runs"].clone();
    let mut runs = runs.as_array().unwrap().clone();
    runs.reverse();
    let second = |run: &Value, field: &str| {
        let at: jiff::Timestamp = run[field].as_str().unwrap().parse().unwrap();
        at.as_second()
    };
    let promised: jiff::Timestamp = added["next"][0].as_str().unwrap().parse().unwrap();
    for (run, slot) in runs.iter().zip((promised.as_second()..).step_by(10)).take(SLOTS) {
        assert_eq!((second(run, "slot"), &run["state"]), (slot, &"done".into()), "{runs:?}");
        assert!((slot..slot + 10).contains(&second(run, "started_at")), "{run}");
        assert_eq!(run["queued_at"], run["started_at"], "nobody waits before it: {run}");
    }
}

fn story(world: &World) {
    let effects = world.root().join("effects");
    let daemon = world.up();
    let file = effects.to_str().unwrap();
    world.ok(&["agent", "add", "ada", "--backend", "command", "--", "sh", "-c", PROGRAM, file]);
    let add = [
        "schedule",
        "add",
        "--name",
        "every second",
        "--every",
        "1s",
        "--agent",
        "ada",
        "--prompt",
        "go on",
    ];
    let added = world.json(&add);
    assert_eq!(added["created"], true, "{added}");
    assert_eq!(added["next"].as_array().unwrap().len(), 5, "{added}");
    assert_eq!(world.json(&add)["created"], false);
    let schedule = added["schedule"]["id"].as_str().unwrap();
    let promised = added["next"][0].as_str().unwrap();

    // It fires when it said it would; while it is at work, the next slots are skipped.
    let begun = wait_for(|| pids(&effects).first().copied());
    let first = world.json(&["run", "list", "--schedule", schedule])["runs"][0].clone();
    assert_eq!((&first["state"], &first["slot"]), (&"running".into(), &promised.into()));
    let run = first["id"].as_str().unwrap();
    wait_for(|| {
        let why = world.json(&["why", schedule]);
        (why["disposition"] == "skipped_overlap").then_some(())
    });

    // Killed in the middle of the effect. The program itself may live on: nobody knows.
    daemon.kill();
    let _ = kill_process(Pid::from_raw(begun).unwrap(), Signal::KILL);
    assert_eq!(world.json(&["run", "show", run])["run"]["state"], "running");

    let daemon = world.up();
    let shown = wait_for(|| {
        let shown = world.json(&["run", "show", run])["run"].clone();
        (shown["state"] == "unknown").then_some(shown)
    });
    assert_eq!((&shown["reason"], &shown["attempt"]), (&"interrupted".into(), &1.into()));
    let why = world.json(&["why", schedule, "--at", promised]);
    assert_eq!((&why["disposition"], &why["run_id"]), (&"unknown".into(), &run.into()));
    assert!(why["sentence"].as_str().unwrap().contains("not known"), "{why}");

    // The schedule goes on with other slots, and a human says how that one ended.
    wait_for(|| (1 < pids(&effects).len()).then_some(()));
    world.ok(&["run", "settle", run, "--as", "done", "--note", "I looked"]);
    assert_eq!(world.json(&["run", "show", run])["run"]["state"], "done");
    assert_eq!(world.json(&["why", schedule, "--at", promised])["disposition"], "unknown");
    world.ok(&["schedule", "pause", schedule]);
    assert_eq!(daemon.stop().0, Some(0));

    // Every run that ended took effect once, and the log tells all of it.
    let runs = world.json(&["run", "list", "--limit", "1000"]);
    let runs = runs["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["state"] == "done"), "{runs:?}");
    assert_eq!(runs.len(), pids(&effects).len());
    every_slot_is_accounted_for(world, schedule, promised);
    world.verified();
    assert_eq!(world.json(&["ledger", "rebuild"])["rebuilt"]["differences"], 0);
}

/// Slots are a second apart, from the first one promised to the last one decided.
fn every_slot_is_accounted_for(world: &World, schedule: &str, first: &str) {
    let last = world.json(&["why", schedule])["slot"].as_str().unwrap().to_owned();
    let seconds = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second();
    for second in seconds(first)..=seconds(&last) {
        let at = jiff::Timestamp::from_second(second).unwrap().to_string();
        let why: Value = world.json(&["why", schedule, "--at", &at]);
        let disposition = why["disposition"].as_str().unwrap();
        let known = ["ran", "ran_late", "unknown", "skipped_overlap", "coalesced", "cancelled"];
        assert!(known.contains(&disposition), "{at}: {why}");
    }
}

fn pids(effects: &Path) -> Vec<i32> {
    let text = fs::read_to_string(effects).unwrap_or_default();
    text.lines().filter_map(|line| line.parse().ok()).collect()
}
