//! What `status` tells a person who was away, and what `timeline` tells about the same night.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use crate::support::world::World;

/// An agent whose program fails, one that hangs, and one that needs approval, each with a schedule of its name.
fn world() -> World {
    let world = World::with_agent("ada");
    for (name, script) in [("backup", "exit 3"), ("report", "exec sleep 600")] {
        world.ok(&["agent", "add", name, "--backend", "command", "--", "/bin/sh", "-c", script]);
    }
    world.ok(&["agent", "add", "pay", "--backend", "builtin", "--tier", "2"]);
    for name in ["backup", "report", "pay", "ada"] {
        let flags =
            ["--every", "1h", "--attempts", "1", "--agent", name, "--prompt", "secret text"];
        world.ok(&[&["schedule", "add", "--name", name][..], &flags].concat());
    }
    world
}

fn start(world: &World, schedule: &str, state: &str) -> String {
    let run = world.start_run(schedule);
    world.wait_for_state(&run, state);
    run
}

/// The lines of a page that begin with this word, with what is below each.
fn part<'a>(page: &'a str, name: &str) -> Vec<&'a str> {
    let mut parts = Vec::new();
    let mut is_ours = false;
    for line in page.lines() {
        if !line.starts_with(' ') {
            is_ours = line.starts_with(name);
        }
        if is_ours {
            parts.push(line);
        }
    }
    parts
}

#[test]
fn status_answers_what_failed_waits_runs_and_is_next() {
    let world = world();
    let page = world.ok(&["status"]);
    let absent = "ATTENTION      no daemon is running, so nothing fires: `midwatch up`";
    assert_eq!(page.lines().next(), Some(absent), "{page}");
    assert_eq!(part(&page, "failed"), ["failed         nothing in the last 24 hours"]);
    assert_eq!(part(&page, "waiting"), ["waiting        nothing waits for you"]);
    assert_eq!(part(&page, "running"), ["running        nothing"]);

    let daemon = world.up();
    let failed = start(&world, "backup", "failed");
    let lost = start(&world, "report", "running");
    let parked = start(&world, "pay", "waiting_permission");
    let approval = world.wait_for_approval(&parked);
    let page = world.ok(&["status"]);
    assert!(part(&page, "running")[0].starts_with("running        report, since "), "{page}");
    let waiting = part(&page, "ATTENTION").join("\n");
    assert!(waiting.contains("1 run waits for your approval"), "{page}");
    assert!(waiting.contains(&format!("`midwatch approval show {}`", &approval[..20])), "{page}");
    let next = part(&page, "next").join("\n");
    for name in ["ada, ", "backup, ", "pay, ", "report, "] {
        assert!(next.contains(name), "{page}");
    }

    daemon.kill();
    let daemon = world.up();
    world.wait_for_state(&lost, "unknown");
    let page = world.ok(&["status"]);
    assert!(page.starts_with("daemon         running, pid "), "{page}");
    let attention = part(&page, "ATTENTION");
    assert!(attention[0].contains("1 run failed in the last 24 hours"), "{page}");
    let show = |run: &str| format!("`midwatch run show {}`", &run[..20]);
    assert!(
        attention[1].contains("backup, ")
            && attention[1].contains(", the program exited with code 3: "),
        "{page}"
    );
    assert!(attention[1].ends_with(&show(&failed)), "{page}");
    assert!(attention[3].contains("the outcome of 1 run is unknown"), "{page}");
    assert!(attention[4].contains("report, ") && attention[4].ends_with(&show(&lost)), "{page}");

    let marked = world.ok(&["status", "--seen"]);
    assert!(marked.contains("1 run failed") && marked.contains("\nseen "), "{marked}");
    let page = world.ok(&["status"]);
    assert!(part(&page, "failed")[0].contains("nothing since you last looked"), "{page}");
    assert!(!page.contains("1 run failed"), "{page}");
    // The next failure is new, and what must be settled stays.
    start(&world, "backup", "failed");
    daemon.kill();
    let page = world.ok(&["status"]);
    assert!(page.contains("1 run failed since you last looked"), "{page}");
    assert!(page.contains("the outcome of 1 run is unknown"), "{page}");
    let failures = world.json(&["status"])["failures"].clone();
    assert_eq!((&failures["seen"], failures["runs"].as_array().unwrap().len()), (&true.into(), 1));
    assert_eq!(failures["runs"][0]["schedule_name"], "backup");
    world.verified();
}

