//! Editing, adding from files, backfill, events and dependents, and watching runs.

use std::fs;
use std::io::{BufRead, BufReader};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::wait::wait_for;
use crate::support::world::World;

fn world() -> World {
    World::with_agent("ada")
}

fn add(world: &World, flags: &[&str]) -> Value {
    let what = ["schedule", "add", "--agent", "ada", "--prompt", "hello"];
    world.json(&[&what[..], flags].concat())
}

fn id(answer: &Value) -> String {
    answer["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn schedule_edit_changes_only_the_given_fields() {
    let world = world();
    let added =
        add(&world, &["--name", "look", "--every", "1h", "--window", "2h", "--key", "disk"]);
    let id = id(&added);
    let edit = |flags: &[&str]| world.json(&[&["schedule", "edit", &id], flags].concat());
    let edited = edit(&["--daily", "09:00", "--tz", "UTC", "--key", "net:2", "--key", "disk"]);
    assert_eq!((&edited["changed"], &edited["schedule"]["revision"]), (&json!(true), &json!(2)));
    assert_eq!(edited["schedule"]["describe"], "at 09:00 every day");
    assert_eq!(edited["schedule"]["terms"]["keys"], json!(["disk", "net:2"]));
    assert_eq!(edited["schedule"]["terms"]["window"], "2h");
    assert_eq!(edited["schedule"]["action"], added["schedule"]["action"]);
    assert_eq!(edited["next"].as_array().unwrap().len(), 5);
    let edited = edit(&["--unset", "window,keys", "--name", "watch"]);
    let terms = &edited["schedule"]["terms"];
    assert_eq!((&terms["window"], &terms["keys"]), (&Value::Null, &Value::Null));
    assert_eq!(edited["schedule"]["name"], "watch");
    assert_eq!(edit(&["--name", "watch"])["changed"], false);
    let same = world.ok(&["schedule", "edit", &id, "--name", "watch"]);
    assert!(same.starts_with(&format!("schedule `watch` ({id}): nothing to change\n")), "{same}");
    let output = world.ok(&["schedule", "edit", &id, "--prompt", "good morning"]);
    assert!(output.starts_with(&format!("schedule `watch` ({id}) changed\n\nat 09:00 every day")));
    world.refused(&["schedule", "edit", &id, "--unset", "colour"], "invalid_input", 2);
    world.refused(&["schedule", "edit", &id, "--on", "mon"], "invalid_input", 2);
    world.refused(&["schedule", "edit", "sch_00000000", "--name", "x"], "not_found", 3);
}

#[test]
fn schedules_are_added_from_toml_and_json_files() {
    let world = world();
    let path = |name: &str| world.root().join(name).display().to_string();
    let [toml, json] = [path("list.toml"), path("list.json")];
    let one = "[[schedules]]\nname = \"one\"\nwhen = {every = \"1h\"}\n\
               action = {agent = \"ada\", prompt = \"hello\"}\n";
    fs::write(&toml, one).unwrap();
    let added = world.json(&["schedule", "add", "--file", &toml]);
    assert_eq!(added["schedules"][0]["created"], true, "{added}");
    let two = json!([
        {"name": "one", "when": {"every": "1h"}, "action": {"agent": "ada", "prompt": "hello"}},
        {"name": "two", "happening": {"event": "mail"}, "action": {"agent": "ada", "prompt": "hi"}},
    ]);
    fs::write(&json, two.to_string()).unwrap();
    let output = world.ok(&["schedule", "add", "--file", &json]);
    assert!(output.contains("one   already exists") && output.contains("two   added"), "{output}");
    fs::write(&json, "[{\"name\": \"x\", \"wen\": {}, \"action\": {}}]").unwrap();
    let refused = world.refused(&["schedule", "add", "--file", &json], "invalid_input", 2);
    assert!(refused.contains("schedule 1: unknown field `wen`"), "{refused}");
    world.refused(&["schedule", "add", "--file", &path("nowhere.json")], "not_found", 3);
}

#[test]
fn backfill_dry_run_shows_past_slots_before_they_run() {
    let world = world();
    let id = id(&add(&world, &["--name", "look", "--every", "1m"]));
    let past = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:10:00Z"];
    let fill = |flag: &'static str| {
        let arguments = [&["schedule", "backfill", &id], &past[..], &[flag]].concat();
        arguments.into_iter().filter(|argument| !argument.is_empty()).collect::<Vec<_>>()
    };
    let dry = world.json(&fill("--dry-run"));
    assert_eq!((&dry["slots"], &dry["begun"]), (&json!(11), &json!(false)), "{dry}");
    let output = world.ok(&fill("--dry-run"));
    assert!(output.starts_with("11 slots from 2026-01-01T00:00:00Z to 2026-01-01T00:10:00Z\n"));
    assert_eq!(world.json(&fill(""))["begun"], true);
    world.refused(&fill(""), "not_now", 4);
    let shown = world.ok(&["schedule", "show", &id]);
    assert!(shown.contains("backfill       next 1 Jan 00:00:00, up to 1 Jan 00:10:00"), "{shown}");
    assert_eq!(world.json(&["schedule", "backfill", &id, "--end"])["changed"], true);
    assert_eq!(world.json(&["schedule", "backfill", &id, "--end"])["changed"], false);
    world.refused(&["schedule", "backfill", &id], "bad_usage", 2);
    let long = ["schedule", "backfill", &id, "--from", "2020-01-01T00:00:00Z"];
    world.refused(&[&long[..], &["--to", "2026-01-01T00:00:00Z"]].concat(), "not_now", 4);
    let event = add_event_schedule(&world);
    world.refused(&[&["schedule", "backfill", &event], &past[..]].concat(), "invalid_input", 2);
}

