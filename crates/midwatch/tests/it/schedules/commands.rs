//! The commands on schedules and their runs: add, list, show, pause, resume, remove, start, cancel, retry, why.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::Stdio;

use serde_json::{Value, json};

use crate::support::world::{Outcome, World};

const NO_SCHEDULE: &str = "sch_00000000";
const NO_RUN: &str = "run_00000000000000000000000000000000";

const STANDUP: &[&str] = &[
    "schedule",
    "add",
    "--name",
    "standup",
    "--cron",
    "30 9 * * MON-FRI",
    "--tz",
    "Europe/Berlin",
    "--agent",
    "ada",
    "--prompt",
    "What changed?",
];

/// A world with the agent `ada` and no daemon, so that nothing fires by itself.
fn world() -> World {
    World::with_agent("ada")
}

/// The id of the schedule `standup`, which is added if it does not exist.
fn standup(world: &World) -> String {
    text(&world.json(STANDUP)["schedule"]["id"])
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_else(|| panic!("not a string: {value}")).to_owned()
}

#[test]
fn adding_the_same_schedule_twice_adds_one() {
    let world = world();
    let first = world.json(STANDUP);
    assert_eq!(first["created"], true, "{first}");
    assert_eq!(first["next"].as_array().unwrap().len(), 5, "{first}");
    let schedule = &first["schedule"];
    assert!(text(&schedule["id"]).starts_with("sch_"), "{first}");
    assert_eq!(schedule["describe"], "at 09:30 on Monday to Friday");
    assert_eq!(schedule["tz"], "Europe/Berlin");
    assert_eq!(schedule["status"], "active");
    assert_eq!(schedule["action"], json!({"agent": "ada", "prompt": "What changed?"}));
    assert_eq!(schedule["next_run_at"], first["next"][0]);

    let again = world.json(STANDUP);
    assert_eq!(again["created"], false, "{again}");
    assert_eq!(again["schedule"], *schedule);
    assert_eq!(world.count_events("schedule.added"), 1);

    let other = [STANDUP, &["--priority", "9"]].concat();
    let other = world.json(&other);
    assert_eq!(other["created"], true, "{other}");
    assert_ne!(other["schedule"]["id"], schedule["id"]);
}

#[test]
fn schedule_added_paused_fires_only_after_resume() {
    let world = world();
    let added = world.json(&[STANDUP, &["--paused"]].concat());
    assert_eq!((&added["created"], &added["schedule"]["status"]), (&json!(true), &json!("paused")));
    assert_eq!(added["schedule"]["next_run_at"], Value::Null, "{added}");
    assert_eq!(added["next"].as_array().unwrap().len(), 5, "{added}");
    let id = text(&added["schedule"]["id"]);
    let output = world.ok(&["schedule", "show", &id]);
    assert!(
        output.contains(
            "\nit is paused; if it were resumed now, its next times would be\nEurope/Berlin "
        ),
        "{output}"
    );
    let resumed = world.json(&["schedule", "resume", &id]);
    assert_eq!(resumed["schedule"]["status"], "active", "{resumed}");
    assert_eq!(resumed["next"], added["next"]);
}

#[test]
fn schedule_add_prints_a_summary() {
    let world = world();
    let output = world.ok(STANDUP);
    let id = standup(&world);
    let (first, rest) = output.split_once('\n').unwrap();
    assert_eq!(first, format!("schedule `standup` ({id}) added"));
    let trigger = "at 09:30 on Monday to Friday (Europe/Berlin)";
    let bounds = "missed slots are caught up within 1d; at most 4 runs a day";
    assert!(rest.starts_with(&format!("\n{trigger}\n\n{bounds}\n\nEurope/Berlin ")), "{output}");
    assert_eq!(rest.matches(" 09:30:00  ").count(), 5, "{output}");
    let again = world.ok(STANDUP);
    assert!(again.starts_with(&format!("schedule `standup` ({id}) already exists\n")));
}

