//! Writing a month and reading it back.

use std::io::BufReader;

use ledger::export::{LineReader, LineWriter, Month, MonthWriter, ReadError, WriteError, gunzip};
use ledger::{Chain, FaultKind};

use crate::support::{INSTANCE, entries, exported, manifest_of};

#[test]
fn export_is_deterministic() {
    assert_eq!(exported().0, exported().0);
}

#[test]
fn exported_entries_round_trip() {
    let (files, mut read) = (exported(), Vec::new());
    for month in files.0.keys().filter(|name| name.ends_with(".gz")) {
        let mut reader = LineReader::new(gunzip(files.0[month].as_slice()));
        while let Some(line) = reader.next().unwrap() {
            read.push(line.entry_ref().to_owned());
        }
        assert_eq!(reader.finish().unwrap(), manifest_of(&files, month).content_digest());
    }
    assert_eq!(read, entries());
}

#[test]
fn damaged_misplaced_or_missing_entries_are_not_exported() {
    let mut entries = entries();
    entries[1].facts = b"{}".to_vec();
    let month = Month::containing(entries[0].ts_us);
    let mut writer = MonthWriter::new(Vec::new(), INSTANCE.into(), month, Chain::empty(), None);
    writer.write(&entries[0].entry_ref()).unwrap();
    let refused = writer.write(&entries[1].entry_ref());
    assert!(matches!(refused, Err(WriteError::Damaged(fault)) if fault.kind == FaultKind::Changed));

    let june = entries.remove(2);
    let mut writer = MonthWriter::new(Vec::new(), INSTANCE.into(), month, Chain::empty(), None);
    let refused = writer.write(&june.entry_ref()).unwrap_err();
    assert_eq!(refused.to_string(), "entry 3 belongs to 2026-06, not to 2026-05");

    let empty = MonthWriter::new(Vec::new(), INSTANCE.into(), month, Chain::empty(), None);
    assert!(matches!(empty.finish(), Err(WriteError::Empty { .. })));
}

#[test]
fn facts_must_be_json_on_one_line() {
    for facts in ["", "{", "{}\n", " {}", "{}{}", "{\n}"] {
        let mut entry = entries().remove(0);
        entry.facts = facts.into();
        let refused = LineWriter::new(Vec::new()).write(&entry.entry_ref());
        assert!(matches!(refused, Err(WriteError::NotJson { seq: 1 })), "{facts:?}");
    }
}

#[test]
fn line_limit_fits_the_largest_entry() {
    let mut entry = entries().remove(0);
    let text = || "\u{1}".repeat(ledger::TEXT_BYTES_MAX);
    for field in [
        &mut entry.kind,
        &mut entry.actor,
        &mut entry.role,
        &mut entry.cause,
        &mut entry.noun,
        &mut entry.noun_id,
    ] {
        *field = text();
    }
    (entry.seq, entry.ts_us) = (u64::MAX, i64::MIN);
    let number = |bytes: usize| "1".repeat(bytes).into_bytes();
    entry.facts = number(ledger::FACTS_BYTES_MAX);
    entry.private = ledger::EntryPrivate::Present(ledger::Private {
        salt: [0; 16],
        bytes: number(ledger::PRIVATE_BYTES_MAX),
    });
    let mut writer = LineWriter::new(Vec::new());
    writer.write(&entry.entry_ref()).unwrap();
    let (line, _) = writer.finish();
    assert!(line.len() <= ledger::export::LINE_BYTES_MAX);
    let mut reader = LineReader::new(line.as_slice());
    assert_eq!(reader.next().unwrap().unwrap().entry_ref(), entry.entry_ref());

    let endless = BufReader::new(std::io::repeat(b'x'));
    assert!(matches!(LineReader::new(endless).next(), Err(ReadError::TooLong { line: 1 })));
}
