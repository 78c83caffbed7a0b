//! Stories about a data directory: what was done to it, what was known from outside, the verdict.

use ledger::verify::{Anchors, LogVerifier, Report, Verdict};
use ledger::{Checkpoint, Draft, Entry, EntryPrivate, Hash, SigningKey, sign};
use serde_json::json;

use crate::support::{
    INSTANCE, checkpoint, draft, drafts, entries, genesis, key, other_key, outside, pinned,
    pinned_all, sealed, verify_log,
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

/// The log with the private part of one entry removed, and its hash right.
fn redacted(at: usize) -> Vec<Entry> {
    let mut entries = entries();
    let EntryPrivate::Present(private) = &entries[at].private else { panic!("no private part") };
    let length = u32::try_from(private.bytes.len()).unwrap().to_be_bytes();
    let bytes = [b"midwatch-private/v1", private.salt.as_slice(), &length, &private.bytes].concat();
    entries[at].private = EntryPrivate::Redacted { hash: Hash::of(&bytes) };
    entries
}

/// The log as someone rewrites it who can compute hashes.
fn rewritten(key: &SigningKey) -> Vec<Entry> {
    let mut drafts = drafts(INSTANCE, key, 20);
    drafts[7] = draft(7, "slot.fired", json!({ "slot": "never happened" }));
    sealed(&drafts)
}

/// The log as it goes on.
fn longer() -> Vec<Entry> {
    sealed(&drafts(INSTANCE, &key(), 25))
}

#[test]
fn a_good_log_with_everything_to_measure_it_by() {
    let entries = entries();
    let key = key();
    let notes = [5, 10, 10, 20].map(|size| checkpoint(&entries, size, &key));
    let anchors = outside(&[key.verifying_key().clone()], &notes[1]);
    let report = verify_log(&entries, &notes, anchors);
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &[]);
    assert_eq!((report.entries, report.first_seq, report.last_seq), (20, Some(1), Some(20)));
    assert_eq!((report.redacted, report.checkpoints), (0, 5));
    assert_eq!(report.head, entries[19].hash);
}

#[test]
fn a_good_log_with_nothing_to_measure_it_by() {
    let report = verify_log(&entries(), &[], Anchors::default());
    check(&report, Verdict::Ok, None, "");
    has_caveats(
        &report,
        &["no key was given", "covers the last 20 entries", "no checkpoint from outside"],
    );
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["verdict"], "ok");
    assert_eq!(json["head"], report.head.to_string());
    assert_eq!(json.get("damage"), None);
}

#[test]
fn checkpoints_may_come_as_the_log_reaches_them() {
    let (entries, key) = (entries(), key());
    let mut verifier = LogVerifier::new(pinned(&key));
    for (at, entry) in entries.iter().enumerate() {
        assert!(verifier.entry(&entry.fields()).is_continue());
        assert!(verifier.checkpoint(&checkpoint(&entries, at + 1, &key)).is_continue());
    }
    assert!(verifier.checkpoint(&checkpoint(&entries, 7, &key)).is_break());
    check(&verifier.finish(), Verdict::Unreadable, Some(7), "stands after one of more entries");
}

#[test]
fn removed_at_the_end() {
    let (entries, key) = (entries(), key());
    let notes = [checkpoint(&entries, 20, &key)];
    let shorter = &entries[..17];
    check(
        &verify_log(shorter, &notes, pinned(&key)),
        Verdict::Truncated,
        Some(18),
        "vouches for 20",
    );
    check(&verify_log(&[], &notes, pinned(&key)), Verdict::Truncated, Some(1), "ends at entry 0");
    check(
        &verify_log(&[], &notes, Anchors::default()),
        Verdict::Truncated,
        Some(1),
        "ends at entry 0",
    );

    let kept = || outside(&[], &notes[0]);
    check(&verify_log(shorter, &[], kept()), Verdict::Truncated, Some(18), "from outside");
    check(&verify_log(&[], &[], kept()), Verdict::Truncated, Some(1), "from outside");

    let unseen = verify_log(shorter, &[], pinned(&key));
    check(&unseen, Verdict::Ok, None, "");
    has_caveats(&unseen, &["covers the last 17 entries", "no checkpoint from outside"]);
}

#[test]
fn nothing_at_all() {
    let report = verify_log(&[], &[], Anchors::default());
    check(&report, Verdict::Tampered, Some(1), "the log is empty");
    assert_eq!((report.entries, report.first_seq, report.last_seq), (0, None, None));
}

#[test]
fn changed_in_the_middle() {
    let mut entries = entries();
    entries[7].facts = b"{}".to_vec();
    let report = verify_log(&entries, &[], pinned(&key()));
    check(&report, Verdict::Tampered, Some(8), "was changed");
    assert_eq!((report.entries, report.last_seq), (7, Some(7)));
}