#[test]
fn schedule_add_dry_run_previews_the_decision_and_changes_nothing() {
    let world = world();
    let entries = || world.json(&["status"])["log"]["entries"].clone();
    let before = entries();
    let tier_2 = [STANDUP, &["--tier", "2"]].concat();
    let tried = world.json(&[&tier_2[..], &["--dry-run"]].concat());
    assert_eq!((&tried["created"], &tried["dry_run"]), (&json!(true), &json!(true)), "{tried}");
    let decision = &tried["orders"];
    assert_eq!(
        (&decision["by_itself"], &decision["ruling"]["verdict"]),
        (&json!(false), &json!("ask"))
    );
    assert_eq!(decision["ruling"]["rules"][0], "@tier-2", "{decision}");
    assert_eq!(
        (entries(), world.json(&["schedule", "list"])["schedules"].clone()),
        (before, json!([]))
    );

    let line = "\neach run needs approval (`@tier-2`)\n";
    assert!(world.ok(&tier_2).contains(line));
    let id = text(&tried["schedule"]["id"]);
    assert_eq!(world.json(&["schedule", "show", &id])["orders"], *decision);
    assert!(!world.ok(STANDUP).contains("each run"), "a run that starts by itself needs no note");
    let raised = world.json(&["schedule", "edit", &id, "--priority", "4"]);
    assert_eq!(raised["orders"], *decision, "an edit shows what the policy decides now");
    let lowered = world.ok(&["schedule", "edit", &id, "--unset", "tier"]);
    assert!(lowered.contains("\neach run starts without approval\n"), "{lowered}");
}

/// Terms are shown as they were given; omitted ones have their defaults.
#[test]
fn schedule_terms_are_stored_and_edited() {
    let world = world();
    let defaults = &world.json(STANDUP)["schedule"]["terms"];
    for (term, expected) in [
        ("overlap", json!("skip")),
        ("missed", json!("latest")),
        ("attempts", json!(null)),
        ("backoff", json!("5s:2:5m")),
        ("pause_after", json!(5)),
        ("resume", json!("skip")),
        ("priority", json!(5)),
    ] {
        assert_eq!(defaults[term], expected, "{term}: {defaults}");
    }
    let flags = [
        &["--overlap", "buffer_all:3", "--missed", "all:7", "--window", "2h", "--jitter", "30s"][..],
        &["--attempts", "1", "--pause-after", "0", "--resume", "as_missed", "--priority", "9"],
        &["--backoff", "1m:3:1h", "--per-day", "12", "--max-fires", "100"],
        &["--start-at", "2030-01-01 00:00", "--end-at", "2031-01-01T00:00:00Z"],
    ];
    let answer = world.json(&[STANDUP, &flags.concat()].concat());
    let expected = json!({
        "overlap": "buffer_all:3",
        "missed": "all:7",
        "window": "2h",
        "jitter": "30s",
        "attempts": 1,
        "backoff": "1m:3:1h",
        "pause_after": 0,
        "resume": "as_missed",
        "priority": 9,
        "per_day": 12,
        "max_fires": 100,
        "start_at": "2029-12-31T23:00:00Z",
        "end_at": "2031-01-01T00:00:00Z",
    });
    assert_eq!(answer["schedule"]["terms"], expected, "{answer}");
    assert_eq!(answer["next"][0], "2030-01-01T08:30:00Z", "{answer}");

    let id = text(&answer["schedule"]["id"]);
    for (flags, attempts, backoff) in [
        (&["--backoff", "patient"][..], Some(6), "30s:4:1h"),
        (&["--backoff", "patient", "--attempts", "3"], Some(3), "30s:4:1h"),
        (&["--unset", "backoff"], Some(3), "5s:2:5m"),
        (&["--backoff", "2s:1:2s", "--unset", "attempts"], None, "2s:1:2s"),
    ] {
        let edit = [&["schedule", "edit", &id][..], flags].concat();
        let terms = &world.json(&edit)["schedule"]["terms"];
        assert_eq!(
            (&terms["attempts"], &terms["backoff"]),
            (&json!(attempts), &json!(backoff)),
            "{flags:?}"
        );
    }
}

#[test]
fn prompt_is_read_from_a_file_or_stdin() {
    let world = world();
    let file = world.root().join("prompt.md");
    std::fs::write(&file, "Look around.\nSay what you see.\n").unwrap();
    let from_file = format!("@{}", file.display());
    let flags = ["--name", "look", "--every", "1h", "--agent", "ada", "--prompt"];
    let add = [&["schedule", "add"], &flags[..]].concat();
    let read = world.json(&[&add[..], &[&from_file]].concat());
    let prompt = "Look around.\nSay what you see.";
    assert_eq!(read["schedule"]["action"]["prompt"], prompt);

    let mut command = world.command();
    command.args(["--json"]).args(&add).arg("-").stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    child.stdin.take().unwrap().write_all(prompt.as_bytes()).unwrap();
    let piped = Outcome::from(child.wait_with_output().unwrap());
    let piped: Value = serde_json::from_str(&piped.stdout).unwrap();
    assert_eq!((&piped["created"], &piped["schedule"]), (&json!(false), &read["schedule"]));

    let literal = world.json(&[&add[..], &["@@ada, hello"]].concat());
    assert_eq!(literal["schedule"]["action"]["prompt"], "@ada, hello");
}

