//! A chain seals, checks, and finds the first entry that is not what was written.

use ledger::{Chain, Entry, EntryPrivate, Fault, FaultKind, Hash, NotAChain, Private, Sealed};
use serde_json::json;

use crate::support::{START_US, chain_of, draft, drafts, entries, key, sealed};

/// What the chain says of a log that was altered.
fn check(alter: impl Fn(&mut Vec<Entry>)) -> Option<Fault> {
    let mut altered = entries();
    alter(&mut altered);
    let mut chain = Chain::empty();
    altered.iter().find_map(|entry| chain.check(&entry.fields()).err())
}

#[track_caller]
fn found_at(seq: u64, kind: FaultKind, alter: impl Fn(&mut Vec<Entry>)) {
    assert_eq!(check(alter), Some(Fault { seq, kind }));
}

#[test]
fn every_field_is_covered() {
    type Alter = (&'static str, fn(&mut Entry));
    let alterations: &[Alter] = &[
        ("ts_us", |it| it.ts_us += 1),
        ("kind", |it| it.kind.push('x')),
        ("version", |it| it.version += 1),
        ("actor", |it| it.actor.push('x')),
        ("role", |it| it.role.clear()),
        ("cause", |it| it.cause.push('x')),
        ("noun", |it| it.noun.push('x')),
        ("noun_id", |it| it.noun_id.push('x')),
        ("text moved to the next field", |it| {
            let last = it.actor.pop().unwrap();
            it.role.insert(0, last);
        }),
        ("facts", |it| it.facts.push(b' ')),
        ("no facts", |it| it.facts.clear()),
        ("hash", |it| it.hash = Hash::of(b"x")),
        ("private added or removed", |it| {
            it.private = match it.private {
                EntryPrivate::None => {
                    EntryPrivate::Present(Private { salt: [0; 16], bytes: vec![] })
                }
                _ => EntryPrivate::None,
            };
        }),
        ("removed with another hash", |it| {
            it.private = EntryPrivate::Redacted { hash: Hash::of(b"x") }
        }),
    ];
    for at in [0, 7, 19] {
        for (field, alter) in alterations {
            let fault = check(|entries| alter(&mut entries[at]));
            let expected = Fault { seq: at as u64 + 1, kind: FaultKind::Changed };
            assert_eq!(fault, Some(expected), "{field} of entry {}", at + 1);
        }
    }
}

#[test]
fn the_private_part_is_covered_with_its_salt() {
    let private = |entries: &mut Vec<Entry>, alter: fn(&mut Private)| match &mut entries[3].private
    {
        EntryPrivate::Present(private) => alter(private),
        other => panic!("entry 4 has a private part, not {other:?}"),
    };
    found_at(4, FaultKind::Changed, |it| private(it, |private| private.salt[0] ^= 1));
    found_at(4, FaultKind::Changed, |it| private(it, |private| private.bytes[5] ^= 1));
}

#[test]
fn order_is_covered() {
    found_at(1, FaultKind::Missing { found: 2 }, |it| drop(it.remove(0)));
    found_at(8, FaultKind::Missing { found: 9 }, |it| drop(it.remove(7)));
    found_at(8, FaultKind::Missing { found: 9 }, |it| it.swap(7, 8));
    found_at(9, FaultKind::Reordered { found: 8 }, |it| it.insert(8, it[7].clone()));
    found_at(1, FaultKind::Reordered { found: 0 }, |it| it[0].seq = 0);
}

#[test]
fn renumbering_does_not_hide_a_missing_entry() {
    for at in [0, 7, 18] {
        found_at(at as u64 + 1, FaultKind::Changed, |entries| {
            entries.remove(at);
            entries.iter_mut().skip(at).for_each(|entry| entry.seq -= 1);
        });
    }
}

#[test]
fn time_does_not_go_back() {
    found_at(8, FaultKind::TimeWentBack, |it| it[7].ts_us = it[6].ts_us - 1);
    found_at(1, FaultKind::TimeWentBack, |it| it[0].ts_us = -1);
}

#[test]
fn a_recomputed_hash_breaks_the_next_link() {
    let mut forged = drafts(crate::support::INSTANCE, &key(), 20);
    forged[7] = draft(7, "slot.fired", json!({ "slot": "forged" }));
    let forged = sealed(&forged);
    found_at(9, FaultKind::Changed, |it| it[7] = forged[7].clone());
}

#[test]
fn a_fault_does_not_advance() {
    let entries = entries();
    let mut chain = chain_of(&entries[..7]);
    let before = chain.clone();
    assert!(chain.check(&entries[9].fields()).is_err());
    assert_eq!(chain, before);
    assert_eq!(chain.check(&entries[7].fields()), Ok(()));
}

#[test]
fn sealing_gives_the_next_place() {
    let mut chain = Chain::empty();
    assert_eq!((chain.size(), chain.head(), chain.ts_us()), (0, Hash::ZERO, 0));
    let first = chain.seal(&draft(5, "genesis", json!({})));
    let second = chain.seal(&draft(0, "slot.fired", json!({})));
    assert_eq!((first.seq, second.seq), (1, 2));
    assert_eq!(first.ts_us, START_US + 5 * crate::support::STEP_US);
    assert_eq!(second.ts_us, first.ts_us, "a clock that went back does not take the log with it");
    assert_eq!((chain.size(), chain.head(), chain.ts_us()), (2, second.hash, first.ts_us));
}

#[test]
fn a_draft_becomes_the_fields_that_verify() {
    let draft = draft(3, "slot.fired", json!({ "a": 1 }));
    let sealed: Sealed = Chain::empty().seal(&draft);
    let fields = draft.fields(sealed);
    assert_eq!(Chain::empty().check(&fields), Ok(()));
    assert_eq!(fields.to_owned().fields(), fields);
}

#[test]
fn a_chain_continues_from_its_encoded_end() {
    let entries = entries();
    for size in 0..entries.len() {
        let mut chain = Chain::decode(&chain_of(&entries[..size]).encode()).unwrap();
        entries[size..].iter().for_each(|entry| chain.check(&entry.fields()).unwrap());
        assert_eq!(chain, chain_of(&entries));
    }
}

#[test]
fn a_damaged_end_is_refused() {
    let good = chain_of(&entries()).encode();
    let with = |at: usize, byte: u8| {
        let mut bytes = good.clone();
        bytes[at] = byte;
        bytes
    };
    let longer = [good.as_slice(), &[0; 32]].concat();
    let not_empty = [&[1], [0; 16].as_slice(), &[1; 32]].concat();
    for damaged in [
        vec![],
        good[..good.len() - 1].to_vec(),
        longer,
        not_empty,
        with(0, 2),
        with(1, 0x80),
        with(8, 21),
        with(9, 0x80),
    ] {
        assert_eq!(Chain::decode(&damaged), Err(NotAChain), "{damaged:?}");
    }
}

#[test]
fn faults_are_told_in_words() {
    for (kind, expected) in [
        (FaultKind::Missing { found: 9 }, "entry 8 is missing: entry 9 stands in its place"),
        (FaultKind::TimeWentBack, "entry 8 is older than the entry before it"),
        (
            FaultKind::Changed,
            "entry 8 was changed, or the entry before it was: its hash does not match",
        ),
    ] {
        assert_eq!(Fault { seq: 8, kind }.to_string(), expected);
    }
}