fn add_event_schedule(world: &World) -> String {
    id(&add(world, &["--name", "post", "--event", "mail/new"]))
}

/// From the event through the first run to the end of its dependent.
#[test]
fn event_starts_a_run_and_then_its_dependent() {
    let world = world();
    let first = add_event_schedule(&world);
    let second = add(&world, &["--name", "then", "--after", &first, "--on", "any"]);
    assert_eq!(second["schedule"]["describe"], format!("after each run of {first} that has ended"));
    let daemon = world.up();
    let published = world.json(&["event", "publish", "mail/new", "--id", "message 7"]);
    let runs = published["runs"].as_array().unwrap();
    assert_eq!((&published["told"], runs.len()), (&json!(1), 1), "{published}");
    let run = runs[0]["id"].as_str().unwrap();
    let again = world.json(&["event", "tell", "mail/new", "--id", "message 7"]);
    assert_eq!(again["runs"][0]["id"], run, "the same event started another run");

    let watched = world.ok(&["run", "watch", run]);
    assert!(watched.ends_with(&format!("run `{run}` done\n")), "{watched}");
    assert!(watched.contains("hello"), "{watched}");
    let followed = world.ok(&["schedule", "show", &first]);
    assert!(followed.contains(&format!("dependents     {}", id(&second))), "{followed}");
    let then = wait_for(|| {
        let runs = world.json(&["run", "list", "--schedule", &id(&second)])["runs"].clone();
        runs[0]["id"].as_str().map(str::to_owned)
    });
    let lines = world.ok(&["--json", "run", "watch", &then]);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["ended"], &last["run"]["state"]), (&json!(true), &json!("done")), "{lines}");
    assert_eq!(last["run"]["origin"], "after");

    // The source of each run, and its events.
    assert_eq!(world.show_run(&then)["source"], json!({"run": run}));
    assert_eq!(world.show_run(run)["source"], json!({"event": "message 7"}));
    let shown = world.ok(&["run", "show", &then]);
    assert!(shown.contains(&format!("origin         after {run}")), "{shown}");
    let why = world.json(&["why", &id(&second)])["sentence"].as_str().unwrap().to_owned();
    assert!(why.contains(&format!("a run that it depends on ended and fired run {then}")), "{why}");
    let events = world.json(&["run", "events", &then]);
    let kinds: Vec<&Value> =
        events["events"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, ["run.queued", "run.started", "run.ended"]);
    let page = world.ok(&["run", "events", &then]);
    let entries: Vec<&str> =
        page.lines().filter_map(|line| line.trim_start().split("  ").nth(2)).collect();
    assert_eq!(entries, ["run.queued", "run.started", "run.ended"], "{page}");
    assert!(!page.contains('{'), "{page}");
    drop(daemon);
}

/// A used-up budget has its own exit code.
#[test]
fn run_over_the_daily_limit_is_refused_with_its_own_exit_code() {
    let world = world();
    let id = id(&add(&world, &["--name", "rare", "--every", "1h", "--per-day", "1"]));
    world.ok(&["run", "start", &id]);
    let overlap = ["schedule", "edit", &id, "--overlap", "allow:2"];
    world.ok(&overlap);
    let message = world.refused(&["run", "start", &id], "budget_exhausted", 12);
    assert!(message.contains("it may run again after midnight UTC"), "{message}");
}

