//! `ledger rebuild --from-export`: restoring a data directory from exported files.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::{LAST, altered, caveats, history, report};
use crate::support::world::{World, copy_dir};

/// A history, and its export outside of the data directory.
fn exported() -> (World, PathBuf) {
    let history = history();
    let dir = history.root().join("exported");
    history.ok(&["ledger", "export", "--dir", dir.to_str().unwrap()]);
    (history, dir)
}

fn restore(world: &World, dir: &Path) -> Value {
    let answer = world.json(&["ledger", "rebuild", "--from-export", dir.to_str().unwrap()]);
    assert!(answer["restored"].is_object(), "{answer}");
    answer["restored"].clone()
}

/// Sequence number and hash of the entries up to the end of the export.
fn hashes(world: &World) -> Vec<(u64, Vec<u8>)> {
    let database = world.database();
    let mut statement =
        database.prepare("SELECT seq, hash FROM entry WHERE seq <= ?1 ORDER BY seq").unwrap();
    let rows = statement.query_map([LAST], |row| Ok((row.get(0)?, row.get(1)?))).unwrap();
    rows.collect::<Result<_, _>>().unwrap()
}

fn agents(world: &World) -> Value {
    world.json(&["agent", "list", "--limit", "1000"])["agents"].clone()
}

/// All files in the data directory except its lock.
fn files(world: &World) -> Vec<String> {
    if !world.data().exists() {
        return Vec::new();
    }
    let names = fs::read_dir(world.data()).unwrap();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names.filter(|name| name != "lock").collect()
}

#[test]
fn data_directory_is_restored_under_its_old_key() {
    let (history, dir) = exported();
    let world = World::new();
    fs::create_dir(world.data()).unwrap();
    fs::copy(history.data().join("signing.key"), world.data().join("signing.key")).unwrap();
    let restored = restore(&world, &dir);
    assert_eq!((&restored["entries"], &restored["key_kept"]), (&LAST.into(), &true.into()));
    assert_eq!(hashes(&world), hashes(&history));
    assert_eq!(agents(&world), agents(&history));
    let added: Vec<String> = world.kinds().into_iter().skip(LAST as usize).collect();
    assert_eq!(added, ["ledger.rebuilt"]);

    let (before, after) = (history.json(&["status"]), world.json(&["status"]));
    for field in ["instance", "key"] {
        assert_eq!(before["log"][field], after["log"][field]);
    }
    let daemon = world.up();
    assert!(world.checked().starts_with("sound"), "{}", world.checked());
    world.add_agent("new");
    daemon.stop();
    let found = report(&world, &["--vkey", before["log"]["key"].as_str().unwrap()]);
    assert_eq!(found["verdict"], "ok", "{found}");
}

#[test]
fn ledger_restored_without_its_key_continues_under_a_new_one_and_records_it() {
    let (history, dir) = exported();
    let world = World::new();
    let restored = restore(&world, &dir);
    assert_eq!((&restored["entries"], &restored["key_kept"]), (&LAST.into(), &false.into()));
    assert_eq!(hashes(&world), hashes(&history));
    assert_eq!(agents(&world), agents(&history));
    let added: Vec<String> = world.kinds().into_iter().skip(LAST as usize).collect();
    assert_eq!(added, ["ledger.rebuilt", "ledger.key_replaced"]);

    let key = |world: &World| world.json(&["status"])["log"]["key"].as_str().unwrap().to_owned();
    assert_ne!(key(&world), key(&history));
    world.add_agent("new");
    world.ok(&["ledger", "checkpoint"]);
    let found = report(&world, &[]);
    assert_eq!(found["verdict"], "ok", "{found}");
    assert!(caveats(&found).contains("replaced the key"), "{found}");
    // With the old key given, a new key is not trusted only because the ledger names it.
    let (old, new) = (key(&history), key(&world));
    let found = report(&world, &["--vkey", &old]);
    assert_eq!(found["verdict"], "tampered", "{found}");
    assert!(caveats(&found).contains("give both keys"), "{found}");
    let found = report(&world, &["--vkey", &old, "--vkey", &new]);
    assert_eq!(found["verdict"], "ok", "{found}");
    assert!(!caveats(&found).contains("replaced the key"), "{found}");
    // The export of a restored ledger can be restored again.
    let again = world.root().join("again");
    world.ok(&["ledger", "export", "--dir", again.to_str().unwrap()]);
    let third = World::new();
    let from = ["ledger", "rebuild", "--from-export", again.to_str().unwrap()];
    third.refused(&[&from[..], &["--vkey", &old]].concat(), "log_damaged", 4);
    let both = [&from[..], &["--vkey", &old, "--vkey", &new]].concat();
    assert_eq!(third.json(&both)["restored"]["key_kept"], false);
    assert_eq!(agents(&third), agents(&world));
    third.verified();
}

