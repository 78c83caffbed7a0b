//! The verifier's report on a ledger in a data directory that was altered, truncated or forged.

use ledger::verify::{Anchors, LedgerVerifier, Report, Verdict};
use ledger::{Checkpoint, Draft, Entry, EntryPrivate, Hash, SigningKey, sign_checkpoint};
use serde_json::json;

use crate::support::{
    INSTANCE, append_all, checkpoint, draft, drafts, entries, genesis, key, other_key, pinned,
    pinned_all, verify_ledger, with_external,
};

#[track_caller]
fn check(report: &Report, verdict: Verdict, seq: Option<u64>, what: &str) {
    let damage = report.damage.as_ref();
    let found = damage.map_or("", |damage| damage.what.as_str());
    assert_eq!((report.verdict, damage.and_then(|it| it.seq)), (verdict, seq), "{found}");
    assert!(found.contains(what), "{found}");
}

#[track_caller]
fn has_caveats(report: &Report, expected: &[&str]) {
    assert_eq!(report.caveats.len(), expected.len(), "{:#?}", report.caveats);
    for (found, expected) in report.caveats.iter().zip(expected) {
        assert!(found.contains(expected), "{found}");
    }
}

/// The ledger with the private part of one entry replaced by its correct hash.
fn redacted(at: usize) -> Vec<Entry> {
    let mut entries = entries();
    let EntryPrivate::Present(private) = &entries[at].private else { panic!("no private part") };
    let length = u32::try_from(private.bytes.len()).unwrap().to_be_bytes();
    let bytes = [b"midwatch-private/v1", private.salt.as_slice(), &length, &private.bytes].concat();
    entries[at].private = EntryPrivate::Redacted { hash: Hash::of(&bytes) };
    entries
}

/// The ledger as an attacker who can compute hashes would rewrite it.
fn rewritten(key: &SigningKey) -> Vec<Entry> {
    let mut drafts = drafts(INSTANCE, key, 20);
    drafts[7] = draft(7, "slot.fired", json!({ "slot": "never happened" }));
    append_all(&drafts)
}

/// The ledger with five more entries.
fn longer() -> Vec<Entry> {
    append_all(&drafts(INSTANCE, &key(), 25))
}

#[test]
fn valid_ledger_with_all_anchors_has_no_caveats() {
    let entries = entries();
    let key = key();
    let notes = [5, 10, 10, 20].map(|size| checkpoint(&entries, size, &key));
    let anchors = with_external(&[key.verifying_key().clone()], &notes[1]);
    let report = verify_ledger(&entries, &notes, anchors);
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &[]);
    assert_eq!((report.entries, report.first_seq, report.last_seq), (20, Some(1), Some(20)));
    assert_eq!((report.redacted, report.checkpoints), (0, 5));
    assert_eq!(report.head, entries[19].hash);
}

#[test]
fn valid_ledger_without_anchors_has_caveats() {
    let report = verify_ledger(&entries(), &[], Anchors::default());
    check(&report, Verdict::Ok, None, "");
    has_caveats(
        &report,
        &["without `--vkey`", "covers the last 20 entries", "no external checkpoint"],
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["verdict"], "ok");
    assert_eq!(json["head"], report.head.to_string());
    assert_eq!(json.get("damage"), None);
}

#[test]
fn checkpoints_may_follow_their_last_entry() {
    let (entries, key) = (entries(), key());
    let mut verifier = LedgerVerifier::new(pinned(&key));
    for (at, entry) in entries.iter().enumerate() {
        assert!(verifier.entry(&entry.entry_ref()).is_continue());
        assert!(verifier.checkpoint(&checkpoint(&entries, at + 1, &key)).is_continue());
    }
    assert!(verifier.checkpoint(&checkpoint(&entries, 7, &key)).is_break());
    check(
        &verifier.finish(),
        Verdict::Unreadable,
        Some(7),
        "of 7 entries comes after a larger one",
    );
}

