//! `--help` of every command, and `--version`.

use clap::Command;

use crate::support::transcript::Transcript;
use crate::support::world::World;

#[test]
fn every_command_has_help() {
    let world = World::new();
    let mut transcript = Transcript::new(&world);
    visit(&midwatch::cli::definition(), &[], &mut |command, path| {
        assert!(command.get_about().is_some(), "`{}` has no description", path.join(" "));
        transcript.run(&[path, &["--help"]].concat());
    });
    insta::assert_snapshot!("help", transcript.finish());
    assert!(!world.data().exists());
}

/// Visits a command and all commands below it, each with the words after `midwatch` that name it.
fn visit(command: &Command, path: &[&str], visitor: &mut impl FnMut(&Command, &[&str])) {
    visitor(command, path);
    for inner in command.get_subcommands() {
        visit(inner, &[path, &[inner.get_name()]].concat(), visitor);
    }
}

#[test]
fn version_short_help_and_no_arguments() {
    let world = World::new();
    let mut transcript = Transcript::new(&world);
    transcript.run(&["--version"]).run(&["-V"]).run(&["-h"]).run(&[]).run(&["agent"]);
    insta::assert_snapshot!("version", transcript.finish());
    assert!(!world.data().exists());
}