/// `run watch` prints output while the program runs; its exit code is the outcome of the run.
#[test]
fn run_watch_prints_output_while_the_program_runs() {
    let world = World::new();
    let go = world.root().join("go");
    let script = format!(
        "echo started; until [ -e '{}' ]; do sleep 0.02; done; echo over; exit 3",
        go.display()
    );
    let agent = ["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", &script];
    world.ok(&agent);
    let flags = ["--name", "work", "--every", "30d", "--attempts", "1"];
    let what = ["schedule", "add", "--agent", "smith", "--prompt", "hello"];
    let id = id(&world.json(&[&what[..], &flags].concat()));
    let daemon = world.up();
    let run = world.start_run(&id);
    let mut watch = world.command();
    watch.args(["run", "watch", &run]).stdout(Stdio::piped());
    let mut watch = watch.spawn().unwrap();
    let mut lines = BufReader::new(watch.stdout.take().unwrap()).lines();
    let mut line = || lines.next().unwrap().unwrap();
    let mut first = line();
    while first != "started" {
        first = line();
    }
    fs::write(&go, "").unwrap();
    let rest: Vec<String> = std::iter::from_fn(|| lines.next().map(Result::unwrap)).collect();
    let ended = format!("run `{run}` failed: the program exited with code 3");
    assert_eq!(rest.last(), Some(&ended), "{rest:?}");
    assert_eq!(rest.iter().filter(|line| *line == "over").count(), 1, "{rest:?}");
    assert_eq!(watch.wait().unwrap().code(), Some(1));
    drop(daemon);
}

/// Output without a line end, and output that is not text.
#[test]
fn output_is_neither_glued_to_the_state_nor_miscounted() {
    let world = World::new();
    let _daemon = world.up();
    for (name, script, printed, size) in [
        ("open line", "printf 'Still here?'", "Still here?", "output         11 bytes\n"),
        ("no text", r"printf '\377\376abc'", "\u{fffd}\u{fffd}abc", "output         5 bytes"),
    ] {
        let agent = name.replace(' ', "-");
        world.ok(&["agent", "add", &agent, "--backend", "command", "--", "sh", "-c", script]);
        let run = world.start_run(&world.add_daily(name, &agent, "go"));
        let watched = world.ok(&["run", "watch", &run]);
        // Its state may be `running` first.
        assert!(watched.contains(&format!("{printed}\nrun `{run}` ")), "{watched:?}");
        assert!(watched.contains(&format!("\nrun `{run}` done")), "{watched:?}");
        let shown = world.ok(&["run", "show", &run]);
        assert!(shown.contains(size) && !shown.contains("the first"), "{shown}");
    }
}

/// A run by hand belongs to no slot, so `why` tells of it beside the slots.
#[test]
fn why_tells_of_the_last_run_by_hand() {
    let world = World::new();
    world.ok(&["agent", "add", "smith", "--backend", "command", "--", "sh", "-c", "exit 1"]);
    let when =
        ["--name", "nightly", "--daily", "03:00", "--tz", "Europe/Berlin", "--attempts", "1"];
    world.add_schedule(&[&when[..], &["--agent", "smith", "--prompt", "go"]].concat());
    let _daemon = world.up();
    let why = || world.json(&["why", "nightly"])["sentence"].as_str().unwrap().to_owned();
    let before = why();
    assert!(before.starts_with("nothing was due yet; next due 20"), "{before}");
    let run = world.start_run("nightly");
    world.wait_for_state(&run, "failed");
    let failed =
        format!("; run {run} was started by hand: it failed: the program exited with code 1");
    assert_eq!(why(), before + &failed);
    let shown = world.ok(&["why", "nightly"]);
    assert!(shown.contains(" 02:00:00; run ") || shown.contains(" 01:00:00; run "), "{shown}");
    assert!(shown.ends_with("\ntimes are UTC\n"), "{shown}");
    world.ok(&["freeze"]);
    let frozen = why();
    assert!(
        frozen.ends_with("; Midwatch is frozen, so no run starts before it is thawed"),
        "{frozen}"
    );
    world.ok(&["schedule", "pause", "nightly"]);
    let paused = why();
    assert!(paused.contains("the schedule is paused") && paused.ends_with(&failed), "{paused}");
}