#[test]
fn rewritten_without_the_key() {
    let (good, key) = (entries(), key());
    let notes = [5, 10, 20].map(|size| checkpoint(&good, size, &key));
    let forged = rewritten(&key);
    check(&verify_log(&forged, &notes, pinned(&key)), Verdict::Tampered, Some(10), "another root");

    let forger = other_key();
    let their_notes = [5, 10, 20].map(|size| checkpoint(&forged, size, &forger));
    let report = verify_log(&forged, &their_notes, pinned(&key));
    check(&report, Verdict::Tampered, Some(5), "not by a known key");

    let theirs_from_the_start = rewritten(&forger);
    let their_notes = [checkpoint(&theirs_from_the_start, 20, &forger)];
    let report = verify_log(&theirs_from_the_start, &their_notes, pinned(&key));
    check(&report, Verdict::Tampered, Some(20), "not by a known key");
    let report = verify_log(&theirs_from_the_start, &their_notes, outside(&[], &notes[0]));
    check(&report, Verdict::Tampered, None, "not by a known key");
}

#[test]
fn rewritten_with_the_key() {
    let (good, key) = (entries(), key());
    let forged = rewritten(&key);
    let notes = [checkpoint(&forged, 20, &key)];
    check(&verify_log(&forged, &notes, pinned(&key)), Verdict::Ok, None, "");

    let keys = [key.verifying_key().clone()];
    let before = outside(&keys, &checkpoint(&good, 7, &key));
    check(&verify_log(&forged, &notes, before), Verdict::Ok, None, "");
    let after = outside(&keys, &checkpoint(&good, 8, &key));
    check(&verify_log(&forged, &notes, after), Verdict::Truncated, None, "was rewritten");
}

/// Each of them is evidence: a later one that agrees does not make up for an earlier one.
#[test]
fn every_checkpoint_from_outside_counts() {
    let (good, key) = (entries(), key());
    let keys = [key.verifying_key().clone()];
    let forged = rewritten(&key);
    let expect = |notes: &[String]| verify_log(&forged, &[], outside(&keys, &notes.concat()));
    let [ours, later] = [9, 15].map(|size| checkpoint(&good, size, &key));
    let [before, theirs, last] = [5, 15, 20].map(|size| checkpoint(&forged, size, &key));

    let report = expect(&[before.clone(), theirs.clone(), theirs.clone(), last.clone()]);
    check(&report, Verdict::Ok, None, "");
    assert_eq!(report.checkpoints, 4);
    has_caveats(&report, &[]);

    let report = expect(&[before.clone(), ours.clone(), theirs.clone(), last.clone()]);
    check(&report, Verdict::Truncated, None, "the first 9 entries are not those");
    let report = expect(&[theirs.clone(), later.clone(), last.clone()]);
    check(&report, Verdict::Truncated, None, "the first 15 entries are not those");
    let report = expect(&[theirs.clone(), before.clone()]);
    check(&report, Verdict::Unreadable, None, "of 5 entries stands after one of more");

    let stranger = checkpoint(&forged, 15, &other_key());
    check(&expect(&[stranger, last]), Verdict::Tampered, None, "not by a known key");
    let too_long = expect(&[theirs, checkpoint(&longer(), 25, &key)]);
    check(&too_long, Verdict::Truncated, Some(21), "vouches for 25 entries");

    // Damage to the log itself is told first.
    let mut changed = good.clone();
    changed[17].facts = b"{}".to_vec();
    let notes = [checkpoint(&forged, 9, &key)].concat();
    let report = verify_log(&changed, &[], outside(&keys, &notes));
    check(&report, Verdict::Tampered, Some(18), "was changed");
}

#[test]
fn two_roots_for_one_size() {
    let (good, key) = (entries(), key());
    let notes = [checkpoint(&good, 10, &key), checkpoint(&rewritten(&key), 10, &key)];
    check(&verify_log(&good, &notes, pinned(&key)), Verdict::Tampered, Some(10), "different roots");
}

#[test]
fn checkpoints_of_someone_else() {
    let (entries, key) = (entries(), key());
    let note = checkpoint(&entries, 10, &key);
    let signature = note.lines().last().unwrap();
    let wrong = note.replace(signature, checkpoint(&entries, 5, &key).lines().last().unwrap());
    check(&verify_log(&entries, &[wrong], pinned(&key)), Verdict::Tampered, Some(10), "is wrong");
    check(
        &verify_log(&entries, &["?".into()], pinned(&key)),
        Verdict::Unreadable,
        None,
        "not a signed note",
    );

    let root = Hash::of(b"x");
    let elsewhere = sign(&Checkpoint { origin: "midwatch/other".into(), size: 10, root }, &[&key]);
    let report = verify_log(&entries, std::slice::from_ref(&elsewhere), pinned(&key));
    check(&report, Verdict::Tampered, Some(10), "belongs to another log, `midwatch/other`");
    let report = verify_log(&entries, &[], outside(&[], &elsewhere));
    check(&report, Verdict::Tampered, None, "belongs to another log, `midwatch/other`");
}

