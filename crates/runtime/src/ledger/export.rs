//! Exports the ledger to files, two for each month.

use std::fs;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use api::{Code, Error, Export, Exported, LedgerExport, ProgressSink};
use kernel::EventBody;
use kernel::installation::{self, Event as InstallationEvent};
use ledger::export::{LedgerHead, Manifest, Month, MonthWriter, WriteError, WrittenMonth};
use ledger::{Chain, Hash};
use sha2::{Digest, Sha256};
use store::Store;
use store::{PAGE_ENTRIES_MAX, Page};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;

use crate::clock::Time;
use crate::commit::codec;
use crate::commit::transaction::Transactions;
use crate::errors::{self, internal};
use crate::installation::Installation;
use crate::ledger::month_files::MonthFiles;
use crate::retention::EXPORTS_FOLDER;

/// Which months to export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MonthSelection {
    /// All, with what the current month has so far.
    All,
    Finished(MissingLines),
}

/// What to do about a finished month whose manifest exists and whose lines do not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum MissingLines {
    Restore,
    /// A cleanup has removed them.
    Leave,
}

/// Finished months that this process has exported or found exported. Neither they nor the ledger before their end change any
/// more, so they are not read again each hour.
#[derive(Clone, Debug)]
pub(crate) struct FinishedMonths {
    months: Vec<Month>,
    /// The ledger at the end of the last month.
    chain: Chain,
    /// The hash of the last month's manifest.
    manifest: Option<Hash>,
}

impl FinishedMonths {
    pub(crate) fn none() -> FinishedMonths {
        FinishedMonths { months: Vec::new(), chain: Chain::empty(), manifest: None }
    }

    fn are_in(&self, dir: &Path, missing: MissingLines) -> bool {
        let mut files = self.months.iter().map(|month| MonthFiles::of(dir, *month));
        files.all(|it| it.has_manifest() && (missing == MissingLines::Leave || it.lines_exist()))
    }
}

#[derive(Debug)]
pub(crate) struct Exports {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) time: Arc<Time>,
    pub(crate) transactions: Arc<Transactions>,
    pub(crate) installation: Arc<Installation>,
    /// Locked while files are written. Has the months that need not be read again.
    pub(crate) exporting: tokio::sync::Mutex<FinishedMonths>,
}

impl Exports {
    pub(crate) async fn export(
        &self,
        request: LedgerExport,
        progress: &ProgressSink,
    ) -> Result<Exported, Error> {
        let named = request.dir.map(PathBuf::from);
        if let Some(dir) = named.as_ref().filter(|dir| dir.is_relative()) {
            let what = format!("`{}` is no absolute path", dir.display());
            return Err(Error::new(Code::InvalidInput, what)
                .hint("the daemon has a working directory of its own; write the whole path"));
        }
        let dir = named.unwrap_or_else(|| self.default_directory());
        let _one_at_a_time = self.exporting.lock().await;
        let (exported, _) =
            self.export_to(dir, MonthSelection::All, FinishedMonths::none(), progress).await?;
        Ok(exported)
    }

    /// Exports the finished months to the default directory.
    pub(crate) async fn export_finished_months(
        &self,
        missing: MissingLines,
    ) -> Result<Exported, Error> {
        let dir = self.default_directory();
        let mut finished = self.exporting.lock().await;
        let is_known = finished.are_in(&dir, missing);
        let known = if is_known { finished.clone() } else { FinishedMonths::none() };
        let selection = MonthSelection::Finished(missing);
        let (exported, known) =
            self.export_to(dir, selection, known, &ProgressSink::default()).await?;
        *finished = known;
        Ok(exported)
    }

    fn default_directory(&self) -> PathBuf {
        self.installation.settings.data.join(EXPORTS_FOLDER)
    }

