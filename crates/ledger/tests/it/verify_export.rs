//! The verifier's report on exported files that were altered, removed or forged.

use std::io::{Read, Write};

use flate2::write::GzEncoder;
use flate2::{Compression, GzBuilder};
use ledger::export::{LedgerHead, LineReader, LineWriter, Manifest, gunzip};
use ledger::verify::{Anchors, Report, Verdict, entry_files, verify_export};
use ledger::{Hash, SigningKey};
use serde_json::json;

use crate::support::{
    Files, INSTANCE, append_all, chain_of, checkpoint, draft, drafts, entries, export, exported,
    interrupted_exports, key, manifest_of, other_key, pinned, pinned_all, verify_files,
    with_external,
};

const MAY: &str = "ledger-2026-05";
const JUNE: &str = "ledger-2026-06";
const JULY: &str = "ledger-2026-07";
const SEPTEMBER: &str = "ledger-2026-09";

fn lines(month: &str) -> String {
    format!("{month}.ndjson.gz")
}

fn manifest(month: &str) -> String {
    format!("{month}.manifest")
}

fn text_of(files: &Files, month: &str) -> String {
    let mut text = String::new();
    gunzip(files.0[&lines(month)].as_slice()).read_to_string(&mut text).unwrap();
    text
}

fn gzip(text: &[u8], level: Compression) -> Vec<u8> {
    let mut zip = GzEncoder::new(Vec::new(), level);
    zip.write_all(text).unwrap();
    zip.finish().unwrap()
}

/// The report on valid files after `damage`.
fn after(damage: impl FnOnce(&mut Files)) -> Report {
    let mut files = exported();
    damage(&mut files);
    verify_files(&files, pinned(&key()))
}

/// The report after changing the lines of June (entries 3 to 7) as text, but not the manifest.
fn june(change: impl FnOnce(String) -> String) -> Report {
    after(|files| {
        let text = change(text_of(files, JUNE));
        files.0.insert(lines(JUNE), gzip(text.as_bytes(), Compression::default()));
    })
}

#[track_caller]
fn check(report: &Report, verdict: Verdict, seq: Option<u64>, file: &str, what: &str) {
    let damage = report.damage.clone().expect("expected damage");
    assert_eq!(
        (report.verdict, damage.seq, damage.file.as_deref()),
        (verdict, seq, Some(file)),
        "{}",
        damage.what
    );
    assert!(damage.what.contains(what), "{}", damage.what);
}

#[track_caller]
fn is_ok(report: &Report) {
    assert_eq!((report.verdict, &report.damage), (Verdict::Ok, &None));
    assert_eq!(report.root, chain_of(&entries()).root());
}

#[test]
fn valid_files_are_ok() {
    let mut progress = Vec::new();
    let report =
        verify_export(&exported(), pinned(&key()), &mut |done| progress.push(done)).unwrap();
    is_ok(&report);
    assert_eq!((report.entries, report.checkpoints), (20, 5));
    assert_eq!(report.caveats.len(), 1, "only the missing external checkpoint");
    assert_eq!(progress, [2, 7, 13, 18, 20]);

    let unpinned = verify_files(&exported(), Anchors::default());
    is_ok(&unpinned);
    assert!(unpinned.caveats[0].contains("without `--vkey`"));
}

#[test]
fn recompressed_files_are_ok() {
    for level in [Compression::none(), Compression::fast(), Compression::best()] {
        is_ok(&after(|files| {
            let text = text_of(files, JUNE);
            let mut zip = GzBuilder::new().mtime(1).filename("x").write(Vec::new(), level);
            zip.write_all(text.as_bytes()).unwrap();
            files.0.insert(lines(JUNE), zip.finish().unwrap());
        }));
    }
    is_ok(&after(|files| {
        let text = text_of(files, JUNE);
        let (a, b) = text.as_bytes().split_at(100);
        let both = [gzip(a, Compression::fast()), gzip(b, Compression::best())].concat();
        files.0.insert(lines(JUNE), both);
    }));
}