#[test]
fn a_removed_private_part_needs_an_entry_that_says_so() {
    let report = verify_log(&redacted(6), &[], pinned(&key()));
    check(&report, Verdict::Tampered, Some(7), "private part of entry 7 was removed");
    assert_eq!(report.redacted, 1);
}

#[test]
fn the_first_entry_is_a_genesis() {
    let with = |first: Draft| verify_log(&sealed(&[first]), &[], Anchors::default());
    let key = key().verifying_key().to_text();
    check(
        &with(draft(0, "slot.fired", json!({}))),
        Verdict::Tampered,
        Some(1),
        "begins with `slot.fired`",
    );
    for (facts, what) in [
        (json!({ "instance": "x", "key": key, "format": 2 }), "the log has format 2"),
        (json!({ "instance": "x", "key": "no key", "format": 1 }), "does not say whose log"),
        (json!({ "instance": "x", "format": 1 }), "does not say whose log"),
        (json!([]), "does not say whose log"),
    ] {
        check(&with(draft(0, "genesis", facts)), Verdict::Unreadable, Some(1), what);
    }
    let more = json!({ "instance": "x", "key": key, "format": 1, "later": "fields are welcome" });
    check(&with(draft(0, "genesis", more)), Verdict::Ok, None, "");
}

/// The log in which entry 10 says that the new key replaced the old one.
fn with_replaced_key(old: &SigningKey, new: &SigningKey) -> Vec<Entry> {
    let [old_text, new_text] = [old, new].map(|key| key.verifying_key().to_text());
    let mut drafts = drafts(INSTANCE, old, 20);
    let replaced = json!({ "old": old_text, "new": new_text });
    drafts[9] = draft(9, "ledger.key_replaced", replaced);
    sealed(&drafts)
}

#[test]
fn a_replaced_key_signs_what_follows_and_is_named() {
    let (old, new) = (key(), other_key());
    let new_text = new.verifying_key().to_text();
    let entries = with_replaced_key(&old, &new);
    let notes = [
        checkpoint(&entries, 5, &old),
        checkpoint(&entries, 10, &new),
        checkpoint(&entries, 20, &new),
    ];
    let report = verify_log(&entries, &notes, Anchors::default());
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &["no key was given", &new_text, "no checkpoint from outside"]);

    let report = verify_log(&entries, &notes, pinned_all(&[&old, &new]));
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &["no checkpoint from outside"]);

    let early = [checkpoint(&entries, 9, &new)];
    let report = verify_log(&entries, &early, Anchors::default());
    check(&report, Verdict::Tampered, Some(9), "not by a known key");

    let stranger = SigningKey::from_seed("stranger", [9; 32]).unwrap();
    let report = verify_log(&entries, &notes[1..], pinned(&stranger));
    check(&report, Verdict::Tampered, Some(10), "not by a known key");
}

/// Whoever has no key can still write that theirs replaced it.
#[test]
fn no_entry_adds_to_the_keys_that_were_given() {
    let (given, theirs) = (key(), other_key());
    let entries = with_replaced_key(&given, &theirs);
    let notes = [checkpoint(&entries, 20, &theirs)];
    let report = verify_log(&entries, &notes, pinned(&given));
    check(&report, Verdict::Tampered, Some(20), "not by a known key");
    let named = format!("by `{}`, which was not given", theirs.verifying_key());
    assert!(report.caveats[0].contains(&named), "{:#?}", report.caveats);

    let report = verify_log(&entries, &[], pinned(&given));
    check(&report, Verdict::Ok, None, "");
    has_caveats(&report, &[&named, "the last 20 entries", "no checkpoint from outside"]);
}

#[test]
fn a_log_names_a_limited_number_of_keys() {
    let keys: Vec<SigningKey> =
        (0..20).map(|seed| SigningKey::from_seed("k", [seed; 32]).unwrap()).collect();
    let replaced = keys.array_windows().enumerate().map(|(at, [old, new])| {
        let [old, new] = [old, new].map(|key| key.verifying_key().to_text());
        draft(at as u64 + 1, "ledger.key_replaced", json!({ "old": old, "new": new }))
    });
    let drafts: Vec<Draft> = std::iter::once(genesis(INSTANCE, &keys[0])).chain(replaced).collect();
    let at_the_limit = ledger::verify::KEYS_MAX;
    let entries = sealed(&drafts);
    let good = verify_log(&entries[..at_the_limit], &[], Anchors::default());
    check(&good, Verdict::Ok, None, "");
    let report = verify_log(&entries, &[], Anchors::default());
    check(&report, Verdict::Unreadable, Some(at_the_limit as u64 + 1), "more than 16 keys");
    let report = verify_log(&entries, &[], pinned(&keys[0]));
    check(&report, Verdict::Unreadable, Some(at_the_limit as u64 + 1), "more than 16 keys");
}
