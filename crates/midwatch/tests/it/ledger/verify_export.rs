//! `ledger verify --export` on files that were altered, without the installation they come from.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use serde_json::Value;

use super::{LAST, MIDDLE, caveats, history, report};
use crate::support::world::{World, copy_dir};

/// An export in a world that has only its files.
struct Export {
    world: World,
    dir: PathBuf,
    /// The public key of the exported ledger.
    key: String,
}

impl Export {
    fn of(history: &World) -> Export {
        let answer = history.json(&["ledger", "export"]);
        let exports = answer["exports"].as_array().unwrap_or_else(|| panic!("{answer}"));
        let first = [&exports[0]["first"], &exports[0]["written"]];
        assert_eq!((exports.len(), first), (1, [&1.into(), &true.into()]), "{answer}");
        let key = history.json(&["status"])["log"]["key"].as_str().unwrap().to_owned();
        Export::copy_of(&history.data().join("exports"), key)
    }

    fn copy_of(from: &Path, key: String) -> Export {
        let world = World::new();
        let dir = world.root().join("export");
        copy_dir(from, &dir);
        Export { world, dir, key }
    }

    fn copy(&self) -> Export {
        Export::copy_of(&self.dir, self.key.clone())
    }

    fn report(&self, arguments: &[&str]) -> Value {
        let dir = self.dir.to_str().unwrap();
        let report = report(&self.world, &[&["--export", dir], arguments].concat());
        assert!(!self.world.data().exists(), "the verifier created a data directory");
        report
    }

    /// The file with this suffix.
    fn file(&self, suffix: &str) -> PathBuf {
        let names = fs::read_dir(&self.dir).unwrap().map(|entry| entry.unwrap().path());
        let mut found: Vec<PathBuf> =
            names.filter(|path| path.to_str().unwrap().ends_with(suffix)).collect();
        assert_eq!(found.len(), 1, "{found:?}");
        found.remove(0)
    }

    /// Checks that the verifier finds the file with this suffix altered.
    fn check(&self, verdict: &str, seq: Option<u64>, suffix: &str, what: &str) -> Value {
        for arguments in [&[][..], &["--vkey", &self.key]] {
            let found = self.report(arguments);
            let damage = &found["damage"];
            assert_eq!(found["verdict"], verdict, "{what}: {found}");
            assert_eq!(damage["seq"].as_u64(), seq, "{what}: {found}");
            let file = damage["file"].as_str().unwrap_or_else(|| panic!("{what}: {found}"));
            assert!(file.ends_with(suffix), "{what}: {found}");
        }
        self.report(&[])
    }
}

const LINES: &str = ".ndjson.gz";
const MANIFEST: &str = ".manifest";

fn read_gzip(path: &Path) -> String {
    try_read_gzip(path).unwrap()
}

fn try_read_gzip(path: &Path) -> io::Result<String> {
    let mut text = String::new();
    GzDecoder::new(fs::File::open(path)?).read_to_string(&mut text)?;
    Ok(text)
}

fn write_gzip(path: &Path, text: &str, level: Compression) {
    let mut file = GzEncoder::new(fs::File::create(path).unwrap(), level);
    file.write_all(text.as_bytes()).unwrap();
    file.finish().unwrap();
}

fn edit(path: &Path, change: impl FnOnce(&mut Vec<u8>)) {
    let mut bytes = fs::read(path).unwrap();
    change(&mut bytes);
    fs::write(path, bytes).unwrap();
}

#[test]
fn export_verifies_without_its_installation() {
    let history = history();
    let export = Export::of(&history);
    let found = export.report(&["--vkey", &export.key]);
    assert_eq!((&found["verdict"], &found["entries"]), (&"ok".into(), &LAST.into()), "{found}");
    assert!(!caveats(&found).contains("without `--vkey`"), "{found}");
    let found = export.report(&[]);
    assert_eq!(found["verdict"], "ok", "{found}");
    assert!(caveats(&found).contains("without `--vkey`"), "{found}");

    let file = export.file(LINES);
    write_gzip(&file, &read_gzip(&file), Compression::none());
    assert_eq!(export.report(&[])["verdict"], "ok", "another compression changed the verdict");

    let beside = history.data().join("checkpoints.log");
    let expect = ["--expect-checkpoint", beside.to_str().unwrap()];
    assert_eq!(export.report(&expect)["verdict"], "ok");
    history.ok(&["ledger", "checkpoint"]);
    let found = export.report(&expect);
    assert_eq!(found["verdict"], "truncated", "{found}");
    assert_eq!(found["damage"]["seq"], LAST + 1, "{found}");
}

