//! Errors of commands: message, code and exit code, for people and as JSON.

use serde_json::Value;

use crate::support::transcript::Transcript;
use crate::support::world::World;

/// A world with the agent `ada`.
fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "letta", "--remote-id", "a-1"]);
    world
}

/// One character longer than a name may be.
const LONG: &str = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

/// Commands that are refused, with the error code and the exit code.
const REFUSALS: &[(&[&str], &str, i32)] = &[
    (&["agent", "show", "nobody"], "not_found", 3),
    (&["agent", "show", "adda"], "not_found", 3),
    (
        &["schedule", "add", "--name", "x", "--every", "1h", "--agent", "adda", "--prompt", "p"],
        "not_found",
        3,
    ),
    (
        &[
            "schedule",
            "add",
            "--name",
            "x",
            "--at",
            "2020-01-01T00:00:00Z",
            "--agent",
            "ada",
            "--prompt",
            "p",
        ],
        "invalid_input",
        2,
    ),
    (&["agent", "edit", "nobody", "--tier", "1"], "not_found", 3),
    (&["agent", "remove", "nobody"], "not_found", 3),
    (&["agent", "add", "ada", "--backend", "builtin"], "exists", 4),
    (
        &["agent", "add", "bob", "--backend", "letta", "--remote-id", "b", "--tier", "0"],
        "tier_too_low",
        4,
    ),
    (&["agent", "edit", "ada", "--tier", "0"], "tier_too_low", 4),
    (&["agent", "add", "bob", "--backend", "chatbot"], "invalid_input", 2),
    (&["agent", "edit", "ada", "--backend", "chatbot"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "letta"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "openai", "--model", "m"], "backend_unavailable", 4),
    (&["agent", "add", "bob", "--backend", "anthropic"], "backend_unavailable", 4),
    (&["agent", "add", "bob", "--backend", "webhook"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "mcp"], "backend_unavailable", 4),
    (&["agent", "edit", "ada", "--backend", "mcp"], "backend_unavailable", 4),
    (
        &["agent", "add", "bob", "--backend", "command", "--cwd", "~/x", "--", "true"],
        "invalid_input",
        2,
    ),
    (&["agent", "add", "bob", "--backend", "command", "--", "~/bin/x"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "builtin", "--script", "~/x.toml"], "invalid_input", 2),
    (&["agent", "edit", "ada", "--credential", "file:~/key"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "command"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "builtin", "--model", "m"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "webhook", "--url", "ftp://x"], "invalid_input", 2),
    (
        &["agent", "add", "bob", "--backend", "webhook", "--url", "https://me:word@x"],
        "invalid_input",
        2,
    ),
    (
        &["agent", "add", "bob", "--backend", "webhook", "--url", "https://x/?token=hunter2"],
        "invalid_input",
        2,
    ),
    (&["agent", "add", "bob", "--backend", "builtin", "--tier", "3"], "invalid_input", 2),
    (
        &["agent", "add", "bob", "--backend", "builtin", "--credential", "hunter2"],
        "invalid_input",
        2,
    ),
    (&["agent", "add", "Bob", "--backend", "builtin"], "invalid_input", 2),
    (&["agent", "add", "", "--backend", "builtin"], "invalid_input", 2),
    (&["agent", "add", LONG, "--backend", "builtin"], "invalid_input", 2),
    (&["agent", "show", "A B"], "invalid_input", 2),
    (&["agent", "list", "--limit", "0"], "invalid_input", 2),
    (&["agent", "list", "--limit", "1001"], "invalid_input", 2),
    (&["ledger", "tail", "--limit", "0"], "invalid_input", 2),
    (&["ledger", "tail", "--limit", "1001"], "invalid_input", 2),
    (&["ledger", "verify", "--vkey", "nonsense"], "invalid_input", 2),
    (&["ledger", "verify", "--export", "no-such-folder"], "not_found", 3),
    (&["ledger", "verify", "--expect-checkpoint", "no-such-file"], "not_found", 3),
    (&["ledger", "rebuild", "--from-export", "no-such-folder"], "exists", 4),
    (&["agent", "list", "--config", "no-such-file"], "not_found", 3),
];

/// Invalid command lines.
const MISUSES: &[&[&str]] = &[
    &["frobnicate"],
    &["agnet", "list"],
    &["start"],
    &["schedule", "add"],
    &["schedule", "add", "--name", "x", "--every", "1h", "--agent", "ada"],
    &["schedule", "add", "--name", "x", "--every", "1h", "--daily", "09:00", "--agent", "ada"],
    &["agent"],
    &["agent", "frobnicate"],
    &["agent", "add"],
    &["agent", "add", "bob"],
    &["agent", "add", "bob", "--backend"],
    &["agent", "add", "bob", "--backend", "builtin", "--frobnicate"],
    &["agent", "add", "bob", "--backend", "builtin", "--tier", "300"],
    &["agent", "add", "bob", "--backend", "builtin", "--tier", "high"],
    &["agent", "edit", "ada", "--credential", "env:A", "--no-credential"],
    &["agent", "show"],
    &["agent", "show", "ada", "bob"],
    &["agent", "list", "--limit", "many"],
    &["agent", "list", "--limit", "-1"],
    &["ledger", "tail", "--cursor", "first"],
    &["ledger", "rebuild", "--vkey", "k"],
    &["completions", "tcsh"],
    &["up", "now"],
];

