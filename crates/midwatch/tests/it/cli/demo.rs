//! `midwatch demo`.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::support::world::World;

#[test]
fn demo_fires_a_slot_and_leaves_no_files() {
    let mut world = World::new();
    let root = world.root().to_str().unwrap().to_owned();
    world.set("TMPDIR", root);
    let mut demo = world.command().arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("ready: "));
    // The demo runs until it is interrupted, so read no further than the end of its first run.
    let mut printed = Vec::new();
    while !printed.last().is_some_and(|line: &String| line.contains("demo done")) {
        printed.push(lines.next().expect("the demo ended"));
    }
    let mut printed = printed.iter();
    for expected in ["schedule sch_", "demo started", "demo done ("] {
        assert!(printed.any(|line| line.contains(expected)), "no {expected}");
    }
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    assert!(demo.wait().unwrap().success());
    let left = std::fs::read_dir(world.root()).unwrap().count();
    assert_eq!(left, 0, "the demo left files behind");
}
