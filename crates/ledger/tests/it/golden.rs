//! The stored format, locked by `tests/golden/v1.json`, which never changes.
//!
//! A version that reads or writes it differently could not verify existing ledgers. A new format
//! needs a new file.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;
use ledger::export::{LineReader, LineWriter, Manifest, Month, MonthWriter};
use ledger::{
    Chain, Checkpoint, Draft, Entry, EntryPrivate, Hash, Header, SigningKey, VerifyingKey,
    open_checkpoint, sign_checkpoint,
};
use serde::Deserialize;

use crate::support::Files;

#[derive(Deserialize)]
pub(crate) struct Golden {
    signing_key: String,
    pub(crate) verifying_key: String,
    instance: String,
    pub(crate) lines: Vec<String>,
    /// One per line: the body's hash, and in `roots` the Merkle root after that line.
    body_hashes: Vec<Hash>,
    pub(crate) roots: Vec<Hash>,
    /// The second line after the removal of its private part.
    redacted_line: String,
    /// The encoded chain after the last line, in hexadecimal.
    chain: String,
    checkpoint: String,
    manifest: String,
}

pub(crate) fn read() -> Golden {
    serde_json::from_str(include_str!("../golden/v1.json")).unwrap()
}

impl Golden {
    fn text(&self) -> String {
        self.lines.iter().map(|line| format!("{line}\n")).collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let text = self.text();
        let mut reader = LineReader::new(text.as_bytes());
        std::iter::from_fn(|| reader.next().unwrap().map(|line| line.entry_ref().to_owned()))
            .collect()
    }

    fn month(&self) -> Month {
        Month::containing(self.entries()[0].ts_us)
    }

    pub(crate) fn files(&self) -> Files {
        let mut zip = GzEncoder::new(Vec::new(), Compression::default());
        zip.write_all(self.text().as_bytes()).unwrap();
        let mut files = Files::default();
        files.0.insert(self.month().lines_file_name(), zip.finish().unwrap());
        files.0.insert(self.month().manifest_file_name(), self.manifest.clone().into_bytes());
        files
    }
}

fn draft(entry: &Entry) -> Draft {
    let header = Header {
        ts_us: entry.ts_us,
        kind: &entry.kind,
        version: entry.version,
        actor: &entry.actor,
        role: &entry.role,
        cause: &entry.cause,
        noun: &entry.noun,
        noun_id: &entry.noun_id,
    };
    let private = match &entry.private {
        EntryPrivate::Present(private) => Some(private.clone()),
        EntryPrivate::None => None,
        EntryPrivate::Redacted { .. } => panic!("a draft cannot have a removed private part"),
    };
    Draft::new(header, entry.facts.clone(), private).unwrap()
}

#[test]
fn entry_hashes_match_the_golden_file() {
    let golden = read();
    let entries = golden.entries();
    assert_eq!(entries.len(), golden.body_hashes.len());
    let mut chain = Chain::empty();
    for (at, entry) in entries.iter().enumerate() {
        let draft = draft(entry);
        assert_eq!(draft.body_hash(), golden.body_hashes[at]);
        assert_eq!(chain.clone().verify_next(&entry.entry_ref()), Ok(()));
        assert_eq!(chain.append(&draft).hash, entry.hash);
        assert_eq!(chain.root(), golden.roots[at]);
    }
    let encoded: String = chain.encode().iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(encoded, golden.chain);
}

#[test]
fn removing_a_private_part_keeps_the_entry_hash() {
    let golden = read();
    let line = format!("{}\n", golden.redacted_line);
    let redacted = LineReader::new(line.as_bytes()).next().unwrap().unwrap().entry_ref().to_owned();
    let [first, second, ..] = &golden.entries()[..] else { panic!("expected two entries") };
    assert_eq!(redacted.hash, second.hash);
    assert!(matches!(redacted.private, EntryPrivate::Redacted { .. }));
    let mut chain = Chain::empty();
    chain.verify_next(&first.entry_ref()).unwrap();
    assert_eq!(chain.verify_next(&redacted.entry_ref()), Ok(()));
    assert_eq!(to_line(&redacted), line);
}

fn to_line(entry: &Entry) -> String {
    let mut writer = LineWriter::new(Vec::new());
    writer.write(&entry.entry_ref()).unwrap();
    String::from_utf8(writer.finish().0).unwrap()
}

#[test]
fn lines_match_the_golden_file() {
    let golden = read();
    let lines: String = golden.entries().iter().map(to_line).collect();
    assert_eq!(lines, golden.text());
}

#[test]
fn signed_checkpoint_matches_the_golden_file() {
    let golden = read();
    let key = SigningKey::from_text(&golden.signing_key).unwrap();
    assert_eq!(key.verifying_key().to_text(), golden.verifying_key);
    let checkpoint = Checkpoint {
        origin: Checkpoint::origin_of(&golden.instance),
        size: golden.lines.len() as u64,
        root: *golden.roots.last().unwrap(),
    };
    assert_eq!(sign_checkpoint(&checkpoint, &[&key]), golden.checkpoint);
    let keys = [VerifyingKey::parse(&golden.verifying_key).unwrap()];
    assert_eq!(open_checkpoint(&golden.checkpoint, &keys), Ok(checkpoint));
}

#[test]
fn manifest_matches_the_golden_file() {
    let golden = read();
    let key = SigningKey::from_text(&golden.signing_key).unwrap();
    let instance = golden.instance.clone();
    let mut writer = MonthWriter::new(Vec::new(), instance, golden.month(), Chain::empty(), None);
    golden.entries().iter().for_each(|entry| writer.write(&entry.entry_ref()).unwrap());
    let manifest = writer.finish().unwrap().manifest;
    assert_eq!(manifest.sign(&[&key]).unwrap(), golden.manifest);
    assert_eq!(Manifest::open(&golden.manifest, &[key.verifying_key().clone()]), Ok(manifest));
}