#[test]
fn refusals_have_a_code_a_message_and_a_hint() {
    let world = world();
    let mut transcript = Transcript::new(&world);
    for (arguments, code, exit) in REFUSALS {
        transcript.both(arguments);
        let outcome = world.run(&[&["--json"], *arguments].concat());
        assert_eq!((outcome.error().0.as_str(), outcome.code), (*code, Some(*exit)), "{outcome:?}");
        let human = world.run(arguments);
        assert_eq!(human.code, Some(*exit), "{human:?}");
        assert_eq!(human.stdout, "", "{human:?}");
        assert!(human.stderr.contains(&format!("[{code}]")), "{human:?}");
    }
    insta::assert_snapshot!("refusals", transcript.finish());
    assert_eq!(
        world.kinds(),
        ["genesis", "agent.registered"],
        "a refused command changed something"
    );
}

#[test]
fn usage_errors_are_printed_for_people_and_as_json() {
    let world = world();
    let mut transcript = Transcript::new(&world);
    for arguments in MISUSES {
        transcript.both(arguments);
        let outcome = world.run(&[&["--json"], *arguments].concat());
        assert_eq!(
            (outcome.error().0.as_str(), outcome.code),
            ("bad_usage", Some(2)),
            "{outcome:?}"
        );
        let human = world.run(arguments);
        assert_eq!(human.code, Some(2), "{human:?}");
        // Without a subcommand it prints the help.
        let is_reported = human.stderr.contains("[bad_usage]") || *arguments == ["agent"];
        assert!(is_reported, "{human:?}");
    }
    insta::assert_snapshot!("misuse", transcript.finish());
    assert_eq!(
        world.kinds(),
        ["genesis", "agent.registered"],
        "a refused command changed something"
    );
}

/// Programs read only the document, so it must contain every detail.
#[test]
fn json_of_a_usage_error_names_the_wrong_argument() {
    let world = world();
    for (arguments, details) in [
        (&["agent", "add"][..], &["--backend", "<NAME>"][..]),
        (&["agent", "add", "bob"], &["--backend"]),
        (&["agent", "show"], &["<NAME>"]),
        (&["agent"], &["command"]),
        (&["agnet", "list"], &["agnet", "agent"]),
        (&["agent", "edit", "ada", "--credential", "env:A", "--no-credential"], &["--credential"]),
        (&["agent", "list", "--limitt", "3"], &["--limitt", "--limit"]),
        (&["ledger", "rebuild", "--vkey", "k"], &["--from-export"]),
        (&["completions", "tcsh"], &["tcsh", "bash"]),
    ] {
        let message = world.refused(arguments, "bad_usage", 2);
        for detail in details {
            assert!(message.contains(detail), "{arguments:?} must name `{detail}`: {message}");
        }
    }
}

/// The error document has exactly these three fields.
#[test]
fn every_error_document_has_the_same_fields() {
    let world = world();
    let refusals = REFUSALS.iter().map(|(arguments, ..)| *arguments);
    let mut others = Vec::new();
    for arguments in refusals.chain(MISUSES.iter().copied()) {
        let outcome = world.run(&[&["--json"], arguments].concat());
        let document: Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!((fields(&document), outcome.stderr.as_str()), (vec!["error"], ""));
        if fields(&document["error"]) != ["code", "hint", "message"] {
            others.push(format!("{arguments:?}: {document}"));
        }
    }
    assert!(others.is_empty(), "{}", others.join("\n"));
}

fn fields(value: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = value.as_object().unwrap().keys().map(String::as_str).collect();
    names.sort_unstable();
    names
}

#[test]
fn commands_without_a_data_directory_do_not_create_one() {
    let world = World::new();
    let mut transcript = Transcript::new(&world);
    transcript.both(&["status"]).both(&["ledger", "verify"]);
    insta::assert_snapshot!("without_data", transcript.finish());
    for arguments in [
        &["agent", "list"][..],
        &["agent", "show", "ada"],
        &["agent", "edit", "ada", "--tier", "1"],
        &["agent", "remove", "ada"],
        &["schedule", "list"],
        &["schedule", "show", "sch_00000000"],
        &["schedule", "add", "--name", "hourly", "--every", "1h", "--tool", "fs.list"],
        &["run", "list"],
        &["why", "sch_00000000"],
        &["ledger", "tail"],
        &["ledger", "tail", "--follow"],
        &["ledger", "checkpoint"],
        &["ledger", "export"],
        &["ledger", "rebuild"],
    ] {
        let message = world.refused(arguments, "not_found", 3);
        assert!(message.contains("there is no installation in"), "{arguments:?}: {message}");
    }
    assert!(!world.data().exists());
}