#[test]
fn entries_removed_from_the_end_are_found_by_checkpoints_only() {
    let (entries, key) = (entries(), key());
    let notes = [checkpoint(&entries, 20, &key)];
    let shorter = &entries[..17];
    check(&verify_ledger(shorter, &notes, pinned(&key)), Verdict::Truncated, Some(18), "covers 20");
    check(
        &verify_ledger(&[], &notes, pinned(&key)),
        Verdict::Truncated,
        Some(1),
        "ends at entry 0",
    );
    check(
        &verify_ledger(&[], &notes, Anchors::default()),
        Verdict::Truncated,
        Some(1),
        "ends at entry 0",
    );

    let external = || with_external(&[], &notes[0]);
    check(&verify_ledger(shorter, &[], external()), Verdict::Truncated, Some(18), "external");
    check(&verify_ledger(&[], &[], external()), Verdict::Truncated, Some(1), "external");

    let unseen = verify_ledger(shorter, &[], pinned(&key));
    check(&unseen, Verdict::Ok, None, "");
    has_caveats(&unseen, &["covers the last 17 entries", "no external checkpoint"]);
}

#[test]
fn empty_ledger_is_tampered() {
    let report = verify_ledger(&[], &[], Anchors::default());
    check(&report, Verdict::Tampered, Some(1), "the ledger is empty");
    assert_eq!((report.entries, report.first_seq, report.last_seq), (0, None, None));
}

#[test]
fn changed_entry_is_tampered() {
    let mut entries = entries();
    entries[7].facts = b"{}".to_vec();
    let report = verify_ledger(&entries, &[], pinned(&key()));
    check(&report, Verdict::Tampered, Some(8), "it or entry 7 was changed");
    assert_eq!((report.entries, report.last_seq), (7, Some(7)));
}

#[test]
fn rewrite_without_the_key_is_tampered() {
    let (good, key) = (entries(), key());
    let notes = [5, 10, 20].map(|size| checkpoint(&good, size, &key));
    let forged = rewritten(&key);
    check(
        &verify_ledger(&forged, &notes, pinned(&key)),
        Verdict::Tampered,
        Some(10),
        "a different root",
    );

    let forger = other_key();
    let their_notes = [5, 10, 20].map(|size| checkpoint(&forged, size, &forger));
    let report = verify_ledger(&forged, &their_notes, pinned(&key));
    check(&report, Verdict::Tampered, Some(5), "not by a known key");

    let theirs_from_the_start = rewritten(&forger);
    let their_notes = [checkpoint(&theirs_from_the_start, 20, &forger)];
    let report = verify_ledger(&theirs_from_the_start, &their_notes, pinned(&key));
    check(&report, Verdict::Tampered, Some(20), "not by a known key");
    let report = verify_ledger(&theirs_from_the_start, &their_notes, with_external(&[], &notes[0]));
    check(&report, Verdict::Tampered, None, "not by a known key");
}

#[test]
fn rewrite_with_the_key_is_found_by_external_checkpoint_only() {
    let (good, key) = (entries(), key());
    let forged = rewritten(&key);
    let notes = [checkpoint(&forged, 20, &key)];
    check(&verify_ledger(&forged, &notes, pinned(&key)), Verdict::Ok, None, "");

    let keys = [key.verifying_key().clone()];
    let before = with_external(&keys, &checkpoint(&good, 7, &key));
    check(&verify_ledger(&forged, &notes, before), Verdict::Ok, None, "");
    let after = with_external(&keys, &checkpoint(&good, 8, &key));
    check(&verify_ledger(&forged, &notes, after), Verdict::Truncated, None, "was rewritten");
}

