//! A daemon on a damaged ledger: it starts and serves reads, refuses changes and loses nothing.

use super::{MIDDLE, altered, history};
use crate::support::wait::wait_until;
use crate::support::world::{Daemon, World};

const REFUSED: [&[&str]; 4] = [
    &["agent", "add", "new", "--backend", "builtin"],
    &["agent", "edit", "agent-01", "--tier", "1"],
    &["agent", "remove", "agent-01"],
    &["ledger", "rebuild"],
];

/// Every entry and checkpoint, as text.
fn rows(world: &World) -> Vec<String> {
    let database = world.database();
    let sql =
        "SELECT seq || '|' || ts_us || '|' || kind || '|' || version || '|' || actor || '|' ||
                      role || '|' || cause || '|' || noun || '|' || noun_id || '|' || hex(facts) ||
                      '|' || hex(hash) FROM entry
               UNION ALL SELECT size || '|' || note FROM checkpoint";
    let mut statement = database.prepare(sql).unwrap();
    let rows = statement.query_map((), |row| row.get(0)).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn check(history: &World, sql: &str) {
    let agents = history.agents();
    let world = altered(history, sql);
    let before = rows(&world);

    let daemon = world.up();
    let found = world.checked();
    assert!(found.contains("damaged"), "{sql}: {found}");
    let status = world.json(&["status"]);
    assert!(status["log"]["stopped"].is_string(), "{sql}: {status}");
    assert_eq!(status["watch"]["pid"], daemon.pid(), "{sql}: {status}");
    assert!(world.ok(&["status"]).contains("ATTENTION      the store is stopped"), "{sql}");
    let doctor = world.run(&["--json", "doctor"]);
    assert_eq!(doctor.code, Some(1), "{sql}: {doctor:?}");

    assert_eq!(world.agents(), agents, "{sql}");
    assert_eq!(world.json(&["agent", "show", "late-3"])["agent"]["backend"], "command", "{sql}");
    for arguments in REFUSED {
        let message = world.refused(arguments, "log_damaged", 4);
        assert!(message.contains("midwatch ledger verify"), "{sql}: {message}");
    }
    daemon.stop();

    // The verdict also applies without the daemon.
    let after = rows(&world);
    for arguments in REFUSED.into_iter().chain([&["ledger", "checkpoint"][..]]) {
        world.refused(arguments, "log_damaged", 4);
    }
    assert!(world.ok(&["status"]).contains("ATTENTION      the store is stopped"), "{sql}");
    assert_eq!(world.run(&["doctor"]).code, Some(1), "{sql}");
    assert_eq!(world.agents(), agents, "{sql}");
    assert_eq!(rows(&world), after, "{sql}");
    let lost: Vec<&String> = before.iter().filter(|row| !after.contains(row)).collect();
    assert!(lost.is_empty(), "{sql}: {lost:?}");
}

#[test]
fn damage_before_the_newest_checkpoint_is_found_in_the_background() {
    let history = history();
    check(&history, "UPDATE entry SET actor = 'somebody' WHERE seq = 12");
    check(&history, "DELETE FROM entry WHERE seq = 12");
    check(&history, "DELETE FROM entry WHERE seq = 1");
    check(&history, "UPDATE checkpoint SET note = replace(note, '23\n', '22\n')");
}

#[test]
fn damage_after_the_newest_checkpoint_is_found_at_the_start() {
    let history = history();
    check(&history, "UPDATE entry SET actor = 'somebody' WHERE seq = 33");
    check(&history, "DELETE FROM entry WHERE seq = 32");
    check(&history, "DELETE FROM entry WHERE seq = 33");
}

#[test]
fn damage_at_the_newest_checkpoint_is_found_at_the_start() {
    let history = history();
    check(&history, "UPDATE entry SET hash = zeroblob(32) WHERE seq = 31");
    check(&history, "UPDATE checkpoint SET note = replace(note, '31\n', '30\n')");
    check(&history, "UPDATE checkpoint SET note = 'rubbish' WHERE size = 31");
}

#[test]
fn truncated_ledger_is_found_at_the_start() {
    let history = history();
    check(&history, "DELETE FROM entry WHERE 28 < seq");
    check(&history, "DELETE FROM entry WHERE 30 < seq");
    check(&history, "DELETE FROM entry WHERE 1 < seq");
    check(&history, "DELETE FROM entry");
}

#[test]
fn unreadable_entry_is_found() {
    let history = history();
    for seq in [MIDDLE, 33] {
        check(&history, &format!("UPDATE entry SET hash = x'00' WHERE seq = {seq}"));
        check(&history, &format!("UPDATE entry SET version = 70000 WHERE seq = {seq}"));
    }
}

/// Repaired damage is accepted only after a check of the whole ledger.
#[test]
fn verdict_lasts_until_a_check_of_the_whole_ledger_passes() {
    let history = history();
    let mut agents = history.agents();
    let world = altered(&history, "UPDATE entry SET actor = 'x' || actor WHERE seq = 2");
    let found = |daemon: Daemon| {
        let found = world.checked();
        daemon.stop();
        found
    };
    let verdict = "entry 2 does not match its hash";
    assert!(found(world.up()).contains(verdict));
    let before = rows(&world);
    for _ in 0..2 {
        let message = world.refused(REFUSED[0], "log_damaged", 4);
        assert!(message.contains(verdict) && message.contains("`midwatch up` checks"), "{message}");
        assert!(found(world.up()).contains(verdict));
        assert_eq!(rows(&world), before);
    }
    world.alter_database("UPDATE entry SET actor = substr(actor, 2) WHERE seq = 2");
    assert!(world.refused(REFUSED[0], "log_damaged", 4).contains(verdict));

    let daemon = world.up();
    // The verdict is withdrawn before the usual check starts.
    wait_until(|| world.checked().starts_with("sound"));
    daemon.stop();
    world.ok(REFUSED[0]);
    agents.push("new".to_owned());
    assert_eq!(world.agents(), agents);
    assert_eq!(world.json(&["status"])["log"]["stopped"], serde_json::Value::Null);
    world.verified();
}

/// No new ledger is started in place of a damaged one that was removed.
#[test]
fn verdict_lasts_after_the_ledger_was_removed() {
    let world = altered(&history(), "UPDATE entry SET actor = 'x' WHERE seq = 2");
    let daemon = world.up();
    world.checked();
    daemon.stop();
    for name in ["midwatch.db", "checkpoints.log"] {
        std::fs::remove_file(world.data().join(name)).unwrap();
    }
    world.refused(REFUSED[0], "log_damaged", 4);
}

/// The resume point is not part of the ledger: without it the daemon reads every entry.
#[test]
fn lost_or_invalid_resume_point_is_harmless() {
    let history = history();
    let agents = history.agents();
    for sql in ["DELETE FROM resume", "UPDATE resume SET chain = x'00'"] {
        let world = altered(&history, sql);
        world.verified();
        let daemon = world.up();
        let found = world.checked();
        assert!(found.starts_with("sound"), "{sql}: {found}");
        assert_eq!(world.agents(), agents, "{sql}");
        world.add_agent("new");
        daemon.stop();
        world.verified();
    }
}

/// A command without a daemon checks the entries after the newest checkpoint itself.
#[test]
fn command_without_a_daemon_reads_a_damaged_ledger_and_refuses_changes() {
    let history = history();
    let agents = history.agents();
    let world = altered(&history, "UPDATE entry SET actor = 'somebody' WHERE seq = 33");
    let before = rows(&world);
    for arguments in REFUSED {
        world.refused(arguments, "log_damaged", 4);
    }
    assert_eq!(world.agents(), agents);
    assert!(world.ok(&["status"]).contains("ATTENTION      the store is stopped"));
    assert_eq!(rows(&world), before);
}
