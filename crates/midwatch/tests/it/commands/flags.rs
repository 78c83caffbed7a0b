//! `--data`, `--config` and `--json`, wherever they stand.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::world::{Outcome, World};

#[test]
fn common_flags_are_accepted_before_between_and_after() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let data = world.data().to_str().unwrap().to_owned();
    let elsewhere = World::new();
    let expected = world.json(&["agent", "list"]);
    assert_eq!(expected["agents"].as_array().unwrap().len(), 1);
    let joined = format!("--data={data}");
    for arguments in [
        &["--data", &data, "--json", "agent", "list"][..],
        &["--json", "--data", &data, "agent", "list"],
        &["agent", "--data", &data, "--json", "list"],
        &["agent", "--json", "list", "--data", &data],
        &["agent", "list", "--data", &data, "--json"],
        &["agent", "list", "--json", &joined],
        &["--json", "agent", "list", &joined],
        &["--data", &data, "agent", "list", "--json"],
    ] {
        let outcome = elsewhere.run(arguments);
        assert_eq!(outcome.code, Some(0), "{arguments:?}: {outcome:?}");
        let found: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
        assert_eq!(found, expected, "{arguments:?}");
    }
    assert!(!elsewhere.data().exists(), "the flag counts before the variable");
}

/// What stands after `--` belongs to the agent's program.
#[test]
fn words_of_an_agents_program_are_no_flags() {
    let world = World::new();
    let flags = ["--json", "--data", "/nowhere", "--help", "--version"];
    let add = ["agent", "add", "ada", "--backend", "command", "--", "tool"];
    let said = world.ok(&[&add[..], &flags].concat());
    assert_eq!(said, "agent `ada` registered (command, tier 1)\n");
    let shown = world.json(&["agent", "show", "ada"]);
    let argv: Vec<&str> =
        shown["agent"]["argv"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(argv, [&["tool"][..], &flags].concat());
    let refused = world.run(&[&["agent", "edit", "nobody", "--", "tool"][..], &flags].concat());
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""), "{refused:?}");
}

#[test]
fn a_relative_data_directory_is_below_the_working_directory() {
    let world = World::new();
    let mut command = world.command();
    command.current_dir(world.root()).args(["--data", "here", "agent", "add", "ada"]);
    command.args(["--backend", "builtin"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(world.root().join("here/midwatch.db").exists());
}

#[test]
fn without_a_word_the_platforms_folder_is_used() {
    let world = World::new();
    let mut command = world.command();
    command.env_remove("MIDWATCH_DATA").args(["agent", "add", "ada", "--backend", "builtin"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(world.root().join(".local/share/midwatch/midwatch.db").exists());
}

/// The variable stands for the flag, and is no part of what was typed.
#[test]
fn what_is_said_of_a_misuse_does_not_depend_on_a_variable() {
    let world = World::new();
    for arguments in [&[][..], &["agent"], &["agent", "add"], &["ledger", "rebuild", "--vkey", "k"]]
    {
        let with = world.run(arguments);
        let mut command = world.command();
        let without = command.env_remove("MIDWATCH_DATA").args(arguments).output().unwrap();
        let without = Outcome::from(without);
        assert_eq!((with.code, with.stderr), (without.code, without.stderr), "{arguments:?}");
    }
}

#[test]
fn a_reader_that_has_gone_away_is_no_error() {
    let world = World::new();
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    for arguments in [
        &["agent", "list"][..],
        &["--json", "ledger", "tail"],
        &["--help"],
        &["completions", "bash"],
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = world.command().args(arguments).stdout(writer).output().unwrap();
        let outcome = Outcome::from(output);
        assert_eq!((outcome.code, outcome.stderr.as_str()), (Some(0), ""), "{arguments:?}");
    }
}

/// Whoever comes first makes the directory, and nobody else may look into what is made.
#[test]
fn whatever_is_made_is_for_its_owner_only() {
    let add = ["agent", "add", "ada", "--backend", "builtin"];
    let first: [&[&str]; 3] = [&["config", "init"], &add, &[]];
    for command in first {
        let mut world = World::new();
        world.set("MIDWATCH_LEDGER_CHECKPOINT_COPY", world.root().join("copy").to_str().unwrap());
        let daemon = command.is_empty().then(|| world.up());
        if daemon.is_none() {
            world.ok(command);
        }
        let elsewhere = world.root().join("below/elsewhere").display().to_string();
        world.ok(&add);
        world.ok(&["config", "init", "--config", &format!("{elsewhere}/new.toml")]);
        world.ok(&["ledger", "checkpoint"]);
        world.ok(&["ledger", "export"]);
        world.ok(&["ledger", "export", "--dir", &elsewhere]);
        drop(daemon);
        let made = modes(world.root());
        assert!(12 < made.len(), "{made:?}");
        let open: Vec<_> = made.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
        assert!(open.is_empty(), "{command:?}: {open:?}");
    }
}

/// Everything below a folder, with its mode.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let made = entry.metadata().unwrap();
        found.push((entry.path(), made.permissions().mode()));
        if made.is_dir() {
            found.extend(modes(&entry.path()));
        }
    }
    found
}

/// Paths need not be text, and must not become others on their way.
#[test]
fn paths_that_are_no_text_are_used_as_they_are_or_refused() {
    let world = World::new();
    let strange = |name: &[u8]| world.root().join(OsStr::from_bytes(name));
    let data = strange(b"data-\xff");
    let run = |arguments: &[&OsStr]| {
        let mut command = world.command();
        Outcome::from(command.env("MIDWATCH_DATA", &data).args(arguments).output().unwrap())
    };
    let added = run(&words(&["agent", "add", "ada", "--backend", "builtin"]));
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(data.join("midwatch.db").exists());
    assert_eq!(run(&words(&["ledger", "verify"])).code, Some(0));

    let dir = strange(b"export-\xff");
    let mut export = words(&["--json", "ledger", "export", "--dir"]);
    export.push(dir.as_os_str());
    let outcome = run(&export);
    match outcome.code {
        Some(0) => assert_eq!(fs::read_dir(&dir).unwrap().count(), 2, "{outcome:?}"),
        _ => assert_eq!(outcome.error().0, "invalid_input", "{outcome:?}"),
    }
    for entry in fs::read_dir(world.root()).unwrap() {
        let name = entry.unwrap().file_name();
        assert!(!name.to_string_lossy().starts_with("export-") || name == dir.file_name().unwrap());
    }

    let name = OsStr::from_bytes(b"\xff");
    for form in [&[][..], &["--json"]] {
        let mut arguments = words(form);
        arguments.extend(words(&["agent", "show"]));
        arguments.push(name);
        assert_eq!(run(&arguments).code, Some(2));
    }
}

fn words<'a>(words: &[&'a str]) -> Vec<&'a OsStr> {
    words.iter().map(|word| OsStr::new(*word)).collect()
}
