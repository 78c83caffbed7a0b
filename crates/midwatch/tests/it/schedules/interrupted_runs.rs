//! Slots of a schedule fire on time; a run that a crash interrupts becomes `unknown` and is never repeated.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::support::wait::{wait_for, wait_until};
use crate::support::world::World;

/// Appends its process id to a file. The first one never ends.
const PROGRAM: &str = r#"echo $$ >> "$0"; [ $(wc -l < "$0") -gt 1 ] || exec sleep 1000"#;

#[test]
fn run_interrupted_by_kill_becomes_unknown_and_is_not_repeated() {
    check_interrupted_run(&World::new());
}

#[test]
fn run_interrupted_by_kill_becomes_unknown_on_postgresql() {
    check_interrupted_run(&World::on_postgres());
}

/// Runs for two real minutes: every slot fires at its announced time, without drift.
#[test]
fn ten_second_schedule_fires_every_slot_on_time() {
    const SLOTS: usize = 12;
    let world = World::new();
    world.add_agent("echo");
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
    let announced: jiff::Timestamp = added["next"][0].as_str().unwrap().parse().unwrap();
    for (run, slot) in runs.iter().zip((announced.as_second()..).step_by(10)).take(SLOTS) {
        assert_eq!((second(run, "slot"), &run["state"]), (slot, &"done".into()), "{runs:?}");
        assert!((slot..slot + 10).contains(&second(run, "started_at")), "{run}");
        assert_eq!(
            run["queued_at"], run["started_at"],
            "it started in the commit that queued it: {run}"
        );
    }
}

fn check_interrupted_run(world: &World) {
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
    let announced = added["next"][0].as_str().unwrap();

    // It fires at the announced time; while the run is running, the next slots are skipped.
    let pid = wait_for(|| pids(&effects).first().copied());
    let first = world.json(&["run", "list", "--schedule", schedule])["runs"][0].clone();
    assert_eq!((&first["state"], &first["slot"]), (&"running".into(), &announced.into()));
    let run = first["id"].as_str().unwrap();
    wait_until(|| world.json(&["why", schedule])["disposition"] == "skipped_overlap");

    // Killed while the program runs. The program itself may live on, so the outcome is unknown.
    daemon.kill();
    let _ = kill_process(Pid::from_raw(pid).unwrap(), Signal::KILL);
    assert_eq!(world.show_run(run)["state"], "running");

    let daemon = world.up();
    let shown = world.wait_for_state(run, "unknown");
    assert_eq!((&shown["reason"], &shown["attempt"]), (&"interrupted".into(), &1.into()));
    let why = world.json(&["why", schedule, "--at", announced]);
    assert_eq!((&why["disposition"], &why["run_id"]), (&"unknown".into(), &run.into()));
    assert!(why["sentence"].as_str().unwrap().contains("its outcome is unknown"), "{why}");

    // The schedule continues with other slots, and an operator settles the unknown run.
    wait_until(|| 1 < pids(&effects).len());
    world.ok(&["run", "settle", run, "--as", "done", "--reason", "I looked"]);
    assert_eq!(world.show_run(run)["state"], "done");
    assert_eq!(world.json(&["why", schedule, "--at", announced])["disposition"], "unknown");
    world.ok(&["schedule", "pause", schedule]);
    daemon.stop();

    // Every run took effect once, and the ledger has all of it.
    let runs = world.json(&["run", "list", "--limit", "1000"]);
    let runs = runs["runs"].as_array().unwrap();
    assert!(runs.iter().all(|run| run["state"] == "done"), "{runs:?}");
    assert_eq!(runs.len(), pids(&effects).len());
    check_every_slot_is_decided(world, schedule, announced);
    world.verified();
    assert_eq!(world.rebuild_differences(), 0);
}

/// Checks each second from the first announced slot to the last decided one.
fn check_every_slot_is_decided(world: &World, schedule: &str, first: &str) {
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