#[test]
fn key_that_did_not_sign_the_export_is_refused() {
    let export = Export::of(&history());
    let other = World::new();
    other.add_agent("ada");
    let key = other.json(&["status"])["log"]["key"].as_str().unwrap().to_owned();
    let found = export.report(&["--vkey", &key]);
    assert_eq!(found["verdict"], "tampered", "{found}");
    assert!(found["damage"]["file"].as_str().unwrap().ends_with(MANIFEST), "{found}");

    let dir = export.dir.to_str().unwrap();
    let cut = &export.key[..export.key.len() - 4];
    let arguments = ["ledger", "verify", "--export", dir, "--vkey", cut];
    export.world.refused(&arguments, "invalid_input", 2);
}

#[test]
fn changed_line_of_an_export_is_found_at_its_entry() {
    let original = Export::of(&history());
    let text = read_gzip(&original.file(LINES));
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let at = usize::try_from(MIDDLE).unwrap() - 1;
    let without = |range: std::ops::Range<usize>| {
        let kept = lines.iter().enumerate().filter(|(index, _)| !range.contains(index));
        kept.map(|(_, line)| *line).collect::<String>()
    };
    let with = |line: &str| [&lines[..at].concat(), line, &lines[at + 1..].concat()].concat();
    let mut swapped = lines.clone();
    swapped.swap(at, at + 1);
    let last = lines.len();
    for (what, altered, seq) in [
        ("a string", with(&lines[at].replacen("agent-", "agent+", 1)), MIDDLE),
        ("a number", with(&lines[at].replacen("\"version\":1", "\"version\":2", 1)), MIDDLE),
        ("an empty object", with("{}\n"), MIDDLE),
        ("a control character", with("\u{1}\n"), MIDDLE),
        ("one removed", without(at..at + 1), MIDDLE),
        ("the first removed", without(0..1), 1),
        ("the last removed", without(last - 1..last), LAST),
        ("all removed", String::new(), 1),
        ("two swapped", swapped.concat(), MIDDLE),
        ("one doubled", with(&lines[at].repeat(2)), MIDDLE + 1),
        ("one added", [&text, lines[at]].concat(), LAST + 1),
    ] {
        assert_ne!(altered, text, "{what}");
        let export = original.copy();
        write_gzip(&export.file(LINES), &altered, Compression::fast());
        export.check("tampered", Some(seq), LINES, what);
    }
}

#[test]
fn truncated_export_is_unreadable_and_no_changed_content_passes() {
    let original = Export::of(&history());
    let length = fs::read(original.file(LINES)).unwrap().len();
    for kept in [0, 5, length / 2, length - 1] {
        let export = original.copy();
        edit(&export.file(LINES), |bytes| bytes.truncate(kept));
        let found = export.report(&[]);
        assert_ne!(found["verdict"], "ok", "{kept} of {length} bytes: {found}");
        assert!(found["damage"]["file"].as_str().unwrap().ends_with(LINES), "{found}");
    }
    let export = original.copy();
    edit(&export.file(LINES), |bytes| bytes.truncate(length / 2));
    export.check("unreadable", None, LINES, "half a file");

    // A few bits of a compressed file do not affect its content, such as those that pad the last byte of the
    // stream. Their position depends on the content.
    let text = read_gzip(&original.file(LINES));
    for at in (0..length).step_by(length / 40).chain(length - 10..length) {
        let export = original.copy();
        edit(&export.file(LINES), |bytes| bytes[at] ^= 0x10);
        let found = export.report(&[]);
        if try_read_gzip(&export.file(LINES)).is_ok_and(|read| read == text) {
            assert_eq!(found["verdict"], "ok", "byte {at} changes no content: {found}");
        } else {
            assert_ne!(found["verdict"], "ok", "byte {at}: {found}");
            assert!(found["damage"]["file"].as_str().unwrap().ends_with(LINES), "{found}");
        }
    }
    let export = original.copy();
    edit(&export.file(LINES), |bytes| bytes.extend(b"more"));
    assert_ne!(export.report(&[])["verdict"], "ok", "bytes after the end");
}

