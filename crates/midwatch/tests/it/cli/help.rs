//! `--help` of every command, and `--version`.

use crate::support::transcript::Transcript;
use crate::support::world::World;

const COMMANDS: [&str; 80] = [
    "",
    "up",
    "demo",
    "status",
    "doctor",
    "agent",
    "agent add",
    "agent edit",
    "agent list",
    "agent show",
    "agent test",
    "agent remove",
    "schedule",
    "schedule add",
    "schedule edit",
    "schedule list",
    "schedule show",
    "schedule pause",
    "schedule resume",
    "schedule remove",
    "schedule fire",
    "schedule backfill",
    "schedule import",
    "schedule next",
    "run",
    "run start",
    "run list",
    "run show",
    "run events",
    "run output",
    "run watch",
    "run cancel",
    "run retry",
    "run settle",
    "approval",
    "approval list",
    "approval show",
    "approval approve",
    "approval deny",
    "approval revoke",
    "approval key",
    "approval sign",
    "freeze",
    "thaw",
    "lease",
    "lease renew",
    "policy",
    "policy check",
    "policy explain",
    "policy replay",
    "token",
    "token create",
    "token list",
    "token revoke",
    "event",
    "event publish",
    "why",
    "mcp",
    "promptyoself",
    "promptyoself register",
    "promptyoself list",
    "promptyoself cancel",
    "promptyoself execute",
    "promptyoself test",
    "promptyoself agents",
    "promptyoself upload",
    "ledger",
    "ledger tail",
    "ledger verify",
    "ledger export",
    "ledger checkpoint",
    "ledger rebuild",
    "config",
    "config init",
    "store",
    "store copy",
    "config check",
    "config show",
    "config reload",
    "completions",
];

#[test]
fn every_command_has_help() {
    let world = World::new();
    let mut transcript = Transcript::new(&world);
    for command in COMMANDS.into_iter().chain(["man"]) {
        let words: Vec<&str> = command.split_whitespace().chain(["--help"]).collect();
        transcript.run(&words);
    }
    insta::assert_snapshot!("help", transcript.finish());
    assert!(!world.data().exists());
}

/// `COMMANDS` is complete.
#[test]
fn help_test_covers_every_command() {
    fn visit(command: &clap::Command, path: &str, found: &mut Vec<String>) {
        found.push(path.trim().to_owned());
        for inner in command.get_subcommands() {
            visit(inner, &format!("{path} {}", inner.get_name()), found);
        }
    }
    let mut found = Vec::new();
    visit(&midwatch::cli::definition(), "", &mut found);
    found.sort();
    let mut listed: Vec<&str> = COMMANDS.into_iter().chain(["man"]).collect();
    listed.sort_unstable();
    assert_eq!(found, listed);
}

#[test]
fn version_short_help_and_no_arguments() {
    let world = World::new();
    let mut transcript = Transcript::new(&world);
    transcript.run(&["--version"]).run(&["-V"]).run(&["-h"]).run(&[]).run(&["agent"]);
    insta::assert_snapshot!("version", transcript.finish());
    assert!(!world.data().exists());
}
