//! What is found when somebody changes the data behind the program's back, and what happens then.

mod export;
mod log;
mod restore;
mod serve;
mod tables;

use serde_json::Value;

use crate::world::World;

/// The shape of [`history`]: an entry well before the newest checkpoint, the sizes that checkpoints
/// were made of, and the last entry. Those after the newest checkpoint are not signed.
const MIDDLE: u64 = 12;
const SIGNED: [u64; 5] = [9, 16, 23, 30, 31];
const NEWEST: u64 = 31;
const LAST: u64 = 34;

/// A few dozen events, made by a daemon and by commands without one; nothing runs any more.
fn history() -> World {
    let mut world = World::new();
    world.set("MIDWATCH_LEDGER_HEARTBEAT", "0s");
    let daemon = world.up();
    for round in 0..4 {
        for number in 0..6 {
            world.ok(&["agent", "add", &format!("agent-{round}{number}"), "--backend", "builtin"]);
        }
        world.ok(&["agent", "edit", &format!("agent-{round}0"), "--tier", "1"]);
        world.ok(&["ledger", "checkpoint"]);
    }
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
    for name in ["late-1", "late-2", "late-3"] {
        world.ok(&["agent", "add", name, "--backend", "command", "--", "echo"]);
    }
    let report = world.verified();
    assert_eq!((&report["entries"], &report["checkpoints"]), (&LAST.into(), &SIGNED.len().into()));
    world
}

/// A copy of a history in which these statements were run, in spite of what forbids them.
fn altered(history: &World, sql: &str) -> World {
    let world = history.copy();
    alter(&world, sql);
    world
}

fn alter(world: &World, sql: &str) {
    let database = world.database();
    let triggers = "SELECT name FROM sqlite_schema WHERE type = 'trigger'";
    let mut statement = database.prepare(triggers).unwrap();
    let names = statement.query_map((), |row| row.get::<_, String>(0)).unwrap();
    for name in names.collect::<Result<Vec<_>, _>>().unwrap() {
        database.execute_batch(&format!("DROP TRIGGER {name}")).unwrap();
    }
    database.execute_batch(sql).unwrap_or_else(|error| panic!("{sql}: {error}"));
}

/// The verifier's report, which agrees with its exit code.
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
