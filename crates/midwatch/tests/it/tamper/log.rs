//! `ledger verify` on a log that was altered.

use ledger::{Chain, Checkpoint, Draft, Hash, Header, SigningKey, sign};

use super::{LAST, MIDDLE, NEWEST, alter, altered, caveats, history, report};
use crate::world::World;

/// An alteration, and what is found of it: the verdict and the first bad entry.
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
fn a_change_of_any_column_is_found_at_its_entry() {
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
fn a_private_part_that_was_put_beside_an_entry_is_found() {
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

/// Values that no entry can have must not keep the verifier from telling where they are.
#[test]
fn a_value_of_the_wrong_form_is_found_at_its_entry() {
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
fn removed_swapped_doubled_and_renumbered_entries_are_found() {
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
fn a_tail_that_was_cut_off_is_found_by_the_checkpoint_behind_it() {
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
    assert!(caveats(&found).contains("removed at the end"), "{found}");
}

#[test]
fn without_checkpoints_only_one_kept_elsewhere_shows_what_was_cut_off() {
    let history = history();
    let outside = history.root().join("outside.txt");
    let note: String = history
        .database()
        .query_row("SELECT note FROM checkpoint WHERE size = 30", (), |row| row.get(0))
        .unwrap();
    std::fs::write(&outside, note).unwrap();
    let expect = ["--expect-checkpoint", outside.to_str().unwrap()];
    let good = report(&history, &expect);
    assert_eq!(good["verdict"], "ok", "{good}");
    assert!(!caveats(&good).contains("removed at the end"), "{good}");

    let cut = "DELETE FROM entry WHERE 28 < seq; DELETE FROM checkpoint; DELETE FROM resume";
    let world = altered(&history, cut);
    let unseen = report(&world, &[]);
    assert_eq!(unseen["verdict"], "ok", "{unseen}");
    assert!(caveats(&unseen).contains("removed at the end"), "{unseen}");
    assert!(caveats(&unseen).contains("no signed checkpoint covers the last 28"), "{unseen}");
    let seen = report(&world, &expect);
    assert_eq!((&seen["verdict"], &seen["damage"]["seq"]), (&"truncated".into(), &29.into()));

    let beside = history.data().join("checkpoints.log");
    let seen = report(&world, &["--expect-checkpoint", beside.to_str().unwrap()]);
    assert_eq!((&seen["verdict"], &seen["damage"]["seq"]), (&"truncated".into(), &29.into()));
}

#[test]
fn a_checkpoint_that_was_changed_or_signed_by_another_key_is_found() {
    let history = history();
    let stranger = SigningKey::from_seed("midwatch/stranger", [7; 32]).unwrap();
    let forged = |key: &SigningKey, size: u64| {
        let origin = Checkpoint::origin_of(&instance(&history));
        sign(&Checkpoint { origin, size, root: Hash::ZERO }, &[key])
    };
    let key = signing_key(&history);
    check(
        &history,
        &[
            (&set_note(23, &forged(&stranger, 23)), "tampered", 23),
            (&set_note(23, &forged(&key, 23)), "tampered", 23),
            (&set_note(31, &forged(&stranger, 31)), "tampered", NEWEST),
            ("UPDATE checkpoint SET note = replace(note, '23\n', '22\n')", "tampered", 22),
            ("UPDATE checkpoint SET note = replace(note, '23\n', '24\n')", "tampered", 24),
        ],
    );
    let found = report(&altered(&history, &set_note(23, "rubbish")), &[]);
    assert_eq!(found["verdict"], "unreadable", "{found}");
    let found = report(&altered(&history, &set_note(40, &forged(&key, 40))), &[]);
    assert_eq!((&found["verdict"], &found["damage"]["seq"]), (&"truncated".into(), &35.into()));
    let stranger = &set_note(40, &forged(&stranger, 40));
    let found = report(&altered(&history, stranger), &[]);
    assert_eq!(found["verdict"], "tampered", "{found}");
}

/// Whoever computes all hashes anew needs the key as well, and then only a copy elsewhere helps.
#[test]
fn a_log_that_was_rewritten_from_an_entry_on_is_found_by_its_checkpoints() {
    let history = history();
    let outside = history.root().join("outside.txt");
    std::fs::copy(history.data().join("checkpoints.log"), &outside).unwrap();
    let expect = ["--expect-checkpoint", outside.to_str().unwrap()];

    let world = history.copy();
    let chain = rewrite(&world, MIDDLE);
    let found = report(&world, &[]);
    assert_eq!((&found["verdict"], &found["damage"]["seq"]), (&"tampered".into(), &16.into()));

    alter(&world, "DELETE FROM checkpoint; DELETE FROM resume");
    assert_eq!(report(&world, &[])["verdict"], "ok");
    let found = report(&world, &expect);
    assert_eq!(found["verdict"], "truncated", "{found}");
    assert!(found["damage"]["what"].as_str().unwrap().contains("rewritten"), "{found}");

    let origin = Checkpoint::origin_of(&instance(&world));
    let checkpoint = Checkpoint { origin, size: chain.size(), root: chain.root() };
    alter(&world, &set_note(LAST, &sign(&checkpoint, &[&signing_key(&world)])));
    let found = report(&world, &[]);
    assert_eq!((&found["verdict"], &found["checkpoints"]), (&"ok".into(), &1.into()), "{found}");
    assert!(caveats(&found).contains("a rewrite by someone who holds the key"), "{found}");
    assert_eq!(report(&world, &expect)["verdict"], "truncated");
}

#[test]
fn a_key_from_elsewhere_must_have_signed_the_log() {
    let (history, other) = (history(), World::new());
    let key = |world: &World| world.json(&["status"])["log"]["key"].as_str().unwrap().to_owned();
    let pinned = report(&history, &["--vkey", &key(&history)]);
    assert_eq!(pinned["verdict"], "ok", "{pinned}");
    assert!(!caveats(&pinned).contains("no key was given"), "{pinned}");
    assert!(caveats(&report(&history, &[])).contains("no key was given"));

    other.ok(&["agent", "add", "ada", "--backend", "builtin"]);
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

/// Bytes of the file itself: a page of the log is overwritten.
#[test]
fn a_file_that_sqlite_cannot_read_is_unreadable() {
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
fn verifying_a_missing_log_or_checkpoint_says_what_is_missing() {
    let world = World::new();
    let said = world.refused(&["ledger", "verify"], "not_found", 3);
    assert!(said.contains(world.data().to_str().unwrap()), "{said}");
    assert!(!world.data().exists(), "it writes nothing");
    world.ok(&["agent", "add", "ada", "--backend", "builtin"]);
    let missing = ["ledger", "verify", "--expect-checkpoint", "no-such-file"];
    let said = world.refused(&missing, "not_found", 3);
    assert!(said.contains("no-such-file"), "{said}");
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

/// Changes one entry and computes the hashes of it and all later ones anew.
fn rewrite(world: &World, changed: u64) -> Chain {
    alter(world, "");
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
        hashes.push((seq, actor.to_owned(), chain.seal(&draft).hash));
    }
    for (seq, actor, hash) in hashes {
        let sql = "UPDATE entry SET actor = ?2, hash = ?3 WHERE seq = ?1";
        database.execute(sql, (seq, actor, hash.as_bytes())).unwrap();
    }
    chain
}
