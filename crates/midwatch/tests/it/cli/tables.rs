//! Names, times and tables as people see them.

use std::fs::OpenOptions;

use crate::support::world::World;

const LISTS: [&[&str]; 13] = [
    &["status"],
    &["timeline"],
    &["schedule", "list"],
    &["run", "list"],
    &["approval", "list"],
    &["agent", "list"],
    &["token", "list"],
    &["status", "--budgets"],
    &["status", "--capabilities"],
    &["doctor"],
    &["status", "--all"],
    &["ledger", "tail"],
    &["policy", "list"],
];

/// An installation with a long name, a run that waits for approval, one that failed, and one that is done.
fn world() -> World {
    let world = World::with_agent("ada");
    world.ok(&["agent", "add", "pay", "--backend", "builtin", "--tier", "2"]);
    let script = world.root().join("fails");
    std::fs::write(&script, "#!/bin/sh\nexit 3\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&script, mode).unwrap();
    let program = script.to_str().unwrap();
    world.ok(&["agent", "add", "fails", "--backend", "command", "--", program]);
    world.create_token("a-person-with-a-long-name", "operator");
    let name = "a schedule whose name is much longer than a column of a table";
    for agent in ["ada", "pay", "fails"] {
        let flags = ["--every", "1h", "--attempts", "1", "--agent", agent, "--prompt", "x"];
        world.ok(&[&["schedule", "add", "--name", &format!("{agent}: {name}")][..], &flags].concat());
    }
    world
}

#[test]
fn tables_fit_narrow_terminals() {
    let mut world = world();
    let daemon = world.up();
    let mut pages: Vec<Vec<String>> =
        LISTS.iter().map(|list| list.iter().map(|&word| word.to_owned()).collect()).collect();
    for (agent, state) in [("ada", "done"), ("pay", "waiting_permission"), ("fails", "failed")] {
        let schedules = world.json(&["schedule", "list", "--agent", agent]);
        let schedule = schedules["schedules"][0]["id"].as_str().unwrap();
        let run = world.start_run(schedule);
        let shown = world.wait_for_state(&run, state);
        let mut page =
            |words: &[&str]| pages.push(words.iter().map(|&word| word.to_owned()).collect());
        page(&["run", "show", &run]);
        page(&["run", "events", &run]);
        page(&["schedule", "show", schedule]);
        page(&["why", schedule]);
        page(&["agent", "show", agent]);
        page(&["policy", "explain", "--run", &run]);
        if let Some(approval) = shown["approval_id"].as_str() {
            page(&["approval", "show", approval]);
        }
    }
    for columns in [60, 80] {
        world.set("COLUMNS", columns.to_string());
        for list in &pages {
            let list: Vec<&str> = list.iter().map(String::as_str).collect();
            let page = world.run(&list).stdout;
            // A path, a hash or a key is one word, which is never broken.
            let is_long = |line: &str| line.split_whitespace().any(|word| 40 < word.len());
            let mut lines = page.lines().filter(|line| !line.contains('/') && !is_long(line));
            assert!(
                lines.all(|line| line.chars().count() <= columns),
                "{columns}: {list:?}\n{page}"
            );
        }
    }
    let runs = world.ok(&["run", "list"]);
    for expected in ["x failed", "! waiting", "done", "ada: a sche", "times are UTC"] {
        assert!(runs.contains(expected), "{runs}");
    }
    // What the table shows can be given to other commands.
    let short = runs.lines().nth(1).unwrap().split_whitespace().next().unwrap();
    assert!(short.len() < 30, "{runs}");
    assert!(world.ok(&["run", "show", short]).contains("schedule       fails: a schedule whose"));
    drop(daemon);
}

/// What a command answers and why it refuses, in sentences that are longer than a line.
const SENTENCES: [&[&str]; 17] = [
    &["run", "list"],
    &["schedule", "add"],
    &["schedule", "next", "--cron", "0 9 * *"],
    &["schedule", "next", "--cron", "0 9 * * 1-5 *", "--tz", "UTC"],
    &["schedule", "add", "--name", "x", "--every", "1h", "--agent", "nope", "--prompt", "x"],
    &["agent", "add", "bob", "--backend", "command", "--cwd", "~/x", "--", "/bin/true"],
    &["agent", "add", "bob", "--backend", "letta", "--remote-id", "a", "--credential", "env:NOPE"],
    &["agent", "test", "bob"],
    &["run", "start", "news"],
    &["lease", "renew"],
    &["event", "publish", "mail/arrived-in-the-inbox-of-the-team"],
    &["notice", "list"],
    &["notice", "test"],
    &["config", "check"],
    &["ledger", "verify"],
    &["token", "create", "--name", "ada-lovelace", "--role", "operator"],
    &["mcp", "--toolsets", "nope"],
];

#[test]
fn sentences_fit_narrow_terminals_and_pipes() {
    let mut world = World::with_agent("ada");
    world.add_daily("news", "ada", "x");
    let mut broken = 0;
    for columns in [60, 80] {
        world.set("COLUMNS", columns.to_string());
        for command in SENTENCES {
            let outcome = world.run(command);
            let text = format!("{}{}", outcome.stdout, outcome.stderr);
            for line in text.lines() {
                // An id, a key or a path is one word, and so is a command; neither is broken.
                let words = line.trim_start().trim_start_matches("hint: ");
                let is_whole = !words.contains(' ')
                    || (words.starts_with('`') && 3 < words.matches(' ').count());
                assert!(
                    line.chars().count() <= columns || is_whole,
                    "{columns}: {command:?}\n{text}"
                );
            }
            broken += usize::from(text.lines().any(|line| line.starts_with("       ")));
        }
    }
    assert!(10 < broken, "sentences longer than a line are tried: {broken}");
    world.set("COLUMNS", "200");
    let refused = world.run(&["run", "start", "news"]).stderr;
    assert_eq!(refused.lines().count(), 2, "the error and its hint: {refused}");
}

#[test]
fn schedules_tokens_and_runs_are_given_by_name_or_prefix() {
    let world = World::with_agent("ada");
    let id = world.add_daily("standup", "ada", "x");
    let run =
        world.json(&["schedule", "fire", "standup"])["run"]["id"].as_str().unwrap().to_owned();
    assert_eq!(world.json(&["run", "show", &run[..20]])["run"]["schedule_name"], "standup");
    assert_eq!(world.json(&["schedule", "pause", &id[..8]])["schedule"]["name"], "standup");
    assert_eq!(world.json(&["run", "cancel", &run[..20]])["run"]["id"], run.as_str());
    world.create_token("ada-phone", "operator");
    assert_eq!(world.json(&["token", "revoke", "ada-phone"])["changed"], true);
    world.refused(&["token", "revoke", "ada-phone"], "not_found", 3);
    assert!(world.refused(&["why", "standdown"], "not_found", 3).contains("`standdown`"));
}

#[test]
fn times_are_local_unless_exact_ones_are_requested() {
    let mut world = World::with_agent("ada");
    world.set("TZ", "Asia/Kolkata");
    world.ok(&[
        "schedule",
        "add",
        "--name",
        "new year",
        "--at",
        "2199-01-01T00:00:00Z",
        "--agent",
        "ada",
        "--prompt",
        "x",
    ]);
    let list = world.ok(&["schedule", "list"]);
    assert!(list.contains("1 Jan 2199 05:30:00"), "{list}");
    assert!(list.ends_with("times are Asia/Kolkata\n"), "{list}");
    assert!(world.ok(&["schedule", "list", "--utc"]).contains("2199-01-01T00:00:00Z"));
}

#[test]
fn more_is_a_command_that_prints_the_next_page() {
    let world = World::with_agent("ada");
    world.add_agent("bob");
    world.add_agent("cleo");
    let first = world.ok(&["agent", "list", "--limit", "1"]);
    let more = first.lines().last().unwrap().strip_prefix("more: midwatch ").unwrap();
    assert_eq!(more, "agent list --limit 1 --cursor ada");
    let second = world.ok(&more.split(' ').collect::<Vec<_>>());
    let more = "more: midwatch agent list --limit 1 --cursor bob";
    assert!(second.contains("\nbob ") && second.lines().last() == Some(more), "{second}");
}

#[test]
fn an_answer_that_cannot_be_written_is_an_error() {
    let world = World::with_agent("ada");
    for arguments in [
        &["agent", "list"][..],
        &["--json", "agent", "list"],
        &["completions", "bash"],
        &["timeline"],
        &["ledger", "tail", "--follow"],
        &["--help"],
    ] {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = world.command().args(arguments).stdout(full).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{arguments:?}");
        let said = String::from_utf8(output.stderr).unwrap();
        let is_said = said.contains("could not be written to stdout");
        assert!(is_said || arguments == ["--help"], "{arguments:?}: {said}");
    }
}

#[test]
fn marks_have_a_colour_on_a_terminal_only() {
    let mut world = World::with_agent("ada");
    let plain = world.ok(&["status"]);
    assert!(plain.contains("ATTENTION") && !plain.contains('\u{1b}'), "{plain}");
    world.set("CLICOLOR_FORCE", "1");
    assert!(world.ok(&["status"]).contains("\u{1b}[1m\u{1b}[33mATTENTION"));
}
