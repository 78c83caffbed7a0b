//! The two files of an exported month on the disk, and how both are replaced.
//!
//! Two files cannot be replaced at once. So the new lines wait beside the old ones until the manifest
//! is replaced, and from then on they count, wherever they are: see `docs/ledger-format.md`.
//! Invariant: at every moment, also after a crash, the lines that the manifest speaks of are there.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use ledger::export::{Manifest, Month};

#[derive(Debug)]
pub(crate) struct Pair {
    dir: PathBuf,
    lines: PathBuf,
    new_lines: PathBuf,
    manifest: PathBuf,
    new_manifest: PathBuf,
}

impl Pair {
    pub(crate) fn of(dir: &Path, month: Month) -> Pair {
        Pair {
            dir: dir.to_owned(),
            lines: dir.join(month.lines_name()),
            new_lines: dir.join(month.new_lines_name()),
            manifest: dir.join(month.manifest_name()),
            new_manifest: dir.join(format!("{}.new", month.manifest_name())),
        }
    }

    /// Where the lines are written.
    pub(crate) fn new_lines(&self) -> &Path {
        &self.new_lines
    }

    /// Ends what an export that was cut short had begun.
    pub(crate) fn settle(&self) -> io::Result<()> {
        if !self.new_lines.exists() {
            return Ok(());
        }
        let manifest = self.note().and_then(|note| Manifest::peek(&note).ok());
        match manifest.is_some_and(|it| self.has_new_lines(&it).unwrap_or(false)) {
            true => fs::rename(&self.new_lines, &self.lines)?,
            false => self.discard_new(),
        }
        self.sync()
    }

    /// Whether both files are there, whatever is in them.
    pub(crate) fn exists(&self) -> bool {
        self.lines.exists() && self.manifest.exists()
    }

    /// The manifest as it is signed, if there is one.
    pub(crate) fn note(&self) -> Option<String> {
        fs::read_to_string(&self.manifest).ok()
    }

    /// Whether the lines in place are those that the manifest speaks of. Reads all of them.
    pub(crate) fn has_lines(&self, manifest: &Manifest) -> bool {
        describes(manifest, &self.lines).unwrap_or(false)
    }

    /// The same for the lines that wait.
    pub(crate) fn has_new_lines(&self, manifest: &Manifest) -> io::Result<bool> {
        describes(manifest, &self.new_lines)
    }

    /// Puts the lines that wait in place, with their manifest.
    pub(crate) fn put(&self, note: &str) -> io::Result<()> {
        self.write_manifest(note).inspect_err(|_| self.discard_new())?;
        fs::rename(&self.new_manifest, &self.manifest)?;
        self.sync()?;
        fs::rename(&self.new_lines, &self.lines)?;
        self.sync()
    }

    /// Not once the manifest is replaced: then the new lines are those that count.
    pub(crate) fn discard_new(&self) {
        for path in [&self.new_lines, &self.new_manifest] {
            let _ = fs::remove_file(path);
        }
    }

    /// All that waits is on the disk afterwards, so that it is found whenever the next step is.
    fn write_manifest(&self, note: &str) -> io::Result<()> {
        let mut file = File::create(&self.new_manifest)?;
        file.write_all(note.as_bytes())?;
        file.sync_all()?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

fn describes(manifest: &Manifest, lines: &Path) -> io::Result<bool> {
    manifest.describes(BufReader::new(File::open(lines)?))
}