#[test]
fn other_files_are_ignored() {
    is_ok(&after(|files| {
        files.0.insert("checkpoints.log".into(), b"?".to_vec());
        files.0.insert("ledger-2026-08.ndjson.gz.tmp".into(), b"?".to_vec());
    }));
}

#[test]
fn changed_entry_is_tampered() {
    let report = june(|text| text.replace("nightly-4", "nightly-5"));
    check(
        &report,
        Verdict::Tampered,
        Some(5),
        &lines(JUNE),
        "entry 5 does not match its hash: it or entry 4 was changed",
    );
    assert_eq!(report.entries, 4);
}

#[test]
fn removed_moved_and_added_entries_are_tampered() {
    let rows = |text: String| text.split_inclusive('\n').map(str::to_owned).collect::<Vec<_>>();
    let missing = "entry 4 is missing";
    let report = june(|text| {
        let mut it = rows(text);
        it.remove(1);
        it.concat()
    });
    check(&report, Verdict::Tampered, Some(4), &lines(JUNE), missing);
    let report = june(|text| {
        let mut it = rows(text);
        it.swap(1, 2);
        it.concat()
    });
    check(&report, Verdict::Tampered, Some(4), &lines(JUNE), missing);
    let report = june(|text| {
        let mut it = rows(text);
        it.pop();
        it.concat()
    });
    check(&report, Verdict::Tampered, Some(7), &lines(JUNE), "it ends before entry 7");
    let report = june(|text| {
        let mut it = rows(text);
        it.insert(1, it[1].clone());
        it.concat()
    });
    check(&report, Verdict::Tampered, Some(5), &lines(JUNE), "found entry 4 instead, repeated");
    let report = june(|text| {
        let mut it = rows(text);
        it.push(it[4].clone());
        it.concat()
    });
    check(&report, Verdict::Tampered, Some(8), &lines(JUNE), "it continues after entry 7");
}

#[test]
fn changed_bytes_between_entries_are_tampered() {
    let report = june(|text| text.replacen("{\"seq\"", "{ \"seq\"", 1));
    check(
        &report,
        Verdict::Tampered,
        None,
        &lines(JUNE),
        "the file was changed, but its entries are unchanged",
    );
}

#[test]
fn invalid_lines_are_tampered() {
    let seq_4 = |from: &str, to: &str| {
        june(|text| {
            let at = text.find("\"seq\":4").unwrap();
            format!("{}{}", &text[..at], text[at..].replacen(from, to, 1))
        })
    };
    for (from, to, what) in [
        ("\"role\"", "\"actor\"", "duplicate field `actor`"),
        ("\"role\"", "\"rule\"", "unknown field `rule`"),
        ("\"version\":1,", "", "missing field `version`"),
        ("\"version\":1", "\"version\":65536", "invalid value"),
        ("\"salt\"", "\"private_hash\"", "invalid value"),
        ("\"salt\":\"03030303030303030303030303030303\",", "", "do not fit"),
        ("\"private\":{", "\"private\":null,\"salt\":{", "duplicate field `salt`"),
        ("}\n", "} {}\n", "trailing characters"),
        ("}\n", "\n", "EOF"),
        ("}\n", "}\n\n", "line 3 is not an entry"),
    ] {
        let report = seq_4(from, to);
        let seq = if what.starts_with("line 3") { 5 } else { 4 };
        check(&report, Verdict::Tampered, Some(seq), &lines(JUNE), what);
    }
}

#[test]
fn signed_invalid_lines_are_unreadable() {
    let mut files = exported();
    let text = text_of(&files, MAY).replacen("\"role\"", "\"rule\"", 1);
    let mut manifest_may = manifest_of(&files, &lines(MAY));
    manifest_may.sha256 = Hash::of(text.as_bytes());
    files.0.insert(lines(MAY), gzip(text.as_bytes(), Compression::default()));
    files.0.insert(manifest(MAY), manifest_may.sign(&[&key()]).unwrap().into_bytes());
    let report = verify_files(&files, pinned(&key()));
    check(
        &report,
        Verdict::Unreadable,
        Some(1),
        &lines(MAY),
        "line 1 is not an entry: unknown field `rule`",
    );
}