#[test]
fn timeline_tells_what_happened_in_one_order() {
    let mut world = world();
    let daemon = world.up();
    start(&world, "backup", "failed");
    let lost = start(&world, "report", "running");
    daemon.kill();
    let daemon = world.up();
    world.wait_for_state(&lost, "unknown");
    let page = world.ok(&["timeline"]);
    let mut rest = page.as_str();
    for expected in [
        "  midwatch  installation created\n",
        "  backup  agent registered by uid:",
        "  backup  schedule added by uid:",
        "  midwatch  daemon started (version ",
        "  backup  run queued by uid:",
        "  backup  run started (run_",
        "  backup  run failed: exit (run_",
        "  report  run started (run_",
        "  midwatch  daemon started (version ",
        "  report  run interrupted, outcome unknown (run_",
    ] {
        let at = rest.find(expected).unwrap_or_else(|| panic!("no `{expected}` in {page}"));
        rest = &rest[at + expected.len()..];
    }
    assert!(!page.contains("secret text") && !page.contains('{'), "{page}");
    assert!(!page.contains("heartbeat"), "{page}");

    let lines = world.ok(&["--json", "timeline", "--all"]);
    let lines: Vec<serde_json::Value> =
        lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let entries = world.json(&["status"])["log"]["entries"].as_u64().unwrap();
    assert_eq!(lines.len() as u64, entries, "every entry has a line");
    let recent = world.run(&["timeline", "--since", "2099-01-01 12:00"]);
    assert!(recent.stdout.is_empty() && recent.stderr.contains("nothing happened"), "{recent:?}");
    world.refused(&["timeline", "--since", "yesterday"], "invalid_input", 2);

    // Follows what happens, as `ledger tail --follow` does.
    world.set("COLUMNS", "80");
    let mut command = world.command();
    command
        .args(["timeline", "--follow", "--since", "2099-01-01T00:00:00Z"])
        .stdout(Stdio::piped());
    command.args(["--utc"]);
    let mut child = command.spawn().unwrap();
    let mut reader = BufReader::new(child.stdout.take().unwrap());
    let done = world.start_run("ada");
    let mut line = String::new();
    while !line.contains(&format!("run done ({})", &done[..20])) {
        line.clear();
        assert!(0 < reader.read_line(&mut line).unwrap(), "the feed ended");
    }
    child.kill().unwrap();
    child.wait().unwrap();
    drop(daemon);
}

/// A reader that follows gets an event as soon as it is stored, and the name of its schedule with it.
#[test]
fn followed_timeline_names_the_schedule_of_every_run() {
    let world = World::with_agent("ada");
    let schedules: Vec<String> = (0..8).map(|number| format!("every-{number}")).collect();
    for name in &schedules {
        world.add_schedule(&["--name", name, "--every", "1s", "--agent", "ada", "--prompt", "go"]);
    }
    let _daemon = world.up();
    let mut command = world.command();
    let mut child =
        command.args(["--json", "timeline", "--follow"]).stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let lines = lines.map(|line| serde_json::from_str::<serde_json::Value>(&line).unwrap());
    let runs = lines.filter(|line| line["run_id"].is_string()).take(150);
    let strange: Vec<serde_json::Value> =
        runs.filter(|line| !schedules.iter().any(|name| line["about"] == name.as_str())).collect();
    assert!(strange.is_empty(), "{strange:?}");
    child.kill().unwrap();
    child.wait().unwrap();
}
