//! A backup comes back as it was, and a file that another hand wrote or changed is refused.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::json;
use tar::{Builder, EntryType, Header};
use tempfile::TempDir;

use super::*;
use api::ProgressSink;

#[test]
fn only_known_files_and_plain_names_in_known_folders_are_members() {
    for name in [
        "midwatch.toml",
        "signing.key",
        "ledger/ledger-2026-11.jsonl.gz",
        "outputs/run_1-1.txt",
        "notices/url",
        "stop/freeze",
    ] {
        assert!(is_member_name(name), "{name}");
    }
    let long = format!("outputs/{}", "a".repeat(NAME_BYTES_MAX));
    for name in [
        "",
        "/midwatch.toml",
        "midwatch.db",
        "lock",
        "outputs",
        "outputs/",
        "outputs/.",
        "outputs/..",
        "outputs/.hidden",
        "outputs/../midwatch.db",
        "outputs/a/b",
        "outputs//b",
        "../outputs/a",
        "./outputs/a",
        "exports/a",
        "outputs/a b",
        "outputs/a\0",
        "outputs\\a",
        &long,
    ] {
        assert!(!is_member_name(name), "{name:?}");
    }
}

/// A directory with the files `names`, each with its name as text.
fn content(names: &[&str]) -> TempDir {
    let root = tempfile::tempdir().unwrap();
    for name in names {
        let path = root.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, name).unwrap();
    }
    root
}

fn write_backup(root: &TempDir, names: &[&str], file: &Path) -> Result<(u64, Manifest), Error> {
    let content = BackupContent {
        root: root.path(),
        names: names.iter().map(ToString::to_string).collect(),
        left_out: vec!["signing.key".into()],
        version: "1",
        created_at: "2026-11-18T00:00:00Z".into(),
    };
    write(&content, file, &ProgressSink::default())
}

/// A member of an archive that a test forges.
struct Forged {
    name: &'static str,
    kind: EntryType,
    link: Option<&'static str>,
    text: Vec<u8>,
    /// The size in its header, if that is not the size of the text.
    bytes: Option<u64>,
}

fn forged(name: &'static str, text: impl AsRef<[u8]>) -> Forged {
    let text = text.as_ref().to_owned();
    Forged { name, kind: EntryType::Regular, link: None, text, bytes: None }
}

/// The manifest that lists these files with their real hashes.
fn manifest_of(files: &[(&str, &str)]) -> Forged {
    let files: Vec<_> = files
        .iter()
        .map(|(name, text)| {
            let sha256 = Hash::from_bytes(Sha256::digest(text).into()).to_string();
            json!({"name": name, "bytes": text.len(), "sha256": sha256})
        })
        .collect();
    let manifest = json!({
        "format": 1, "version": "1", "created_at": "", "left_out": [], "files": files
    });
    forged(MANIFEST_NAME, manifest.to_string())
}

fn archive_of(members: &[Forged]) -> Vec<u8> {
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    for member in members {
        let mut header = Header::new_ustar();
        header.set_entry_type(member.kind);
        // `set_path` refuses some of the names.
        header.as_old_mut().name[..member.name.len()].copy_from_slice(member.name.as_bytes());
        if let Some(link) = member.link {
            header.set_link_name(link).unwrap();
        }
        header.set_size(member.bytes.unwrap_or(member.text.len() as u64));
        header.set_cksum();
        archive.append(&header, member.text.as_slice()).unwrap();
    }
    archive.into_inner().unwrap().finish().unwrap()
}

fn decompress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut found = Vec::new();
    flate2::read::GzDecoder::new(bytes).read_to_end(&mut found)?;
    Ok(found)
}

/// Everything below a directory, sorted.
fn tree(root: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(tree(&path));
        }
        found.push(path);
    }
    found.sort();
    found
}

/// Unpacks bytes that must be refused with this message, and checks that nothing was written elsewhere.
fn check_refused(what: &str, bytes: &[u8], code: Code, message: &str) {
    let root = tempfile::tempdir().unwrap();
    let (file, into) = (root.path().join("backup"), root.path().join("into"));
    fs::write(&file, bytes).unwrap();
    fs::create_dir(&into).unwrap();
    let unpacked = unpack(&file, &into, &ProgressSink::default());
    let Err(error) = unpacked else { panic!("{what}: {unpacked:?}") };
    assert_eq!(error.code, code, "{what}: {error:?}");
    assert!(error.message.contains(message), "{what}: {error:?}");
    fs::remove_dir_all(&into).unwrap();
    assert_eq!(tree(root.path()), [file], "{what}");
}

#[test]
fn a_backup_is_unpacked_as_it_was_written() {
    let names = ["midwatch.toml", "ledger/a.jsonl.gz", "outputs/run_1-1.txt"];
    let root = content(&names);
    let file = root.path().join("backup");
    let (bytes, _) = write_backup(&root, &names, &file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().len(), bytes);
    let into = tempfile::tempdir().unwrap();
    let manifest = unpack(&file, into.path(), &ProgressSink::default()).unwrap();
    assert_eq!((manifest.count_in("outputs"), manifest.has_file("midwatch.toml")), (1, true));
    assert_eq!(manifest.left_out, ["signing.key"]);
    for name in names {
        assert_eq!(fs::read_to_string(into.path().join(name)).unwrap(), name);
    }
}

#[test]
fn a_backup_is_private_and_replaces_no_file() {
    use std::os::unix::fs::PermissionsExt;
    let root = content(&["node"]);
    let file = root.path().join("backup");
    write_backup(&root, &["node"], &file).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
    let before = fs::read(&file).unwrap();
    assert_eq!(write_backup(&root, &["node"], &file).unwrap_err().code, Code::Exists);
    assert_eq!(fs::read(&file).unwrap(), before);
    assert_eq!(tree(root.path()), [file, root.path().join("node")]);
}