#[test]
fn damaged_files_are_unreadable() {
    let cut = after(|files| files.0.get_mut(&lines(JUNE)).unwrap().truncate(200));
    check(&cut, Verdict::Unreadable, None, &lines(JUNE), "cannot read the file");
    let empty = after(|files| files.0.get_mut(&lines(JUNE)).unwrap().clear());
    check(&empty, Verdict::Unreadable, None, &lines(JUNE), "cannot read the file");
    let flipped = after(|files| {
        let file = files.0.get_mut(&lines(JUNE)).unwrap();
        let crc = file.len() - 8;
        file[crc] ^= 1;
    });
    check(&flipped, Verdict::Unreadable, None, &lines(JUNE), "cannot read the file");
    let half_a_line = june(|text| text[..text.len() - 50].to_owned());
    check(&half_a_line, Verdict::Tampered, Some(7), &lines(JUNE), "line 5 is incomplete");
    let no_manifest = after(|files| drop(files.0.insert(manifest(JUNE), b"?".to_vec())));
    check(&no_manifest, Verdict::Unreadable, None, &manifest(JUNE), "not a signed note");
    let long = after(|files| drop(files.0.insert(manifest(JUNE), vec![b'x'; 100_000])));
    check(&long, Verdict::Unreadable, None, &manifest(JUNE), "too long");
}

#[test]
fn missing_files_are_tampered() {
    let report = after(|files| drop(files.0.remove(&lines(JUNE))));
    check(&report, Verdict::Tampered, Some(3), &lines(JUNE), "is missing");
    let report = after(|files| drop(files.0.remove(&manifest(JUNE))));
    check(&report, Verdict::Tampered, None, &manifest(JUNE), "is missing");
    for (month, next, seq) in [(MAY, JUNE, 1), (JUNE, JULY, 3)] {
        let report = after(|files| {
            files.0.remove(&lines(month));
            files.0.remove(&manifest(month));
        });
        check(&report, Verdict::Tampered, Some(seq), &manifest(next), "earlier files were removed");
    }
    let none = verify_files(&Files::default(), Anchors::default());
    assert_eq!(none.verdict, Verdict::Unreadable);
}

#[test]
fn missing_last_month_is_found_by_external_checkpoint_only() {
    let (entries, key) = (entries(), key());
    let mut files = exported();
    files.0.remove(&lines(SEPTEMBER));
    files.0.remove(&manifest(SEPTEMBER));
    let unseen = verify_files(&files, pinned(&key));
    assert_eq!((unseen.verdict, unseen.entries), (Verdict::Ok, 18));

    let keys = [key.verifying_key().clone()];
    let report = verify_files(&files, with_external(&keys, &checkpoint(&entries, 19, &key)));
    assert_eq!(report.verdict, Verdict::Truncated);
    assert_eq!(report.damage.unwrap().seq, Some(19));
    let every = [5, 12, 19].map(|size| checkpoint(&entries, size, &key)).concat();
    is_ok(&verify_files(&exported(), with_external(&keys, &every)));
}

#[test]
fn every_external_checkpoint_must_match() {
    let (entries, key) = (entries(), key());
    let keys = [key.verifying_key().clone()];
    let other = append_all(&drafts(INSTANCE, &other_key(), 20));
    let notes = [checkpoint(&other, 5, &key), checkpoint(&entries, 12, &key)].concat();
    let report = verify_files(&exported(), with_external(&keys, &notes));
    assert_eq!(report.verdict, Verdict::Truncated, "{report:?}");
    assert!(report.damage.unwrap().what.contains("the first 5 entries do not match"));
}

