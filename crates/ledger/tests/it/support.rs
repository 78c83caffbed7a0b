//! A small ledger and its exported files, and helpers that verify either.

use std::collections::BTreeMap;
use std::io::{self, Read};

use ledger::export::{Manifest, Month, MonthWriter};
use ledger::verify::{
    Anchors, CheckpointReader, ExportFiles, LedgerVerifier, Report, verify_export,
};
use ledger::{
    Chain, Checkpoint, Draft, Entry, Hash, Header, Private, SigningKey, VerifyingKey,
    canonical_json, sign_checkpoint,
};
use serde_json::{Value, json};

pub(crate) const INSTANCE: &str = "0197f3c2-6a00-7000-8000-5f0c5f0c5f0c";
/// 20 May 2026. With six days between them, twenty entries span five months.
pub(crate) const START_US: i64 = 1_779_235_200_000_000;
pub(crate) const STEP_US: i64 = 6 * 24 * 60 * 60 * 1_000_000;

pub(crate) fn key() -> SigningKey {
    SigningKey::from_seed(&Checkpoint::origin_of(INSTANCE), [7; 32]).unwrap()
}

/// A key with the same name, owned by someone else.
pub(crate) fn other_key() -> SigningKey {
    SigningKey::from_seed(&Checkpoint::origin_of(INSTANCE), [8; 32]).unwrap()
}

pub(crate) fn genesis(instance: &str, key: &SigningKey) -> Draft {
    let key = key.verifying_key().to_text();
    draft(0, "genesis", json!({ "instance": instance, "key": key, "format": 1 }))
}

/// The draft of entry `at + 1`. Every third draft has a private part.
pub(crate) fn draft(at: u64, kind: &str, facts: Value) -> Draft {
    let header = Header {
        ts_us: START_US + at as i64 * STEP_US,
        kind,
        version: 1,
        actor: "user:ana",
        role: "maintainer",
        cause: &format!("request:{at}"),
        noun: "schedule",
        noun_id: &format!("nightly-{at}"),
    };
    let private = at.is_multiple_of(3).then(|| Private {
        salt: [at as u8; 16],
        bytes: canonical_json(&json!({ "note": format!("for \"Zoë\", number {at}\n") })).unwrap(),
    });
    Draft::new(header, canonical_json(&facts).unwrap(), private).unwrap()
}

pub(crate) fn drafts(instance: &str, key: &SigningKey, count: u64) -> Vec<Draft> {
    let later = (1..count).map(|at| draft(at, "slot.fired", json!({ "slot": at, "by": "timer" })));
    std::iter::once(genesis(instance, key)).chain(later).collect()
}

pub(crate) fn append_all(drafts: &[Draft]) -> Vec<Entry> {
    let mut chain = Chain::empty();
    drafts.iter().map(|draft| draft.appended_as(chain.append(draft)).to_owned()).collect()
}

/// Twenty valid entries.
pub(crate) fn entries() -> Vec<Entry> {
    append_all(&drafts(INSTANCE, &key(), 20))
}

pub(crate) fn chain_of(entries: &[Entry]) -> Chain {
    let mut chain = Chain::empty();
    entries.iter().for_each(|entry| chain.verify_next(&entry.entry_ref()).unwrap());
    chain
}

/// A signed checkpoint of the first `size` entries.
pub(crate) fn checkpoint(entries: &[Entry], size: usize, key: &SigningKey) -> String {
    let chain = chain_of(&entries[..size]);
    let origin = Checkpoint::origin_of(INSTANCE);
    sign_checkpoint(&Checkpoint { origin, size: chain.size(), root: chain.root() }, &[key])
}

pub(crate) fn verify_ledger(entries: &[Entry], checkpoints: &[String], anchors: Anchors) -> Report {
    let mut verifier = LedgerVerifier::new(anchors);
    for note in checkpoints {
        let _ = verifier.checkpoint(note);
    }
    for entry in entries {
        let _ = verifier.entry(&entry.entry_ref());
    }
    verifier.finish()
}

pub(crate) fn pinned(key: &SigningKey) -> Anchors {
    pinned_all(&[key])
}

pub(crate) fn pinned_all(keys: &[&SigningKey]) -> Anchors {
    let keys = keys.iter().map(|key| key.verifying_key().clone()).collect();
    Anchors { keys, ..Anchors::default() }
}

/// Anchors with external checkpoints, as concatenated notes.
pub(crate) fn with_external(keys: &[VerifyingKey], notes: &str) -> Anchors {
    let checkpoints = Some(CheckpointReader::new(io::Cursor::new(notes.to_owned())));
    Anchors { keys: keys.to_vec(), checkpoints, own_checkpoints: None }
}

/// Exported files in memory.
#[derive(Clone, Debug, Default)]
pub(crate) struct Files(pub(crate) BTreeMap<String, Vec<u8>>);

impl ExportFiles for Files {
    fn names(&self) -> io::Result<Vec<String>> {
        Ok(self.0.keys().cloned().collect())
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        let file = self.0.get(name).ok_or(io::ErrorKind::NotFound)?;
        Ok(Box::new(file.as_slice()))
    }
}

pub(crate) fn export(entries: &[Entry], instance: &str, key: &SigningKey) -> Files {
    let mut files = Files::default();
    let (mut chain, mut previous) = (Chain::empty(), None);
    for month in entries.chunk_by(|a, b| Month::containing(a.ts_us) == Month::containing(b.ts_us)) {
        let name = Month::containing(month[0].ts_us);
        let mut writer = MonthWriter::new(Vec::new(), instance.to_owned(), name, chain, previous);
        month.iter().for_each(|entry| writer.write(&entry.entry_ref()).unwrap());
        let written = writer.finish().unwrap();
        let note = written.manifest.sign(&[key]).unwrap();
        (chain, previous) = (written.chain, Some(Hash::of(note.as_bytes())));
        files.0.insert(name.lines_file_name(), written.output);
        files.0.insert(name.manifest_file_name(), note.into_bytes());
    }
    files
}

pub(crate) fn exported() -> Files {
    export(&entries(), INSTANCE, &key())
}

/// The manifest of the month whose lines are in the file `lines`.
pub(crate) fn manifest_of(files: &Files, lines: &str) -> Manifest {
    let name = lines.replace(".ndjson.gz", ".manifest");
    let note = std::str::from_utf8(&files.0[&name]).unwrap();
    Manifest::open(note, &[key().verifying_key().clone()]).unwrap()
}

pub(crate) fn verify_files(files: &Files, anchors: Anchors) -> Report {
    verify_export(files, anchors, &mut |_| ()).unwrap()
}

/// Every state of the disk in which a crash can leave an export of all twenty entries that follows an
/// export of 18 (all but the last month) or 19, with the number of entries that the state has.
pub(crate) fn interrupted_exports() -> Vec<(Files, usize)> {
    let (entries, after) = (entries(), exported());
    let month = Month::containing(entries[19].ts_us);
    let lines = &after.0[&month.lines_file_name()];
    let mut states = Vec::new();
    for count in [18, 19] {
        let mut files = export(&entries[..count], INSTANCE, &key());
        files.0.insert(month.new_lines_file_name(), lines[..lines.len() / 2].to_vec());
        states.push((files.clone(), count));
        files.0.insert(month.new_lines_file_name(), lines.clone());
        states.push((files.clone(), count));
        files.0.insert(month.manifest_file_name(), after.0[&month.manifest_file_name()].clone());
        states.push((files, 20));
    }
    states
}