#[test]
fn missing_file_of_an_export_is_named() {
    let original = Export::of(&history());
    let export = original.copy();
    fs::remove_file(export.file(LINES)).unwrap();
    export.check("tampered", Some(1), LINES, "no lines");

    let export = original.copy();
    fs::remove_file(export.file(MANIFEST)).unwrap();
    export.check("tampered", None, MANIFEST, "no manifest");

    let export = original.copy();
    fs::remove_file(export.file(LINES)).unwrap();
    fs::remove_file(export.file(MANIFEST)).unwrap();
    assert_eq!(export.report(&[])["verdict"], "unreadable");

    fs::remove_dir_all(&export.dir).unwrap();
    let arguments = ["ledger", "verify", "--export", export.dir.to_str().unwrap()];
    let message = export.world.refused(&arguments, "not_found", 3);
    assert!(message.contains(export.dir.to_str().unwrap()), "{message}");
}

#[test]
fn changed_manifest_is_found() {
    let original = Export::of(&history());
    let note = fs::read_to_string(original.file(MANIFEST)).unwrap();
    let other_size = note.replacen(&format!("{LAST}"), &format!("{}", LAST - 1), 1);
    let cut = &note[..note.len() / 2];
    let unsigned = &note[..=note.find("\n\n").unwrap()];
    assert_ne!(other_size, note);
    for (what, altered, verdict) in [
        ("another size", other_size.as_str(), "tampered"),
        ("half of it", cut, "unreadable"),
        ("nothing", "", "unreadable"),
        ("no signature", unsigned, "unreadable"),
        ("rubbish", "rubbish\n", "unreadable"),
    ] {
        let export = original.copy();
        fs::write(export.file(MANIFEST), altered).unwrap();
        let found = export.report(&["--vkey", &export.key]);
        assert_eq!(found["verdict"], verdict, "{what}: {found}");
        assert!(found["damage"]["file"].as_str().unwrap().ends_with(MANIFEST), "{what}: {found}");
    }
}

/// Both ledgers have the same number of entries, so that only their content differs.
#[test]
fn files_of_another_ledger_do_not_pass() {
    let (ours, theirs) = (Export::of(&history()), Export::of(&history()));
    let export = ours.copy();
    fs::copy(theirs.file(LINES), export.file(LINES)).unwrap();
    let found = export.report(&["--vkey", &export.key]);
    assert_eq!(found["verdict"], "tampered", "{found}");
    assert!(found["damage"]["file"].as_str().unwrap().ends_with(LINES), "{found}");
    let what = found["damage"]["what"].as_str().unwrap();
    assert!(!what.contains("entries are unchanged"), "all entries differ: {what}");

    let export = ours.copy();
    fs::copy(theirs.file(MANIFEST), export.file(MANIFEST)).unwrap();
    let found = export.report(&["--vkey", &export.key]);
    assert_eq!(found["verdict"], "tampered", "{found}");
    assert!(found["damage"]["file"].is_string(), "{found}");

    let whole = theirs.report(&["--vkey", &ours.key]);
    assert_eq!(whole["verdict"], "tampered", "{whole}");
    assert!(whole["damage"]["file"].as_str().unwrap().ends_with(MANIFEST), "{whole}");
}

/// A month is exported again only if its files are missing or damaged.
#[test]
fn export_rewrites_damaged_files() {
    let world = history();
    Export::of(&world);
    let dir = world.data().join("exports");
    let lines = dir.join(fs::read_dir(&dir).unwrap().find_map(lines_file).unwrap());
    edit(&lines, |bytes| bytes.truncate(20));
    // The only new entry is that of the first export, which alone does not cause another.
    assert_eq!(world.json(&["ledger", "export"])["exports"][0]["written"], true);
    assert_eq!(world.json(&["ledger", "export"])["exports"][0]["written"], false);
    let found = report(&world, &["--export", dir.to_str().unwrap()]);
    assert_eq!((&found["verdict"], &found["entries"]), (&"ok".into(), &LAST.into()));
    assert!(world.kinds().ends_with(&["ledger.exported".into(), "ledger.exported".into()]));
    world.verified();
}

fn lines_file(entry: std::io::Result<fs::DirEntry>) -> Option<String> {
    let name = entry.unwrap().file_name().into_string().unwrap();
    name.ends_with(LINES).then_some(name)
}
