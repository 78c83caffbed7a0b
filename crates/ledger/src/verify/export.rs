//! Verifies exported files, month by month.
//!
//! For each month, in this order: the manifest's form, its place after the one before, its
//! signature; then the lines: sequence, time, hashes; then the bytes and the end of the log against
//! the manifest. A changed file is reported with the first entry that shows it, if one does. Lines
//! that wait to be put in place count if the manifest speaks of them.

use std::collections::BTreeMap;
use std::io::{self, BufRead, Read};
use std::mem;

use super::report::{Finding, Report};
use super::trust::Anchors;
use super::walk::Walk;
use crate::export::{
    End, FileKind, LineReader, MANIFEST_BYTES_MAX, Manifest, Month, ReadError, unzip,
};
use crate::note::NoteError;
use crate::{Fields, Hash};

const PROGRESS_ENTRIES: u64 = 4096;

/// Where exported files are. What is not named like one of them is left alone.
pub trait ExportFiles {
    fn names(&self) -> io::Result<Vec<String>>;
    fn open(&self, name: &str) -> io::Result<Box<dyn Read + '_>>;
}

/// Verifies all months there are. `progress` hears now and then how many entries are done.
///
/// Fails only if the files cannot be listed; a file that cannot be read is in the report.
pub fn verify_export(
    files: &dyn ExportFiles,
    anchors: Anchors,
    progress: &mut dyn FnMut(u64),
) -> io::Result<Report> {
    let months = months(&files.names()?);
    let mut verifier = ExportVerifier {
        files,
        walk: Walk::new(anchors),
        previous: None,
        waiting: Vec::new(),
        keys_tried: 0,
        progress,
    };
    let outcome = verifier.run(&months);
    Ok(verifier.walk.conclude(outcome))
}

/// The files with the lines of all months, in the order of time.
pub fn lines_files(files: &dyn ExportFiles) -> io::Result<Vec<String>> {
    let months = months(&files.names()?);
    let file = |(month, pair): (&Month, &Pair)| {
        let note = read_manifest(files, &month.manifest_name())
            .map_err(|finding| io::Error::other(finding.damage.what))?;
        let manifest = Manifest::peek(&note).map_err(io::Error::other)?;
        Ok(pair.lines_file(files, &manifest))
    };
    months.iter().map(file).collect()
}

/// Which of a month's files are there.
#[derive(Clone, Copy, Default)]
struct Pair {
    lines: bool,
    new_lines: bool,
    manifest: bool,
}

impl Pair {
    /// The lines that wait are only read if there are any, which is seldom.
    fn lines_file(self, files: &dyn ExportFiles, manifest: &Manifest) -> String {
        let waiting = manifest.month.new_lines_name();
        let describes = || manifest.describes(files.open(&waiting)?);
        match self.new_lines && describes().unwrap_or(false) {
            true => waiting,
            false => manifest.month.lines_name(),
        }
    }
}

struct ExportVerifier<'a> {
    files: &'a dyn ExportFiles,
    walk: Walk,
    /// The hash of the manifest before.
    previous: Option<Hash>,
    /// Manifests whose signer is not known yet: the log may name the key further on.
    waiting: Vec<Signed>,
    keys_tried: usize,
    progress: &'a mut dyn FnMut(u64),
}

/// A manifest as it was signed.
struct Signed {
    file: String,
    note: String,
    size: u64,
}

