//! `[retention]`, `cleanup` and what `status` says about the disk.

use std::fs::{self, File};
use std::path::Path;
use std::time::Duration;

use crate::support::wait::wait_until;
use crate::support::world::World;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// Writes a file that was last changed some days ago.
fn write_old(path: &Path, days: u32) {
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, "x".repeat(1_000)).unwrap();
    make_older(path, days);
}

fn make_older(path: &Path, days: u32) {
    let modified = fs::metadata(path).unwrap().modified().unwrap() - days * DAY;
    File::options().write(true).open(path).unwrap().set_modified(modified).unwrap();
}

#[test]
fn cleanup_removes_what_is_beyond_the_limits_and_records_it_once() {
    let world = World::with_agent("ada");
    let output = |name: &str| world.data().join("outputs").join(name);
    write_old(&output("run_old-1.txt"), 91);
    write_old(&output("run_new-1.txt"), 89);
    write_old(&world.data().join("logs/midwatch.log.3"), 100);
    write_old(&world.data().join("logs/midwatch.log"), 100);
    let before = world.stored_entries().len();

    let planned = world.json(&["cleanup", "--dry-run"]);
    assert_eq!(planned["removed"]["outputs"], 1, "{planned}");
    assert!(output("run_old-1.txt").exists());
    assert_eq!(world.stored_entries().len(), before);

    let text = world.ok(&["cleanup"]);
    assert_eq!(text, "removed 1 output, 1 log file (1.9 KiB)\n");
    assert!(!output("run_old-1.txt").exists() && output("run_new-1.txt").exists());
    assert!(world.data().join("logs/midwatch.log").exists());
    let cleaned = world.events_of("data.cleaned");
    assert_eq!(cleaned.len(), 1);
    assert_eq!(cleaned[0]["body"]["outputs"], 1, "{}", cleaned[0]);

    // With nothing to remove, nothing is recorded.
    let again = world.run(&["cleanup"]);
    assert_eq!((again.code, world.events_of("data.cleaned").len()), (Some(10), 1), "{again:?}");
    world.verified();
}

#[test]
fn daemon_cleans_up_by_the_limits_of_its_configuration() {
    let mut world = World::with_agent("ada");
    world.set("MIDWATCH_RETENTION_OUTPUTS_BYTES", "2500B");
    let outputs = world.data().join("outputs");
    for (days, name) in [(3, "run_a-1.txt"), (2, "run_b-1.txt"), (1, "run_c-1.txt")] {
        write_old(&outputs.join(name), days);
    }
    let daemon = world.up();
    wait_until(|| !outputs.join("run_a-1.txt").exists());
    assert!(outputs.join("run_b-1.txt").exists() && outputs.join("run_c-1.txt").exists());
    world.wait_for_event("data.cleaned");
    daemon.stop();
}

#[test]
fn output_of_a_run_that_is_not_settled_is_kept() {
    let world = World::new();
    let script = "i=0; while [ $i -lt 3000 ]; do echo \"line $i\"; i=$((i+1)); done; exec sleep 60";
    world.ok(&["agent", "add", "smith", "--backend", "command", "--", "/bin/sh", "-c", script]);
    let schedule = world.add_daily("work", "smith", "go");
    let daemon = world.up();
    let run = world.start_run(&schedule);
    let file = world.data().join("outputs").join(format!("{run}-1.txt"));
    wait_until(|| file.exists());
    daemon.kill();
    let daemon = world.up();
    world.wait_for_state(&run, "unknown");
    drop(daemon);
    make_older(&file, 99);
    assert_eq!(world.run(&["cleanup"]).code, Some(10));
    assert!(file.exists());
    // Once a person has settled it, it is old enough to go; the start of the output stays in the ledger.
    world.ok(&["run", "settle", &run, "--as", "done"]);
    world.ok(&["cleanup"]);
    assert!(!file.exists());
}

#[test]
fn status_shows_what_uses_the_disk() {
    let world = World::with_agent("ada");
    write_old(&world.data().join("outputs/run_a-1.txt"), 1);
    world.ok(&["ledger", "export"]);
    let disk = world.json(&["status"])["disk"].clone();
    assert_eq!(disk["outputs"], 1_000, "{disk}");
    for key in ["database", "exports", "bytes_per_day", "entries_per_day"] {
        assert!(0 < disk[key].as_u64().unwrap(), "{key}: {disk}");
    }
    let text = world.ok(&["status", "--all"]);
    assert!(text.contains("outputs 1000 bytes") && text.contains("a day"), "{text}");
    let there = World::on_postgres();
    there.add_agent("ada");
    assert!(there.json(&["status"])["disk"]["database"].is_null());
}
