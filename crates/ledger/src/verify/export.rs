//! Verifies exported files, month by month.
//!
//! For each month it checks, in this order: the manifest's format, its link to the previous manifest,
//! its signature; the sequence, times and hashes of the entries; the file's digest and the resulting
//! ledger head against the manifest. For a changed file it reports the first entry that differs, if
//! one does. New lines that have not replaced the existing ones are used if the manifest matches them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::mem;

use super::report::{Finding, Report};
use super::trust::Anchors;
use super::verification::Verification;
use crate::export::{
    FileKind, LedgerHead, LineReader, MANIFEST_BYTES_MAX, Manifest, Month, ReadError, gunzip,
};
use crate::note::NoteError;
use crate::{EntryRef, Hash};

const PROGRESS_ENTRIES: u64 = 4096;

/// A directory of exported files. Files with other names are ignored.
pub trait ExportFiles {
    fn names(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>>;
}

/// Verifies all exported months. Calls `progress` now and then with the number of verified entries.
///
/// Fails only if the files cannot be listed; the report names a file that cannot be read.
pub fn verify_export(
    files: &dyn ExportFiles,
    anchors: Anchors,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Report> {
    let months = group_by_month(&files.names()?);
    let mut verifier = ExportVerifier {
        files,
        verification: Verification::new(anchors),
        previous: None,
        unverified: Vec::new(),
        keys_tried_count: 0,
        progress,
    };
    let outcome = verifier.run(&months);
    Ok(verifier.verification.into_report(outcome))
}

/// The names of the files with the entries of all months, in chronological order.
pub fn entry_files(files: &dyn ExportFiles) -> io::Result<Vec<String>> {
    let months = group_by_month(&files.names()?);
    let file = |(month, present): (&Month, &MonthFiles)| {
        let note = read_manifest(files, &month.manifest_file_name())
            .map_err(|finding| io::Error::other(finding.damage.what))?;
        let manifest = Manifest::parse_unverified(&note).map_err(io::Error::other)?;
        Ok(present.lines_file(files, &manifest))
    };
    months.iter().map(file).collect()
}

/// Which files of a month exist.
#[derive(Clone, Copy, Default)]
struct MonthFiles {
    has_lines: bool,
    has_new_lines: bool,
    has_manifest: bool,
}

impl MonthFiles {
    /// The file with the month's entries: the new lines if they exist and match the manifest.
    fn lines_file(self, files: &dyn ExportFiles, manifest: &Manifest) -> String {
        let new_lines = manifest.month.new_lines_file_name();
        let matches = || manifest.matches_file(files.open(&new_lines)?);
        match self.has_new_lines && matches().unwrap_or(false) {
            true => new_lines,
            false => manifest.month.lines_file_name(),
        }
    }
}

struct ExportVerifier<'a> {
    files: &'a dyn ExportFiles,
    verification: Verification,
    /// The hash of the previous manifest.
    previous: Option<Hash>,
    /// Manifests by unknown signers: a later entry may name the key.
    unverified: Vec<SignedManifest>,
    keys_tried_count: usize,
    progress: &'a mut dyn FnMut(u64),
}

/// A manifest as a signed note.
struct SignedManifest {
    file: String,
    note: String,
    size: u64,
}

impl ExportVerifier<'_> {
    fn run(&mut self, months: &BTreeMap<Month, MonthFiles>) -> Result<(), Finding> {
        if months.is_empty() {
            return Err(Finding::unreadable("found no exported ledger files"));
        }
        for (month, present) in months {
            self.verify_month(*month, *present)?;
        }
        match self.unverified.first() {
            None => Ok(()),
            Some(signed) => self.verify_signature(signed).map_err(|error| signed.finding(&error)),
        }
    }