#[test]
fn swapped_files_are_tampered() {
    let swap = |files: &mut Files, name: fn(&str) -> String| {
        let [june, july] = [name(JUNE), name(JULY)].map(|name| files.0.remove(&name).unwrap());
        files.0.insert(name(JUNE), july);
        files.0.insert(name(JULY), june);
    };
    let report = after(|files| swap(files, lines));
    check(&report, Verdict::Tampered, Some(3), &lines(JUNE), "entry 3 is missing");
    let report = after(|files| swap(files, manifest));
    check(&report, Verdict::Tampered, None, &manifest(JUNE), "this manifest belongs to 2026-07");
    let report = after(|files| {
        swap(files, lines);
        swap(files, manifest);
    });
    check(&report, Verdict::Tampered, None, &manifest(JUNE), "this manifest belongs to 2026-07");
}

#[test]
fn files_of_another_installation_are_tampered() {
    let theirs = export(&append_all(&drafts("another", &key(), 20)), "another", &key());
    let take = |files: &mut Files, name: String| {
        files.0.insert(name.clone(), theirs.0[&name].clone());
    };
    let report = after(|files| take(files, lines(JUNE)));
    check(&report, Verdict::Tampered, Some(3), &lines(JUNE), "entry 3 does not match its hash");
    let report = after(|files| take(files, manifest(JUNE)));
    check(&report, Verdict::Tampered, None, &manifest(JUNE), "another installation, `another`");
    let report = after(|files| {
        take(files, lines(JUNE));
        take(files, manifest(JUNE));
    });
    check(&report, Verdict::Tampered, None, &manifest(JUNE), "another installation, `another`");

    let mislabelled = export(&entries(), "another", &key());
    let report = verify_files(&mislabelled, pinned(&key()));
    check(&report, Verdict::Tampered, None, &manifest(MAY), "another installation, `another`");
}

#[test]
fn changed_and_forged_manifests_are_refused() {
    let change = |from: &'static str, to: &'static str| {
        after(|files| {
            let note = String::from_utf8(files.0[&manifest(JUNE)].clone()).unwrap();
            files.0.insert(manifest(JUNE), note.replace(from, to).into_bytes());
        })
    };
    let report = change("\"bytes\":", "\"bytes\":1");
    check(&report, Verdict::Tampered, None, &manifest(JUNE), "is wrong");
    let report = change("{\"after\"", "{ \"after\"");
    check(
        &report,
        Verdict::Unreadable,
        None,
        &manifest(JUNE),
        "not a manifest that this version supports",
    );
    let report = change("midwatch-manifest/v1", "midwatch-manifest/v2");
    check(
        &report,
        Verdict::Unreadable,
        None,
        &manifest(JUNE),
        "not a manifest that this version supports",
    );

    let resigned = |edit: fn(&mut Manifest), key: &SigningKey| {
        after(|files| {
            let mut june = manifest_of(files, &lines(JUNE));
            edit(&mut june);
            files.0.insert(manifest(JUNE), june.sign(&[key]).unwrap().into_bytes());
        })
    };
    let report = resigned(|june| june.after.root = Hash::of(b"x"), &key());
    check(&report, Verdict::Tampered, Some(7), &manifest(JUNE), "end does not match its entries");
    let report = resigned(|june| june.before.head = Hash::of(b"x"), &key());
    check(
        &report,
        Verdict::Tampered,
        Some(3),
        &manifest(JUNE),
        "does not continue the previous one",
    );
    let report = resigned(|june| june.previous = None, &key());
    check(
        &report,
        Verdict::Tampered,
        Some(3),
        &manifest(JUNE),
        "does not continue the previous one",
    );
    let report = resigned(|june| june.after.size = 2, &key());
    check(&report, Verdict::Unreadable, None, &manifest(JUNE), "contains no entries");
    // Only the owner can sign, and any new signature breaks the link of the next month.
    let report = resigned(|_| (), &other_key());
    check(
        &report,
        Verdict::Tampered,
        Some(8),
        &manifest(JULY),
        "does not continue the previous one",
    );
}

#[test]
fn export_signed_by_another_key_is_tampered() {
    let forged = export(&entries(), INSTANCE, &other_key());
    let report = verify_files(&forged, pinned(&key()));
    check(&report, Verdict::Tampered, None, &manifest(MAY), "not by a known key");
    let report = verify_files(&forged, Anchors::default());
    check(&report, Verdict::Tampered, None, &manifest(MAY), "not by a known key");
}

