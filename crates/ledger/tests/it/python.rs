//! A verifier in another language, so that a mistake in our hashing is not made on both sides.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use ledger::export::unzip;

use crate::golden;
use crate::support::{
    Files, INSTANCE, chain_of, cut_short, entries, export, exported, key, other_key,
};

/// The files in a fresh directory below the one that cargo provides.
fn directory(name: &str, files: &Files) -> PathBuf {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if directory.exists() {
        fs::remove_dir_all(&directory).unwrap();
    }
    fs::create_dir_all(&directory).unwrap();
    for (name, bytes) in &files.0 {
        fs::write(directory.join(name), bytes).unwrap();
    }
    directory
}

/// What the other verifier says of these files.
#[expect(clippy::disallowed_methods, reason = "the other verifier is a program of its own")]
fn python(name: &str, files: &Files, vkeys: &[&str]) -> String {
    let output = std::process::Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verify.py"))
        .arg(directory(name, files))
        .args(vkeys)
        .output()
        .expect("this test needs `python3` on the path: install Python 3");
    let said = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.success(), said.starts_with("ok "), "{said}{errors}");
    said.trim().to_owned()
}

#[test]
fn it_finds_our_files_good() {
    let entries = entries();
    let files = export(&entries, INSTANCE, &key());
    let expected = format!("ok 20 {}", chain_of(&entries).root());
    assert_eq!(python("good", &files, &[&key().verifying_key().to_text()]), expected);
    assert_eq!(python("good-by-genesis", &files, &[]), expected);
}

#[test]
fn it_finds_the_golden_files_good() {
    let golden = golden::read();
    let expected = format!("ok {} {}", golden.lines.len(), golden.roots.last().unwrap());
    assert_eq!(python("golden", &golden.files(), &[&golden.verifying_key]), expected);
}

#[test]
fn it_finds_an_export_that_was_cut_short_whole() {
    let vkey = key().verifying_key().to_text();
    for (at, (files, count)) in cut_short().into_iter().enumerate() {
        let expected = format!("ok {count} {}", chain_of(&entries()[..count]).root());
        assert_eq!(python(&format!("cut-short-{at}"), &files, &[&vkey]), expected);
    }
}

#[test]
fn it_finds_damage() {
    let good = exported();
    let vkey = key().verifying_key().to_text();
    let june = "ledger-2026-06.ndjson.gz";
    let mut text = String::new();
    unzip(good.0[june].as_slice()).read_to_string(&mut text).unwrap();

    let mut changed = good.clone();
    let mut zip = GzEncoder::new(Vec::new(), Compression::default());
    zip.write_all(text.replace("nightly-4", "nightly-5").as_bytes()).unwrap();
    changed.0.insert(june.to_owned(), zip.finish().unwrap());
    assert_eq!(python("changed", &changed, &[&vkey]), format!("bad: {june}: other bytes"));

    let mut missing = good.clone();
    missing.0.retain(|name, _| !name.contains("2026-06"));
    let said = python("missing", &missing, &[&vkey]);
    assert_eq!(said, "bad: ledger-2026-07.manifest: a month is missing");

    let stranger = other_key().verifying_key().to_text();
    let said = python("stranger", &good, &[&stranger]);
    assert_eq!(said, "bad: not signed by a known key");
    assert!(python("both-keys", &good, &[&stranger, &vkey]).starts_with("ok "));
}