impl ExportVerifier<'_> {
    fn run(&mut self, months: &BTreeMap<Month, Pair>) -> Result<(), Finding> {
        if months.is_empty() {
            return Err(Finding::unreadable("there are no files of a ledger"));
        }
        for (month, pair) in months {
            self.month(*month, *pair)?;
        }
        match self.waiting.first() {
            None => Ok(()),
            Some(signed) => self.open(signed).map_err(|error| signed.finding(&error)),
        }
    }

    fn month(&mut self, month: Month, pair: Pair) -> Result<(), Finding> {
        let file = month.manifest_name();
        if !pair.manifest {
            return Err(Finding::tampered("the manifest is missing").in_file(&file));
        }
        let note = read_manifest(self.files, &file).map_err(|finding| finding.in_file(&file))?;
        let manifest = Manifest::peek(&note).map_err(|error| invalid(&error).in_file(&file))?;
        self.check_place(&manifest, month).map_err(|finding| finding.in_file(&file))?;
        self.previous = Some(Hash::of(note.as_bytes()));
        self.check_signature(Signed { file: file.clone(), note, size: manifest.after.size })?;

        let lines_file = pair.lines_file(self.files, &manifest);
        if !pair.lines && lines_file == month.lines_name() {
            let finding = Finding::tampered("the file with the entries is missing");
            return Err(finding.at(manifest.before.size + 1).in_file(&lines_file));
        }
        self.check_lines(&lines_file, &manifest).map_err(|finding| finding.in_file(&lines_file))?;
        self.check_end(&manifest).map_err(|finding| finding.in_file(&file))?;
        self.try_waiting()
    }

    /// The manifest belongs to this month and this log, and begins where the one before ended.
    fn check_place(&self, manifest: &Manifest, month: Month) -> Result<(), Finding> {
        if manifest.month != month {
            let what = format!("this is the manifest of {}", manifest.month);
            return Err(Finding::tampered(what));
        }
        self.check_instance(manifest)?;
        let end = End::from(self.walk.chain());
        let (first, found) = (end.size + 1, manifest.before.size + 1);
        if first < found {
            let last = found - 1;
            let what =
                format!("entries {first} to {last} are missing: files before this one are gone");
            return Err(Finding::tampered(what).at(first));
        }
        if manifest.before != end || manifest.previous != self.previous {
            let what = "the manifest does not follow the one before it";
            return Err(Finding::tampered(what).at(first));
        }
        if manifest.after.size < first {
            return Err(Finding::unreadable("the manifest names no entry"));
        }
        Ok(())
    }

    fn check_instance(&self, manifest: &Manifest) -> Result<(), Finding> {
        match self.walk.instance() {
            Some(instance) if instance != manifest.instance => {
                let what = format!("this belongs to another instance, `{}`", manifest.instance);
                Err(Finding::tampered(what))
            }
            _ => Ok(()),
        }
    }

    /// A wrong signature is damage; one by an unknown key waits for the log to name the key.
    fn check_signature(&mut self, signed: Signed) -> Result<(), Finding> {
        match self.open(&signed) {
            Ok(()) => self.walk.signed(signed.size),
            Err(NoteError::UnknownKey { .. }) => self.waiting.push(signed),
            Err(error) => return Err(signed.finding(&error)),
        }
        Ok(())
    }

    fn try_waiting(&mut self) -> Result<(), Finding> {
        let keys = self.walk.keys().len();
        if mem::replace(&mut self.keys_tried, keys) == keys {
            return Ok(());
        }
        mem::take(&mut self.waiting).into_iter().try_for_each(|it| self.check_signature(it))
    }

    fn open(&self, signed: &Signed) -> Result<(), NoteError> {
        Manifest::open(&signed.note, self.walk.keys()).map(|_| ())
    }

    fn check_lines(&mut self, name: &str, manifest: &Manifest) -> Result<(), Finding> {
        let file = self.files.open(name).map_err(|error| unreadable(&error.into()))?;
        // One byte more than there should be tells a longer file; no more of it is read.
        let mut reader = LineReader::new(unzip(file).take(manifest.bytes.saturating_add(1)));
        let first = self.check_entries(&mut reader, manifest)?;
        let content = reader.finish().map_err(|error| unreadable(&error.into()))?;
        if content != manifest.content() {
            return Err(self.not_as_signed(first, manifest));
        }
        first.map_or(Ok(()), Err)
    }

    /// The bytes are not those that the manifest names: with the first entry that shows it.
    fn not_as_signed(&self, first: Option<Finding>, manifest: &Manifest) -> Finding {
        let (done, last) = (self.walk.chain().size(), manifest.after.size);
        let (seq, shown) = match first {
            Some(finding) if finding.damage.seq == Some(last + 1) => {
                (Some(last + 1), format!("it goes on after entry {last}"))
            }
            Some(finding) => (finding.damage.seq, finding.damage.what),
            None if done < last => (Some(done + 1), format!("it ends before entry {}", done + 1)),
            None if End::from(self.walk.chain()) != manifest.after => {
                let first = manifest.before.size + 1;
                (Some(first), "its entries are not those that were signed".to_owned())
            }
            None => (None, "its entries are unchanged, but not the bytes around them".to_owned()),
        };
        let mut finding = Finding::tampered(format!("the file was changed: {shown}"));
        finding.damage.seq = seq;
        finding
    }

    /// The first damage among the entries, if there is any. Fails when not even bytes come from the
    /// file, so that nothing is left to compare.
    fn check_entries<R: BufRead>(
        &mut self,
        reader: &mut LineReader<R>,
        manifest: &Manifest,
    ) -> Result<Option<Finding>, Finding> {
        loop {
            let next = self.walk.chain().size() + 1;
            let line = match reader.next() {
                Ok(Some(line)) => line,
                Ok(None) => return Ok(None),
                Err(error @ ReadError::Io(_)) => return Err(unreadable(&error)),
                Err(error) => return Ok(Some(unreadable(&error).at(next))),
            };
            if let Err(finding) = self.check_entry(&line.fields(), manifest) {
                return Ok(Some(finding));
            }
            if next.is_multiple_of(PROGRESS_ENTRIES) || next == manifest.after.size {
                (self.progress)(next);
            }
        }
    }

    fn check_entry(&mut self, fields: &Fields<'_>, manifest: &Manifest) -> Result<(), Finding> {
        self.walk.entry(fields)?;
        let (seq, month) = (fields.seq, Month::of(fields.ts_us));
        if month != manifest.month {
            let what = format!("entry {seq} belongs to {month}");
            return Err(Finding::tampered(what).at(seq));
        }
        if manifest.after.size < seq {
            return Err(Finding::tampered(format!("entry {seq} is not in the manifest")).at(seq));
        }
        Ok(())
    }

    fn check_end(&self, manifest: &Manifest) -> Result<(), Finding> {
        self.check_instance(manifest)?;
        if manifest.after != End::from(self.walk.chain()) {
            let what = "the manifest does not end where its entries end";
            return Err(Finding::tampered(what).at(manifest.after.size));
        }
        Ok(())
    }
}

