//! `midwatch demo`: what somebody sees who tries it for the first time.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use rustix::process::{Pid, Signal, kill_process};

use crate::world::World;

#[test]
fn a_slot_fires_and_nothing_stays_behind() {
    let mut world = World::new();
    let root = world.root().to_str().unwrap().to_owned();
    world.set("TMPDIR", root);
    let mut demo = world.command().arg("demo").stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    assert!(lines.next().unwrap().starts_with("ready: "));
    for expected in ["schedule sch_", "a slot fires: run_", "begun", "done: \"All is well.\""] {
        assert!(lines.any(|line| line.contains(expected)), "no {expected}");
    }
    kill_process(Pid::from_child(&demo), Signal::INT).unwrap();
    assert!(demo.wait().unwrap().success());
    let left = std::fs::read_dir(world.root()).unwrap().count();
    assert_eq!(left, 0, "something of the demo is left");
}
