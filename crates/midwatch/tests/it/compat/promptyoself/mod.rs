//! The commands of promptyoself, as its clients call them.

mod commands;
mod execute;
pub(super) mod imports;
mod plugin;

use std::process::Command;
use std::sync::mpsc::Receiver;

use serde_json::Value;

use crate::support::http_stub::{self, Request};
use crate::support::world::{Outcome, World};

/// A world whose Letta server refuses connections.
fn world() -> World {
    let mut world = World::new();
    world.set("LETTA_BASE_URL", "http://127.0.0.1:9");
    world
}

/// Runs a command, which must print exactly one JSON document. Returns its exit code and the document.
fn run(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    json_of(world.command().arg("promptyoself").args(arguments))
}

fn json_of(command: &mut Command) -> (Option<i32>, Value) {
    let outcome = Outcome::from(command.output().unwrap());
    let document: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {command:?}: {outcome:?}"));
    (outcome.code, document)
}

/// Runs a command that must succeed. Returns the document.
fn ok(world: &World, arguments: &[&str]) -> Value {
    let (code, document) = run(world, arguments);
    assert_eq!((code, &document["status"]), (Some(0), &"success".into()), "{document}");
    document
}

/// Runs a command that must be refused with code 1 and both styles of errors in one object. Returns the text.
fn refused(world: &World, arguments: &[&str]) -> String {
    let (code, document) = run(world, arguments);
    assert_eq!((code, &document["status"]), (Some(1), &"error".into()), "{document}");
    assert_eq!(document["error"], document["message"]);
    document["error"].as_str().unwrap_or_else(|| panic!("{document}")).to_owned()
}

/// `register` without asking Letta whether the agent exists.
fn register(world: &World, agent: &str, prompt: &str, when: &[&str]) -> Value {
    let flags = ["register", "--agent-id", agent, "--prompt", prompt, "--skip-validation"];
    ok(world, &[&flags, when].concat())
}

fn list(world: &World, flags: &[&str]) -> Vec<Value> {
    let listed = ok(world, &[&["list"], flags].concat());
    let schedules = listed["schedules"].as_array().unwrap().clone();
    assert_eq!(listed["count"], schedules.len());
    schedules
}

/// A server that gives the same response to every request. Returns its URL and the requests.
fn letta(document: &str) -> (String, Receiver<Request>) {
    http_stub::serve(std::iter::repeat(http_stub::ok(document)))
}