impl Signed {
    fn finding(&self, error: &NoteError) -> Finding {
        invalid(error).in_file(&self.file)
    }
}

fn read_manifest(files: &dyn ExportFiles, file: &str) -> Result<String, Finding> {
    let unreadable = |error: io::Error| Finding::unreadable(format!("cannot be read: {error}"));
    let input = files.open(file).map_err(unreadable)?;
    let mut note = String::new();
    input.take(MANIFEST_BYTES_MAX as u64 + 1).read_to_string(&mut note).map_err(unreadable)?;
    if MANIFEST_BYTES_MAX < note.len() {
        return Err(Finding::unreadable("the manifest is too long"));
    }
    Ok(note)
}

fn invalid(error: &NoteError) -> Finding {
    Finding::note("the manifest", error)
}

fn unreadable(error: &ReadError) -> Finding {
    Finding::unreadable(error.to_string())
}

fn months(names: &[String]) -> BTreeMap<Month, Pair> {
    let mut months: BTreeMap<Month, Pair> = BTreeMap::new();
    for (month, kind) in names.iter().filter_map(|name| Month::of_file(name)) {
        let pair = months.entry(month).or_default();
        match kind {
            FileKind::Lines => pair.lines = true,
            FileKind::NewLines => pair.new_lines = true,
            FileKind::Manifest => pair.manifest = true,
        }
    }
    // Lines that wait for a first manifest are no part of the export yet.
    months.retain(|_, pair| pair.lines || pair.manifest);
    months
}