/// A later checkpoint that matches does not make up for an earlier one that does not.
#[test]
fn every_external_checkpoint_must_match() {
    let (good, key) = (entries(), key());
    let keys = [key.verifying_key().clone()];
    let forged = rewritten(&key);
    let expect =
        |notes: &[String]| verify_ledger(&forged, &[], with_external(&keys, &notes.concat()));
    let [ours, later] = [9, 15].map(|size| checkpoint(&good, size, &key));
    let [before, theirs, last] = [5, 15, 20].map(|size| checkpoint(&forged, size, &key));

    let report = expect(&[before.clone(), theirs.clone(), theirs.clone(), last.clone()]);
    check(&report, Verdict::Ok, None, "");
    assert_eq!(report.checkpoints, 4);
    has_caveats(&report, &[]);

    let report = expect(&[before.clone(), ours.clone(), theirs.clone(), last.clone()]);
    check(&report, Verdict::Truncated, None, "the first 9 entries do not match");
    let report = expect(&[theirs.clone(), later.clone(), last.clone()]);
    check(&report, Verdict::Truncated, None, "the first 15 entries do not match");
    let report = expect(&[theirs.clone(), before.clone()]);
    check(&report, Verdict::Unreadable, None, "of 5 entries comes after a larger one");

    let stranger = checkpoint(&forged, 15, &other_key());
    check(&expect(&[stranger, last]), Verdict::Tampered, None, "not by a known key");
    let too_long = expect(&[theirs, checkpoint(&longer(), 25, &key)]);
    check(&too_long, Verdict::Truncated, Some(21), "covers 25 entries");

    // Damage to the ledger itself is reported first.
    let mut changed = good.clone();
    changed[17].facts = b"{}".to_vec();
    let notes = [checkpoint(&forged, 9, &key)].concat();
    let report = verify_ledger(&changed, &[], with_external(&keys, &notes));
    check(&report, Verdict::Tampered, Some(18), "it or entry 17 was changed");
}

#[test]
fn two_roots_of_one_size_are_tampered() {
    let (good, key) = (entries(), key());
    let notes = [checkpoint(&good, 10, &key), checkpoint(&rewritten(&key), 10, &key)];
    check(
        &verify_ledger(&good, &notes, pinned(&key)),
        Verdict::Tampered,
        Some(10),
        "different roots",
    );
}

#[test]
fn invalid_and_foreign_checkpoints_are_refused() {
    let (entries, key) = (entries(), key());
    let note = checkpoint(&entries, 10, &key);
    let signature = note.lines().last().unwrap();
    let wrong = note.replace(signature, checkpoint(&entries, 5, &key).lines().last().unwrap());
    check(
        &verify_ledger(&entries, &[wrong], pinned(&key)),
        Verdict::Tampered,
        Some(10),
        "is wrong",
    );
    check(
        &verify_ledger(&entries, &["?".into()], pinned(&key)),
        Verdict::Unreadable,
        None,
        "not a signed note",
    );

    let root = Hash::of(b"x");
    let elsewhere =
        sign_checkpoint(&Checkpoint { origin: "midwatch/other".into(), size: 10, root }, &[&key]);
    let report = verify_ledger(&entries, std::slice::from_ref(&elsewhere), pinned(&key));
    check(&report, Verdict::Tampered, Some(10), "belongs to another ledger, `midwatch/other`");
    let report = verify_ledger(&entries, &[], with_external(&[], &elsewhere));
    check(&report, Verdict::Tampered, None, "belongs to another ledger, `midwatch/other`");
}

#[test]
fn unrecorded_removal_of_a_private_part_is_tampered() {
    let report = verify_ledger(&redacted(6), &[], pinned(&key()));
    check(&report, Verdict::Tampered, Some(7), "private part of entry 7 was removed");
    assert_eq!(report.redacted, 1);
}

#[test]
fn first_entry_must_be_a_valid_genesis() {
    let with = |first: Draft| verify_ledger(&append_all(&[first]), &[], Anchors::default());
    let key = key().verifying_key().to_text();
    check(
        &with(draft(0, "slot.fired", json!({}))),
        Verdict::Tampered,
        Some(1),
        "starts with `slot.fired`",
    );
    for (facts, what) in [
        (json!({ "instance": "x", "key": key, "format": 2 }), "the ledger has format 2"),
        (
            json!({ "instance": "x", "key": "no key", "format": 1 }),
            "does not name the installation",
        ),
        (json!({ "instance": "x", "format": 1 }), "does not name the installation"),
        (json!([]), "does not name the installation"),
    ] {
        check(&with(draft(0, "genesis", facts)), Verdict::Unreadable, Some(1), what);
    }
    let more = json!({ "instance": "x", "key": key, "format": 1, "later": "fields are welcome" });
    check(&with(draft(0, "genesis", more)), Verdict::Ok, None, "");
}