    /// The caller holds the lock `exporting`.
    async fn export_to(
        &self,
        dir: PathBuf,
        selection: MonthSelection,
        finished: FinishedMonths,
        progress: &ProgressSink,
    ) -> Result<(Exported, FinishedMonths), Error> {
        let head = self.store.head().await.map_err(errors::store)?;
        let job = ExportJob {
            store: Arc::clone(&self.store),
            installation: Arc::clone(&self.installation),
            runtime: Handle::current(),
            end: head.size(),
            this_month: Month::containing(self.time.now().as_micros()),
            selection,
            dir: dir.clone(),
            progress: progress.clone(),
        };
        let (months, finished) =
            spawn_blocking(move || job.run(finished)).await.map_err(internal)??;
        let mut exports = Vec::with_capacity(months.len());
        for (export, manifest_hash) in months {
            if export.written {
                self.transactions
                    .record(InstallationEvent::Exported(installation::Exported {
                        month: export.month.clone(),
                        first: export.first,
                        last: export.last,
                        manifest_hash: manifest_hash.to_string(),
                    }))
                    .await?;
            }
            exports.push(export);
        }
        Ok((Exported { dir: dir.display().to_string(), exports }, finished))
    }
}

/// One export, on a thread that may block.
struct ExportJob {
    store: Arc<dyn Store>,
    installation: Arc<Installation>,
    runtime: Handle,
    /// Entries after this one are left for the next export.
    end: u64,
    this_month: Month,
    selection: MonthSelection,
    dir: PathBuf,
    progress: ProgressSink,
}

impl ExportJob {
    /// Exports every month after the known ones, and returns each with the hash of its manifest.
    fn run(
        mut self,
        mut finished: FinishedMonths,
    ) -> Result<(Vec<(Export, Hash)>, FinishedMonths), Error> {
        self.create_directory().map_err(|error| self.failed(&self.dir, error))?;
        if self.selection == MonthSelection::All {
            self.end = self.end_without_export_events()?;
        }
        let next = self.month_after(finished.chain.size())?;
        if next.is_some_and(|next| finished.months.contains(&next)) {
            // The month was not finished: an entry was still being written, or the clock was set back.
            finished = FinishedMonths::none();
        }
        let mut exported = Vec::new();
        while let Some(month) = self.month_after(finished.chain.size())? {
            if self.selection != MonthSelection::All && self.this_month <= month {
                break;
            }
            let first = finished.chain.size() + 1;
            let (after, manifest_hash, written) =
                self.export_month(month, finished.chain, finished.manifest)?;
            let (file, last) = (month.lines_file_name(), after.size());
            exported.push((
                Export { month: month.to_string(), file, first, last, written },
                manifest_hash,
            ));
            finished.months.push(month);
            (finished.chain, finished.manifest) = (after, Some(manifest_hash));
        }
        Ok((exported, finished))
    }

    /// A directory that a person named may be a link.
    fn create_directory(&self) -> io::Result<()> {
        match self.dir == self.installation.settings.data.join(EXPORTS_FOLDER) {
            true => files::create_directory(&self.dir),
            false => fs::create_dir_all(&self.dir),
        }
    }

    /// The end of the last export, if only events about exports follow it. Every export adds such an event, and would
    /// otherwise never find its month unchanged.
    fn end_without_export_events(&self) -> Result<u64, Error> {
        let mut end = self.end;
        while let Some(before) = end.checked_sub(1)
            && let Some(entry) = self.page(before, 1)?.iter().next()
        {
            let last =
                self.read_manifest(&MonthFiles::of(&self.dir, Month::containing(entry.ts_us)));
            if last.is_some_and(|(manifest, _)| manifest.after.size == end) {
                return Ok(end);
            }
            if !codec::decode_event(&entry).is_ok_and(|event| is_export_event(&event)) {
                break;
            }
            end = before;
        }
        Ok(self.end)
    }

    /// Writes the files of a month, unless they are up to date.
    fn export_month(
        &self,
        month: Month,
        before: Chain,
        previous: Option<Hash>,
    ) -> Result<(Chain, Hash, bool), Error> {
        let files = MonthFiles::of(&self.dir, month);
        files.recover().map_err(|error| self.failed(&self.dir, error))?;
        let mut after = before.clone();
        self.for_each(month, before.size(), |fields| Ok(after.verify_next(fields)?))?;
        if let Some((manifest, hash)) = self.read_manifest(&files)
            && manifest.before == LedgerHead::from(&before)
            && manifest.after == LedgerHead::from(&after)
            && manifest.previous == previous
            && (self.may_lack_lines(&files) || files.has_lines(&manifest))
        {
            return Ok((after, hash, false));
        }
        let hash = self.write(month, before, previous, &files)?;
        Ok((after, hash, true))
    }