#[test]
fn schedules_are_listed_in_pages_and_shown() {
    let world = world();
    assert!(world.ok(&["schedule", "list"]).starts_with("no schedules yet; "));
    assert_eq!(world.json(&["schedule", "list"]), json!({"schedules": [], "cursor": null}));
    let id = standup(&world);
    world.ok(&["schedule", "add", "--name", "look", "--every", "1h", "--tool", "run_list"]);

    let listed = world.json(&["schedule", "list"]);
    assert_eq!(listed["schedules"].as_array().unwrap().len(), 2, "{listed}");
    let first = world.json(&["schedule", "list", "--limit", "1"]);
    let cursor = text(&first["cursor"]);
    let second = world.json(&["schedule", "list", "--limit", "1", "--cursor", &cursor]);
    assert_eq!(json!([first["schedules"][0], second["schedules"][0]]), listed["schedules"]);
    assert_eq!(second["cursor"], Value::Null);
    let table = world.ok(&["schedule", "list"]);
    assert!(table.starts_with("NAME ") && table.contains("agent ada"), "{table}");

    let shown = world.json(&["schedule", "show", &id]);
    assert_eq!(shown["schedule"]["name"], "standup");
    assert_eq!(shown["next"].as_array().unwrap().len(), 5, "{shown}");
    let fenced = "\n\nprompt (not written by Midwatch, shown unchanged)\n  | What changed?\n\n";
    assert!(world.ok(&["schedule", "show", &id]).contains(fenced));
}

/// Invisible and bidirectional characters are escaped wherever they are printed.
#[test]
fn deceptive_characters_are_escaped() {
    let world = world();
    let name = "x\u{200b}\u{e0041}y";
    let prompt = "read \u{202e}txt.exe\u{2066}";
    let flags = ["--every", "1h", "--agent", "ada", "--prompt", prompt];
    let added = world.ok(&[&["schedule", "add", "--name", name], &flags[..]].concat());
    let id = text(&world.json(&["schedule", "list"])["schedules"][0]["id"]);
    let pages = [
        added,
        world.ok(&["schedule", "list"]),
        world.ok(&["schedule", "show", &id]),
        world.ok(&["ledger", "tail"]),
        world.run(&["agent", "show", "\u{202e}eve"]).stderr,
    ];
    let hidden = ['\u{200b}', '\u{e0041}', '\u{202e}', '\u{2066}'];
    for page in pages {
        assert!(!page.contains(hidden), "{page}");
    }
    assert!(world.ok(&["schedule", "list"]).contains("x\\u{200b}\\u{e0041}y"));
    let shown = world.ok(&["schedule", "show", &id]);
    assert!(shown.contains("\n  | read \\u{202e}txt.exe\\u{2066}\n\n"), "{shown}");
    let refused = ["schedule", "edit", &id, "--name", "a\u{202e}b"];
    assert!(world.refused(&refused, "invalid_input", 2).contains("printable"));
    assert_eq!(world.json(&["schedule", "show", &id])["schedule"]["name"], name);
}

#[test]
fn pause_lasts_until_resume() {
    let world = world();
    let id = standup(&world);
    let paused = world.json(&["schedule", "pause", &id, "--reason", "holidays"]);
    assert_eq!(paused["changed"], true, "{paused}");
    assert_eq!(paused["schedule"]["status"], "paused");
    assert_eq!(paused["schedule"]["paused"]["note"], "holidays");
    assert_eq!(world.json(&["schedule", "pause", &id])["changed"], false);
    let shown = world.ok(&["schedule", "show", &id]);
    assert!(shown.contains("\nstatus         paused\n") && shown.contains(": holidays\n"));
    let again = world.ok(STANDUP);
    assert!(again.contains(" already exists and is paused\n"), "{again}");

    let resumed = world.json(&["schedule", "resume", &id]);
    assert_eq!((&resumed["changed"], &resumed["skipped"]), (&json!(true), &json!(0)), "{resumed}");
    assert_eq!(resumed["schedule"]["status"], "active");
    assert_eq!(resumed["schedule"]["paused"], Value::Null);
    assert_eq!(resumed["next"].as_array().unwrap().len(), 5, "{resumed}");
    assert_eq!(world.json(&["schedule", "resume", &id])["changed"], false);
}