/// A ledger in which entry 10 replaces the old key with the new one.
fn with_replaced_key(old: &SigningKey, new: &SigningKey) -> Vec<Entry> {
    let [old_text, new_text] = [old, new].map(|key| key.verifying_key().to_text());
    let mut drafts = drafts(INSTANCE, old, 20);
    let replaced = json!({ "old": old_text, "new": new_text });
    drafts[9] = draft(9, "ledger.key_replaced", replaced);
    append_all(&drafts)
}

#[test]
fn replaced_key_signs_later_checkpoints_with_a_caveat() {
    let (old, new) = (key(), other_key());
    let new_text = new.verifying_key().to_text();
    let entries = with_replaced_key(&old, &new);
    let notes = [
        checkpoint(&entries, 5, &old),
        checkpoint(&entries, 10, &new),
        checkpoint(&entries, 20, &new),
    ];
    let report = verify_ledger(&entries, &notes, Anchors::default());
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &["without `--vkey`", &new_text, "no external checkpoint"]);

    let report = verify_ledger(&entries, &notes, pinned_all(&[&old, &new]));
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &["no external checkpoint"]);

    let early = [checkpoint(&entries, 9, &new)];
    let report = verify_ledger(&entries, &early, Anchors::default());
    check(&report, Verdict::Tampered, Some(9), "not by a known key");

    let stranger = SigningKey::from_seed("stranger", [9; 32]).unwrap();
    let report = verify_ledger(&entries, &notes[1..], pinned(&stranger));
    check(&report, Verdict::Tampered, Some(10), "not by a known key");
}

/// An attacker without the key can still write an entry that replaces it.
#[test]
fn no_entry_adds_to_the_pinned_keys() {
    let (given, theirs) = (key(), other_key());
    let entries = with_replaced_key(&given, &theirs);
    let notes = [checkpoint(&entries, 20, &theirs)];
    let report = verify_ledger(&entries, &notes, pinned(&given));
    check(&report, Verdict::Tampered, Some(20), "not by a known key");
    let named = format!("with `{}`, whose signatures are not trusted", theirs.verifying_key());
    assert!(report.caveats[0].contains(&named), "{:#?}", report.caveats);

    let report = verify_ledger(&entries, &[], pinned(&given));
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &[&named, "the last 20 entries", "no external checkpoint"]);
}

#[test]
fn number_of_keys_is_limited() {
    let keys: Vec<SigningKey> =
        (0..20).map(|seed| SigningKey::from_seed("k", [seed; 32]).unwrap()).collect();
    let replaced = keys.array_windows().enumerate().map(|(at, [old, new])| {
        let [old, new] = [old, new].map(|key| key.verifying_key().to_text());
        draft(at as u64 + 1, "ledger.key_replaced", json!({ "old": old, "new": new }))
    });
    let drafts: Vec<Draft> = std::iter::once(genesis(INSTANCE, &keys[0])).chain(replaced).collect();
    let at_the_limit = ledger::verify::KEYS_MAX;
    let entries = append_all(&drafts);
    let good = verify_ledger(&entries[..at_the_limit], &[], Anchors::default());
    check(&good, Verdict::Ok, None, "");
    let report = verify_ledger(&entries, &[], Anchors::default());
    check(&report, Verdict::Unreadable, Some(at_the_limit as u64 + 1), "more than 16 keys");
    let report = verify_ledger(&entries, &[], pinned(&keys[0]));
    check(&report, Verdict::Unreadable, Some(at_the_limit as u64 + 1), "more than 16 keys");
}
