//! Schedules that are changed, that come in lists, that follow something, and runs that are watched.

use std::fs;

use serde_json::{Value, json};

use crate::world::World;

fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    world
}

fn add(world: &World, flags: &[&str]) -> Value {
    let what = ["schedule", "add", "--agent", "ada", "--prompt", "hello"];
    world.json(&[&what[..], flags].concat())
}

fn id(answer: &Value) -> String {
    answer["schedule"]["id"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
}

#[test]
fn an_edit_changes_what_is_said_and_nothing_else() {
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
    let said = world.ok(&["schedule", "edit", &id, "--prompt", "good morning"]);
    assert!(said.starts_with(&format!("schedule `watch` ({id}) changed\n\nat 09:00 every day")));
    world.refused(&["schedule", "edit", &id, "--unset", "colour"], "invalid_input", 2);
    world.refused(&["schedule", "edit", &id, "--on", "mon"], "invalid_input", 2);
    world.refused(&["schedule", "edit", "sch_00000000", "--name", "x"], "not_found", 3);
}

#[test]
fn lists_come_from_files() {
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
    let said = world.ok(&["schedule", "add", "--file", &json]);
    assert!(said.contains("one   was there already") && said.contains("two   added"), "{said}");
    fs::write(&json, "[{\"name\": \"x\", \"wen\": {}, \"action\": {}}]").unwrap();
    let refused = world.refused(&["schedule", "add", "--file", &json], "invalid_input", 2);
    assert!(refused.contains("schedule 1 of it: unknown field `wen`"), "{refused}");
    world.refused(&["schedule", "add", "--file", &path("nowhere.json")], "not_found", 3);
}

#[test]
fn slots_of_the_past_are_shown_before_they_are_run() {
    let world = world();
    let id = id(&add(&world, &["--name", "look", "--every", "1m"]));
    let past = ["--from", "2026-01-01T00:00:00Z", "--to", "2026-01-01T00:10:00Z"];
    let fill = |flag: &'static str| {
        let words = [&["schedule", "backfill", &id], &past[..], &[flag]].concat();
        words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>()
    };
    let dry = world.json(&fill("--dry-run"));
    assert_eq!((&dry["slots"], &dry["begun"]), (&json!(11), &json!(false)), "{dry}");
    let said = world.ok(&fill("--dry-run"));
    assert!(said.starts_with("11 slots from 2026-01-01T00:00:00Z to 2026-01-01T00:10:00Z\n"));
    assert_eq!(world.json(&fill(""))["begun"], true);
    world.refused(&fill(""), "not_now", 4);
    let shown = world.ok(&["schedule", "show", &id]);
    assert!(shown.contains("backfill       goes on with 2026-01-01T00:00:00Z"), "{shown}");
    assert_eq!(world.json(&["schedule", "backfill", &id, "--end"])["changed"], true);
    assert_eq!(world.json(&["schedule", "backfill", &id, "--end"])["changed"], false);
    world.refused(&["schedule", "backfill", &id], "bad_usage", 2);
    let long = ["schedule", "backfill", &id, "--from", "2020-01-01T00:00:00Z"];
    world.refused(&[&long[..], &["--to", "2026-01-01T00:00:00Z"]].concat(), "not_now", 4);
    let event = id_of_event(&world);
    world.refused(&[&["schedule", "backfill", &event], &past[..]].concat(), "invalid_input", 2);
}

fn id_of_event(world: &World) -> String {
    id(&add(world, &["--name", "post", "--event", "mail/new"]))
}