#[test]
fn removed_schedule_is_not_found() {
    let world = world();
    let id = standup(&world);
    let output = world.ok(&["schedule", "remove", &id]);
    assert_eq!(output, format!("schedule `standup` ({id}) removed\n"));
    world.refused(&["schedule", "show", &id], "not_found", 3);
    world.refused(&["schedule", "remove", &id], "not_found", 3);
    assert_eq!(world.json(&["schedule", "list"])["schedules"], json!([]));
    assert_eq!(world.json(STANDUP)["created"], true);
}

#[test]
fn unknown_schedule_run_and_agent_are_not_found() {
    let world = world();
    for arguments in [
        &["schedule", "show", NO_SCHEDULE][..],
        &["schedule", "pause", NO_SCHEDULE],
        &["schedule", "resume", NO_SCHEDULE],
        &["schedule", "remove", NO_SCHEDULE],
        &["schedule", "fire", NO_SCHEDULE],
        &["why", NO_SCHEDULE],
        &["run", "show", NO_RUN],
        &["run", "cancel", NO_RUN],
        &["run", "retry", NO_RUN],
        &["run", "settle", NO_RUN, "--as", "done"],
    ] {
        world.refused(arguments, "not_found", 3);
    }
    let unknown_agent: Vec<&str> =
        STANDUP.iter().map(|word| if *word == "ada" { "nobody" } else { word }).collect();
    world.refused(&unknown_agent, "not_found", 3);
    assert_eq!(
        world.kinds(),
        ["genesis", "agent.registered"],
        "a refused command changed something"
    );
}

#[test]
fn invalid_values_are_refused() {
    let world = world();
    for flags in [
        &["--overlap", "sometimes"][..],
        &["--overlap", "buffer_all:0"],
        &["--missed", "some"],
        &["--window", "long"],
        &["--jitter", "0s"],
        &["--attempts", "0"],
        &["--backoff", "impatient"],
        &["--backoff", "1m:2:1s"],
        &["--resume", "later"],
        &["--priority", "10"],
        &["--per-day", "0"],
        &["--max-fires", "0"],
        &["--start-at", "soon"],
        &["--start-at", "2031-01-01T00:00:00Z", "--end-at", "2030-01-01T00:00:00Z"],
        &["--tier", "3"],
    ] {
        world.refused(&[STANDUP, flags].concat(), "invalid_input", 2);
    }
    let tool = ["schedule", "add", "--name", "look", "--every", "1h", "--tool", "run_list"];
    world.refused(&[&tool[..], &["--payload", "{"]].concat(), "invalid_input", 2);
    let id = standup(&world);
    world.refused(&["why", &id, "--at", "yesterday"], "invalid_input", 2);
    world.refused(&["run", "list", "--state", "sleeping"], "invalid_input", 2);
    world.refused(&["run", "list", "--limit", "0"], "invalid_input", 2);
    world.refused(&["schedule", "list", "--limit", "1001"], "invalid_input", 2);
}

/// Without a daemon the run stays queued, so that each state can be checked.
#[test]
fn run_is_started_cancelled_and_retried() {
    let world = world();
    assert_eq!(world.json(&["run", "list"]), json!({"runs": [], "cursor": null}));
    assert!(world.ok(&["run", "list"]).starts_with("no runs yet; "));
    let id = standup(&world);
    let before = world.json(&["schedule", "show", &id])["schedule"]["next_run_at"].clone();
    let fired = world.json(&["schedule", "fire", &id]);
    let run = text(&fired["run"]["id"]);
    assert_eq!(
        (&fired["run"]["state"], &fired["run"]["origin"]),
        (&json!("queued"), &json!("manual"))
    );
    assert_eq!((&fired["run"]["schedule_id"], &fired["run"]["agent"]), (&json!(id), &json!("ada")));
    let schedule = &world.json(&["schedule", "show", &id])["schedule"];
    assert_eq!((&schedule["next_run_at"], &schedule["live"]), (&before, &json!([run])));

    let listed = |flags: &[&str]| {
        let answer = world.json(&[&["run", "list"], flags].concat());
        answer["runs"].as_array().unwrap_or_else(|| panic!("{answer}")).len()
    };
    assert_eq!(listed(&[]), 1);
    assert_eq!(listed(&["--schedule", &id, "--state", "queued"]), 1);
    assert_eq!(listed(&["--state", "done"]), 0);
    assert_eq!(
        world.ok(&["run", "list", "--state", "done"]),
        "no matching runs; `midwatch run list` shows all\n"
    );
    assert!(world.ok(&["run", "show", &run]).contains("\norigin         manual\n"));

    let cancelled = world.json(&["run", "cancel", &run, "--reason", "not now"]);
    assert_eq!(cancelled["changed"], true, "{cancelled}");
    assert_eq!(cancelled["run"]["state"], "cancelled");
    assert_eq!(world.json(&["run", "cancel", &run])["changed"], false);
    let retried = world.json(&["run", "retry", &run]);
    assert_eq!((&retried["run"]["id"], &retried["run"]["state"]), (&json!(run), &json!("queued")));
    let unsettled = world.run(&["--json", "run", "settle", &run, "--as", "done"]);
    assert_eq!(unsettled.code, Some(4), "only an interrupted run can be settled: {unsettled:?}");
}

