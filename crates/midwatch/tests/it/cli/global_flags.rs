//! `--data`, `--config` and `--json` in every position, and what the program does with paths and pipes.

use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::support::world::{Outcome, World};

#[test]
fn global_flags_are_accepted_in_every_position() {
    let world = World::new();
    world.add_agent("ada");
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
    assert!(!elsewhere.data().exists(), "the variable took precedence over the flag");
}

/// Arguments after `--` belong to the agent's program.
#[test]
fn arguments_of_an_agents_program_are_not_parsed_as_flags() {
    let world = World::new();
    let flags = ["--json", "--data", "/nowhere", "--help", "--version"];
    let add = ["agent", "add", "ada", "--backend", "command", "--", "tool"];
    let output = world.ok(&[&add[..], &flags].concat());
    assert_eq!(output, "agent `ada` registered (command, tier 1)\n");
    let shown = world.json(&["agent", "show", "ada"]);
    let argv: Vec<&str> =
        shown["agent"]["argv"].as_array().unwrap().iter().map(|it| it.as_str().unwrap()).collect();
    assert_eq!(argv, [&["tool"][..], &flags].concat());
    let refused = world.run(&[&["agent", "edit", "nobody", "--", "tool"][..], &flags].concat());
    assert_eq!((refused.code, refused.stdout.as_str()), (Some(3), ""), "{refused:?}");
}

#[test]
fn relative_data_directory_is_resolved_against_the_working_directory() {
    let world = World::new();
    let mut command = world.command();
    command.current_dir(world.root()).args(["--data", "here", "agent", "add", "ada"]);
    command.args(["--backend", "builtin"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(world.root().join("here/midwatch.db").exists());
}

#[test]
fn default_data_directory_is_the_platforms() {
    let world = World::new();
    let mut command = world.command();
    command.env_remove("MIDWATCH_DATA").args(["agent", "add", "ada", "--backend", "builtin"]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(world.root().join(".local/share/midwatch/midwatch.db").exists());
}

/// `MIDWATCH_DATA` stands for the flag, and is not part of the command line in an error.
#[test]
fn usage_errors_do_not_depend_on_the_data_variable() {
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
fn closed_stdout_is_not_an_error() {
    let world = World::new();
    world.add_agent("ada");
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

/// The first command creates the directory; no other user may read what any command creates.
#[test]
fn created_files_are_readable_by_their_owner_only() {
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
        let created = modes(world.root());
        assert!(12 < created.len(), "{created:?}");
        let open: Vec<_> = created.iter().filter(|(_, mode)| mode & 0o077 != 0).collect();
        assert!(open.is_empty(), "{command:?}: {open:?}");
    }
}

/// Every file and folder below a folder, with its mode.
fn modes(folder: &Path) -> Vec<(PathBuf, u32)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        found.push((entry.path(), metadata.permissions().mode()));
        if metadata.is_dir() {
            found.extend(modes(&entry.path()));
        }
    }
    found
}

/// Paths need not be UTF-8, and must not be changed.
#[test]
fn paths_that_are_not_utf8_are_used_unchanged_or_refused() {
    let world = World::new();
    let path = |name: &[u8]| world.root().join(OsStr::from_bytes(name));
    let data = path(b"data-\xff");
    let run = |arguments: &[&OsStr]| {
        let mut command = world.command();
        Outcome::from(command.env("MIDWATCH_DATA", &data).args(arguments).output().unwrap())
    };
    let added = run(&os_strs(&["agent", "add", "ada", "--backend", "builtin"]));
    assert_eq!(added.code, Some(0), "{added:?}");
    assert!(data.join("midwatch.db").exists());
    assert_eq!(run(&os_strs(&["ledger", "verify"])).code, Some(0));

    let dir = path(b"export-\xff");
    let mut export = os_strs(&["--json", "ledger", "export", "--dir"]);
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
        let mut arguments = os_strs(form);
        arguments.extend(os_strs(&["agent", "show"]));
        arguments.push(name);
        assert_eq!(run(&arguments).code, Some(2));
    }
}

fn os_strs<'a>(words: &[&'a str]) -> Vec<&'a OsStr> {
    words.iter().map(|word| OsStr::new(*word)).collect()
}
