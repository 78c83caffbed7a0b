//! A second verifier, in Python, that shares no code, so that it does not repeat a mistake in our hashing.

use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use ledger::export::gunzip;

use crate::golden;
use crate::support::{
    Files, INSTANCE, chain_of, entries, export, exported, interrupted_exports, key, other_key,
};

/// Writes the files to a fresh directory below the one that cargo provides.
fn write_directory(name: &str, files: &Files) -> PathBuf {
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

/// The output of the second verifier for these files.
#[expect(clippy::disallowed_methods, reason = "the second verifier is a separate program")]
fn run_python(name: &str, files: &Files, vkeys: &[&str]) -> String {
    let output = std::process::Command::new("python3")
        .arg(concat!(env!("CARGO_MANIFEST_DIR"), "/tests/verify.py"))
        .arg(write_directory(name, files))
        .args(vkeys)
        .output()
        .expect("this test needs `python3` on `PATH`");
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.success(), stdout.starts_with("ok "), "{stdout}{stderr}");
    stdout.trim().to_owned()
}

#[test]
fn accepts_exported_files() {
    let entries = entries();
    let files = export(&entries, INSTANCE, &key());
    let expected = format!("ok 20 {}", chain_of(&entries).root());
    assert_eq!(run_python("good", &files, &[&key().verifying_key().to_text()]), expected);
    assert_eq!(run_python("good-by-genesis", &files, &[]), expected);
}

#[test]
fn accepts_golden_files() {
    let golden = golden::read();
    let expected = format!("ok {} {}", golden.lines.len(), golden.roots.last().unwrap());
    assert_eq!(run_python("golden", &golden.files(), &[&golden.verifying_key]), expected);
}

#[test]
fn accepts_interrupted_exports() {
    let vkey = key().verifying_key().to_text();
    for (at, (files, count)) in interrupted_exports().into_iter().enumerate() {
        let expected = format!("ok {count} {}", chain_of(&entries()[..count]).root());
        assert_eq!(run_python(&format!("interrupted-{at}"), &files, &[&vkey]), expected);
    }
}

#[test]
fn finds_damage() {
    let good = exported();
    let vkey = key().verifying_key().to_text();
    let june = "ledger-2026-06.ndjson.gz";
    let mut text = String::new();
    gunzip(good.0[june].as_slice()).read_to_string(&mut text).unwrap();

    let mut changed = good.clone();
    let mut zip = GzEncoder::new(Vec::new(), Compression::default());
    zip.write_all(text.replace("nightly-4", "nightly-5").as_bytes()).unwrap();
    changed.0.insert(june.to_owned(), zip.finish().unwrap());
    assert_eq!(run_python("changed", &changed, &[&vkey]), format!("bad: {june}: wrong sha256"));

    let mut missing = good.clone();
    missing.0.retain(|name, _| !name.contains("2026-06"));
    let output = run_python("missing", &missing, &[&vkey]);
    assert_eq!(output, "bad: ledger-2026-07.manifest: a month is missing");

    let stranger = other_key().verifying_key().to_text();
    let output = run_python("stranger", &good, &[&stranger]);
    assert_eq!(output, "bad: not signed by a known key");
    assert!(run_python("both-keys", &good, &[&stranger, &vkey]).starts_with("ok "));
}