#[test]
fn replaced_key_may_sign_later_and_earlier_months() {
    let (old, new) = (key(), other_key());
    let [old_text, new_text] = [&old, &new].map(|key| key.verifying_key().to_text());
    let mut drafts = drafts(INSTANCE, &old, 20);
    drafts[9] = draft(9, "ledger.key_replaced", json!({ "old": old_text, "new": new_text }));
    let files = export(&append_all(&drafts), INSTANCE, &new);
    let report = verify_files(&files, Anchors::default());
    assert_eq!((report.verdict, report.checkpoints), (Verdict::Ok, 5), "{:?}", report.damage);
    assert!(report.caveats.iter().any(|caveat| caveat.contains(&new_text)));
    let report = verify_files(&files, pinned_all(&[&old, &new]));
    assert_eq!((report.verdict, report.checkpoints), (Verdict::Ok, 5), "{:?}", report.damage);

    // An attacker without the key can still write an entry that replaces it.
    let report = verify_files(&files, pinned(&old));
    check(&report, Verdict::Tampered, None, &manifest(MAY), "not by a known key");
    assert!(report.caveats[0].contains("whose signatures are not trusted"), "{:?}", report.caveats);
}

/// Files with the first `count` entries in May and an edited manifest.
fn may_with(count: usize, edit: impl FnOnce(&mut Manifest)) -> Files {
    let mut files = exported();
    let mut writer = LineWriter::new(GzEncoder::new(Vec::new(), Compression::fast()));
    entries()[..count].iter().for_each(|entry| writer.write(&entry.entry_ref()).unwrap());
    let (zip, content) = writer.finish();
    let mut may = manifest_of(&files, &lines(MAY));
    (may.sha256, may.bytes) = (content.sha256, content.bytes);
    edit(&mut may);
    files.0.insert(lines(MAY), zip.finish().unwrap());
    files.0.insert(manifest(MAY), may.sign(&[&key()]).unwrap().into_bytes());
    files
}

#[test]
fn entries_of_another_month_or_beyond_the_manifest_are_tampered() {
    let files = may_with(3, |_| ());
    let report = verify_files(&files, pinned(&key()));
    check(&report, Verdict::Tampered, Some(3), &lines(MAY), "entry 3 belongs to 2026-06");
    let files = may_with(2, |may| may.after = LedgerHead::from(&chain_of(&entries()[..1])));
    let report = verify_files(&files, pinned(&key()));
    check(&report, Verdict::Tampered, Some(2), &lines(MAY), "entry 2 is not in the manifest");
}

#[test]
fn interrupted_export_is_ok() {
    for (at, (files, entries)) in interrupted_exports().into_iter().enumerate() {
        let report = verify_files(&files, pinned(&key()));
        let found = (report.verdict, report.entries);
        assert_eq!(found, (Verdict::Ok, entries as u64), "state {at}: {:?}", report.damage);
        let mut read = 0;
        for name in entry_files(&files).unwrap() {
            let mut reader = LineReader::new(gunzip(files.0[&name].as_slice()));
            while reader.next().unwrap().is_some() {
                read += 1;
            }
        }
        assert_eq!(read, entries, "state {at}");
    }
}

#[test]
fn new_lines_are_used_only_if_the_manifest_matches() {
    let new_lines = |month: &str| format!("{}.new", lines(month));
    let report = after(|files| drop(files.0.insert(new_lines(JUNE), b"rubbish".to_vec())));
    is_ok(&report);
    let report = after(|files| {
        let text = text_of(files, JUNE).replace("nightly-4", "nightly-5");
        files.0.insert(new_lines(JUNE), gzip(text.as_bytes(), Compression::default()));
        files.0.remove(&lines(JUNE));
    });
    check(&report, Verdict::Tampered, Some(3), &lines(JUNE), "is missing");
}
