//! `midwatch demo`: what its minute shows, with and without a terminal, and that it leaves nothing behind.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process, test_kill_process};

use crate::support::terminal::Terminal;
use crate::support::wait::wait_until;
use crate::support::world::World;

/// A world whose temporary directories are in its root.
fn world() -> World {
    let mut world = World::new();
    let root = world.root().to_str().unwrap().to_owned();
    world.set("TMPDIR", root);
    world.set("COLUMNS", "80");
    world
}

fn left_files(world: &World) -> usize {
    std::fs::read_dir(world.root()).unwrap().count()
}

/// Checks that a text has all these parts, in this order, wherever its lines break.
fn check_order(text: &str, parts: &[&str]) {
    let words = text.split_whitespace().collect::<Vec<_>>().join(" ");
    let mut rest = words.as_str();
    for part in parts {
        let found = rest.find(part).unwrap_or_else(|| panic!("no {part:?} in the rest of {text}"));
        rest = &rest[found + part.len()..];
    }
}

/// The process that the text names after a word.
fn pid_after(text: &str, word: &str) -> Pid {
    let (_, rest) = text.split_once(word).unwrap_or_else(|| panic!("no {word} in {text}"));
    let digits: String = rest.chars().take_while(char::is_ascii_digit).collect();
    Pid::from_raw(digits.parse().unwrap()).unwrap()
}

/// Nobody is there, so nothing is approved; the run is parked before and after the kill.
#[test]
fn without_a_terminal_the_demo_approves_nothing_and_ends() {
    let world = world();
    let output = world.command().arg("demo").stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    check_order(
        &text,
        &[
            "1. A schedule fires",
            "hello: run done",
            "All is well.",
            "2. A slot is skipped",
            "report: run started",
            "report: no run for the slot of",
            "an earlier run was still live",
            "$ midwatch why report",
            "did not run",
            "3. A run waits for you",
            "deploy: run waits for approval",
            "$ midwatch approval approve apr_",
            "The run stays parked",
            "4. The daemon is killed",
            "$ kill -9 ",
            "$ midwatch up",
            "report: run interrupted, outcome unknown",
            "deploy: still waits for approval",
            "5. Why?",
            "$ midwatch why report --at ",
            "Now type:",
            "midwatch up",
            "the demo has ended; its daemon is stopped and",
        ],
    );
    assert!(!text.contains("approved by") && !text.contains("deploy: run done"), "{text}");
    for line in text.lines().filter(|line| !line.starts_with("$ ")) {
        let words = || line.split(|c: char| c.is_whitespace() || ";,`".contains(c));
        let is_id = |word: &str| word.starts_with("run_") && 20 < word.len();
        assert!(!words().any(is_id), "a long id in {line}");
        let is_instant = |word: &str| word.contains('T') && word.ends_with('Z');
        assert!(!words().any(is_instant), "no local time in {line}");
        assert!(line.chars().count() <= 80 || line.contains("midwatch-demo-"), "{line}");
    }
    let killed = pid_after(&text, "$ kill -9 ");
    assert!(test_kill_process(killed).is_err(), "the killed daemon still runs");
    assert_eq!(left_files(&world), 0, "the demo left files behind");
}

#[test]
fn at_a_terminal_a_person_approves_and_ctrl_c_ends_the_demo() {
    let world = world();
    let mut terminal = Terminal::start(&world, &["demo"]);
    terminal.wait_for("approve exactly this? [y/N] ");
    terminal.press("y\r");
    terminal.wait_for("Now type, in another terminal");
    terminal.wait_for("midwatch status");
    check_order(
        terminal.text(),
        &[
            "deploy: run waits for approval",
            "approved deploy: its run starts now",
            "deploy: run approved by uid:",
            "deploy: run done",
            "$ kill -9 ",
            "report: run interrupted, outcome unknown",
        ],
    );
    assert!(!terminal.text().contains("still waits for approval"));
    assert_ne!(left_files(&world), 0, "it goes on until ctrl-c");
    terminal.press("\x03");
    terminal.wait_for("the demo has ended; its daemon is stopped and");
    assert_eq!(terminal.wait(), Some(0));
    assert_eq!(left_files(&world), 0, "the demo left files behind");
}

/// A person may also say no, and may end the demo at any time.
#[test]
fn at_a_terminal_a_person_may_refuse_and_end_it_early() {
    let world = world();
    let mut terminal = Terminal::start(&world, &["demo"]);
    terminal.wait_for("approve exactly this? [y/N] ");
    terminal.press("n\r");
    terminal.wait_for("It was not approved");
    terminal.press("\x03");
    terminal.wait_for("the demo has ended; its daemon is stopped and");
    assert_eq!(terminal.wait(), Some(0));
    assert!(!terminal.text().contains("deploy: run started"));
    assert_eq!(left_files(&world), 0, "the demo left files behind");
}

#[test]
fn a_signal_ends_the_demo_and_its_daemon() {
    let world = world();
    let mut demo = world.command().arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let daemon = pid_after(&lines.next().unwrap(), "(pid ");
    kill_process(Pid::from_child(&demo), Signal::TERM).unwrap();
    let last = lines.last().unwrap();
    assert!(last.starts_with("the demo has ended; its daemon is stopped and"), "{last}");
    assert!(demo.wait().unwrap().success());
    wait_until(|| test_kill_process(daemon).is_err());
    assert_eq!(left_files(&world), 0, "the demo left files behind");
}
