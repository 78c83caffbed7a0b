//! The two files of an exported month, and how both are replaced.
//!
//! Two files cannot be replaced at once. So the new lines are written to a file beside the old ones and are valid, under either
//! name, as soon as the manifest is replaced: see `docs/ledger-format.md`.
//! Invariant: at every moment, also after a crash, the lines that the manifest describes exist.

use std::fs::{self, File};
use std::io::{self, BufReader, Write};
use std::path::{Path, PathBuf};

use ledger::export::{MANIFEST_BYTES_MAX, Manifest, Month};

#[derive(Debug)]
pub(crate) struct MonthFiles {
    dir: PathBuf,
    lines: PathBuf,
    new_lines: PathBuf,
    manifest: PathBuf,
    new_manifest: PathBuf,
}

impl MonthFiles {
    pub(crate) fn of(dir: &Path, month: Month) -> MonthFiles {
        MonthFiles {
            dir: dir.to_owned(),
            lines: dir.join(month.lines_file_name()),
            new_lines: dir.join(month.new_lines_file_name()),
            manifest: dir.join(month.manifest_file_name()),
            new_manifest: dir.join(format!("{}.new", month.manifest_file_name())),
        }
    }

    /// The path to write new lines to.
    pub(crate) fn new_lines(&self) -> &Path {
        &self.new_lines
    }

    /// Finishes or discards an export that was interrupted.
    pub(crate) fn recover(&self) -> io::Result<()> {
        if !self.new_lines.exists() {
            return Ok(());
        }
        let manifest = self.read_manifest().and_then(|note| Manifest::parse_unverified(&note).ok());
        match manifest.is_some_and(|it| self.has_new_lines(&it).unwrap_or(false)) {
            true => fs::rename(&self.new_lines, &self.lines)?,
            false => self.discard_new(),
        }
        self.sync()
    }

    /// Whether both files exist, whatever is in them.
    pub(crate) fn exists(&self) -> bool {
        self.lines.exists() && self.manifest.exists()
    }

    /// The signed manifest, if it exists.
    pub(crate) fn read_manifest(&self) -> Option<String> {
        files::read_text(&self.manifest, MANIFEST_BYTES_MAX).ok()
    }

    /// Whether the current lines are those that the manifest describes. Reads all of them.
    pub(crate) fn has_lines(&self, manifest: &Manifest) -> bool {
        matches(manifest, &self.lines).unwrap_or(false)
    }

    /// Whether the new lines are those that the manifest describes. Reads all of them.
    pub(crate) fn has_new_lines(&self, manifest: &Manifest) -> io::Result<bool> {
        matches(manifest, &self.new_lines)
    }

    /// Replaces the lines and the manifest by the new ones.
    pub(crate) fn replace(&self, note: &str) -> io::Result<()> {
        self.write_manifest(note).inspect_err(|_| self.discard_new())?;
        fs::rename(&self.new_manifest, &self.manifest)?;
        self.sync()?;
        fs::rename(&self.new_lines, &self.lines)?;
        self.sync()
    }

    /// Removes the new files. Not to be called once the manifest is replaced, which makes the new lines valid.
    pub(crate) fn discard_new(&self) {
        for path in [&self.new_lines, &self.new_manifest] {
            let _ = fs::remove_file(path);
        }
    }

    /// Writes the new manifest, and syncs both new files to the disk before the old manifest is replaced.
    fn write_manifest(&self, note: &str) -> io::Result<()> {
        let mut file = files::create(&self.new_manifest)?;
        file.write_all(note.as_bytes())?;
        file.sync_all()?;
        self.sync()
    }

    fn sync(&self) -> io::Result<()> {
        File::open(&self.dir)?.sync_all()
    }
}

fn matches(manifest: &Manifest, lines: &Path) -> io::Result<bool> {
    manifest.matches_file(BufReader::new(files::open(lines)?))
}