    fn verify_month(&mut self, month: Month, present: MonthFiles) -> Result<(), Finding> {
        let file = month.manifest_file_name();
        if !present.has_manifest {
            return Err(Finding::tampered("the manifest is missing").in_file(&file));
        }
        let note = read_manifest(self.files, &file).map_err(|finding| finding.in_file(&file))?;
        let manifest = Manifest::parse_unverified(&note)
            .map_err(|error| invalid_manifest(&error).in_file(&file))?;
        self.check_position(&manifest, month).map_err(|finding| finding.in_file(&file))?;
        self.previous = Some(Hash::of(note.as_bytes()));
        self.check_signature(SignedManifest {
            file: file.clone(),
            note,
            size: manifest.after.size,
        })?;

        let lines_file = present.lines_file(self.files, &manifest);
        if !present.has_lines && lines_file == month.lines_file_name() {
            let first = manifest.before.size + 1;
            let what = format!("the file is missing; it started with entry {first}");
            return Err(Finding::tampered(what).at(first).in_file(&lines_file));
        }
        self.check_lines(&lines_file, &manifest).map_err(|finding| finding.in_file(&lines_file))?;
        self.check_ledger_head(&manifest).map_err(|finding| finding.in_file(&file))?;
        self.retry_unverified()
    }

    /// Checks that the manifest belongs to this month and ledger, and starts where the previous one ended.
    fn check_position(&self, manifest: &Manifest, month: Month) -> Result<(), Finding> {
        if manifest.month != month {
            let what = format!("this manifest belongs to {}", manifest.month);
            return Err(Finding::tampered(what));
        }
        self.check_instance(manifest)?;
        let end = LedgerHead::from(self.verification.chain());
        let (first, found) = (end.size + 1, manifest.before.size + 1);
        if first < found {
            let last = found - 1;
            let what = format!("entries {first} to {last} are missing: earlier files were removed");
            return Err(Finding::tampered(what).at(first));
        }
        if manifest.before != end || manifest.previous != self.previous {
            let what = "the manifest does not continue the previous one";
            return Err(Finding::tampered(what).at(first));
        }
        if manifest.after.size < first {
            return Err(Finding::unreadable("the manifest contains no entries"));
        }
        Ok(())
    }

