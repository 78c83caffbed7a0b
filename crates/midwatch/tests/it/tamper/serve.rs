//! A watch over a log that was altered: it starts, reads, changes nothing and loses nothing.

use super::{MIDDLE, alter, altered, history};
use crate::world::{Daemon, World, wait_for};

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

    // The verdict holds without the daemon, too.
    let after = rows(&world);
    for arguments in REFUSED.into_iter().chain([&["ledger", "checkpoint"][..]]) {
        world.refused(arguments, "log_damaged", 4);
    }
    assert!(world.ok(&["status"]).contains("STOPPED"), "{sql}");
    assert_eq!(world.run(&["doctor"]).code, Some(1), "{sql}");
    assert_eq!(world.agents(), agents, "{sql}");
    assert_eq!(rows(&world), after, "{sql}");
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

/// Damage that is mended is believed only when all of the log was looked at.
#[test]
fn a_verdict_holds_until_a_check_of_the_whole_log_passes() {
    let history = history();
    let mut agents = history.agents();
    let world = altered(&history, "UPDATE entry SET actor = 'x' || actor WHERE seq = 2");
    let found = |daemon: Daemon| {
        let found = world.checked();
        stop(daemon);
        found
    };
    let verdict = "entry 2 was changed";
    assert!(found(world.up()).contains(verdict));
    let before = rows(&world);
    for _ in 0..2 {
        let said = world.refused(REFUSED[0], "log_damaged", 4);
        assert!(said.contains(verdict) && said.contains("`midwatch up` checks"), "{said}");
        assert!(found(world.up()).contains(verdict));
        assert_eq!(rows(&world), before);
    }
    alter(&world, "UPDATE entry SET actor = substr(actor, 2) WHERE seq = 2");
    assert!(world.refused(REFUSED[0], "log_damaged", 4).contains(verdict));

    let daemon = world.up();
    // The verdict is taken back before the usual check begins.
    wait_for(|| world.checked().starts_with("sound").then_some(()));
    stop(daemon);
    world.ok(REFUSED[0]);
    agents.push("new".to_owned());
    assert_eq!(world.agents(), agents);
    assert_eq!(world.json(&["status"])["log"]["stopped"], serde_json::Value::Null);
    world.verified();
}

/// A log that is lost as well is not begun again either.
#[test]
fn a_verdict_on_a_log_that_is_gone_still_holds() {
    let world = altered(&history(), "UPDATE entry SET actor = 'x' WHERE seq = 2");
    let daemon = world.up();
    world.checked();
    stop(daemon);
    for name in ["midwatch.db", "checkpoints.log"] {
        std::fs::remove_file(world.data().join(name)).unwrap();
    }
    world.refused(REFUSED[0], "log_damaged", 4);
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
