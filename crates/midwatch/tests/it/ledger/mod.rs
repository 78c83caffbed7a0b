//! Damage to the ledger and to the tables derived from it: how it is found, and what the program does then.

mod checkpoint_copy;
mod damaged;
mod derived_tables;
mod rebuild_from_export;
mod verify;
mod verify_export;

use serde_json::Value;

use crate::support::world::World;

// The ledger of [`history`]: an entry well before the newest checkpoint, the sizes at the checkpoints, the newest
// of them, and the last entry. Entries after the newest checkpoint are not signed.
const MIDDLE: u64 = 12;
const CHECKPOINTS: [u64; 5] = [9, 16, 23, 30, 31];
const NEWEST: u64 = 31;
const LAST: u64 = 34;

/// A world with [`LAST`] entries, made by a daemon that has stopped and by commands without one.
fn history() -> World {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let daemon = world.up();
    for round in 0..4 {
        for number in 0..6 {
            world.add_agent(&format!("agent-{round}{number}"));
        }
        world.ok(&["agent", "edit", &format!("agent-{round}0"), "--tier", "1"]);
        world.ok(&["ledger", "checkpoint"]);
    }
    daemon.stop();
    for name in ["late-1", "late-2", "late-3"] {
        world.ok(&["agent", "add", name, "--backend", "command", "--", "echo"]);
    }
    let report = world.verified();
    assert_eq!(
        (&report["entries"], &report["checkpoints"]),
        (&LAST.into(), &CHECKPOINTS.len().into())
    );
    world
}

/// A copy of a world after these statements ran on its database.
fn altered(history: &World, sql: &str) -> World {
    let world = history.copy();
    world.alter_database(sql);
    world
}

/// The report of `ledger verify`, which must agree with its exit code.
fn report(world: &World, arguments: &[&str]) -> Value {
    let outcome = world.run(&[&["--json", "ledger", "verify"], arguments].concat());
    let report: Value = serde_json::from_str(&outcome.stdout)
        .unwrap_or_else(|error| panic!("{error}: {outcome:?}"));
    let expected = if report["verdict"] == "ok" { 0 } else { 1 };
    assert_eq!(outcome.code, Some(expected), "{outcome:?}");
    assert_eq!(report["damage"].is_null(), report["verdict"] == "ok", "{report}");
    report
}

fn caveats(report: &Value) -> String {
    report["caveats"].to_string()
}