/// With a daemon, from the event to the end of the second run.
#[test]
fn an_event_leads_to_runs_that_can_be_watched() {
    let world = world();
    let first = id_of_event(&world);
    let second = add(&world, &["--name", "then", "--after", &first, "--on", "any"]);
    assert_eq!(second["schedule"]["describe"], format!("after each run of {first} that has ended"));
    let daemon = world.up();
    let told = world.json(&["event", "tell", "mail/new", "--id", "message 7"]);
    assert_eq!((&told["told"], told["runs"].as_array().unwrap().len()), (&json!(1), 1), "{told}");
    let run = told["runs"][0]["id"].as_str().unwrap();
    let again = world.json(&["event", "tell", "mail/new", "--id", "message 7"]);
    assert_eq!(again["runs"][0]["id"], run, "it is the same event, and led to the same run");

    let watched = world.ok(&["run", "watch", run]);
    assert!(watched.ends_with(&format!("run `{run}` done\n")), "{watched}");
    assert!(watched.contains("hello"), "{watched}");
    let followed = world.ok(&["schedule", "show", &first]);
    assert!(followed.contains(&format!("followed by    {}", id(&second))), "{followed}");
    let then = crate::world::wait_for(|| {
        let runs = world.json(&["run", "list", "--schedule", &id(&second)])["runs"].clone();
        runs[0]["id"].as_str().map(str::to_owned)
    });
    let lines = world.ok(&["--json", "run", "watch", &then]);
    let last: Value = serde_json::from_str(lines.lines().last().unwrap()).unwrap();
    assert_eq!((&last["ended"], &last["run"]["state"]), (&json!(true), &json!("done")), "{lines}");
    assert_eq!(last["run"]["origin"], "after");

    // What each came of, and all that happened to it.
    assert_eq!(world.json(&["run", "show", &then])["run"]["source"], json!({"run": run}));
    assert_eq!(world.json(&["run", "show", run])["run"]["source"], json!({"event": "message 7"}));
    let shown = world.ok(&["run", "show", &then]);
    assert!(shown.contains(&format!("origin         after {run}")), "{shown}");
    let why = world.json(&["why", &id(&second)])["sentence"].as_str().unwrap().to_owned();
    assert!(why.contains(&format!("a run that it follows ended: this fired run {then}")), "{why}");
    let told = world.json(&["run", "events", &then]);
    let kinds: Vec<&Value> =
        told["events"].as_array().unwrap().iter().map(|event| &event["kind"]).collect();
    assert_eq!(kinds, ["run.queued", "run.started", "run.ended"]);
    assert_eq!(world.ok(&["run", "events", &then]).lines().count(), 3);
    drop(daemon);
}

/// A budget that is used up has an exit code of its own.
#[test]
fn a_schedule_that_has_run_as_often_as_it_may_says_so() {
    let world = world();
    let id = id(&add(&world, &["--name", "rare", "--every", "1h", "--per-day", "1"]));
    world.ok(&["run", "start", &id]);
    let overlap = ["schedule", "edit", &id, "--overlap", "allow:2"];
    world.ok(&overlap);
    let said = world.refused(&["run", "start", &id], "budget_exhausted", 12);
    assert!(said.contains("it may run again after midnight UTC"), "{said}");
}

/// What a program says is heard while it is at work, and how it ended is the exit code.
#[test]
fn a_program_is_heard_while_it_works() {
    let world = World::new();
    let go = world.root().join("go");
    let script = format!(
        "echo begun; until [ -e '{}' ]; do sleep 0.02; done; echo over; exit 3",
        go.display()
    );
    let agent = ["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", &script];
    world.ok(&agent);
    let flags = ["--name", "work", "--every", "30d", "--attempts", "1"];
    let what = ["schedule", "add", "--agent", "smith", "--prompt", "hello"];
    let id = id(&world.json(&[&what[..], &flags].concat()));
    let daemon = world.up();
    let started = world.json(&["run", "start", &id]);
    let run = started["run"]["id"].as_str().unwrap().to_owned();
    let mut watching = world.command();
    watching.args(["run", "watch", &run]).stdout(std::process::Stdio::piped());
    let mut watching = watching.spawn().unwrap();
    let mut lines =
        std::io::BufRead::lines(std::io::BufReader::new(watching.stdout.take().unwrap()));
    let mut line = || lines.next().unwrap().unwrap();
    let mut heard = line();
    while heard != "begun" {
        heard = line();
    }
    fs::write(&go, "").unwrap();
    let rest: Vec<String> = std::iter::from_fn(|| lines.next().map(Result::unwrap)).collect();
    let ended = format!("run `{run}` failed: the program ended with code 3");
    assert_eq!(rest.last(), Some(&ended), "{rest:?}");
    assert_eq!(rest.iter().filter(|line| *line == "over").count(), 1, "{rest:?}");
    assert_eq!(watching.wait().unwrap().code(), Some(1));
    drop(daemon);
}
