//! No input panics or takes unbounded memory, and no damaged input verifies.

use std::io::{self, Read, Write};
use std::sync::atomic::{AtomicUsize, Ordering};

use flate2::Compression;
use flate2::write::GzEncoder;
use ledger::export::{LineReader, Manifest, Month, gunzip};
use ledger::verify::{
    Anchors, ExportFiles, LedgerVerifier, SignedCheckpoint, Verdict, verify_export,
};
use ledger::{Chain, Hash, SigningKey, VerifyingKey, open_checkpoint};
use proptest::prelude::*;
use proptest::sample::Index;

use crate::support::{
    Files, INSTANCE, chain_of, checkpoint, entries, export, exported, key, pinned, verify_files,
};

fn read_lines(bytes: &[u8]) {
    let mut reader = LineReader::new(bytes);
    while let Ok(Some(line)) = reader.next() {
        let _ = Chain::empty().verify_next(&line.entry_ref());
    }
    let _ = reader.finish();
}

fn parse_all(text: &str) {
    let keys = [key().verifying_key().clone()];
    let _ =
        (open_checkpoint(text, &keys), Manifest::open(text, &keys), SignedCheckpoint::parse(text));
    let _ = (VerifyingKey::parse(text), SigningKey::from_text(text));
    let _ = (text.parse::<Hash>(), text.parse::<Month>());
    let _ = LedgerVerifier::new(Anchors::default()).checkpoint(text);
}

/// Text with the punctuation of our formats.
fn any_text() -> impl Strategy<Value = String> {
    prop_oneof![any::<String>(), "[\\n\\x{2014} +a-z0-9/={}\":,\\[\\]]{0,200}"]
}

/// Replaces one byte, and truncates the bytes at `cut`.
fn damage(mut bytes: Vec<u8>, at: Index, byte: u8, cut: Option<Index>) -> Vec<u8> {
    let at = at.index(bytes.len());
    bytes[at] = byte;
    if let Some(cut) = cut {
        bytes.truncate(cut.index(bytes.len()));
    }
    bytes
}

proptest! {
    #[test]
    fn random_bytes_do_not_panic(bytes in any::<Vec<u8>>(), text in any_text()) {
        read_lines(&bytes);
        read_lines(text.as_bytes());
        let _ = gunzip(bytes.as_slice()).read_to_end(&mut Vec::new());
        let _ = Chain::decode(&bytes);
        parse_all(&text);
    }

    #[test]
    fn damaged_notes_do_not_verify(at in any::<Index>(), byte: u8, cut in any::<Option<Index>>()) {
        let good = checkpoint(&entries(), 20, &key());
        let text = damage(good.clone().into_bytes(), at, byte, cut);
        let text = String::from_utf8_lossy(&text);
        parse_all(&text);
        prop_assert_eq!(open_checkpoint(&text, &[key().verifying_key().clone()]).is_ok(), text == good);
    }

    #[test]
    fn damaged_files_do_not_verify(
        file in any::<Index>(),
        at in any::<Index>(),
        byte: u8,
        cut in any::<Option<Index>>(),
    ) {
        let entries = entries();
        let mut files = export(&entries, INSTANCE, &key());
        let name = file.get(&files.0.keys().cloned().collect::<Vec<_>>()).clone();
        let bytes = damage(files.0[&name].clone(), at, byte, cut);
        files.0.insert(name, bytes);
        let report = verify_files(&files, pinned(&key()));
        if report.verdict == Verdict::Ok {
            prop_assert_eq!((report.entries, report.root), (20, chain_of(&entries).root()));
        }
    }

    #[test]
    fn damaged_lines_do_not_panic(at in any::<Index>(), byte: u8, cut in any::<Option<Index>>()) {
        let files = exported();
        let mut lines = Vec::new();
        gunzip(files.0["ledger-2026-05.ndjson.gz"].as_slice()).read_to_end(&mut lines).unwrap();
        let lines = damage(lines, at, byte, cut);
        read_lines(&lines);
    }
}

/// Files with a month that is much larger than its manifest says, counting the bytes read.
struct OversizedFiles {
    files: Files,
    read: AtomicUsize,
}

impl ExportFiles for OversizedFiles {
    fn names(&self) -> io::Result<Vec<String>> {
        self.files.names()
    }

    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Counted { input: self.files.open(name)?, read: &self.read }))
    }
}

struct Counted<'a> {
    input: Box<dyn Read + 'a>,
    read: &'a AtomicUsize,
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let bytes = self.input.read(buffer)?;
        self.read.fetch_add(bytes, Ordering::Relaxed);
        Ok(bytes)
    }
}

#[test]
fn oversized_file_is_not_read_to_its_end() {
    let mut files = export(&entries()[..2], INSTANCE, &key());
    let mut zip = GzEncoder::new(Vec::new(), Compression::fast());
    for _ in 0..256 {
        zip.write_all(&[b'\n'; 256 * 1024]).unwrap();
    }
    let zip = zip.finish().unwrap();
    let bytes = zip.len();
    files.0.insert("ledger-2026-05.ndjson.gz".into(), zip);
    let files = OversizedFiles { files, read: AtomicUsize::new(0) };
    let report = verify_export(&files, pinned(&key()), &mut |_| ()).unwrap();
    assert_eq!(report.verdict, Verdict::Tampered);
    assert!(files.read.into_inner() < bytes / 2, "read too many of {bytes} bytes");
}