/// The verdict on the damaged ledger does not apply to the restored one.
#[test]
fn directory_with_a_damaged_ledger_is_restored_in_place() {
    let (history, dir) = exported();
    let world = altered(&history, "UPDATE entry SET actor = 'x' WHERE seq = 2");
    let daemon = world.up();
    assert!(world.checked().contains("damaged"));
    daemon.stop();
    fs::rename(world.data().join("midwatch.db"), world.root().join("damaged.db")).unwrap();
    assert_eq!(restore(&world, &dir)["key_kept"], true);
    fs::remove_file(world.data().join("checkpoints.log")).unwrap();
    world.add_agent("new");
    world.verified();
}

#[test]
fn directory_with_a_ledger_is_not_overwritten() {
    let (history, dir) = exported();
    let before = hashes(&history);
    let arguments = ["ledger", "rebuild", "--from-export", dir.to_str().unwrap()];
    history.refused(&arguments, "exists", 4);
    let daemon = history.up();
    history.refused(&arguments, "already_running", 4);
    drop(daemon);
    assert_eq!(hashes(&history), before);
    history.verified();
}

#[test]
fn damaged_export_or_wrong_key_leaves_no_files() {
    let (history, dir) = exported();
    let mut names = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().path());
    let lines = names.find(|path| path.extension().unwrap() == "gz").unwrap();

    let world = World::new();
    let damaged = world.root().join("damaged");
    copy_dir(&dir, &damaged);
    let file = damaged.join(lines.file_name().unwrap());
    let bytes = fs::read(&file).unwrap();
    fs::write(&file, &bytes[..bytes.len() / 2]).unwrap();
    let arguments = ["ledger", "rebuild", "--from-export", damaged.to_str().unwrap()];
    let message = world.refused(&arguments, "log_damaged", 4);
    assert!(message.contains("ledger verify --export"), "{message}");
    assert_eq!(files(&world), Vec::<String>::new());

    let other = World::new();
    other.add_agent("ada");
    let key = other.json(&["status"])["log"]["key"].as_str().unwrap().to_owned();
    let from = ["ledger", "rebuild", "--from-export", dir.to_str().unwrap()];
    world.refused(&[&from[..], &["--vkey", &key]].concat(), "log_damaged", 4);
    world.refused(&[&from[..], &["--vkey", "nonsense"]].concat(), "invalid_input", 2);
    assert_eq!(files(&world), Vec::<String>::new());
    let missing = world.root().join("missing");
    let arguments = ["ledger", "rebuild", "--from-export", missing.to_str().unwrap()];
    world.refused(&arguments, "not_found", 3);
    assert_eq!(files(&world), Vec::<String>::new());

    // The key of another ledger is neither used nor replaced.
    fs::copy(other.data().join("signing.key"), world.data().join("signing.key")).unwrap();
    world.refused(&from, "key_missing", 4);
    assert_eq!(files(&world), ["signing.key"]);
    fs::remove_file(world.data().join("signing.key")).unwrap();

    assert_eq!(restore(&world, &dir)["entries"], LAST);
    assert_eq!(agents(&world), agents(&history));
}

/// SQLite would take the `-wal` and `-shm` files of a moved database for those of the new one.
#[test]
fn leftover_wal_of_a_moved_database_is_refused() {
    let (world, dir) = exported();
    let daemon = world.up();
    world.add_agent("newest");
    daemon.kill();
    let file = |name: &str| world.data().join(name);
    fs::rename(file("midwatch.db"), file("midwatch.db.bad")).unwrap();
    let before = files(&world);

    let from = ["ledger", "rebuild", "--from-export", dir.to_str().unwrap()];
    let message = world.refused(&from, "exists", 4);
    assert!(
        message.contains("midwatch.db-wal") && message.contains("midwatch.db-shm"),
        "{message}"
    );
    assert_eq!(files(&world), before);

    for side in ["-wal", "-shm"] {
        let (from, to) = (format!("midwatch.db{side}"), format!("midwatch.db.bad{side}"));
        fs::rename(file(&from), file(&to)).unwrap();
    }
    assert_eq!(restore(&world, &dir)["entries"], LAST);
    world.verified();
    // The moved database still has its newest change.
    fs::rename(file("midwatch.db"), file("midwatch.db.new")).unwrap();
    for side in ["", "-wal", "-shm"] {
        let (from, to) = (format!("midwatch.db.bad{side}"), format!("midwatch.db{side}"));
        fs::rename(file(&from), file(&to)).unwrap();
    }
    assert!(world.agents().contains(&"newest".to_owned()));
}
