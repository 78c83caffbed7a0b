//! `ledger verify` on a database that was altered.

use ledger::{Chain, Checkpoint, Draft, Hash, Header, SigningKey, sign_checkpoint};

use super::{LAST, MIDDLE, NEWEST, altered, caveats, history, report};
use crate::support::world::World;

/// An alteration, the verdict on it, and the first bad entry.
type Case<'a> = (&'a str, &'a str, u64);

fn check(history: &World, cases: &[Case<'_>]) {
    for (sql, verdict, seq) in cases {
        let found = report(&altered(history, sql), &[]);
        let expected = (*verdict, Some(*seq));
        let found_at = found["damage"]["seq"].as_u64();
        assert_eq!((found["verdict"].as_str().unwrap(), found_at), expected, "{sql}: {found}");
    }
}

#[test]
fn change_of_any_column_is_found_at_its_entry() {
    let history = history();
    for seq in [1, MIDDLE, NEWEST, LAST] {
        for change in [
            "ts_us = ts_us + 1",
            "kind = kind || '.x'",
            "version = version + 1",
            "actor = 'somebody'",
            "role = 'observer'",
            "cause = cause || 'x'",
            "noun = noun || 's'",
            "noun_id = noun_id || 'x'",
            "facts = CAST(CAST(facts AS TEXT) || ' ' AS BLOB)",
            "facts = x''",
            "hash = zeroblob(32)",
        ] {
            let sql = format!("UPDATE entry SET {change} WHERE seq = {seq}");
            check(&history, &[(&sql, "tampered", seq)]);
        }
    }
}

#[test]
fn added_private_part_is_found_at_its_entry() {
    check(
        &history(),
        &[
            (
                "INSERT INTO entry_private VALUES (12, zeroblob(16), x'7b7d', NULL)",
                "tampered",
                MIDDLE,
            ),
            ("INSERT INTO entry_private VALUES (12, NULL, NULL, zeroblob(32))", "tampered", MIDDLE),
        ],
    );
}

/// A value that no entry can have must not stop the verifier from naming its entry.
#[test]
fn malformed_value_is_found_at_its_entry() {
    let history = history();
    for change in [
        "version = 70000",
        "version = -1",
        "hash = x'00'",
        "kind = CAST(x'ff' AS TEXT)",
        "ts_us = -1",
    ] {
        for seq in [MIDDLE, LAST] {
            let sql = format!("UPDATE entry SET {change} WHERE seq = {seq}");
            let found = report(&altered(&history, &sql), &[]);
            assert_ne!(found["verdict"], "ok", "{sql}: {found}");
            assert_eq!(found["damage"]["seq"], seq, "{sql}: {found}");
        }
    }
}

#[test]
fn removed_swapped_duplicated_and_renumbered_entries_are_found() {
    let swap = "UPDATE entry SET seq = -seq WHERE seq IN (12, 13);
                UPDATE entry SET seq = 25 + seq WHERE seq IN (-12, -13)";
    let copy = "ts_us, kind, version, actor, role, cause, noun, noun_id, facts, hash
                FROM entry WHERE seq =";
    let make_room = "UPDATE entry SET seq = -seq WHERE 12 < seq;
                     UPDATE entry SET seq = 1 - seq WHERE seq < 0";
    let close_gap = "UPDATE entry SET seq = -seq WHERE 12 < seq;
                     UPDATE entry SET seq = -1 - seq WHERE seq < 0";
    check(
        &history(),
        &[
            ("DELETE FROM entry WHERE seq = 1", "tampered", 1),
            ("DELETE FROM entry WHERE seq = 12", "tampered", MIDDLE),
            ("DELETE FROM entry WHERE seq BETWEEN 12 AND 20", "tampered", MIDDLE),
            (&format!("DELETE FROM entry WHERE seq = 12; {close_gap}"), "tampered", MIDDLE),
            ("DELETE FROM entry WHERE seq = 33", "tampered", LAST - 1),
            (swap, "tampered", MIDDLE),
            (&format!("{make_room}; INSERT INTO entry SELECT 13, {copy} 12"), "tampered", 13),
            (&format!("INSERT INTO entry SELECT 35, {copy} 34"), "tampered", LAST + 1),
            ("UPDATE entry SET seq = 40 WHERE seq = 34", "tampered", LAST),
        ],
    );
}

#[test]
fn truncated_ledger_is_found_by_its_checkpoints() {
    let history = history();
    check(
        &history,
        &[
            ("DELETE FROM entry WHERE 28 < seq", "truncated", 29),
            ("DELETE FROM entry WHERE 30 < seq", "truncated", 31),
            ("DELETE FROM entry", "truncated", 1),
        ],
    );
    let found = report(&altered(&history, "DELETE FROM entry WHERE 31 < seq"), &[]);
    assert_eq!((&found["verdict"], &found["entries"]), (&"ok".into(), &NEWEST.into()));
    assert!(caveats(&found).contains("entries removed from the end"), "{found}");
}

#[test]
fn external_checkpoint_shows_a_truncation_that_removed_the_checkpoints() {
    let history = history();
    let external = history.root().join("external.txt");
    let note: String = history
        .database()
        .query_row("SELECT note FROM checkpoint WHERE size = 30", (), |row| row.get(0))
        .unwrap();
    std::fs::write(&external, note).unwrap();
    let expect = ["--expect-checkpoint", external.to_str().unwrap()];
    let good = report(&history, &expect);
    assert_eq!(good["verdict"], "ok", "{good}");
    assert!(!caveats(&good).contains("entries removed from the end"), "{good}");

    let cut = "DELETE FROM entry WHERE 28 < seq; DELETE FROM checkpoint; DELETE FROM resume";
    let world = altered(&history, cut);
    let own = report(&world, &[]);
    assert_eq!((&own["verdict"], &own["damage"]["seq"]), (&"truncated".into(), &29.into()));
    assert!(own["damage"]["what"].as_str().unwrap().contains("checkpoints.log"), "{own}");
    std::fs::remove_file(world.data().join("checkpoints.log")).unwrap();
    let without = report(&world, &[]);
    assert_eq!(without["verdict"], "ok", "{without}");
    assert!(caveats(&without).contains("entries removed from the end"), "{without}");
    assert!(caveats(&without).contains("no signed checkpoint covers the last 28"), "{without}");
    let found = report(&world, &expect);
    assert_eq!((&found["verdict"], &found["damage"]["seq"]), (&"truncated".into(), &29.into()));

    let beside = history.data().join("checkpoints.log");
    let found = report(&world, &["--expect-checkpoint", beside.to_str().unwrap()]);
    assert_eq!((&found["verdict"], &found["damage"]["seq"]), (&"truncated".into(), &29.into()));
}

#[test]
fn changed_or_foreign_checkpoint_is_found() {
    let history = history();
    let other_key = SigningKey::from_seed("midwatch/stranger", [7; 32]).unwrap();
    let forged = |key: &SigningKey, size: u64| {
        let origin = Checkpoint::origin_of(&instance(&history));
        sign_checkpoint(&Checkpoint { origin, size, root: Hash::ZERO }, &[key])
    };
    let key = signing_key(&history);
    check(
        &history,
        &[
            (&set_note(23, &forged(&other_key, 23)), "tampered", 23),
            (&set_note(23, &forged(&key, 23)), "tampered", 23),
            (&set_note(31, &forged(&other_key, 31)), "tampered", NEWEST),
            ("UPDATE checkpoint SET note = replace(note, '23\n', '22\n')", "tampered", 22),
            ("UPDATE checkpoint SET note = replace(note, '23\n', '24\n')", "tampered", 24),
        ],
    );
    let found = report(&altered(&history, &set_note(23, "rubbish")), &[]);
    assert_eq!(found["verdict"], "unreadable", "{found}");
    let found = report(&altered(&history, &set_note(40, &forged(&key, 40))), &[]);
    assert_eq!((&found["verdict"], &found["damage"]["seq"]), (&"truncated".into(), &35.into()));
    let forged = &set_note(40, &forged(&other_key, 40));
    let found = report(&altered(&history, forged), &[]);
    assert_eq!(found["verdict"], "tampered", "{found}");
}

/// An attacker who recomputes all hashes also needs the key; then only an external checkpoint shows the rewrite.
#[test]
fn rewritten_ledger_is_found_by_its_checkpoints() {
    let history = history();
    let external = history.root().join("external.txt");
    std::fs::copy(history.data().join("checkpoints.log"), &external).unwrap();
    let expect = ["--expect-checkpoint", external.to_str().unwrap()];

    let world = history.copy();
    let chain = rewrite(&world, MIDDLE);
    let found = report(&world, &[]);
    assert_eq!((&found["verdict"], &found["damage"]["seq"]), (&"tampered".into(), &16.into()));

    world.alter_database("DELETE FROM checkpoint; DELETE FROM resume");
    assert_eq!(report(&world, &[])["verdict"], "truncated");
    std::fs::remove_file(world.data().join("checkpoints.log")).unwrap();
    assert_eq!(report(&world, &[])["verdict"], "ok");
    let found = report(&world, &expect);
    assert_eq!(found["verdict"], "truncated", "{found}");
    assert!(found["damage"]["what"].as_str().unwrap().contains("rewritten"), "{found}");

    let origin = Checkpoint::origin_of(&instance(&world));
    let checkpoint = Checkpoint { origin, size: chain.size(), root: chain.root() };
    world.alter_database(&set_note(LAST, &sign_checkpoint(&checkpoint, &[&signing_key(&world)])));
    let found = report(&world, &[]);
    assert_eq!((&found["verdict"], &found["checkpoints"]), (&"ok".into(), &1.into()), "{found}");
    assert!(caveats(&found).contains("a rewrite by the owner of the key"), "{found}");
    assert_eq!(report(&world, &expect)["verdict"], "truncated");
}

#[test]
fn given_key_must_have_signed_the_ledger() {
    let (history, other) = (history(), World::new());
    let key = |world: &World| world.json(&["status"])["log"]["key"].as_str().unwrap().to_owned();
    let pinned = report(&history, &["--vkey", &key(&history)]);
    assert_eq!(pinned["verdict"], "ok", "{pinned}");
    assert!(!caveats(&pinned).contains("without `--vkey`"), "{pinned}");
    assert!(caveats(&report(&history, &[])).contains("without `--vkey`"));

    other.add_agent("ada");
    let found = report(&history, &["--vkey", &key(&other)]);
    assert_eq!((&found["verdict"], &found["damage"]["seq"]), (&"tampered".into(), &9.into()));
    history.refused(&["ledger", "verify", "--vkey", "nonsense"], "invalid_input", 2);

    let (ours, theirs) = (key(&history), key(&other));
    let verify = |keys: &[&str]| {
        let vkeys = keys.iter().flat_map(|key| ["--vkey", key]);
        history.run(&["ledger", "verify"].into_iter().chain(vkeys).collect::<Vec<_>>()).code
    };
    assert_eq!(verify(&[&theirs, &ours]), Some(0));
    assert_eq!(verify(&[ours.as_str(); 16]), Some(0));
    assert_eq!(verify(&[ours.as_str(); 17]), Some(2), "more keys than a log can have");
}

/// A page of the database file is overwritten.
#[test]
fn file_that_sqlite_cannot_read_is_unreadable() {
    let world = history();
    let root: u64 = world
        .database()
        .query_row("SELECT rootpage FROM sqlite_schema WHERE name = 'entry'", (), |row| row.get(0))
        .unwrap();
    let path = world.data().join("midwatch.db");
    let mut bytes = std::fs::read(&path).unwrap();
    let page = usize::try_from(root - 1).unwrap() * 4096;
    bytes[page..page + 4096].fill(0x5a);
    std::fs::write(&path, bytes).unwrap();
    let found = report(&world, &[]);
    assert_eq!(found["verdict"], "unreadable", "{found}");
}

#[test]
fn verify_names_a_missing_ledger_or_checkpoint() {
    let world = World::new();
    let message = world.refused(&["ledger", "verify"], "not_found", 3);
    assert!(message.contains(world.data().to_str().unwrap()), "{message}");
    assert!(!world.data().exists(), "`ledger verify` created the data directory");
    world.add_agent("ada");
    let missing = ["ledger", "verify", "--expect-checkpoint", "no-such-file"];
    let message = world.refused(&missing, "not_found", 3);
    assert!(message.contains("no-such-file"), "{message}");
}

fn set_note(size: u64, note: &str) -> String {
    format!("INSERT OR REPLACE INTO checkpoint VALUES ({size}, '{note}')")
}

fn instance(world: &World) -> String {
    let sql = "SELECT noun_id FROM entry WHERE seq = 1";
    world.database().query_row(sql, (), |row| row.get(0)).unwrap()
}

fn signing_key(world: &World) -> SigningKey {
    let text = std::fs::read_to_string(world.data().join("signing.key")).unwrap();
    SigningKey::from_text(text.trim_end()).unwrap()
}

/// Changes one entry and recomputes the hashes of it and all later ones.
fn rewrite(world: &World, changed: u64) -> Chain {
    world.alter_database("");
    let database = world.database();
    let sql = "SELECT seq, ts_us, kind, version, actor, role, cause, noun, noun_id, facts
               FROM entry ORDER BY seq";
    let mut statement = database.prepare(sql).unwrap();
    let mut rows = statement.query(()).unwrap();
    let mut chain = Chain::empty();
    let mut hashes = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        let seq: u64 = row.get(0).unwrap();
        let text = |column| row.get_ref(column).unwrap().as_str().unwrap();
        let actor = if seq == changed { "uid:4711" } else { text(4) };
        let header = Header {
            ts_us: row.get(1).unwrap(),
            kind: text(2),
            version: row.get(3).unwrap(),
            actor,
            role: text(5),
            cause: text(6),
            noun: text(7),
            noun_id: text(8),
        };
        let draft = Draft::new(header, row.get(9).unwrap(), None).unwrap();
        hashes.push((seq, actor.to_owned(), chain.append(&draft).hash));
    }
    for (seq, actor, hash) in hashes {
        let sql = "UPDATE entry SET actor = ?2, hash = ?3 WHERE seq = ?1";
        database.execute(sql, (seq, actor, hash.as_bytes())).unwrap();
    }
    chain
}