    fn check_instance(&self, manifest: &Manifest) -> Result<(), Finding> {
        match self.verification.instance() {
            Some(instance) if instance != manifest.instance => {
                let what = format!(
                    "the manifest belongs to another installation, `{}`",
                    manifest.instance
                );
                Err(Finding::tampered(what))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a wrong signature. A manifest by an unknown key is kept until an entry names the key.
    fn check_signature(&mut self, signed: SignedManifest) -> Result<(), Finding> {
        match self.verify_signature(&signed) {
            Ok(()) => self.verification.record_signature(signed.size),
            Err(NoteError::UnknownKey { .. }) => self.unverified.push(signed),
            Err(error) => return Err(signed.finding(&error)),
        }
        Ok(())
    }

    fn retry_unverified(&mut self) -> Result<(), Finding> {
        let keys = self.verification.keys().len();
        if mem::replace(&mut self.keys_tried_count, keys) == keys {
            return Ok(());
        }
        mem::take(&mut self.unverified).into_iter().try_for_each(|it| self.check_signature(it))
    }

    fn verify_signature(&self, signed: &SignedManifest) -> Result<(), NoteError> {
        Manifest::open(&signed.note, self.verification.keys()).map(|_| ())
    }

    fn check_lines(&mut self, name: &str, manifest: &Manifest) -> Result<(), Finding> {
        let file = self.files.open(name).map_err(|error| unreadable_file(&error.into()))?;
        // One byte beyond the expected size reveals a longer file; more is not read.
        let mut reader = LineReader::new(gunzip(file).take(manifest.bytes.saturating_add(1)));
        let first = self.check_entries(&mut reader, manifest)?;
        let content = reader.finish().map_err(|error| unreadable_file(&error.into()))?;
        if content != manifest.content_digest() {
            return Err(self.mismatch(first, manifest));
        }
        first.map_or(Ok(()), Err)
    }

    /// The file's content does not match the manifest: reports the first entry that differs, if any.
    fn mismatch(&self, first: Option<Finding>, manifest: &Manifest) -> Finding {
        let (done, last) = (self.verification.chain().size(), manifest.after.size);
        let (seq, what) = match first {
            Some(finding) if finding.damage.seq == Some(last + 1) => {
                (Some(last + 1), format!("the file was changed: it continues after entry {last}"))
            }
            Some(finding) => (finding.damage.seq, finding.damage.what),
            None if done < last => {
                let next = done + 1;
                (Some(next), format!("the file was changed: it ends before entry {next}"))
            }
            None if LedgerHead::from(self.verification.chain()) != manifest.after => {
                let first = manifest.before.size + 1;
                (Some(first), "the file was changed: its entries were not signed".to_owned())
            }
            None => (None, "the file was changed, but its entries are unchanged".to_owned()),
        };
        let mut finding = Finding::tampered(what);
        finding.damage.seq = seq;
        finding
    }

    /// Returns the first damage among the entries. Fails if the file cannot be read, because then its
    /// digest cannot be compared either.
    fn check_entries<R: BufRead>(
        &mut self,
        reader: &mut LineReader<R>,
        manifest: &Manifest,
    ) -> Result<Option<Finding>, Finding> {
        loop {
            let next = self.verification.chain().size() + 1;
            let line = match reader.next() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(error @ ReadError::Io(_)) => return Err(unreadable_file(&error)),
                Err(error) => return Ok(Some(unreadable_file(&error).at(next))),
            };
            if let Err(finding) = self.check_entry(&line.entry_ref(), manifest) {
                return Ok(Some(finding));
            }
            if next.is_multiple_of(PROGRESS_ENTRIES) || next == manifest.after.size {
                (self.progress)(next);
            }
        }
    }

    fn check_entry(&mut self, entry: &EntryRef<'_>, manifest: &Manifest) -> Result<(), Finding> {
        self.verification.verify_entry(entry)?;
        let (seq, month) = (entry.seq, Month::containing(entry.ts_us));
        if month != manifest.month {
            let what = format!("entry {seq} belongs to {month}");
            return Err(Finding::tampered(what).at(seq));
        }
        if manifest.after.size < seq {
            return Err(Finding::tampered(format!("entry {seq} is not in the manifest")).at(seq));
        }
        Ok(())
    }

    fn check_ledger_head(&self, manifest: &Manifest) -> Result<(), Finding> {
        self.check_instance(manifest)?;
        if manifest.after != LedgerHead::from(self.verification.chain()) {
            let what = "the manifest's end does not match its entries";
            return Err(Finding::tampered(what).at(manifest.after.size));
        }
        Ok(())
    }
}

impl SignedManifest {
    fn finding(&self, error: &NoteError) -> Finding {
        invalid_manifest(error).in_file(&self.file)
    }
}

fn read_manifest(files: &dyn ExportFiles, file: &str) -> Result<String, Finding> {
    let unreadable =
        |error: io::Error| Finding::unreadable(format!("cannot read the file: {error}"));
    let input = files.open(file).map_err(unreadable)?;
    let mut note = String::new();
    input.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_string(&mut note).map_err(unreadable)?;
    if MANIFEST_BYTES_MAX < note.len() {
        return Err(Finding::unreadable("the manifest is too long"));
    }
    Ok(note)
}

fn invalid_manifest(error: &NoteError) -> Finding {
    Finding::invalid_note("the manifest", error)
}

fn unreadable_file(error: &ReadError) -> Finding {
    Finding::unreadable(error.to_string())
}

fn group_by_month(names: &[String]) -> BTreeMap<Month, MonthFiles> {
    let mut months: BTreeMap<Month, MonthFiles> = BTreeMap::new();
    for (month, kind) in names.iter().filter_map(|name| Month::parse_file_name(name)) {
        let files = months.entry(month).or_default();
        match kind {
            FileKind::Lines => files.has_lines = true,
            FileKind::NewLines => files.has_new_lines = true,
            FileKind::Manifest => files.has_manifest = true,
        }
    }
    // New lines without a manifest are not part of the export yet.
    months.retain(|_, files| files.has_lines || files.has_manifest);
    months
}