    /// Only an export that a person requests writes lines again that a cleanup has removed.
    fn may_lack_lines(&self, files: &MonthFiles) -> bool {
        self.selection == MonthSelection::Finished(MissingLines::Leave) && !files.lines_exist()
    }

    fn read_manifest(&self, files: &MonthFiles) -> Option<(Manifest, Hash)> {
        let note = files.read_manifest()?;
        let manifest =
            Manifest::open(&note, &[self.installation.signing_key.verifying_key().clone()]).ok()?;
        Some((manifest, sha256(note.as_bytes())))
    }

    fn write(
        &self,
        month: Month,
        before: Chain,
        previous: Option<Hash>,
        files: &MonthFiles,
    ) -> Result<Hash, Error> {
        let written = self.write_lines(month, before, previous, files);
        let manifest = written.inspect_err(|_| files.discard_new())?;
        let note = manifest.sign(&[&self.installation.signing_key]).map_err(internal)?;
        files.replace(&note).map_err(|error| self.failed(&self.dir, error))?;
        Ok(sha256(note.as_bytes()))
    }

    /// Writes the new lines beside the current ones, and reads them back.
    fn write_lines(
        &self,
        month: Month,
        before: Chain,
        previous: Option<Hash>,
        month_files: &MonthFiles,
    ) -> Result<Manifest, Error> {
        let failed = |error| self.failed(month_files.new_lines(), error);
        let output = BufWriter::new(files::create(month_files.new_lines()).map_err(failed)?);
        let instance = self.installation.instance.clone();
        let start = before.size();
        let mut writer = MonthWriter::new(output, instance, month, before, previous);
        self.for_each(month, start, |fields| writer.write(fields))?;
        let WrittenMonth { output, manifest, .. } =
            writer.finish().map_err(|error| self.write_error(error))?;
        let file = output.into_inner().map_err(|error| failed(error.into_error()))?;
        file.sync_all().map_err(failed)?;
        match month_files.has_new_lines(&manifest).map_err(failed)? {
            true => Ok(manifest),
            false => {
                let path = month_files.new_lines().display();
                Err(internal(format!("`{path}` differs from what was written")))
            }
        }
    }

    fn month_after(&self, seq: u64) -> Result<Option<Month>, Error> {
        let page = if seq < self.end { self.page(seq, 1)? } else { Page::default() };
        Ok(page.iter().next().map(|fields| Month::containing(fields.ts_us)))
    }

    fn for_each(
        &self,
        month: Month,
        after: u64,
        mut visit: impl FnMut(&ledger::EntryRef<'_>) -> Result<(), WriteError>,
    ) -> Result<(), Error> {
        let mut at = after;
        while at < self.end {
            let limit = usize::try_from(self.end - at).unwrap_or(PAGE_ENTRIES_MAX);
            let page = self.page(at, limit)?;
            let in_month =
                page.iter().take_while(|fields| Month::containing(fields.ts_us) == month);
            let mut visited = 0;
            for fields in in_month {
                visit(&fields).map_err(|error| self.write_error(error))?;
                at = fields.seq;
                visited += 1;
            }
            self.progress.show(at, self.end);
            if visited < page.len() || page.is_empty() {
                return Ok(());
            }
        }
        Ok(())
    }

    fn page(&self, after: u64, limit: usize) -> Result<Page, Error> {
        self.runtime.block_on(self.store.entries(after, limit)).map_err(errors::store)
    }

    fn write_error(&self, error: WriteError) -> Error {
        match error {
            WriteError::Io(error) => self.failed(&self.dir, error),
            WriteError::Damaged(fault) => errors::store(store::Error::Damaged(fault.to_string())),
            other => internal(other),
        }
    }

    fn failed(&self, path: &Path, error: io::Error) -> Error {
        let code = match error.kind() {
            io::ErrorKind::StorageFull => Code::DiskFull,
            io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => Code::ReadOnly,
            io::ErrorKind::NotFound => Code::NotFound,
            _ => Code::Failed,
        };
        Error::new(code, format!("cannot write the export `{}`: {error}", path.display()))
            .hint("earlier exports were not changed")
    }
}

fn is_export_event(event: &EventBody) -> bool {
    matches!(event, EventBody::Installation(_, InstallationEvent::Exported(_)))
}

fn sha256(bytes: &[u8]) -> Hash {
    Hash::from_bytes(Sha256::digest(bytes).into())
}
