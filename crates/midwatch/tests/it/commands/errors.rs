//! Every way to be refused: the words, the code and the exit code, in both forms.

use serde_json::Value;

use super::Transcript;
use crate::world::World;

/// A world with an agent called `ada`.
fn world() -> World {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "letta", "--remote-id", "a-1"]);
    world
}

/// One letter more than a name may have.
const LONG: &str = "nnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnnn";

/// Commands, and the code and exit code with which they are refused.
const REFUSALS: &[(&[&str], &str, i32)] = &[
    (&["agent", "show", "nobody"], "not_found", 3),
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
    (&["agent", "add", "bob", "--backend", "openai"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "webhook"], "invalid_input", 2),
    (&["agent", "add", "bob", "--backend", "mcp"], "invalid_input", 2),
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

/// Command lines that make no sense.
const MISUSES: &[&[&str]] = &[
    &["frobnicate"],
    &["agnet", "list"],
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
fn refusals_have_a_code_a_sentence_and_a_way_out() {
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
    assert_eq!(world.kinds(), ["genesis", "agent.registered"], "nothing was changed");
}

#[test]
fn misuse_is_told_in_both_forms() {
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
        // Whoever leaves out the command gets the help.
        let is_told = human.stderr.contains("[bad_usage]") || *arguments == ["agent"];
        assert!(is_told, "{human:?}");
    }
    insta::assert_snapshot!("misuse", transcript.finish());
    assert_eq!(world.kinds(), ["genesis", "agent.registered"], "nothing was changed");
}

/// Programs read only the document, so it must say what is wrong.
#[test]
fn the_document_of_a_misuse_says_all_that_matters() {
    let world = world();
    for (arguments, words) in [
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
        let said = world.refused(arguments, "bad_usage", 2);
        for word in words {
            assert!(said.contains(word), "{arguments:?} must name `{word}`: {said}");
        }
    }
}

/// The error document has these three fields and no other, and each of them is said.
#[test]
fn the_shape_of_an_error_is_the_same_everywhere() {
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
fn without_a_data_directory_nothing_is_made_just_to_look() {
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
        let said = world.refused(arguments, "not_found", 3);
        assert!(said.contains("there is no watch in"), "{arguments:?}: {said}");
    }
    assert!(!world.data().exists());
}