#[test]
fn why_reports_an_upcoming_slot() {
    let world = world();
    let id = standup(&world);
    let upcoming = world.json(&["why", &id]);
    assert_eq!(
        (&upcoming["schedule_id"], &upcoming["disposition"]),
        (&json!(id), &json!("upcoming")),
        "{upcoming}"
    );
    let slot = text(&world.json(&["schedule", "show", &id])["next"][0]);
    assert_eq!(upcoming["slot"], json!(slot));
    // The next slot is not asked for, so the sentence is about what was due before it, too.
    let mut at_slot = world.json(&["why", &id, "--at", &slot]);
    let obstacle = "; no daemon is running, so no run starts";
    let expected = format!("{slot} is an upcoming slot, not decided yet{obstacle}");
    assert_eq!(at_slot["sentence"], expected);
    at_slot["sentence"] = upcoming["sentence"].clone();
    assert_eq!(at_slot, upcoming);
    assert!(text(&upcoming["sentence"]).ends_with(obstacle), "{upcoming}");
    let shown = world.ok(&["why", &id]);
    assert!(shown.starts_with("nothing was due yet; next due "), "{shown}");
    let shown = world.ok(&["why", &id, "--at", &slot]);
    assert!(!shown.contains(&slot) && shown.ends_with("\ntimes are UTC\n"), "{shown}");
    assert!(text(&upcoming["wall"]).contains("T09:30:00+0"), "{upcoming}");
    let none = world.json(&["why", &id, "--at", "2020-01-01T12:00:00Z"]);
    assert_eq!(none["disposition"], "none", "{none}");
}

/// Commands return the same with and without a daemon.
#[test]
fn schedule_commands_return_the_same_with_and_without_a_daemon() {
    let results = |world: &World| {
        let id = standup(world);
        let added = world.json(STANDUP);
        let paused = world.json(&["schedule", "pause", &id, "--reason", "holidays"]);
        let resumed = world.json(&["schedule", "resume", &id]);
        let removed = world.json(&["schedule", "remove", &id]);
        [
            added["created"].clone(),
            added["next"].clone(),
            paused["schedule"]["status"].clone(),
            resumed["schedule"]["terms"].clone(),
            removed["schedule"]["id"].clone(),
        ]
    };
    let (without_daemon, with_daemon) = (world(), world());
    let daemon = with_daemon.up();
    assert_eq!(results(&without_daemon), results(&with_daemon));
    drop(daemon);
}

#[test]
fn run_watch_warns_that_no_daemon_is_running() {
    let world = world();
    let run = world.start_run(&standup(&world));
    let mut watch = world.command();
    watch.args(["run", "watch", &run]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut watch = watch.spawn().unwrap();
    let mut first = String::new();
    let mut stdout = BufReader::new(watch.stdout.take().unwrap());
    stdout.read_line(&mut first).unwrap();
    assert_eq!(first, format!("run `{run}` queued\n"));
    let _daemon = world.up();
    let mut rest = String::new();
    stdout.read_to_string(&mut rest).unwrap();
    assert!(rest.contains(" done"), "{rest}");
    let ended = watch.wait_with_output().unwrap();
    let remark = "no daemon is running: the run continues once `midwatch up` runs\n";
    assert_eq!(String::from_utf8(ended.stderr).unwrap(), remark);
}