#[test]
fn a_file_that_cannot_be_read_leaves_no_backup() {
    let root = content(&["node"]);
    let file = root.path().join("backup");
    write_backup(&root, &["node", "policy.toml"], &file).unwrap_err();
    std::os::unix::fs::symlink("node", root.path().join("policy.toml")).unwrap();
    write_backup(&root, &["node", "policy.toml"], &file).unwrap_err();
    assert!(!file.exists());
    assert_eq!(tree(root.path()).len(), 2);
}

/// Attack D6: an archive with `..`, absolute names, or a link followed by a file through it.
#[test]
fn names_and_links_that_lead_outside_are_refused() {
    let check = |what: &str, members: &[Forged], message: &str| {
        check_refused(what, &archive_of(members), Code::BackupInvalid, message);
    };
    for name in ["../escaped", "/tmp/escaped", "outputs/../../escaped", "midwatch.db", "lock"] {
        let listed = [manifest_of(&[(name, "x")]), forged(name, "x")];
        check(name, &listed, "which is not allowed");
        let unlisted = [manifest_of(&[("node", "x")]), forged(name, "x")];
        check(name, &unlisted, "something else in place of `node`");
    }
    for kind in [EntryType::Symlink, EntryType::Link, EntryType::Fifo, EntryType::Directory] {
        let link = Forged { kind, link: Some("/etc"), ..forged("outputs", "") };
        let listed = [manifest_of(&[("outputs/a", "x")]), link, forged("outputs/a", "x")];
        check("a link before its file", &listed, "something else");
        let link = Forged { kind, link: Some("/etc/passwd"), ..forged("node", "") };
        check("a link as a file", &[manifest_of(&[("node", "")]), link], "something else");
    }
    for kind in [EntryType::GNULongName, EntryType::XHeader, EntryType::GNUSparse] {
        let extension = Forged { kind, ..forged("node", "../escaped") };
        let members = [manifest_of(&[("node", "x")]), extension, forged("node", "x")];
        check("an extension", &members, "something else");
    }
}

#[test]
fn content_that_differs_from_the_manifest_is_refused() {
    let check = |what: &str, members: &[Forged], message: &str| {
        check_refused(what, &archive_of(members), Code::BackupInvalid, message);
    };
    check("nothing", &[], "`midwatch-backup.json` is missing");
    check("no manifest", &[forged("node", "x")], "in place of `midwatch-backup.json`");
    check("not JSON", &[forged(MANIFEST_NAME, "x")], "its manifest is invalid");
    check("other text", &[manifest_of(&[("node", "x")]), forged("node", "y")], "differs");
    check("longer", &[manifest_of(&[("node", "x")]), forged("node", "xx")], "another size");
    check("missing", &[manifest_of(&[("node", "x")])], "`node` is missing");
    let more = [manifest_of(&[("node", "x")]), forged("node", "x"), forged("policy.toml", "x")];
    check("one more", &more, "does not list");
    let twice = [manifest_of(&[("node", "x"), ("node", "x")])];
    check("twice", &twice, "which is not allowed");
}

#[test]
fn sizes_beyond_the_disk_or_the_limit_are_refused_before_anything_is_written() {
    let sha256 = Hash::ZERO.to_string();
    let huge = json!({
        "format": 1, "version": "1", "created_at": "", "left_out": [],
        "files": [{"name": "node", "bytes": u64::MAX, "sha256": sha256}]
    });
    let members = [forged(MANIFEST_NAME, huge.to_string()), forged("node", "x")];
    check_refused("huge", &archive_of(&members), Code::DiskFull, "the disk of");
    let long = Forged { bytes: Some(MANIFEST_BYTES_MAX + 1), ..forged(MANIFEST_NAME, "{}") };
    check_refused("long", &archive_of(&[long]), Code::BackupInvalid, "manifest is too long");
    let newer = json!({"format": 2, "version": "9", "created_at": "", "left_out": [], "files": []});
    let newer = archive_of(&[forged(MANIFEST_NAME, newer.to_string())]);
    check_refused("newer", &newer, Code::DataNewer, "has format 2");
    let mut padded = GzEncoder::new(Vec::new(), Compression::fast());
    padded.write_all(&decompress(&archive_of(&[manifest_of(&[])])).unwrap()).unwrap();
    padded.write_all(&vec![0; 2 << 20]).unwrap();
    let padded = padded.finish().unwrap();
    check_refused("padded", &padded, Code::BackupInvalid, "something follows");
}

#[test]
fn a_backup_that_is_cut_off_or_flipped_anywhere_is_refused() {
    let names = ["node", "outputs/run_1-1.txt"];
    let root = content(&names);
    let file = root.path().join("backup");
    write_backup(&root, &names, &file).unwrap();
    let whole = fs::read(&file).unwrap();
    for length in 0..whole.len() {
        check_refused(
            &format!("cut off at {length}"),
            &whole[..length],
            Code::BackupInvalid,
            "cannot be used",
        );
    }
    // Some bits of the compressed form mean nothing, such as the time when it was made.
    let decompressed = decompress(&whole).unwrap();
    for position in 0..whole.len() {
        let mut flipped = whole.clone();
        flipped[position] ^= 1;
        if decompress(&flipped).is_ok_and(|found| found == decompressed) {
            continue;
        }
        check_refused(
            &format!("flipped at {position}"),
            &flipped,
            Code::BackupInvalid,
            "cannot be used",
        );
    }
}
