//! A month is written and read back as it was, within its limits.

use std::io::BufReader;

use ledger::export::{LineReader, LineWriter, Month, MonthWriter, ReadError, WriteError, unzip};
use ledger::{Chain, FaultKind};

use crate::support::{INSTANCE, entries, exported, manifest_of};

#[test]
fn the_same_entries_give_the_same_files() {
    assert_eq!(exported().0, exported().0);
}

#[test]
fn entries_come_back_as_they_were() {
    let (files, mut read) = (exported(), Vec::new());
    for month in files.0.keys().filter(|name| name.ends_with(".gz")) {
        let mut reader = LineReader::new(unzip(files.0[month].as_slice()));
        while let Some(line) = reader.next().unwrap() {
            read.push(line.fields().to_owned());
        }
        assert_eq!(reader.finish().unwrap(), manifest_of(&files, month).content());
    }
    assert_eq!(read, entries());
}

#[test]
fn only_a_sound_month_is_exported() {
    let mut entries = entries();
    entries[1].facts = b"{}".to_vec();
    let month = Month::of(entries[0].ts_us);
    let mut writer = MonthWriter::new(Vec::new(), INSTANCE.into(), month, Chain::empty(), None);
    writer.write(&entries[0].fields()).unwrap();
    let refused = writer.write(&entries[1].fields());
    assert!(matches!(refused, Err(WriteError::Damaged(fault)) if fault.kind == FaultKind::Changed));

    let june = entries.remove(2);
    let mut writer = MonthWriter::new(Vec::new(), INSTANCE.into(), month, Chain::empty(), None);
    let refused = writer.write(&june.fields()).unwrap_err();
    assert_eq!(refused.to_string(), "entry 3 belongs to 2026-06, not to 2026-05");

    let empty = MonthWriter::new(Vec::new(), INSTANCE.into(), month, Chain::empty(), None);
    assert!(matches!(empty.finish(), Err(WriteError::Empty { .. })));
}

#[test]
fn bodies_that_are_not_json_on_one_line_are_refused() {
    for facts in ["", "{", "{}\n", " {}", "{}{}", "{\n}"] {
        let mut entry = entries().remove(0);
        entry.facts = facts.into();
        let refused = LineWriter::new(Vec::new()).write(&entry.fields());
        assert!(matches!(refused, Err(WriteError::NotJson { seq: 1 })), "{facts:?}");
    }
}

#[test]
fn the_longest_entry_fits_into_a_line_and_nothing_longer_does() {
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
    writer.write(&entry.fields()).unwrap();
    let (line, _) = writer.finish();
    assert!(line.len() <= ledger::export::LINE_BYTES_MAX);
    let mut reader = LineReader::new(line.as_slice());
    assert_eq!(reader.next().unwrap().unwrap().fields(), entry.fields());

    let endless = BufReader::new(std::io::repeat(b'x'));
    assert!(matches!(LineReader::new(endless).next(), Err(ReadError::TooLong { line: 1 })));
}
