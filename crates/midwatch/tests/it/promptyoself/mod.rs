//! The commands of promptyoself, as its clients know them, on the schedules of a watch.

mod commands;
mod execute;
mod imports;
mod plugin;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::Command;
use std::sync::mpsc::{self, Receiver};

use serde_json::Value;

use crate::world::{Outcome, World};

/// A world that looks for Letta where nobody is.
fn world() -> World {
    let mut world = World::new();
    world.set("LETTA_BASE_URL", "http://127.0.0.1:9");
    world
}

/// One of its commands: it must print one JSON document and nothing else, whatever comes of it.
fn run(world: &World, arguments: &[&str]) -> (Option<i32>, Value) {
    said(world.command().arg("promptyoself").args(arguments))
}

fn said(command: &mut Command) -> (Option<i32>, Value) {
    let outcome = Outcome::from(command.output().unwrap());
    let document: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {command:?}: {outcome:?}"));
    (outcome.code, document)
}

/// One that must succeed.
fn ok(world: &World, arguments: &[&str]) -> Value {
    let (code, document) = run(world, arguments);
    assert_eq!((code, &document["status"]), (Some(0), &"success".into()), "{document}");
    document
}

/// One that must be refused: both styles of errors in one object, and code 1. Returns the text.
fn refused(world: &World, arguments: &[&str]) -> String {
    let (code, document) = run(world, arguments);
    assert_eq!((code, &document["status"]), (Some(1), &"error".into()), "{document}");
    assert_eq!(document["error"], document["message"]);
    document["error"].as_str().unwrap_or_else(|| panic!("{document}")).to_owned()
}

/// `register` for an agent that nobody is asked about.
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

/// A stand-in for Letta that gives the same answer to everybody. Gives its url, and the heads and
/// documents that it is sent.
fn letta(answer: &str) -> (String, Receiver<(String, String)>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let (sender, requests) = mpsc::channel();
    let answer = format!(
        "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{answer}",
        answer.len()
    );
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let _ = sender.send(request(&mut stream));
            let _ = stream.write_all(answer.as_bytes());
        }
    });
    (url, requests)
}

fn request(stream: &mut TcpStream) -> (String, String) {
    let (mut bytes, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        let count = stream.read(&mut chunk).unwrap();
        assert!(0 < count, "it was cut off");
        bytes.extend_from_slice(&chunk[..count]);
        let text = String::from_utf8_lossy(&bytes);
        let Some((head, body)) = text.split_once("\r\n\r\n") else { continue };
        let head = head.to_ascii_lowercase();
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
        let length: usize = length.map_or(0, |length| length.parse().unwrap());
        if length <= body.len() {
            return (head, body.to_owned());
        }
    }
}
