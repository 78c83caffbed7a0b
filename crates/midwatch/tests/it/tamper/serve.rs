//! A watch over a log that was altered: it starts, reads, changes nothing and loses nothing.

use super::{MIDDLE, altered, history};
use crate::world::{Daemon, World};

const REFUSED: [&[&str]; 4] = [
    &["agent", "add", "new", "--backend", "builtin"],
    &["agent", "edit", "agent-01", "--tier", "1"],
    &["agent", "remove", "agent-01"],
    &["ledger", "rebuild"],
];

/// Everything in the log's tables, as text.
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
    assert!(world.ok(&["status"]).contains("STOPPED"), "{sql}");
    let doctor = world.run(&["--json", "doctor"]);
    assert_eq!(doctor.code, Some(1), "{sql}: {doctor:?}");

    assert_eq!(world.agents(), agents, "{sql}");
    assert_eq!(world.json(&["agent", "show", "late-3"])["agent"]["backend"], "command", "{sql}");
    for arguments in REFUSED {
        let said = world.refused(arguments, "log_damaged", 4);
        assert!(said.contains("midwatch ledger verify"), "{sql}: {said}");
    }
    stop(daemon);

    assert_eq!(world.agents(), agents, "{sql}");
    let after = rows(&world);
    let lost: Vec<&String> = before.iter().filter(|row| !after.contains(row)).collect();
    assert!(lost.is_empty(), "{sql}: {lost:?}");
}

fn stop(daemon: Daemon) {
    let (code, said) = daemon.stop();
    assert_eq!(code, Some(0), "{said}");
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
fn a_tail_that_was_cut_off_is_found_at_the_start() {
    let history = history();
    check(&history, "DELETE FROM entry WHERE 28 < seq");
    check(&history, "DELETE FROM entry WHERE 30 < seq");
    check(&history, "DELETE FROM entry WHERE 1 < seq");
    check(&history, "DELETE FROM entry");
}

#[test]
fn an_entry_that_cannot_be_read_is_found() {
    let history = history();
    for seq in [MIDDLE, 33] {
        check(&history, &format!("UPDATE entry SET hash = x'00' WHERE seq = {seq}"));
        check(&history, &format!("UPDATE entry SET version = 70000 WHERE seq = {seq}"));
    }
}

/// Where a start begins to read is no part of the log: without it, all is read, and all is well.
#[test]
fn a_place_to_begin_that_was_lost_costs_nothing_but_time() {
    let history = history();
    let agents = history.agents();
    for sql in ["DELETE FROM resume", "UPDATE resume SET chain = x'00'"] {
        let world = altered(&history, sql);
        world.verified();
        let daemon = world.up();
        let found = world.checked();
        assert!(found.starts_with("sound"), "{sql}: {found}");
        assert_eq!(world.agents(), agents, "{sql}");
        world.ok(&["agent", "add", "new", "--backend", "builtin"]);
        stop(daemon);
        world.verified();
    }
}

/// Without a daemon a command finds what is wrong with the tail by itself.
#[test]
fn a_command_alone_reads_a_damaged_log_and_does_not_add_to_it() {
    let history = history();
    let agents = history.agents();
    let world = altered(&history, "UPDATE entry SET actor = 'somebody' WHERE seq = 33");
    let before = rows(&world);
    for arguments in REFUSED {
        world.refused(arguments, "log_damaged", 4);
    }
    assert_eq!(world.agents(), agents);
    assert!(world.ok(&["status"]).contains("STOPPED"));
    assert_eq!(rows(&world), before);
}
