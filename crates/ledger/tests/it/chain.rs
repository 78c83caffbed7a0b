//! A chain appends and verifies entries, and finds the first entry that was altered.

use ledger::{Appended, Chain, Entry, EntryPrivate, Fault, FaultKind, Hash, NotAChain, Private};
use serde_json::json;

use crate::support::{START_US, append_all, chain_of, draft, drafts, entries, key};

/// The first fault in an altered ledger.
fn first_fault(alter: impl Fn(&mut Vec<Entry>)) -> Option<Fault> {
    let mut altered = entries();
    alter(&mut altered);
    let mut chain = Chain::empty();
    altered.iter().find_map(|entry| chain.verify_next(&entry.entry_ref()).err())
}

#[track_caller]
fn check(seq: u64, kind: FaultKind, alter: impl Fn(&mut Vec<Entry>)) {
    assert_eq!(first_fault(alter), Some(Fault { seq, kind }));
}

#[test]
fn hash_covers_every_field() {
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
            let fault = first_fault(|entries| alter(&mut entries[at]));
            let expected = Fault { seq: at as u64 + 1, kind: FaultKind::Changed };
            assert_eq!(fault, Some(expected), "{field} of entry {}", at + 1);
        }
    }
}

#[test]
fn hash_covers_private_part_and_salt() {
    let private = |entries: &mut Vec<Entry>, alter: fn(&mut Private)| match &mut entries[3].private
    {
        EntryPrivate::Present(private) => alter(private),
        other => panic!("expected a private part in entry 4, found {other:?}"),
    };
    check(4, FaultKind::Changed, |it| private(it, |private| private.salt[0] ^= 1));
    check(4, FaultKind::Changed, |it| private(it, |private| private.bytes[5] ^= 1));
}

#[test]
fn removed_swapped_and_repeated_entries_are_found() {
    check(1, FaultKind::Missing { found: 2 }, |it| drop(it.remove(0)));
    check(8, FaultKind::Missing { found: 9 }, |it| drop(it.remove(7)));
    check(8, FaultKind::Missing { found: 9 }, |it| it.swap(7, 8));
    check(9, FaultKind::Reordered { found: 8 }, |it| it.insert(8, it[7].clone()));
    check(1, FaultKind::Reordered { found: 0 }, |it| it[0].seq = 0);
}

#[test]
fn renumbering_does_not_hide_a_missing_entry() {
    for at in [0, 7, 18] {
        check(at as u64 + 1, FaultKind::Changed, |entries| {
            entries.remove(at);
            entries.iter_mut().skip(at).for_each(|entry| entry.seq -= 1);
        });
    }
}

#[test]
fn decreasing_time_is_found() {
    check(8, FaultKind::TimeWentBack, |it| it[7].ts_us = it[6].ts_us - 1);
    check(1, FaultKind::TimeWentBack, |it| it[0].ts_us = -1);
}

#[test]
fn recomputed_hash_breaks_the_next_entry() {
    let mut forged = drafts(crate::support::INSTANCE, &key(), 20);
    forged[7] = draft(7, "slot.fired", json!({ "slot": "forged" }));
    let forged = append_all(&forged);
    check(9, FaultKind::Changed, |it| it[7] = forged[7].clone());
}

#[test]
fn fault_does_not_advance_the_chain() {
    let entries = entries();
    let mut chain = chain_of(&entries[..7]);
    let before = chain.clone();
    assert!(chain.verify_next(&entries[9].entry_ref()).is_err());
    assert_eq!(chain, before);
    assert_eq!(chain.verify_next(&entries[7].entry_ref()), Ok(()));
}

#[test]
fn append_assigns_sequence_and_monotonic_time() {
    let mut chain = Chain::empty();
    assert_eq!((chain.size(), chain.head(), chain.ts_us()), (0, Hash::ZERO, 0));
    let first = chain.append(&draft(5, "genesis", json!({})));
    let second = chain.append(&draft(0, "slot.fired", json!({})));
    assert_eq!((first.seq, second.seq), (1, 2));
    assert_eq!(first.ts_us, START_US + 5 * crate::support::STEP_US);
    assert_eq!(second.ts_us, first.ts_us, "time does not decrease when the clock goes back");
    assert_eq!((chain.size(), chain.head(), chain.ts_us()), (2, second.hash, first.ts_us));
}

#[test]
fn appended_draft_verifies() {
    let draft = draft(3, "slot.fired", json!({ "a": 1 }));
    let appended: Appended = Chain::empty().append(&draft);
    let entry = draft.appended_as(appended);
    assert_eq!(Chain::empty().verify_next(&entry), Ok(()));
    assert_eq!(entry.to_owned().entry_ref(), entry);
}

#[test]
fn decoded_chain_continues() {
    let entries = entries();
    for size in 0..entries.len() {
        let mut chain = Chain::decode(&chain_of(&entries[..size]).encode()).unwrap();
        entries[size..].iter().for_each(|entry| chain.verify_next(&entry.entry_ref()).unwrap());
        assert_eq!(chain, chain_of(&entries));
    }
}

#[test]
fn damaged_chain_encoding_is_refused() {
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
fn fault_messages() {
    for (kind, expected) in [
        (FaultKind::Missing { found: 9 }, "entry 8 is missing: found entry 9 instead"),
        (FaultKind::TimeWentBack, "entry 8 is older than the entry before it"),
        (FaultKind::Changed, "entry 8 does not match its hash: it or entry 7 was changed"),
    ] {
        assert_eq!(Fault { seq: 8, kind }.to_string(), expected);
    }
}
